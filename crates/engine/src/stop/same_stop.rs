//! Recognising a stop that another hook has reported: the client runs every registration of ralph's hook, and one stop counts once.

use std::time::Duration;

use ralph_core::{
    journal::{Answered, Event},
    judge::Reason,
    text::time::millis,
};

use super::{Deadline, Outcome, Stop, measure::Waiting};
use crate::{
    hosts::Invocation,
    store::project_lock::{Locked, Loop},
    sys::clock,
};

/// So late after the first one's answer a second hook on the same stop may be born, on a very busy machine: the client starts them all at
/// once. This decides nothing between registrations that have reported before.
const LATEST_MS: u64 = 10_000;

/// More registrations than anyone has: a caller that goes on changing its name is counted after all.
const MOST_REGISTRATIONS: usize = 16;

/// Whether a stop with the words of this one, which the registrations `via` have reported and which was answered then, is this very stop. The client runs each
/// registration once at every stop and waits for all of them: one that has reported it reports the next stop now, however soon that comes.
pub(crate) fn is_second_report(invocation: &Invocation, deadline: Deadline, via: &[String], answered_ms: u64) -> bool {
    let late_ms = if via.is_empty() { 0 } else { LATEST_MS };
    if via.len() >= MOST_REGISTRATIONS {
        return false;
    }
    // An answer in the future was written by hand.
    answered_ms <= clock::uptime_ms()
        && is_same_moment(clock::born_ms(), answered_ms, deadline.limit(), late_ms)
        && !via.contains(&invocation.via())
}

/// Whether a process was born when another one answered: before that, because all hooks of one stop are started at once, or so late after it, but before it by
/// no more than the time that a hook may take; a machine that was restarted since counts from zero again.
fn is_same_moment(born_ms: u64, answered_ms: u64, limit: Duration, late_ms: u64) -> bool {
    let limit_ms = millis(limit);
    born_ms <= answered_ms.saturating_add(late_ms) && born_ms.saturating_add(limit_ms) >= answered_ms
}

impl Stop<'_> {
    /// Whether this stop was answered so before, to another hook that reported it.
    pub(crate) fn is_answered_by(&self, last: &Answered) -> bool {
        let is_second = |hook: &super::Hook<'_>| is_second_report(hook.invocation, self.deadline, &last.via, last.uptime_ms);
        last.stop == self.fingerprint && self.hook().is_some_and(is_second)
    }

    /// The registrations that have reported this stop. After a wait it is ruled on again, which is no second report.
    pub(super) fn reporters(&self, before: Option<&Answered>) -> Vec<String> {
        let Some(hook) = self.hook() else { return Vec::new() };
        match before.filter(|_| hook.invocation.waits()) {
            Some(before) => before.via.clone(),
            None => vec![hook.invocation.via()],
        }
    }
}

/// Whether another hook has reported this stop, and it was answered. After a wait it is ruled on again.
pub(super) fn is_repeated(stop: &Stop<'_>, l: &Loop, waiting: Waiting) -> bool {
    waiting != Waiting::IsOver && l.state.last.as_ref().is_some_and(|last| stop.is_answered_by(last))
}

/// The same answer as before. Nothing is counted.
pub(super) fn repeated(stop: &Stop<'_>, locked: &Locked<'_>, mut l: Box<Loop>) -> Outcome {
    let Some(last) = l.state.last.clone() else { return Outcome::Gone };
    note_second_report(stop, locked, &mut l);
    Outcome::Repeated(l, Box::new(last))
}

/// Notes that this registration, too, has reported the last stop: when it reports these words again, that is another one. The answer stands without it.
pub(crate) fn note_second_report(stop: &Stop<'_>, locked: &Locked<'_>, l: &mut Loop) {
    let Some(hook) = stop.hook() else { return };
    let via = hook.invocation.via();
    let place = via.split('-').next().unwrap_or_default();
    let event = Event::Heard {
        event: Reason::STOP_REPEATED.as_str().to_owned(),
        detail: Some(format!("the same stop, by the {place} registration")),
    };
    if let Some(last) = l.state.last.as_mut() {
        last.via.push(via);
        let _ = locked.record(l, clock::now(), stop.session(), event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second hook of one stop was born when the first one was, however long that measured.
    #[test]
    fn pains_9_a_second_hook_is_known_however_long_the_first_one_takes() {
        let hour = Duration::from_hours(1);
        for took_ms in [0, 299, 1_000, 61_000, 1_200_000, 3_540_000] {
            assert!(is_same_moment(5_000_000, 5_000_000 + took_ms, hour, 0), "{took_ms}");
        }
        assert!(is_same_moment(5_009_000, 5_000_000, hour, LATEST_MS), "9 s late");
        assert!(!is_same_moment(5_011_000, 5_000_000, hour, LATEST_MS), "no hook of one stop comes so late");
        assert!(!is_same_moment(5_000_010, 5_000_000, hour, 0), "answered by a version that did not note to whom");
        assert!(!is_same_moment(1_000, 9_000_000, hour, LATEST_MS), "restarted since");
        assert!(!is_same_moment(5_000_000, 5_061_000, Duration::from_mins(1), LATEST_MS), "it would not live any more");
    }
}
