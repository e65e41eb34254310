//! A session begins, ends, or reports something that changes nothing.

use ralph_core::{
    journal::{Actor, Event, State},
    judge::Reason,
    loops::Value,
    messages::{self, Reader},
    text::{self, time},
};

use crate::{
    hook::{Call, MAX_TASK, Outcome, compaction},
    hosts::Answer,
    ops::pause,
    stop::{
        find::{Selected, is_unreleased_checkout, select, under_lock},
        hear::read_until_now,
    },
    store::{
        Error, journal, loops,
        project_lock::{Locked, Loop},
    },
    sys::{clock, secrets},
    view::{self, Status},
};

/// `/clear` makes a new session in the same process: its loop comes along. After a compaction the agent is reminded; otherwise the person is told about a loop that waits here.
pub(super) fn on_start(call: &Call) -> Result<Outcome, Error> {
    let session = call.session();
    if call.event.about.as_deref() == Some("compact") {
        compaction::done(call);
    } else {
        compaction::heal(call);
    }
    if !loops::any(&call.project) || session.is_empty() {
        return Ok(Outcome::silent(Reason::LOOP_NONE));
    }
    match call.event.about.as_deref().unwrap_or_default() {
        "clear" => after_clear(call, session),
        "compact" => after_compact(call),
        _ if call.client.host.begins_silently() && is_after_clear(call) => after_clear(call, session),
        _ => {
            let read = read_until_now(session, call.transcript());
            // The owner is back: its loop is no longer left behind.
            heard(call, |l| {
                l.stop_clock_if_abandoned();
                l.state.left_behind = false;
                l.state.client_pid = call.client.pid();
                l.state.host = call.client.host.in_journal();
                l.state.runner = None;
                // What an earlier process had in its queue went with it.
                l.state.queue.clear();
                l.state.read.clone_from(&read);
                if l.file.active {
                    l.state.arm(clock::now());
                }
            })?;
            Ok(tell_of_loops(call, session))
        }
    }
}

fn after_clear(call: &Call, session: &str) -> Result<Outcome, Error> {
    // Without the lock first: a session that has no loop leaves no trace.
    let carried = |found: &loops::LoopOnDisk| was_cleared(call, found);
    let found = loops::all(&call.project).iter().filter(|found| carried(found)).count();
    // Of several loops whose sessions say nothing as they are cleared, none is surely this one's.
    if found == 0 || (found > 1 && !call.client.host.announces_clear()) {
        let told = if call.client.host.announces_clear() { Outcome::silent(Reason::LOOP_NONE) } else { tell_of_loops(call, session) };
        return Ok(told);
    }
    let locked = Locked::acquire(&call.project)?;
    for found in loops::all(&call.project).into_iter().filter(carried) {
        let Ok(mut l) = locked.open(found) else { continue };
        let Some(from) = l.owner().map(str::to_owned).filter(|owner| owner != session) else { continue };
        // A checkout can bring a journal with a guessed process id.
        if is_unreleased_checkout(&call.project, &l.found, true) {
            continue;
        }
        if l.file.session_id.is_some() {
            if !locked.set(&mut l, &[("session_id", Value::Text(session))])? {
                continue;
            }
        } else {
            l.state.owner = Some(session.to_owned());
        }
        (l.state.left_behind, l.state.cleared) = (false, false);
        l.state.last = None;
        locked.record(&mut l, clock::now(), Some(session), Event::Rebound { from })?;
        let state = if l.file.active { "goes on in this session" } else { "is paused" };
        let line =
            format!("Ralph: the loop (iteration {}) {state} after /clear.", text::of_limit(l.file.iteration, l.file.max_iterations()));
        return Ok(Outcome::tell(Reason::SESSION_CLEARED, line).of_loop(&l.id));
    }
    Ok(Outcome::silent(Reason::LOOP_NONE))
}

/// Whether a loop belongs to the session that was cleared just now: it has the same process, or, where a process says nothing, the session said so as it ended.
/// Where that is not told either, an armed loop may be that of a session that lives beside this one. A paused one does nothing by itself.
fn was_cleared(call: &Call, found: &loops::LoopOnDisk) -> bool {
    let state = journal::live_state(&call.project, found);
    match call.client.pid() {
        Some(pid) => state.client_pid == Some(pid),
        None if !is_of_host(call, &state) => false,
        None if call.client.host.announces_clear() => state.cleared,
        None => found.parsed.as_ref().is_ok_and(|file| !file.active) && !state.left_behind,
    }
}

