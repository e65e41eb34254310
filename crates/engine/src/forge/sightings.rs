//! For how long head commits have been known, on the clock that nobody sets: checks need a while to appear, and a clock that jumps must not shorten it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Question;
use crate::sys::{clock, files};

const PATH: &str = "forge/heads.json";

/// Two loops of one project may see a commit each; nobody waits long for the other.
const ALONE: Duration = Duration::from_secs(1);

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
    let read = || -> Vec<Sighting> {
        let known: Vec<Sighting> = question.project.recall(PATH, 64 << 10).unwrap_or_default();
        // What lies in the future is from before the machine was started again.
        known.into_iter().filter(|sighting| sighting.at_ms <= now).collect()
    };
    if let Some(sighting) = read().iter().find(|sighting| sighting.head == head) {
        return now - sighting.at_ms;
    }
    if question.keeps {
        let _alone = question.project.keep(PATH).ok().and_then(|file| files::alone_in(file.parent()?, ALONE));
        let mut known = read();
        known.push(Sighting { head: head.to_owned(), at_ms: now });
        let excess = known.len().saturating_sub(KEPT);
        known.drain(..excess);
        // What cannot be noted is seen for the first time again.
        let _ = question.project.remember(PATH, &known);
    }
    0
}
