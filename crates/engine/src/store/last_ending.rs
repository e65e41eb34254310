//! The answer that ended the last loop. A second hook on the same stop, or a second event of the same command, gives it again: the loop's file is in
//! the archive by then.

use serde::{Deserialize, Serialize};

use crate::{store::project::Project, sys::clock};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastEnding {
    #[serde(rename = "loop")]
    pub loop_id: String,
    /// Fingerprint of the stop or of the typed command that ended the loop.
    pub cause: String,
    pub uptime_ms: u64,
    /// The registration that reported that stop first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// The answer.
    pub line: String,
}

const FILE: &str = "last-ending.json";

pub(crate) fn read(project: &Project) -> Option<LastEnding> {
    project.load(FILE)
}

/// Call it before the loop's file goes: a hook that finds no file must find the answer. The loop ends even if this cannot be written.
pub(crate) fn note(project: &Project, loop_id: &str, cause: &str, via: Option<String>, line: &str) {
    let (uptime_ms, via) = (clock::uptime_ms(), via.into_iter().collect());
    let mark = LastEnding { loop_id: loop_id.to_owned(), cause: cause.to_owned(), uptime_ms, via, line: line.to_owned() };
    let _ = project.save(FILE, &mark);
}
