//! The money that a loop has spent, and how far its transcripts were read for it: part of the state in every line of the journal.

use serde::{Deserialize, Serialize};

use crate::{money::Micros, text::time::Millis};

/// So many files are remembered: the session's own, and those of the subagents that wrote last.
const MOST_FILES: usize = 16;

/// A file's time can be so far behind the clock that times messages: the kernel's own is some milliseconds late, and some file systems keep even seconds only.
const COARSE_MS: u64 = 2_000;

/// Money spent since a moment, and how far the transcripts were read for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Spending {
    pub usd_micros: Micros,
    /// Older lines do not count.
    pub since: Millis,
    /// The session's own comes last, before it the one that was written last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Known>,
    /// Files that were last changed before this moment and are not listed were read to their ends.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub settled: u64,
}

/// How far a transcript was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Known {
    /// A fingerprint of its path.
    pub file: String,
    pub bytes: u64,
    /// When it was last changed.
    pub changed: u64,
    /// The time of its newest message.
    pub at: Millis,
    /// The session's own, which goes on growing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
    /// It was replaced by another file: what is older than this was counted before.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub after: Millis,
    /// The model of its newest message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The messages that were read last, with what was counted for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<(String, Micros)>,
}

impl Spending {
    pub fn since(since: Millis) -> Self {
        Spending { since, ..Spending::default() }
    }

    /// Whether a file has nothing new, as far as that can be told without opening it.
    pub fn has_read(&self, file: &str, size: u64, changed: u64) -> bool {
        match self.files.iter().find(|known| known.file == file) {
            Some(known) => known.bytes == size && known.changed == changed,
            None => changed <= self.settled || is_older(changed, self.since),
        }
    }

    /// A journal's line has no room for hundreds of subagents. Those that went quiet first are known by the time at which they did.
    pub fn forget_the_oldest(&mut self) {
        self.files.sort_by_key(|known| (known.is_own, known.changed));
        while self.files.len() > MOST_FILES {
            let oldest = self.files.remove(0);
            self.settled = self.settled.max(oldest.changed);
        }
    }
}

/// Whether a file was last changed before a moment, by its own time: then it has no message that is newer.
pub fn is_older(changed: u64, than: Millis) -> bool {
    changed.saturating_add(COARSE_MS) <= u64::try_from(than).unwrap_or(0)
}
