//! The commands of a repository's files that a person lets run. A file is trusted by its content, so a changed one asks again.
//!
//! The decisions are in the user's state folder, where no repository can put any. If anything is wrong with them, nothing is trusted.

mod ledger;
#[cfg(test)]
mod tests;

use std::{io, path::PathBuf};

use ralph_core::{gate::Run, text::time::Millis};
use serde::Serialize;

use crate::{
    store::{
        Error,
        place::Place,
        project::Project,
        trust::ledger::{Kind, Ledger},
    },
    sys::{clock, digest, files},
};

/// A larger file declares no gates.
pub(crate) const LARGEST_FILE: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    Trusted,
    Untrusted,
    /// Something else at the same place was trusted once.
    Changed,
}

impl Trust {
    pub fn is_trusted(self) -> bool {
        self == Trust::Trusted
    }
}

/// The decisions about one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Relative to the top of its working tree.
    pub origin: String,
    /// How many contents of the file are trusted.
    pub contents: usize,
    /// How many commands, where they are trusted one by one.
    pub commands: usize,
    /// When a person last said so.
    pub at: Millis,
}

/// Whether a file with this content is trusted. Run what these very bytes say, and nothing else.
pub(crate) fn of_bytes(project: &Project, relative: &str, content: &[u8]) -> Trust {
    of_hashes(project, relative, &[of_content(content)])
}

/// Whether each of these commands is trusted there: for files whose other parts change all the time.
pub fn of_commands(project: &Project, origin: &str, commands: &[Run]) -> Trust {
    of_hashes(project, origin, &of_each(commands))
}

fn of_hashes(project: &Project, origin: &str, hashes: &[String]) -> Trust {
    if hashes.is_empty() {
        return Trust::Trusted;
    }
    let place = Place::of(project);
    let ledger = folder(project).and_then(|folder| Ledger::read(&folder, &place));
    ledger.map_or(Trust::Untrusted, |ledger| ledger.says(&place.origin(origin), hashes))
}

/// A person lets a file with this content run commands.
pub(crate) fn trust_bytes(project: &Project, relative: &str, content: &[u8]) -> Result<(), Error> {
    trust(project, relative, &[of_content(content)], Kind::Content)
}

/// A person lets these commands of a file run.
pub(crate) fn trust_commands(project: &Project, origin: &str, commands: &[Run]) -> Result<(), Error> {
    trust(project, origin, &of_each(commands), Kind::Command)
}

fn trust(project: &Project, origin: &str, hashes: &[String], kind: Kind) -> Result<(), Error> {
    let folder = folder(project).ok_or(Error::NoHome)?;
    let place = Place::of(project);
    let _lock = ledger::prepare(&folder, &place)?;
    let mut ledger = Ledger::read(&folder, &place).unwrap_or_else(|| Ledger::empty(&place));
    ledger.note(&place.origin(origin), hashes, kind, clock::now());
    ledger.write(&folder, &place)
}

/// Takes back all decisions about the project's repository, and returns them.
pub fn revoke(project: &Project) -> Result<Vec<Decision>, Error> {
    let Some(folder) = folder(project) else { return Ok(Vec::new()) };
    let decisions = list(project);
    ledger::remove(&folder, &Place::of(project))?;
    Ok(decisions)
}

/// All decisions about the project's repository.
pub fn list(project: &Project) -> Vec<Decision> {
    let ledger = folder(project).and_then(|folder| Ledger::read(&folder, &Place::of(project)));
    ledger.map(|ledger| ledger.decisions()).unwrap_or_default()
}

/// Reads a file that may declare commands, for [`of_bytes`]. A link that leads out of the working tree is no file of the project.
pub fn read(project: &Project, relative: &str) -> io::Result<Vec<u8>> {
    let path = project.root().join(relative);
    // Mostly there is none. One look tells, where a canonical path takes one for each folder on the way.
    path.symlink_metadata()?;
    let path = path.canonicalize()?;
    if !path.starts_with(Place::of(project).top()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is a link that leads out of the project"));
    }
    files::read(&path, LARGEST_FILE)
}

fn folder(project: &Project) -> Option<PathBuf> {
    Some(project.state()?.join("trust"))
}

fn of_content(content: &[u8]) -> String {
    sha256(b"content", &[content])
}

/// Every command by itself, so that one that goes, or that moves in its list, does not ask again.
fn of_each(commands: &[Run]) -> Vec<String> {
    let hash = |command: &Run| match command {
        Run::Shell(line) => sha256(b"shell", &[line.as_bytes()]),
        Run::Argv(words) => sha256(b"argv", &words.iter().map(String::as_bytes).collect::<Vec<_>>()),
    };
    commands.iter().map(hash).collect()
}

/// A digest of parts that cannot be mistaken for each other: each is preceded by its length.
fn sha256(kind: &[u8], parts: &[&[u8]]) -> String {
    let mut digest = digest::Running::default();
    for part in std::iter::once(&kind).chain(parts) {
        digest.add(&(part.len() as u64).to_le_bytes());
        digest.add(part);
    }
    digest.finish()
}
