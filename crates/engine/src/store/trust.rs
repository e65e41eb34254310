//! Which commands of a repository's files a person lets run. A file is trusted by its content, so a changed one asks again.
//!
//! The decisions lie in the user's state folder, where no repository can put any. Whatever is wrong with them, nothing is trusted.

mod ledger;
pub(crate) mod place;
#[cfg(test)]
mod tests;

use std::{io, path::PathBuf};

use ralph_core::{gate::Run, text::time::Millis};
use serde::Serialize;

use crate::{
    store::{
        Error,
        project::Project,
        trust::{ledger::Ledger, place::Place},
    },
    sys::{clock, digest, env, files},
};

/// A larger file declares no gates.
pub const LARGEST_FILE: usize = 1 << 20;

/// What a person has decided about something that could run.
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

/// What is trusted at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The file, relative to the top of its working tree.
    pub origin: String,
    /// How many contents of the file.
    pub contents: usize,
    /// How many commands, where they are trusted one by one.
    pub commands: usize,
    /// When a person last said so.
    pub at: Millis,
}

/// Whether a file with this content is trusted. Who runs what these very bytes say runs what was trusted.
pub fn of_bytes(project: &Project, relative: &str, content: &[u8]) -> Trust {
    Decisions::of_user().of_bytes(project, relative, content)
}

/// Whether each of these commands is trusted at this place: for files whose other parts change all the time.
pub fn of_commands(project: &Project, origin: &str, commands: &[Run]) -> Trust {
    Decisions::of_user().of_commands(project, origin, commands)
}

/// A person lets a file with this content run commands.
pub fn trust_bytes(project: &Project, relative: &str, content: &[u8]) -> Result<(), Error> {
    Decisions::of_user().trust(project, relative, &[of_content(content)], ledger::Kind::Content)
}

/// A person lets these commands of this place run.
pub fn trust_commands(project: &Project, origin: &str, commands: &[Run]) -> Result<(), Error> {
    Decisions::of_user().trust(project, origin, &of_each(commands), ledger::Kind::Command)
}

/// Takes back everything that was decided about the project's repository, and tells what that was.
pub fn revoke(project: &Project) -> Result<Vec<Decision>, Error> {
    Decisions::of_user().revoke(project)
}

/// Everything that was decided about the project's repository.
pub fn list(project: &Project) -> Vec<Decision> {
    Decisions::of_user().list(project)
}

/// The bytes of a file that may declare commands, to be handed to [`of_bytes`]. A link that leads out of the working tree is no file of the project.
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

/// The folder of decisions. Without a home there is none.
struct Decisions {
    folder: Option<PathBuf>,
}

impl Decisions {
    fn of_user() -> Self {
        Decisions { folder: env::state_dir().map(|dir| dir.join("trust")) }
    }

    fn of_bytes(&self, project: &Project, relative: &str, content: &[u8]) -> Trust {
        self.of_hashes(project, relative, &[of_content(content)])
    }

    fn of_commands(&self, project: &Project, origin: &str, commands: &[Run]) -> Trust {
        self.of_hashes(project, origin, &of_each(commands))
    }

    fn of_hashes(&self, project: &Project, origin: &str, hashes: &[String]) -> Trust {
        if hashes.is_empty() {
            return Trust::Trusted;
        }
        let place = Place::of(project);
        let ledger = self.folder.as_deref().and_then(|folder| Ledger::read(folder, &place));
        ledger.map_or(Trust::Untrusted, |ledger| ledger.says(&place.origin(origin), hashes))
    }

    fn trust(&self, project: &Project, origin: &str, hashes: &[String], kind: ledger::Kind) -> Result<(), Error> {
        let folder = self.folder.as_deref().ok_or(Error::NoHome)?;
        let place = Place::of(project);
        let _alone = ledger::prepare(folder, &place)?;
        let mut ledger = Ledger::read(folder, &place).unwrap_or_else(|| Ledger::empty(&place));
        ledger.note(&place.origin(origin), hashes, kind, clock::now());
        ledger.write(folder, &place)
    }

    fn revoke(&self, project: &Project) -> Result<Vec<Decision>, Error> {
        let Some(folder) = self.folder.as_deref() else { return Ok(Vec::new()) };
        let place = Place::of(project);
        let was = self.list(project);
        ledger::remove(folder, &place)?;
        Ok(was)
    }

    fn list(&self, project: &Project) -> Vec<Decision> {
        let ledger = self.folder.as_deref().and_then(|folder| Ledger::read(folder, &Place::of(project)));
        ledger.map(|ledger| ledger.decisions()).unwrap_or_default()
    }
}

fn of_content(content: &[u8]) -> String {
    sha256(b"content", &[content])
}

/// Every command by itself, so that one that goes, or that moves in its list, asks nobody again.
fn of_each(commands: &[Run]) -> Vec<String> {
    let hash = |command: &Run| match command {
        Run::Shell(line) => sha256(b"shell", &[line.as_bytes()]),
        Run::Argv(words) => sha256(b"argv", &words.iter().map(String::as_bytes).collect::<Vec<_>>()),
    };
    commands.iter().map(hash).collect()
}

/// Of parts that cannot be mistaken for each other: each says how long it is.
fn sha256(kind: &[u8], parts: &[&[u8]]) -> String {
    let mut digest = digest::Running::default();
    for part in std::iter::once(&kind).chain(parts) {
        digest.add(&(part.len() as u64).to_le_bytes());
        digest.add(part);
    }
    digest.finish()
}
