//! The second hook of a stop: it waits in the background for what the first one parked the loop for, and wakes the session then.
//!
//! The client starts both at the same time, so this one finds out by itself how the stop was ruled. The screen is free meanwhile; nothing of what it
//! says is seen, but what it wakes the agent with.

use std::{
    thread,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::Gate,
    judge::{Code, Next},
};

use crate::{
    gates::{
        declared::{self, Declared},
        wait::Waited,
    },
    hook::{
        Call, Outcome,
        evidence::gather,
        proof::{self, Looking},
        select::{self, Selected},
        stop,
    },
    hosts::claude::{
        answer::Answer,
        caller::{REWAKE_SINCE, Version},
    },
    store::{
        Error, journal,
        locked::Loop,
        loops::{self, Found},
        notices,
        waiter::{self, Waiter},
    },
    sys::{clock, env},
};

/// How long the hook that judges looks for the one that waits: both are started at once, on a busy machine some 50 ms apart.
const BORN_TOGETHER: Duration = Duration::from_millis(500);

/// How often this hook looks whether the other one has ruled: at first, and in the end.
const STEP: Duration = Duration::from_millis(20);
const LONG_STEP: Duration = Duration::from_secs(1);

/// There was nothing to wait for.
pub(super) const NONE: &str = "wait.none";

/// The client tells the agent that this is no message of the person's, which is true. The task is.
const WOKEN: &str = "[ralph] The wait is over. This is the task of the loop that the person started in this session; go on with it.";

/// Whether this session can be woken: a person sits at its screen, and the client is known to do it. Elsewhere the client would wait for this process as
/// for any other hook, and nothing would be won.
fn can_wake(client: Option<Version>) -> bool {
    env::is_interactive() && client.is_some_and(|version| version >= REWAKE_SINCE)
}

/// For the hook that judges: another one waits for this very stop.
pub(super) fn takes_over(call: &Call, loop_id: &str) -> bool {
    let until = Instant::now() + BORN_TOGETHER;
    let stop = call.event.stop_fingerprint();
    let is_there = || waiter::of(&call.project, loop_id).is_some_and(|waiter| waiter.stop == stop);
    can_wake(call.client)
        && loop {
            if is_there() {
                break true;
            }
            if Instant::now() >= until {
                break false;
            }
            thread::sleep(STEP);
        }
}

pub(super) fn on_stop(call: &Call) -> Result<Outcome, Error> {
    let session = call.event.session().unwrap_or_default();
    if call.event.name() != "Stop" || !can_wake(call.client) {
        return Ok(Outcome::silent(NONE));
    }
    let (Selected::Own(found) | Selected::Adoptable(found)) = select::select(&call.project, session) else {
        return Ok(Outcome::silent(NONE));
    };
    let Ok(file) = &found.parsed else { return Ok(Outcome::silent(NONE)) };
    let declared = declared::of_loop(&call.project, file);
    if !declared.gates.iter().any(Gate::is_decided_elsewhere) {
        return Ok(Outcome::silent(NONE));
    }
    let id = found.id();
    let waiter = Waiter::this(call.event.stop_fingerprint());
    waiter.begin(&call.project, &id)?;
    let watch = Watch { call, id: &id, waiter: &waiter, found: &found };
    let outcome = if watch.was_parked() { watch.wait(&declared) } else { Ok(Outcome::silent(NONE)) };
    waiter.end(&call.project, &id);
    outcome.map(|outcome| outcome.of_loop(&id))
}

/// One wait for one stop of one loop.
struct Watch<'a> {
    call: &'a Call,
    id: &'a str,
    waiter: &'a Waiter,
    found: &'a Found,
}

impl Watch<'_> {
    /// Whether this wait is still of use: the client is there, the loop is wanted, and nobody has taken over.
    fn is_wanted(&self) -> bool {
        self.call.is_awaited() && loops::is_wanted(self.found) && self.waiter.is_newest(&self.call.project, self.id)
    }

    /// Waits for the ruling of the hook that judges; whether that parked the loop.
    fn was_parked(&self) -> bool {
        let mut step = STEP;
        loop {
            let state = journal::live_state(&self.call.project, self.found);
            let ruled = state.last.filter(|last| last.stop == self.waiter.stop && self.call.is_same_moment(last.uptime_ms));
            if let Some(last) = ruled {
                return last.ruling.next == Next::Parks;
            }
            if !self.is_wanted() || self.call.time_left().is_zero() {
                return false;
            }
            thread::sleep(step);
            step = (step * 2).min(LONG_STEP);
        }
    }

    /// Waits, and rules on the stop once more.
    fn wait(&self, declared: &Declared) -> Result<Outcome, Error> {
        let over = || Ok(Outcome::silent("wait.over"));
        loop {
            let Some(l) = self.parked()? else { return over() };
            let gathered = gather(self.call, &l, clock::now());
            let wanted = || self.is_wanted();
            let looking = Looking {
                call: self.call,
                l: &l,
                declared,
                text: gathered.text,
                wants_proof: gathered.evidence.wants_proof(true),
                wanted: &wanted,
            };
            if looking.until_decided(&journal::past(&self.call.project.journal(self.id)).findings) == Waited::Cancelled {
                return over();
            }
            // One at a time: another stop of the same loop may just be judged.
            let _turn = proof::turn(self.call, self.found)?;
            let Some((locked, l)) = select::under_lock(&self.call.project, self.found.clone())? else { return over() };
            if l.state.parked.is_none() || !self.is_wanted() {
                return over();
            }
            let outcome = stop::rule_again(self.call, locked, l)?;
            if outcome.code != Code::GateWaiting.as_str() || self.call.time_left().is_zero() {
                return Ok(outcome);
            }
        }
    }

    /// The loop, as long as it is parked.
    fn parked(&self) -> Result<Option<Loop>, Error> {
        let locked = select::under_lock(&self.call.project, self.found.clone())?;
        Ok(locked.map(|(_, l)| l).filter(|l| l.state.parked.is_some()))
    }
}

/// What the session is woken with. Nobody sees what a hook in the background tells the person, so that is told when the session wakes, or else at its next
/// stop.
pub(super) fn told(call: &Call, outcome: Outcome) -> Option<String> {
    let (text, line) = match outcome.answer {
        Answer::Block { reason: text, line } => (Some(text), Some(line)),
        Answer::Context { text, line, .. } => (Some(text), line),
        Answer::Tell { line } => (None, Some(line)),
        Answer::Silent | Answer::Instead { .. } => (None, None),
    };
    if let Some(line) = line {
        // A line that cannot be kept is in the journal all the same.
        let _ = notices::keep(&call.project, call.event.session().unwrap_or_default(), clock::now(), &line);
    }
    text.map(|text| format!("{WOKEN}\n\n{text}"))
}

/// Whether what arrives as a message is what a hook woke the session with, and not the person's.
pub(super) fn is_wake(call: &Call) -> bool {
    let typed = || call.event.text("prompt").unwrap_or_default();
    call.event.name() == "UserPromptSubmit" && typed().starts_with("<task-notification>") && typed().contains(WOKEN)
}
