//! The files that every package has in one place or another: the programs, their manual pages, completions and licences.

use std::{fs, process::Command};

use super::{licences, targets::Target};
use crate::{
    Result,
    cargo::{self, Build, Program},
};

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
    pub(crate) programs: Vec<(Program, Vec<u8>)>,
    /// `ralph.1` and one page for each command, those of the fleet included.
    pub(crate) pages: Vec<File>,
    /// By shell.
    pub(crate) completions: Vec<(&'static str, File)>,
    /// Documents from the root of the repository, and the licences of others.
    pub(crate) documents: Vec<File>,
}

impl Contents {
    /// Builds the programs, and takes pages and completions from them, so they have to run here.
    pub(crate) fn of(target: &Target) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (bin, man) = (folder.path().join("bin"), folder.path().join("man"));
        fs::create_dir(&bin)?;
        let mut programs = Vec::new();
        for program in Program::ALL {
            let built = cargo::binary(program, Build::Released)?;
            // Side by side, as they are installed: `ralph` asks the other one for its commands.
            fs::copy(&built, bin.join(target.file_of(program)))?;
            programs.push((program, fs::read(&built)?));
        }
        let ralph = bin.join(target.file_of(Program::Ralph));
        output(Command::new(&ralph).args(["man", "--dir"]).arg(&man))?;
        let mut pages = Vec::new();
        for entry in fs::read_dir(&man)? {
            let entry = entry?;
            pages.push(File::text(entry.file_name().to_string_lossy(), fs::read(entry.path())?));
        }
        pages.sort_by(|a, b| a.path.cmp(&b.path));
        let mut completions = Vec::new();
        for (shell, name) in SHELLS {
            let script = output(Command::new(&ralph).args(["completions", shell]))?;
            completions.push((shell, File::text(name, script)));
        }
        let documents = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"].map(document);
        let documents = documents.into_iter().chain([licences::of(target.triple)]).collect::<Result<Vec<_>>>()?;
        Ok(Contents { programs, pages, completions, documents })
    }

    /// The programs as files of a folder.
    pub(crate) fn programs_in<'a>(&'a self, folder: &'a str, target: &'a Target) -> impl Iterator<Item = File> + 'a {
        self.programs.iter().map(move |(program, bytes)| File::program(format!("{folder}{}", target.file_of(*program)), bytes.clone()))
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
