//! The mark of the last ending: what a second hook on the same stop, or a second event of the same command, still has to answer when the
//! loop's file is already in the archive.

use serde::{Deserialize, Serialize};

use crate::{store::project::Project, sys::clock};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEnding {
    #[serde(rename = "loop")]
    pub loop_id: String,
    /// Fingerprint of the stop or of the typed command that ended the loop.
    pub cause: String,
    pub uptime_ms: u64,
    /// The registration that reported that stop first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// What was answered.
    pub line: String,
}

/// A line, and some words about it.
const MAX_BYTES: usize = 1 << 20;

const FILE: &str = "last-ending.json";

pub fn read(project: &Project) -> Option<LastEnding> {
    project.recall(FILE, MAX_BYTES)
}

/// Notes what was answered. To be called before the file goes, so that whoever finds no file finds the answer; the loop has ended whether or not this can be written.
pub fn note(project: &Project, loop_id: &str, cause: &str, via: Option<String>, line: &str) {
    let (uptime_ms, via) = (clock::uptime_ms(), via.into_iter().collect());
    let mark = LastEnding { loop_id: loop_id.to_owned(), cause: cause.to_owned(), uptime_ms, via, line: line.to_owned() };
    let _ = project.remember(FILE, &mark);
}
