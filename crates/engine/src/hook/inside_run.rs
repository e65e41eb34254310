//! A session that a run started: the run judges it, so its own hooks change nothing and say nothing. Only with `--inner`, the session is sent back a few
//! times within the same iteration while its gates fail.

use ralph_core::{
    gate::Verdict,
    journal::{Answered, Event, State},
    judge::{Decision, Reason},
    loops::ContinueWith,
    messages::{self, gate_messages},
    text,
};

use crate::{
    gates::declared,
    hook::{Call, Outcome},
    hosts::{Answer, Kind},
    stop::{
        self,
        find::{Selected, select, under_lock},
        measure, note_second_report,
    },
    store::{Error, journal, loops::LoopOnDisk},
    sys::{clock, secrets},
};

/// Answers an event within a run, where the usual answer would be wrong. A session without a loop of its own adopts none: no person is there.
pub(super) fn within_a_run(call: &Call, mark: &str) -> Result<Option<Outcome>, Error> {
    let event = call.event.kind;
    if event == Kind::SubagentStop {
        return Ok(None);
    }
    // The run may have died, or given the loop away: its session is still its own.
    let is_about = |found: &LoopOnDisk| mark.rsplit_once('.').is_some_and(|(id, _)| id == found.id());
    match select(&call.project, call.session()) {
        Selected::Own(found) if is_about(&found) && event == Kind::Stop => on_stop(call, mark, *found).map(Some),
        Selected::Own(found) if is_about(&found) => Ok(Some(Outcome::silent(Reason::RUNNER_DRIVES).of_loop(&found.id()))),
        Selected::Own(_) => Ok(None),
        _ if matches!(event, Kind::Stop | Kind::SessionStart | Kind::Prompt | Kind::TypedCommand) => {
            Ok(Some(Outcome::silent(Reason::RUNNER_WITHIN)))
        }
        _ => Ok(None),
    }
}

/// Lets the session stop, or sends it back with what failed: the task is in its context.
fn on_stop(call: &Call, mark: &str, found: LoopOnDisk) -> Result<Outcome, Error> {
    let id = found.id();
    let stop = call.stop();
    let drives = || Outcome::silent(Reason::RUNNER_DRIVES).of_loop(&id);
    let may_hold = |state: &State| state.runner.as_ref().is_some_and(|runner| runner.mark == mark && runner.inner < runner.inner_limit);
    let may_be_held = |state: &State| may_hold(state) || state.last.as_ref().is_some_and(|last| stop.is_answered_by(last));
    if !may_be_held(&journal::live_state(&call.project, &found)) {
        return Ok(drives());
    }
    let _lock = measure::lock(&stop, &found)?;
    let Some((locked, mut l)) = under_lock(&call.project, found)? else { return Ok(drives()) };
    if let Some(last) = l.state.last.clone().filter(|last| stop.is_answered_by(last)) {
        note_second_report(&stop, &locked, &mut l);
        let repeated = last.note.map(|note| sent_back(call, note, last.told, l.file.continue_with()));
        return Ok(repeated.map_or_else(drives, |answer| Outcome::new(Reason::STOP_REPEATED, answer).of_loop(&id)));
    }
    let declared = declared::of_loop(&call.project, &l.for_gates(&l.file));
    if !may_hold(&l.state) || !l.file.active || (declared.is_empty() && !l.state.gated) {
        return Ok(drives());
    }
    let Some((locked, mut l, evidence, ruling)) = stop::preview(&stop, locked, l)? else { return Ok(drives()) };
    let at = clock::now();
    let fails = evidence.gates.iter().any(|finding| finding.verdict == Verdict::Fail);
    // An agent that cannot go on is not held: the run hears it, and decides.
    let is_held = fails && ruling.decision == Decision::Block && evidence.blocked.is_none();
    let hint = messages::hint(&evidence, false).filter(|_| is_held);
    let (Some(hint), true) = (hint.map(|hint| secrets::mask(&hint)), may_hold(&l.state)) else { return Ok(drives()) };
    let Some(runner) = l.state.runner.as_mut() else { return Ok(drives()) };
    runner.inner += 1;
    let told = format!(
        "Ralph: sent back within the iteration ({}): {}.",
        text::of_limit(runner.inner, runner.inner_limit),
        secrets::mask(&gate_messages::in_short(&evidence))
    );
    let event = Event::Heard { event: Reason::RUNNER_INNER.as_str().to_owned(), detail: Some(gate_messages::in_short(&evidence)) };
    let (uptime_ms, via) = (clock::uptime_ms(), vec![call.invocation.via()]);
    let stop = stop.fingerprint.clone();
    l.state.last = Some(Answered { stop, at, uptime_ms, via, ruling, note: Some(hint.clone()), told: Some(told.clone()) });
    locked.record(&mut l, at, call.event.session(), event)?;
    let answer = sent_back(call, hint, Some(told), l.file.continue_with());
    Ok(Outcome::new(Reason::RUNNER_INNER, answer).of_loop(&id))
}

fn sent_back(call: &Call, hint: String, told: Option<String>, form: ContinueWith) -> Answer {
    Answer::go_on(hint, told.unwrap_or_default(), form, call.client)
}
