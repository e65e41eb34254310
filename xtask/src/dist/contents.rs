//! The files that every package has in one place or another: the program, its manual pages, completions and licences.

use std::{fs, path::Path, process::Command};

use super::{licences, targets::Target};
use crate::{Result, cargo};

/// One file of a package.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    pub(crate) fn text(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        File { path: path.into(), mode: 0o644, bytes: bytes.into() }
    }

    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        File { path: path.into(), mode: 0o755, bytes: bytes.into() }
    }
}

/// The shells with a completion script, and what they call its file.
const SHELLS: [(&str, &str); 3] = [("bash", "ralph.bash"), ("zsh", "_ralph"), ("fish", "ralph.fish")];

/// What is packed for one target.
pub(crate) struct Contents {
    pub(crate) program: Vec<u8>,
    /// `ralph.1` and one page for each command.
    pub(crate) pages: Vec<File>,
    /// By shell.
    pub(crate) completions: Vec<(&'static str, File)>,
    /// Documents from the root of the repository, and the licences of others.
    pub(crate) documents: Vec<File>,
}

impl Contents {
    /// Takes pages and completions from the program itself, so it has to run here.
    pub(crate) fn of(target: &Target, program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        output(Command::new(program).args(["man", "--dir"]).arg(folder.path()))?;
        let mut pages = Vec::new();
        for entry in fs::read_dir(folder.path())? {
            let entry = entry?;
            pages.push(File::text(entry.file_name().to_string_lossy(), fs::read(entry.path())?));
        }
        pages.sort_by(|a, b| a.path.cmp(&b.path));
        let mut completions = Vec::new();
        for (shell, name) in SHELLS {
            let script = output(Command::new(program).args(["completions", shell]))?;
            completions.push((shell, File::text(name, script)));
        }
        let documents = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"].map(document);
        let documents = documents.into_iter().chain([licences::of(target.triple)]).collect::<Result<Vec<_>>>()?;
        Ok(Contents { program: fs::read(program)?, pages, completions, documents })
    }
}

/// A document from the root of the repository.
pub(crate) fn document(name: &str) -> Result<File> {
    let bytes = fs::read(cargo::root().join(name)).map_err(|e| format!("{name}: {e}"))?;
    Ok(File::text(name, bytes))
}

/// What a program prints, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{command:?}: {}\n{said}{told}", output.status).into())
}
