//! A command of ralph's own that waited in the client's queue while the loop ran. A stop was let through for it, so its answer has to send the agent on.

use ralph_core::{
    journal::{Event, Record},
    judge::{Code, Reason},
    loops::Value,
    messages, text,
};

use crate::{
    hook::{Call, MAX_TASK, Outcome, command::is_recent},
    hosts::{Answer, transcript::QUEUED},
    stop::{find::under_lock, hear::was_interrupted, notes},
    store::{
        Error, journal,
        project_lock::{Locked, Loop},
    },
    sys::{clock, secrets},
};

/// An answer in the model's place. If the command waited in the queue while the loop ran, the stop before it was let through for its sake: then the answer also
/// sends the agent on, with all that it would have been sent back with at that stop. So the command costs no iteration: the next one is the one that was due anyway.
pub(super) fn answered(call: &Call, outcome: Outcome, fingerprint: &str) -> Result<Outcome, Error> {
    let Answer::Instead { text } = &outcome.answer else { return Ok(outcome) };
    let Some((locked, mut l)) = held_up(call)? else { return Ok(outcome) };
    let next = l.file.iteration.saturating_add(1);
    if !locked.set(&mut l, &[("iteration", Value::Plain(&next.to_string()))])? {
        return Ok(outcome);
    }
    l.state.command = Some(fingerprint.to_owned());
    if call.event.turn.is_some() {
        // The command begins a turn, and the client counts from nothing in each.
        l.state.turn.clone_from(&call.event.turn);
        l.state.idle_rounds = 0;
    }
    let note = due(call, &mut l, next);
    let event =
        Event::Heard { event: outcome.code.as_str().to_owned(), detail: Some("it had waited in the queue; the loop goes on".to_owned()) };
    locked.record(&mut l, clock::now(), call.event.session(), event)?;
    let fits = l.file.prompt.len() + note.len() <= MAX_TASK;
    let task = if fits { l.file.prompt.as_str() } else { "the task of the loop, as you know it." };
    let agent =
        format!("The person's command was for ralph, and is answered. Take no notice of it, and go on with your task:\n\n{task}{note}");
    let answer = Answer::Context { text: agent, line: Some(text.clone()) };
    Ok(Outcome::new(outcome.code, answer).of_loop(&l.id))
}

/// What the agent would have been told at the stop that was let through: what is not proven, and the notes that wait for it.
fn due(call: &Call, l: &mut Loop, iteration: u64) -> String {
    let stop = journal::recent_history(&call.project.journal(&l.id)).last_stop;
    let hint = stop.and_then(|stop| messages::hint(&stop.evidence, l.file.remind())).map(|hint| secrets::mask(&hint));
    hint.into_iter().chain(notes::hand_over(&mut l.state, iteration)).fold(String::new(), |all, part| all + "\n\n" + &part)
}

/// The session's own loop, if the last thing that happened to it is a stop that was let through for the command that is typed now. After an interrupt the person
/// wants it to rest, and then it rests for whatever comes next, too.
fn held_up(call: &Call) -> Result<Option<(Locked<'_>, Box<Loop>)>, Error> {
    let Some(seen) = call.own_loop() else { return Ok(None) };
    let typed = call.event.prompt.as_str();
    let is_let_through = |record: Option<&Record>| {
        // A second report of that stop changes nothing.
        let is_stop = |r: &&Record| match &r.event {
            Event::Stop { .. } => true,
            Event::Heard { event, .. } => event == Reason::STOP_REPEATED.as_str(),
            _ => false,
        };
        let queued = |r: &&Record| r.state.last.as_ref().is_some_and(|last| last.ruling.code == Code::HostQueuedInput);
        record.filter(is_stop).filter(queued).is_some_and(|r| r.state.queue.contains(&text::opening(typed, QUEUED)))
    };
    if !is_let_through(journal::live(&call.project, &seen).0.as_ref()) {
        return Ok(None);
    }
    let Some((locked, mut l)) = under_lock(&call.project, seen)? else { return Ok(None) };
    if !l.file.active || !is_let_through(journal::live(&call.project, &l.found).0.as_ref()) {
        return Ok(None);
    }
    if was_interrupted(call.transcript(), call.session(), typed, &l.state) {
        let event = Event::Heard { event: "command".to_owned(), detail: Some("after an interrupt".to_owned()) };
        locked.record(&mut l, clock::now(), call.event.session(), event)?;
        return Ok(None);
    }
    Ok(Some((locked, l)))
}

/// Whether this very command was answered a moment ago, and the agent sent on with it: clients report one command twice.
pub(super) fn was_sent_on(call: &Call, fingerprint: &str) -> bool {
    let Some(seen) = call.own_loop() else { return false };
    journal::live(&call.project, &seen)
        .0
        .is_some_and(|r| matches!(r.event, Event::Heard { .. }) && r.state.command.as_deref() == Some(fingerprint) && is_recent(&r.at))
}
