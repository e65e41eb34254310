//! Setting up: what `ralph init` writes for Claude Code, what `ralph uninstall` takes away again, and what is there now.
//!
//! A set-up is planned first, as a list of changes that can be shown, and carried out second.

pub mod change;
pub mod init;
pub mod places;
pub mod probe;
pub mod record;
pub mod survey;
pub mod uninstall;

use std::{fmt, io, path::Path};

use crate::setup::change::Change;

/// What a command is about to do, and what a person should know of it.
#[derive(Debug, Default)]
pub struct Plan {
    pub changes: Vec<Change>,
    pub notes: Vec<String>,
}

/// Why a set-up cannot be done: which file, what is the matter, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    path: String,
    what: String,
}

impl Problem {
    pub fn new(path: &Path, what: impl fmt::Display) -> Self {
        Problem { path: path.display().to_string(), what: what.to_string() }
    }

    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Problem + use<> {
        let path = path.display().to_string();
        move |e| Problem { path, what: format!("cannot be {doing}: {e}") }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.what)
    }
}

impl std::error::Error for Problem {}
