//! How long head commits have been known, by the system's uptime: checks need a while to appear, and a clock that jumps must not shorten it.

use serde::{Deserialize, Serialize};

use super::Question;
use crate::sys::clock;

const PATH: &str = "forge/heads.json";

/// So many are remembered.
const KEPT: usize = 20;

#[derive(Serialize, Deserialize)]
struct Sighting {
    head: String,
    at_ms: u64,
}

/// How long ago a head commit was seen for the first time.
pub(super) fn of(question: &Question<'_>, head: &str) -> u64 {
    let now = clock::uptime_ms();
    let known: Vec<Sighting> = question.project.load(PATH).unwrap_or_default();
    // A time in the future is from before the machine was started again.
    if let Some(sighting) = known.iter().find(|sighting| sighting.head == head && sighting.at_ms <= now) {
        return now - sighting.at_ms;
    }
    if question.keeps {
        question.project.update(PATH, |known: &mut Vec<Sighting>| {
            known.retain(|sighting| sighting.at_ms <= now);
            known.push(Sighting { head: head.to_owned(), at_ms: now });
            let excess = known.len().saturating_sub(KEPT);
            known.drain(..excess);
            true
        });
    }
    0
}