/// Whether a session of this agent said that it was cleared, and no other has begun since.
fn is_after_clear(call: &Call) -> bool {
    loops::all(&call.project).iter().any(|found| was_cleared(call, found))
}

fn is_of_host(call: &Call, state: &State) -> bool {
    state.host == call.client.host.in_journal()
}

/// A summary may have lost how the loop ends.
fn after_compact(call: &Call) -> Result<Outcome, Error> {
    let mut reminder = None;
    let mut outcome = heard(call, |l| {
        let promise = l.file.completion_promise.as_deref().filter(|_| l.file.active);
        let iteration = l.file.iteration;
        reminder =
            promise.map(|p| format!("A Ralph loop is active in this session (iteration {iteration}). {}", messages::how_to_end(Some(p))));
    })?;
    if let Some(text) = reminder {
        outcome.answer = Answer::Context { text, line: None };
    }
    Ok(outcome)
}

fn tell_of_loops(call: &Call, session: &str) -> Outcome {
    let lines: Vec<String> =
        view::live(&call.project).iter().filter_map(|v| told(v, session).or_else(|| told_after_clear(call, v))).collect();
    if lines.is_empty() {
        return Outcome::silent(Reason::SESSION_OTHER);
    }
    let line = lines.join("\n");
    match task_that_waits(call, session) {
        Some(text) => Outcome { answer: Answer::Context { text, line: Some(line) }, ..Outcome::silent(Reason::SESSION_STARTED) },
        None => Outcome::tell(Reason::SESSION_STARTED, line),
    }
}

/// The task of a loop that will take this session: "begin" is not much to go by.
fn task_that_waits(call: &Call, session: &str) -> Option<String> {
    let Selected::Adoptable(found) = select(&call.project, session) else { return None };
    let file = found.parsed.as_ref().ok().filter(|file| file.prompt.len() <= MAX_TASK)?;
    let claim = messages::how_to_end(file.completion_promise.as_deref());
    let text = format!(
        "A Ralph loop waits in this project. When the person tells you to begin, this is the task; it comes back to you whenever you try to stop, until it is done. {claim}\n\n{}",
        file.prompt
    );
    Some(text)
}

/// The person's line about a loop of another session, after a `/clear` that does not say which session it cleared: Codex refuses it in the middle of a turn, but a
/// session may also rest with its loop armed, while something outside is decided or after an error.
fn told_after_clear(call: &Call, v: &view::View) -> Option<String> {
    let is_clear = call.event.about.as_deref() == Some("clear") && !call.client.host.announces_clear();
    let is_anothers = matches!(v.status, Status::Active | Status::Parked) && v.agent.as_deref() == Some(call.client.host.name);
    let iteration = text::of_limit(v.iteration, v.max_iterations);
    let resume = Reader::Session.resume(&named(v));
    (is_clear && is_anothers).then(|| {
        format!("Ralph: another session has a loop here (iteration {iteration}). If that was the session you cleared, {resume} goes on with it in this one.")
    })
}

/// Its name after a space, as commands take it; nothing for the usual one.
fn named(v: &view::View) -> String {
    if v.name == "main" { String::new() } else { format!(" {}", v.name) }
}

