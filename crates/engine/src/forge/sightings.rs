//! For how long head commits have been known, on the clock that nobody sets: checks need a while to appear, and a clock that jumps must not shorten it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Question;
use crate::sys::clock;

const PATH: &str = "forge/heads.json";

/// Two loops of one project may see a commit each; nobody waits long for the other.
const ALONE: Duration = Duration::from_secs(1);

/// So many are remembered.
const KEPT: usize = 20;

/// A larger file is not ours.
const MAX_BYTES: usize = 64 << 10;

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Sighting {
    head: String,
    at_ms: u64,
}

/// How long ago a head commit was seen for the first time.
pub(super) fn of(question: &Question<'_>, head: &str) -> u64 {
    let now = clock::uptime_ms();
    // What lies in the future is from before the machine was started again.
    let counts = |sighting: &Sighting| sighting.at_ms <= now;
    let known: Vec<Sighting> = question.project.recall(PATH, MAX_BYTES).unwrap_or_default();
    if let Some(sighting) = known.iter().find(|sighting| counts(sighting) && sighting.head == head) {
        return now - sighting.at_ms;
    }
    if question.keeps {
        // What cannot be noted is seen for the first time again.
        let _ = question.project.change(PATH, MAX_BYTES, ALONE, |known: &mut Vec<Sighting>| {
            known.retain(counts);
            known.push(Sighting { head: head.to_owned(), at_ms: now });
            known.drain(..known.len().saturating_sub(KEPT));
        });
    }
    0
}
