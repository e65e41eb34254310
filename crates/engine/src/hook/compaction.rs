//! `compact_every`: after so many iterations in one session the client compacts its conversation before the next one begins.

use std::{thread, time::Duration};

use ralph_core::journal::Event;

use crate::{
    hook::Call,
    hosts::claude::compaction::Compaction,
    stop::find::under_lock,
    store::{
        journal::{self, owner_may_live},
        loops,
        project_lock::Loop,
    },
    sys::clock,
};

/// The client sees a change of its settings within this time (measured: without it, it does not in time for the next request).
const SEEN_WITHIN: Duration = Duration::from_millis(2_500);

/// A client that has not compacted by this many stops does not.
const STOPS: u64 = 2;

/// A stop was sent back: counts the iteration, and asks for a compaction when it is time. The result is a line for the person. Without the lock,
/// because the client needs a moment.
pub(super) fn after_an_iteration(call: &Call, l: &Loop) -> Option<String> {
    if l.file.compact_every() == 0 {
        return None;
    }
    let session = call.session();
    let mut c = of_session(call, session)?;
    c.rounds += 1;
    wait_until_seen(&c);
    if let Some(stops) = c.on {
        c.on = Some(stops + 1);
        if stops + 1 < STOPS {
            return kept(call, &c);
        }
        c.given_up = true;
        let problem = c.switch_off(&call.project).err();
        note(call, l, "it did not happen");
        thread::sleep(SEEN_WITHIN);
        return Some(not_done(problem.as_deref().unwrap_or("the client did not do it")));
    }
    if c.given_up || c.rounds < l.file.compact_every() || is_shared(call, session) {
        return kept(call, &c);
    }
    let problem =
        if call.client.compacts { c.switch_on(&call.project).err() } else { Some("this client is not known to do it".to_owned()) };
    if let Some(problem) = problem {
        c.given_up = true;
        let _ = c.keep(&call.project);
        return Some(not_done(&problem));
    }
    note(call, l, "asked for");
    thread::sleep(SEEN_WITHIN);
    None
}

/// A short iteration may end before the client has seen that the variables were written back: it would compact once more.
fn wait_until_seen(c: &Compaction) {
    let passed = Duration::from_millis(u64::try_from(clock::now() - c.off_at).unwrap_or(0));
    if c.on.is_none() {
        thread::sleep(SEEN_WITHIN.saturating_sub(passed));
    }
}

fn not_done(why: &str) -> String {
    format!(
        "Ralph: the conversation is not made shorter after `compact_every` iterations in this session: {why}. /compact does it by hand."
    )
}

fn kept(call: &Call, c: &Compaction) -> Option<String> {
    c.keep(&call.project).err().map(|problem| not_done(&problem))
}

/// The count of this session. What another one left on is switched off.
fn of_session(call: &Call, session: &str) -> Option<Compaction> {
    let noted = Compaction::noted(&call.project);
    match noted {
        Some(own) if own.session == session => Some(own),
        other => {
            if let Some(other) = other {
                other.forget(&call.project).ok()?;
            }
            Some(Compaction { session: session.to_owned(), ..Compaction::default() })
        }
    }
}

/// Whether another session works on a loop in this project: it would be compacted, too.
fn is_shared(call: &Call, session: &str) -> bool {
    loops::all(&call.project).iter().any(|found| {
        let state = journal::live_state(&call.project, found);
        let owner = found.session().or_else(|| state.owner.clone());
        owner.is_some_and(|owner| owner != session) && state.armed_since.is_some() && owner_may_live(&state)
    })
}

/// The conversation was compacted.
pub(super) fn done(call: &Call) {
    let session = call.session();
    if let Some(mut c) = Compaction::noted(&call.project) {
        if c.session == session {
            c.rounds = 0;
        }
        // What cannot be written back now is at the next call, and by `ralph doctor`.
        let _ = c.switch_off(&call.project).and_then(|()| c.keep(&call.project));
    }
}

/// The loop does not go on, or there is none: nothing stays on.
pub(super) fn heal(call: &Call) {
    let _ = Compaction::heal(&call.project);
}

/// A session is over.
pub(super) fn forget(call: &Call) {
    if let Some(c) = Compaction::noted(&call.project).filter(|c| Some(c.session.as_str()) == call.event.session()) {
        let _ = c.forget(&call.project);
    }
}

/// Writes it into the journal, if that is possible.
fn note(call: &Call, l: &Loop, detail: &str) {
    let write = || {
        let (locked, mut l) = under_lock(&call.project, l.found.clone()).ok()??;
        let event = Event::Heard { event: "compaction".to_owned(), detail: Some(detail.to_owned()) };
        locked.record(&mut l, clock::now(), call.event.session(), event).ok()
    };
    let _ = write();
}