/// The person's line about one loop when a session begins.
fn told(v: &view::View, session: &str) -> Option<String> {
    let iteration = text::of_limit(v.iteration, v.max_iterations);
    let named = named(v);
    let when = v.last_event_at.as_deref().map(|at| format!(", last active {}", ago(at))).unwrap_or_default();
    let own = v.session.as_deref() == Some(session);
    let (resume, cancel) = (Reader::Session.resume(&named), Reader::Session.cancel(&named));
    let choose = format!("{resume} goes on with it, {cancel} drops it");
    Some(match v.status {
        Status::Active if own => {
            format!("Ralph: this session's loop is armed (iteration {iteration}{when}). It goes on at the next stop; {cancel} ends it.")
        }
        Status::Parked if own && v.waits.as_ref().is_some_and(|waits| waits.until.is_some()) => format!(
            "Ralph: this session's loop is parked (iteration {iteration}{when}), for {}. It goes on at the next stop; {resume} goes on now.",
            v.waits.as_ref().map(|waits| text::clean(&waits.what)).unwrap_or_default()
        ),
        Status::Parked if own => format!(
            "Ralph: this session's loop is parked (iteration {iteration}{when}){}. `ralph pr{named} --wait` waits for it; {resume} goes on now.",
            v.waits.as_ref().map(|waits| format!(", for {}", text::clean(&waits.what))).unwrap_or_default()
        ),
        Status::Waiting => {
            format!("Ralph: a loop waits for a session (iteration {iteration}). It takes this one at its first stop; {cancel} drops it.")
        }
        Status::Tracked => {
            format!("Ralph: a loop came with this repository (iteration {iteration}). It does nothing until you say {resume}.")
        }
        Status::Paused => format!("Ralph: a loop is paused here (iteration {iteration}{when}). {choose}."),
        Status::LeftBehind => format!("Ralph: a loop was left behind here (iteration {iteration}{when}). {choose}."),
        Status::Corrupt => format!("Ralph: {} cannot be read: {}.", v.file.as_deref()?.display(), v.problem.as_deref()?),
        // Another session or a run works on it, or it has ended.
        Status::Active | Status::Parked | Status::Complete | Status::Capped | Status::Cancelled | Status::Failed | Status::Gone => {
            return None;
        }
    })
}

/// How long ago a time stamp of the journal was, in words.
fn ago(at: &str) -> String {
    let passed = time::parse(at).map_or(0, |at| u64::try_from(clock::now() - at).unwrap_or(0));
    format!("{} ago", time::in_words(passed))
}

/// The session is over: its loop, if it has one, is left behind unless `/clear` is about to begin the next session.
pub(super) fn on_end(call: &Call) -> Result<Outcome, Error> {
    let clearing = call.event.about.as_deref() == Some("clear");
    compaction::forget(call);
    heard(call, |l| {
        (l.state.left_behind, l.state.cleared) = (!clearing, clearing);
        // The clock stands still until a session takes it up again.
        if !clearing {
            l.state.disarm(clock::now());
        }
    })
}

/// The person interrupted the agent, and the client says so: the loop waits for their word.
pub(super) fn on_interrupt(call: &Call) -> Result<Outcome, Error> {
    let Some(seen) = call.own_loop() else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    let Some((locked, mut l)) = under_lock(&call.project, seen)? else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    if l.file.active {
        pause::set_paused(&locked, &mut l, call.event.session(), Actor::Session, "interrupted")?;
    }
    Ok(Outcome::silent(Reason::LOOP_INTERRUPTED).of_loop(&l.id).at_rest())
}

/// Journalled and never blocked: most subagents' stops, a compaction, an event that ralph does not know.
pub(super) fn on_other(call: &Call) -> Result<Outcome, Error> {
    heard(call, |_| {})
}

fn heard(call: &Call, change: impl FnOnce(&mut Loop)) -> Result<Outcome, Error> {
    heard_that(call, detail(call), change)
}

/// Writes into the journal of the session's loop what an event was about.
pub(super) fn heard_that(call: &Call, detail: Option<String>, change: impl FnOnce(&mut Loop)) -> Result<Outcome, Error> {
    let session = call.session();
    let Some(seen) = call.own_loop() else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    let Some((locked, mut l)) = under_lock(&call.project, seen)? else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    change(&mut l);
    let event = Event::Heard { event: text::excerpt(&call.event.name, 60), detail };
    locked.record(&mut l, clock::now(), Some(session), event)?;
    Ok(Outcome::silent(Reason::EVENT_HEARD).of_loop(&l.id))
}

/// The same for a loop that is open already.
pub(super) fn note_heard(call: &Call, locked: &Locked<'_>, l: &mut Loop) -> Result<(), Error> {
    let event = Event::Heard { event: text::excerpt(&call.event.name, 60), detail: detail(call) };
    locked.record(l, clock::now(), call.event.session(), event)
}

fn detail(call: &Call) -> Option<String> {
    call.event.about.as_deref().map(|text| secrets::excerpt(text, 100))
}
