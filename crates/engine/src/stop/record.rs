//! Makes a ruling real: the loop's file first, because it is what counts, then the journal.

use ralph_core::{
    gate::Verdict,
    journal::{Answered, Event, Parked, State},
    judge::{self, Code, Ending, Evidence, Next, Ruling, Standstill, session_outcome::Failures},
    loops::Value,
    messages::gate_messages,
    text::time::Millis,
};

use super::{Ruled, Stop, gather::Gathered};
use crate::{
    store::{Error, archive, last_ending, project_lock::Locked},
    sys::{clock, secrets},
};

/// `None`: the file is gone, because a cancel or a deletion was faster.
pub(super) fn commit(stop: &Stop<'_>, locked: &Locked<'_>, mut ruled: Ruled) -> Result<Option<Ruled>, Error> {
    let Ruled { l, gathered, ruling, note, told, at, .. } = &mut ruled;
    let at = *at;
    let there = match ruling.next {
        Next::GoesOn { iteration } => locked.set(l, &[("iteration", Value::Plain(&iteration.to_string()))])?,
        Next::Stays | Next::Parks => true,
        Next::Pauses => locked.set(l, &[("active", Value::Plain("false"))])?,
        Next::Ends { ending } => {
            let via = stop.hook().map(|hook| hook.invocation.via());
            last_ending::note(stop.project, &l.id, &stop.fingerprint, via, note.as_deref().unwrap_or_default());
            archive::end(stop.project, &l.found, &l.id, ending)?
        }
    };
    if !there {
        return Ok(None);
    }
    remember(&mut l.state, &stop.fingerprint, at, gathered, ruling);
    l.state.client_pid = stop.holder_pid();
    if let Some(hook) = stop.hook() {
        l.state.runner = None;
        l.state.host = hook.client.host.in_journal();
    }
    l.state.turn = stop.turn.map(str::to_owned);
    let via = stop.reporters(l.state.last.as_ref().filter(|last| last.stop == stop.fingerprint));
    l.state.last = Some(Answered {
        stop: stop.fingerprint.clone(),
        at,
        uptime_ms: clock::uptime_ms(),
        via,
        ruling: ruling.clone(),
        note: note.clone(),
        told: told.clone(),
    });
    let client = stop.hook().and_then(|hook| hook.client.version).map(|version| version.to_string());
    let said = secrets::excerpt(&gathered.heard.text, 160);
    let work = stop.report().map(|report| Box::new(report.work.clone()));
    let event = Event::Stop { evidence: Box::new(gathered.evidence.clone()), ruling: ruling.clone(), said, client, work };
    locked.record(l, at, stop.session(), event)?;
    Ok(Some(ruled))
}

/// Keeps what the next stop is compared with.
fn remember(state: &mut State, stop: &str, at: Millis, gathered: &Gathered, ruling: &Ruling) {
    let evidence = &gathered.evidence;
    state.stops += 1;
    state.spending.clone_from(&gathered.spending);
    if gathered.items.is_some() {
        state.items.clone_from(&gathered.items);
    }
    if evidence.fresh {
        remember_of_run(state, evidence, ruling);
    } else {
        state.failures = Failures::default();
    }
    state.left_behind = false;
    match ruling.next {
        Next::GoesOn { .. } => {
            if gathered.idle_rounds <= 1 {
                // Idleness that begins with this iteration began after the ruling before it.
                state.idle_since = state.last.as_ref().map(|last| last.at).or(state.armed_since);
            }
            state.idle_rounds = gathered.idle_rounds;
            state.turn_blocks = gathered.turn_blocks;
            state.message = Some(gathered.heard.fingerprint());
            state.standstill.clone_from(&gathered.standstill);
            state.blocked_rounds = evidence.blocked_rounds;
        }
        Next::Stays | Next::Parks => {}
        Next::Pauses => {
            state.disarm(at);
            if let Some(items) = state.items.as_mut().filter(|_| ruling.code == Code::FeaturesPerSession) {
                // A person who resumes it wants as many again.
                items.before = items.done;
            }
            state.idle_rounds = gathered.idle_rounds;
            state.standstill = None;
            // A person who resumes it has changed something.
            state.blocked_rounds = 0;
        }
        Next::Ends { ending } => {
            state.disarm(at);
            state.ended = Some(ending);
            state.doubtful = ending == Ending::Complete && !evidence.suspicions.is_empty();
        }
    }
    if evidence.fresh {
        // The next run goes on with the count: after a pause for it comes one trial.
        let most = evidence.stall_limit.saturating_sub(1);
        state.standstill = gathered.standstill.clone().map(|s| Standstill { rounds: s.rounds.min(most), ..s });
    }
    state.parked = (ruling.next == Next::Parks).then(|| Parked {
        // Since the stop, however often it was ruled on again.
        since: state.parked.as_ref().filter(|_| state.is_parked_by(stop)).map_or(at, |before| before.since),
        stop: stop.to_owned(),
        what: secrets::mask(&gate_messages::in_short(evidence)),
        until: None,
        tools: evidence.tools,
        idle_rounds: gathered.idle_rounds,
    });
    state.gated |= !evidence.gates.is_empty();
    if ruling.next != Next::Parks {
        state.failure.clone_from(&gathered.failure);
    }
    state.unknown_rounds = if ruling.next == Next::Pauses { 0 } else { evidence.unknown_rounds };
    state.queue.clone_from(&gathered.heard.queue);
    state.read.clone_from(&gathered.heard.read);
}

/// Keeps what only the next session of a run needs.
fn remember_of_run(state: &mut State, evidence: &Evidence, ruling: &Ruling) {
    state.failures = Failures::default();
    match (&mut state.runner, ruling.next) {
        (Some(runner), Next::GoesOn { .. } | Next::Stays | Next::Parks) => {
            runner.attempt = 0;
            runner.inner = 0;
        }
        (runner, _) => *runner = None,
    }
    let passing = evidence.gates.iter().filter(|f| f.verdict == Verdict::Pass).count() as u64;
    let held = passing.saturating_add(evidence.gates.iter().filter_map(|f| f.tally).map(|tally| tally.done).sum());
    let fails = evidence.gates.iter().any(|f| f.verdict == Verdict::Fail) || evidence.stalled_rounds > 0;
    let goes_on = matches!(ruling.next, Next::GoesOn { .. });
    state.failing.rounds = if goes_on { judge::count_failing(state.failing.rounds, fails, state.failing.held, held) } else { 0 };
    state.failing.held = held;
    // These were told and ruled on; a note that came meanwhile is told in the next iteration.
    if !matches!(ruling.next, Next::Stays) {
        state.notes.retain(|note| note.told_in.is_none());
    }
}
