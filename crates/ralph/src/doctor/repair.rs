//! What `ralph doctor --fix` may do by itself: nothing that a person made is changed or lost.

use std::{fs, path::PathBuf};

use ralph_engine::{
    setup::{
        init::{self, Wish},
        places::Scope,
        uninstall,
    },
    sys::files,
};

use super::Case;
use crate::exit::Failure;

/// A safe way to mend a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Write the hooks and commands, as `ralph init` does.
    Register(Scope),
    /// Take them out, as `ralph uninstall` does.
    Unregister(Scope),
    /// Have git ignore paths, in this clone only.
    Exclude { file: PathBuf, lines: Vec<String> },
    /// Write ralph's own `.gitignore` again.
    Prepare,
    /// Remove what an interrupted ralph left.
    Remove(Vec<PathBuf>),
}

impl Repair {
    /// Makes the repair, and says what was done.
    pub(crate) fn make(&self, case: &Case) -> Result<String, Failure> {
        match self {
            Repair::Register(scope) => {
                let wish = Wish { scope: *scope, command: init::own_command(*scope), block_cap: None };
                init::plan(&case.places, &case.survey, &case.records, &wish)?.carry_out(&case.records, |_| {})?;
                Ok(format!("registered, as `ralph init --{}` does", scope.word()))
            }
            Repair::Unregister(scope) => {
                uninstall::plan(&case.places, &case.survey, &case.records, &[*scope])?.carry_out(&case.records, |_| {})?;
                Ok(format!("taken out, as `ralph uninstall --{}` does", scope.word()))
            }
            Repair::Exclude { file, lines } => {
                let text = format!("{}\n", lines.join("\n"));
                files::add_lines(file, &text).map_err(|e| Failure::new(format!("cannot write {}: {e}", file.display())))?;
                Ok(format!("added to {}: {}", file.display(), lines.join(", ")))
            }
            Repair::Prepare => {
                case.project.prepare()?;
                Ok("ralph's own folder is in order again".to_owned())
            }
            Repair::Remove(paths) => {
                for path in paths {
                    fs::remove_file(path).map_err(|e| Failure::new(format!("cannot remove {}: {e}", path.display())))?;
                }
                Ok(format!("removed {} files", paths.len()))
            }
        }
    }
}
