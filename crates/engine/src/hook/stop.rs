//! The client's `Stop` event: finds the session's loop, has the stop ruled on, and answers.

use ralph_core::{
    judge::{Next, Reason, Ruling},
    loops::file_of,
    messages::{self, ForAgent},
    text,
};

use crate::{
    gates::guard,
    hook::{Call, Outcome, compaction, keep_what_is_not_shown, news::News, session::heard_that},
    hosts::Answer,
    run::events::End,
    stop::{
        self, Ruled, Stop,
        find::{self, Selected, select},
        hear::message_fingerprint,
        is_told_by_the_agent,
        measure::{self, Waiting},
    },
    store::{
        Error, feature_folder, last_ending,
        loops::{self, LoopOnDisk},
        project_lock::{Locked, Loop},
        sessions,
    },
    sys::signals,
};

pub(super) fn on_stop(call: &Call) -> Result<Outcome, Error> {
    let session = call.session();
    let selected = select(&call.project, session);
    if matches!(selected, Selected::Nothing(Reason::LOOP_NONE)) {
        feature_folder::note_without_list(&call.project, session);
    }
    let seen = match selected {
        // The usual case: the project does not use ralph, and one look tells.
        Selected::Nothing(Reason::LOOP_NONE) if !call.finds_ralph_in_use() => {
            return Ok(lost_or(call, session, Reason::LOOP_NONE, || Outcome::silent(Reason::LOOP_NONE)));
        }
        Selected::Nothing(_) if feature_folder::lost_its_list(&call.project, session) => return lost_list(call, session),
        Selected::Nothing(Reason::LOOP_NONE) => return Ok(lost_or(call, session, Reason::LOOP_NONE, || no_loop(call))),
        Selected::Nothing(code) => return Ok(lost_or(call, session, code, || Outcome::silent(code))),
        _ if session.is_empty() => return Ok(Outcome::silent(Reason::INPUT_INVALID)),
        Selected::Own(found) | Selected::Adoptable(found) | Selected::Corrupt(found) => found,
    };
    let stop = call.stop();
    // Another hook on the same stop may be measuring: the second one waits for its answer, and repeats it.
    let lock = measure::lock(&stop, &seen)?;
    let locked = Locked::acquire(&call.project)?;
    // Everything that was read without the lock is read again: a cancel or another hook may have been faster.
    let Some(mut found) = loops::reread(&call.project, *seen)? else { return Ok(no_loop(call)) };
    if found.parsed.is_err() {
        let Some(settled) = locked.settled(found)? else { return Ok(no_loop(call)) };
        found = settled;
    }
    let mut l = match locked.open(found) {
        Ok(l) => l,
        Err(found) => return corrupt(call, &locked, &found),
    };
    if find::is_carried_elsewhere(&l.state) {
        return Ok(Outcome::silent(Reason::RUNNER_CARRIES).of_loop(&l.id));
    }
    if l.is_new && l.file.started_at.is_none() && l.found.known_as.is_none() {
        guard::forget(&call.project, &l.id);
    }
    match l.owner() {
        Some(owner) if owner != session => return Ok(Outcome::silent(Reason::SESSION_OTHER).of_loop(&l.id)),
        // Written by hand for this very session.
        Some(_) if l.is_new => call.project.introduce(),
        Some(_) if l.state.client_pid != call.client.pid() => l.stop_clock_if_abandoned(),
        Some(_) => {}
        None => find::adopt(&locked, &mut l, session, call.client)?,
    }
    if call.event.is_late && l.state.message.is_some() && l.state.message == call.event.message.as_deref().map(message_fingerprint) {
        drop((locked, lock));
        return unheard(call);
    }
    rule(call, &stop, locked, l, Waiting::Here)
}

