//! The second hook of a stop: it waits in the background for what the first one parked the loop for, and wakes the session then.
//!
//! The client starts both at the same time, so this one finds out by itself how the stop was ruled. The screen is free meanwhile, and shows nothing of this hook
//! but the message that wakes the agent.

use std::time::{Duration, Instant};

use ralph_core::{
    gate::Gate,
    journal::State,
    judge::{Code, Reason},
};

use crate::{
    gates::{
        declared::{self, Declared},
        wait::{Pauses, Waited},
    },
    hook::{Call, Outcome, stop},
    hosts::{Answer, Kind},
    stop::{
        find::{self, Selected},
        measure::{self, Measurement, Waiting},
        waiting_hook::can_wake,
    },
    store::{
        Error, journal,
        loops::{self, LoopOnDisk},
        measure_lock, notices,
        project_lock::Loop,
        waiter::Waiter,
    },
    sys::{clock, signals, wait},
};

/// How long the hook that judges may take to begin. After that it is at work, or was killed.
const JUDGE_AT_WORK: Duration = Duration::from_secs(10);

/// How often this hook looks whether the other one has ruled, in the end.
const LONG_STEP: Duration = Duration::from_secs(1);

/// The client tells the agent that this is no message of the person's, which is true. The task is.
const WOKEN: &str = "[ralph] The wait is over. This is the task of the loop that the person started in this session; go on with it.";

pub(super) fn on_stop(call: &Call) -> Result<Outcome, Error> {
    if call.event.kind != Kind::Stop || !can_wake(call.client) {
        return Ok(Outcome::silent(Reason::WAIT_NONE));
    }
    // A process that is asked to end removes its mark first.
    signals::notice();
    let Some((found, declared)) = own_loop(call) else { return Ok(Outcome::silent(Reason::WAIT_NONE)) };
    while_marked(call, &found, call.event.stop_fingerprint(), |watch| {
        if watch.was_parked() { watch.wait(declared) } else { Ok(Outcome::silent(Reason::WAIT_NONE)) }
    })
}

/// Waits with a mark that says so: a process that waited for the loop before sees it, and ends.
pub(super) fn while_marked(
    call: &Call,
    found: &LoopOnDisk,
    stop: String,
    wait: impl FnOnce(&Watch<'_>) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let id = found.id();
    let waiter = Waiter::this(stop);
    waiter.begin(&call.project, &id)?;
    let outcome = wait(&Watch { call, id: &id, waiter: &waiter, found });
    waiter.end(&call.project, &id);
    outcome.map(|outcome| outcome.of_loop(&id))
}

/// The session's loop, if it can be parked. One without an owner is the session's as soon as the hook that judges has taken it; several sessions may try at
/// the same moment.
fn own_loop(call: &Call) -> Option<(LoopOnDisk, Declared)> {
    let session = call.session();
    wait::poll(JUDGE_AT_WORK, wait::SOON, || match find::select(&call.project, session) {
        Selected::Own(found) => Some(parkable(call, &found).map(|declared| (*found, declared))),
        Selected::Adoptable(found) if call.is_awaited() && parkable(call, &found).is_some() => None,
        _ => Some(None),
    })
    .flatten()
}

/// The gates of a loop, if some of them are decided elsewhere.
fn parkable(call: &Call, found: &LoopOnDisk) -> Option<Declared> {
    let declared = declared::of_loop(&call.project, found.parsed.as_ref().ok()?);
    declared.gates.iter().any(Gate::is_decided_elsewhere).then_some(declared)
}

/// One wait for one stop of one loop, or after one failure of its turn.
pub(super) struct Watch<'a> {
    pub(super) call: &'a Call,
    id: &'a str,
    pub(super) waiter: &'a Waiter,
    pub(super) found: &'a LoopOnDisk,
}

