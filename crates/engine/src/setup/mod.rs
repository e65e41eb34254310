//! Setup for Claude Code: `ralph init`, `ralph uninstall`, and a survey of the current settings.
//!
//! A setup is first planned, as a list of changes that can be shown, and then carried out.

pub mod agent_survey;
pub mod agents;
pub mod allow_rules;
pub mod file_change;
pub mod init;
pub mod permissions;
pub mod places;
pub mod probe;
pub mod purge;
pub mod ralph_toml;
pub mod record;
pub mod survey;
pub mod uninstall;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    hosts::claude::settings_file,
    setup::{
        file_change::Change,
        record::{Record, Records},
    },
};

/// The changes of a command, and notes for the person.
#[derive(Debug, Default)]
pub struct Plan {
    pub changes: Vec<Change>,
    pub notes: Vec<String>,
    /// Files that are as they were already: their records can go.
    pub settled: Vec<PathBuf>,
    /// Whether the hooks are in the settings afterwards, and not in a plugin.
    pub registers: bool,
    /// Whether the client cannot read the settings as they will be.
    pub unread: bool,
}

impl Plan {
    /// Makes all changes, or none: if one fails, those before it are undone. `shown` is called before each.
    pub fn carry_out(&self, records: &Records, mut shown: impl FnMut(&Change)) -> Result<(), Problem> {
        self.changes.iter().try_for_each(Change::check)?;
        let mut made: Vec<(&Change, Option<Record>)> = Vec::new();
        let mut folders = Vec::new();
        for change in &self.changes {
            shown(change);
            let known = records.get(&change.path);
            match change.make(records) {
                Ok(needless) => folders.extend(needless),
                Err(problem) => {
                    made.iter().rev().for_each(|(change, known)| change.undo(records, known.as_ref()));
                    return Err(problem);
                }
            }
            made.push((change, known));
        }
        // The innermost first. This removes only empty folders.
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in folders {
            let _ = std::fs::remove_dir(folder);
        }
        self.settled.iter().try_for_each(|path| records.forget(path))
    }
}

/// Why a setup fails: the file, what is wrong, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    path: String,
    what: String,
}

impl Problem {
    pub fn new(path: &Path, what: impl fmt::Display) -> Self {
        Problem { path: path.display().to_string(), what: what.to_string() }
    }

    /// A settings file that cannot be read as one.
    fn left_alone(path: &Path, problem: &settings_file::Problem) -> Self {
        Problem::new(path, format!("{problem}. It is left as it is; fix it, then run this again"))
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