/// The transcript lags, and did not come to say what the agent said last: ruling on old words would count a stop twice, so that this one is let through.
pub(super) fn unheard(call: &Call) -> Result<Outcome, Error> {
    if !loops::any(&call.project) {
        return Ok(Outcome::silent(Reason::LOOP_NONE));
    }
    let what = format!("{} did not write down in time what the agent said last", call.client.host.title);
    let heard = heard_that(call, Some(what.clone()), |_| {})?;
    let line = format!("Ralph: {what}, so this stop is allowed and the loop is kept as it is. It goes on at the next stop.");
    let is_armed = call.own_loop().is_some_and(|found| found.parsed.is_ok_and(|file| file.active));
    let answer = if is_armed { Answer::Tell { line } } else { Answer::Silent };
    Ok(Outcome { answer, error: Some(what), ..Outcome::silent(Reason::TRANSCRIPT_LATE) }.of_loop(&heard.loop_id))
}

/// Has a stop ruled on, and puts the ruling into an answer.
pub(super) fn rule<'p>(call: &Call, stop: &'p Stop<'p>, locked: Locked<'p>, l: Box<Loop>, waiting: Waiting) -> Result<Outcome, Error> {
    let was_parked = l.state.parked.is_some();
    Ok(match stop::rule(stop, locked, l, waiting)? {
        stop::Outcome::Ruled(ruled) => {
            // The process ends soon: freeing all of it would take time for nothing.
            let ruled = Box::leak(ruled);
            let news = News::of_ruling(&ruled.ruling, ruled.note.as_deref(), was_parked);
            ruled_on(call, ruled, waiting).with_news(news)
        }
        stop::Outcome::Repeated(l, last) => {
            let answer = answer(call, &l, &last.ruling, last.note.clone(), last.told.as_deref());
            Outcome::new(Reason::STOP_REPEATED, answer).of_loop(&l.id)
        }
        stop::Outcome::Told(l) => Outcome::silent(Reason::LOOP_PAUSED).of_loop(&l.id),
        stop::Outcome::Gone if signals::asked_to_end() => Outcome::silent(Reason::HOOK_ENDED),
        stop::Outcome::Gone => no_loop(call),
    })
}

fn ruled_on(call: &Call, ruled: &Ruled, waiting: Waiting) -> Outcome {
    let l = &ruled.l;
    let mut more = ruled.more.clone();
    match ruled.ruling.next {
        _ if waiting == Waiting::IsOver => {}
        Next::GoesOn { .. } => more.extend(compaction::after_an_iteration(call, l)),
        _ if l.file.compact_every() > 0 => compaction::heal(call),
        _ => {}
    }
    let answer = answer(call, l, &ruled.ruling, ruled.note.clone(), ruled.told.as_deref());
    let answer = if more.is_empty() { answer } else { answer.and_tell(&more.join("\n")) };
    // The line of a block is the same at every iteration, but for these.
    if matches!(answer, Answer::Block { .. }) && !more.is_empty() {
        keep_what_is_not_shown(call, &Answer::Tell { line: more.join("\n") });
    }
    let at_rest = matches!(ruled.ruling.next, Next::Pauses | Next::Parks | Next::Ends { .. });
    Outcome { answer, at_rest, ..Outcome::silent(ruled.ruling.code.into()) }.of_loop(&l.id)
}

/// No loop file. If it was this very stop that ended the loop, reported by another hook, the answer is the same.
fn no_loop(call: &Call) -> Outcome {
    compaction::heal(call);
    match last_ending::read(&call.project) {
        Some(last) if last.cause == call.event.stop_fingerprint() && call.is_second_report(&last.via, last.uptime_ms) => {
            Outcome::tell(Reason::STOP_REPEATED, last.line).of_loop(&last.loop_id)
        }
        _ => Outcome::silent(Reason::LOOP_NONE),
    }
}

/// This session has no loop. If it had one, and no person told ralph to take it away, the person is told once.
fn lost_or(call: &Call, session: &str, code: Reason, otherwise: impl FnOnce() -> Outcome) -> Outcome {
    let is_archived = |id: &str| call.project.archive().join(format!("{id}.md")).exists();
    let Some(lost) = sessions::lost(&call.project, session).filter(|lost| code != Reason::LOOP_NONE || !is_archived(&lost.id)) else {
        return otherwise();
    };
    let file = file_of(&lost.name);
    let line = match code {
        Reason::SESSION_OTHER => format!("Ralph: this session's loop ({}) is another session's now: .claude/{file} was edited.", lost.id),
        Reason::LOOP_NONE => format!("Ralph: this session's loop ({}) is gone: .claude/{file} was deleted, and not by ralph.", lost.id),
        _ => format!("Ralph: this session's loop ({}) is not this session's any more: .claude/{file} was edited.", lost.id),
    };
    Outcome::tell(Reason::LOOP_LOST, format!("{line} `ralph status` shows what there is.")).of_loop(&lost.id)
}