impl Watch<'_> {
    /// Whether this wait is still of use: the client lives, the loop is wanted, and no other process has taken over.
    pub(super) fn is_wanted(&self) -> bool {
        self.call.is_awaited() && loops::is_wanted(self.found) && self.waiter.is_newest(&self.call.project, self.id)
    }

    /// The loop's state now.
    pub(super) fn state(&self) -> State {
        let found = loops::reread(&self.call.project, self.found.clone()).ok().flatten();
        found.map(|found| journal::live_state(&self.call.project, &found)).unwrap_or_default()
    }

    /// Whether the loop is parked by this very stop.
    fn is_parked(&self) -> bool {
        self.state().is_parked_by(&self.waiter.stop)
    }

    /// Waits for the ruling of the hook that judges; whether that parked the loop.
    fn was_parked(&self) -> bool {
        let at_work = Instant::now() + JUDGE_AT_WORK;
        let ruling = wait::poll_more_rarely(self.call.deadline.time_left(), wait::SOON, LONG_STEP, || {
            // Looked at before the ruling is: it is free as soon as there is one.
            let is_judged = Instant::now() < at_work || measure_lock::is_taken(&self.call.project, self.id);
            let state = self.state();
            // `/clear` forgets the ruling, and keeps the loop parked.
            if state.is_parked_by(&self.waiter.stop) {
                return Some(true);
            }
            // The same words may have been answered at the stop before. Where this process was born late, it is only parked that it is late to hear of.
            let is_answered = state.last.is_some_and(|last| last.stop == self.waiter.stop && last.uptime_ms >= clock::born_ms());
            (is_answered || !is_judged || !self.is_wanted()).then_some(false)
        });
        ruling == Some(true)
    }

    /// Waits, and rules on the stop once more. `declared` is what it had to prove then.
    fn wait(&self, mut declared: Declared) -> Result<Outcome, Error> {
        let over = || Ok(Outcome::silent(Reason::WAIT_OVER));
        let wanted = || self.is_wanted() && self.is_parked();
        let stop = self.call.stop();
        let mut pauses = Pauses::default();
        loop {
            let Some(l) = self.parked()? else { return over() };
            let measurement = Measurement::of(&stop, &l, &declared, &wanted);
            let findings = journal::last_findings(&self.call.project.journal(self.id));
            if measurement.until_decided(&findings, &mut pauses) == Waited::Cancelled {
                return over();
            }
            // One at a time: another stop of the same loop may just be judged.
            let _lock = measure::lock(&stop, self.found)?;
            let Some((locked, l)) = find::under_lock(&self.call.project, self.found.clone())? else { return over() };
            if !wanted() {
                return over();
            }
            let (owner, asked) = (l.owner().map(str::to_owned), l.file.clone());
            let outcome = stop::rule(self.call, &stop, locked, l, Waiting::IsOver)?;
            if outcome.code != Code::GateWaiting.into() || self.call.deadline.time_left().is_zero() {
                self.keep_line(owner.as_deref(), &outcome.answer);
                return Ok(outcome);
            }
            declared = declared::of_loop(&self.call.project, &asked);
        }
    }

    /// The client does not show a background hook's line, so the person sees it when the session wakes, or else at its next stop. The session is the one that
    /// has the loop now: `/clear` may have begun another.
    fn keep_line(&self, owner: Option<&str>, answer: &Answer) {
        let (Answer::Block { line, .. } | Answer::Context { line: Some(line), .. } | Answer::Tell { line }) = answer else { return };
        let session = owner.or(self.call.event.session()).unwrap_or_default();
        // A line that cannot be kept is in the journal all the same.
        let _ = notices::keep(&self.call.project, session, clock::now(), line);
    }

    /// The loop, as long as it is parked.
    fn parked(&self) -> Result<Option<Box<Loop>>, Error> {
        let locked = find::under_lock(&self.call.project, self.found.clone())?;
        Ok(locked.map(|(_, l)| l).filter(|l| l.state.is_parked_by(&self.waiter.stop)))
    }
}

/// The message that wakes the session.
pub(super) fn told(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Block { reason: text, .. } | Answer::Context { text, .. } => Some(format!("{WOKEN}\n\n{text}")),
        Answer::Tell { .. } | Answer::Silent | Answer::Instead { .. } => None,
    }
}

/// Whether what arrives as a message is what a hook woke the session with, and not the person's.
pub(super) fn is_wake(call: &Call) -> bool {
    let typed = &call.event.prompt;
    call.event.kind == Kind::Prompt && typed.starts_with("<task-notification>") && typed.contains(WOKEN)
}

/// A session that was woken. What it was woken for may be over by then: it came behind a turn of the person's, whose own stop was judged meanwhile.
pub(super) fn on_wake(call: &Call) -> Outcome {
    let late = |why: &str| Outcome::instead(Reason::SESSION_WOKEN_LATE, format!("Ralph: nothing is to be done about this: {why}."));
    let Some(found) = call.own_loop() else {
        return late("there is no loop in this session any more");
    };
    if found.parsed.as_ref().is_ok_and(|file| !file.active) {
        return late("the loop is paused");
    }
    if journal::live_state(&call.project, &found).parked.is_some() {
        return late("the loop waits again");
    }
    Outcome::silent(Reason::SESSION_WOKEN).of_loop(&found.id())
}
