//! The repairs of `ralph doctor --fix`: nothing that a person made is changed or lost.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ralph_engine::{
    hosts::claude::compaction::Compaction,
    setup::{
        file_change,
        init::{self, Wish},
        places::Scope,
        record::Records,
        uninstall,
    },
    sys::files,
};

use super::Case;
use crate::exit::Failure;

/// A safe way to fix a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Write the hooks and commands, as `ralph init` does.
    Register(Scope),
    /// Take the hooks out, as `ralph uninstall` does. The commands stay: they work with the hook that is left.
    Unregister(Scope),
    /// Have git ignore paths, in this clone only: in a file of the repository's own folder, `within`.
    Exclude {
        file: PathBuf,
        within: PathBuf,
        lines: Vec<String>,
    },
    Prepare,
    /// Write the settings back that make a conversation shorter.
    SwitchOff,
    Remove(Vec<PathBuf>),
}

impl Repair {
    /// Makes the repair, and says what was done.
    pub(crate) fn make(&self, case: &Case) -> Result<String, Failure> {
        let _alone = Records::alone();
        match self {
            Repair::Register(scope) => {
                let wish = Wish { scope: *scope, command: init::own_command(*scope), block_cap: None, deny_edits: false };
                init::plan(&case.places, &case.survey, &case.records, &wish)?.carry_out(&case.records, |_| {})?;
                Ok(format!("registered, as `{}` does", scope.init_command()))
            }
            Repair::Unregister(scope) => {
                let (mut plan, problems) = uninstall::plan(&case.places, &case.survey, &case.records, &[*scope]);
                if let Some(problem) = problems.into_iter().next() {
                    return Err(problem.into());
                }
                let settings = case.places.settings(*scope).unwrap_or_default();
                plan.changes.retain(|change| change.path == settings);
                plan.settled.retain(|path| *path == settings);
                plan.carry_out(&case.records, |_| {})?;
                Ok(format!("the hooks were taken out of {}; the commands stay", settings.display()))
            }
            Repair::Exclude { file, within, lines } => exclude(file, within, lines),
            Repair::Prepare => {
                case.project.prepare()?;
                Ok("ralph's own folder is in order again".to_owned())
            }
            Repair::SwitchOff => {
                Compaction::heal(&case.project).map_err(Failure::new)?;
                Ok("the variables were written back".to_owned())
            }
            Repair::Remove(paths) => {
                for path in paths {
                    fs::remove_file(path).map_err(|e| Failure::new(format!("cannot remove {}: {e}", path.display())))?;
                }
                let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                Ok(format!("removed {}", names.join(", ")))
            }
        }
    }
}

/// Lines that are there already help no more if they are written again.
fn exclude(file: &Path, within: &Path, lines: &[String]) -> Result<String, Failure> {
    if !is_inside(file, within) {
        return Err(Failure::new(format!("{} is not a plain file of the repository {}: left as it is", file.display(), within.display())));
    }
    let text = file_change::read(file)?.unwrap_or_default();
    let new: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !text.lines().any(|known| known == *line)).collect();
    if new.is_empty() {
        return Err(Failure::new(format!("{} has it already, but a .gitignore of the repository says otherwise", file.display())));
    }
    let failed = Failure::cannot_write(file);
    files::add_lines(file, &format!("{}\n", new.join("\n"))).map_err(failed)?;
    Ok(format!("added to {}: {}", file.display(), new.join(", ")))
}

/// Whether a plain file, or the place for one, is really in this folder: an unpacked archive brings a `.git` with links that lead anywhere.
fn is_inside(file: &Path, within: &Path) -> bool {
    let is_plain = match fs::symlink_metadata(file) {
        Ok(meta) => meta.is_file(),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    };
    let nearest = file.ancestors().skip(1).find(|folder| fs::symlink_metadata(folder).is_ok());
    let real = nearest.and_then(|folder| folder.canonicalize().ok());
    is_plain && real.is_some_and(|real| within.canonicalize().is_ok_and(|within| real.starts_with(within)))
}