/// The list of a live loop was taken away. The agent may stop, and the person is told once why the loop does nothing any more.
fn lost_list(call: &Call, session: &str) -> Result<Outcome, Error> {
    if !Locked::acquire(&call.project)?.note_lost_list(session)? {
        return Ok(no_loop(call));
    }
    let list = text::clean(&feature_folder::list(&call.project));
    let line = format!("Ralph: the list {list} is gone, so the loop waits. It goes on once the list exists again.");
    Ok(Outcome::tell(Reason::LOOP_LOST_LIST, line).of_loop(&feature_folder::id(&call.project)))
}

/// S0-4: a file that cannot be read ends the loop. It moves to the archive as it is.
fn corrupt(call: &Call, locked: &Locked<'_>, found: &LoopOnDisk) -> Result<Outcome, Error> {
    let problem = found.parsed.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if found.is_folder() {
        return unreadable_list(call, locked, found, &problem);
    }
    let id = found.id();
    let session = call.event.session();
    let line = format!(
        "Ralph: {} cannot be read: {problem}. The loop has ended; its file is in .ralph/archive/{id}.md. Fix it there, then `/ralph-resume {id}`.",
        found.path.strip_prefix(call.project.root()).unwrap_or(&found.path).display()
    );
    last_ending::note(&call.project, &id, &call.event.stop_fingerprint(), Some(call.invocation.via()), &line);
    locked.archive_corrupt(found, session, &problem)?;
    let news = News::of(End::Failed, &line);
    Ok(Outcome::tell(Reason::LOOP_CORRUPT, line).of_loop(&id).at_rest().with_news(news))
}

/// A list that cannot be read lets the agent stop and changes nothing. It is told once, as long as nothing else is wrong with it.
fn unreadable_list(call: &Call, locked: &Locked<'_>, found: &LoopOnDisk, problem: &str) -> Result<Outcome, Error> {
    let id = found.id();
    if !locked.note_unreadable(found, call.event.session(), problem)? {
        return Ok(Outcome::silent(Reason::LOOP_CORRUPT).of_loop(&id));
    }
    let line = format!(
        "Ralph: {}. The stop is allowed and nothing is changed; the loop goes on once that is fixed.",
        feature_folder::unreadable(&found.path.strip_prefix(call.project.root()).unwrap_or(&found.path).display().to_string(), problem)
    );
    Ok(Outcome::tell(Reason::LOOP_CORRUPT, line).of_loop(&id))
}

/// The answer to a ruling. `note` is what the agent gets besides the prompt, or what the person is told; `told` is what the person is told about
/// the gates of a loop that goes on; `None`: it has none.
fn answer(call: &Call, l: &Loop, ruling: &Ruling, note: Option<String>, told: Option<&str>) -> Answer {
    match (ruling.next, note) {
        (Next::GoesOn { iteration }, note) => {
            let text = call.with_task("", &l.file.prompt, l.found.file_of_task(), note.as_deref());
            let mut line = messages::going_on(iteration, l.file.max_iterations(), l.file.completion_promise.as_deref(), told.is_some());
            if let Some(told) = told.filter(|told| !told.is_empty()) {
                line.push(' ');
                line.push_str(told);
            }
            line.push_str(messages::going_on_although(ruling.code));
            for warning in &l.file.warnings {
                line.push_str("\nRalph: the loop file, ");
                line.push_str(warning);
            }
            Answer::go_on(text, line, l.file.continue_with(), call.client)
        }
        // Its cap has one block left for this.
        (_, Some(line)) if is_told_by_the_agent(call.client, ruling) => Answer::Block { reason: ForAgent::LastWord(&line).text(), line },
        (_, Some(line)) => Answer::Tell { line },
        (_, None) => Answer::Silent,
    }
}
