//! The clock of a loop runs only while a session or a run has it.

use crate::store::{journal::owner_may_live, project_lock::Loop};

/// Stops the clock of a loop whose session or run is gone without a word, at the last thing that was written about it: as far as anybody knows it was worked on
/// until then.
pub fn stop_the_clock_of_the_dead(l: &mut Loop) {
    let is_left = l.owner().is_none() || !owner_may_live(&l.state);
    if let Some(at) = l.last_event().filter(|_| is_left && l.state.armed_since.is_some()) {
        l.state.disarm(at);
    }
}
