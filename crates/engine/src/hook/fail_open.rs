//! Fail open, loudly: an error or a panic lets the agent stop, pauses the loop and says so in one line (S0-11).

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, set_hook},
};

use ralph_core::{
    journal::{Actor, Event},
    judge::Reason,
};

use crate::{
    hook::{Call, Outcome, news::News},
    hosts::Kind,
    ops::pause,
    run::events::End,
    stop::find,
    store::{Error, last_ending, loops},
    sys::{clock, env},
};

/// Runs `work`; whatever it does, there is an outcome.
pub(super) fn guarded(call: &Call, work: impl FnOnce() -> Result<Outcome, Error>) -> Outcome {
    // The person sees one line of ralph's, never a stack trace.
    set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(|| {
        provoke_fault();
        work()
    }));
    match result {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(Error::Busy)) => failed(call, &Error::Busy.to_string(), false),
        Ok(Err(e)) => failed(call, &e.to_string(), true),
        Err(panic) => failed(call, &format!("internal error: {}", message(panic.as_ref())), true),
    }
}

/// The same for work in the background: the loop stays as it is.
pub(super) fn quietly(work: impl FnOnce() -> Result<Outcome, Error>) -> Outcome {
    set_hook(Box::new(|_| {}));
    let what = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(outcome)) => return outcome,
        Ok(Err(e)) => e.to_string(),
        Err(panic) => format!("internal error: {}", message(panic.as_ref())),
    };
    Outcome { error: Some(what), ..Outcome::silent(Reason::INTERNAL_ERROR) }
}

/// Only a stop that could not be judged leaves the loop in doubt, so only then is it paused.
fn failed(call: &Call, what: &str, may_pause: bool) -> Outcome {
    let paused = may_pause
        && call.event.kind == Kind::Stop
        && catch_unwind(AssertUnwindSafe(|| pause_own_loop(call, what))).is_ok_and(|paused| paused.is_some_and(|p| p));
    let kept = if paused {
        "the loop is paused; /ralph-resume goes on"
    } else if was_ended(call) {
        "the loop has ended; its file is in .ralph/archive, and /ralph-resume brings it back"
    } else {
        "the loop is kept as it is"
    };
    let line = format!("Ralph: {what}. The stop is allowed and {kept}.");
    let news = if paused { News::of(End::Failed, &line) } else { None };
    let id = news.as_ref().and_then(|_| call.own_loop()).map(|found| found.id()).unwrap_or_default();
    Outcome { error: Some(what.to_owned()), news, ..Outcome::tell(Reason::INTERNAL_ERROR, line) }.of_loop(&id)
}

/// Whether this very stop ended the loop before something went wrong.
fn was_ended(call: &Call) -> bool {
    let of_this_stop = |last: &last_ending::LastEnding| last.cause == call.event.stop_fingerprint() && last.uptime_ms >= clock::born_ms();
    let is_gone = |last: &last_ending::LastEnding| !loops::all(&call.project).iter().any(|found| found.id() == last.loop_id);
    last_ending::read(&call.project).filter(of_this_stop).is_some_and(|last| is_gone(&last))
}

fn pause_own_loop(call: &Call, what: &str) -> Option<bool> {
    let session = call.event.session()?;
    let (locked, mut l) = find::under_lock(&call.project, call.own_loop()?).ok()??;
    let _ = locked.record(&mut l, clock::now(), Some(session), Event::Error { what: what.to_owned() });
    pause::set_paused(&locked, &mut l, Some(session), Actor::Ralph, what).ok()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic".to_owned())
}

/// Test builds can be told to panic, to prove that nothing is lost when they do.
#[expect(clippy::panic, clippy::manual_assert, reason = "provoked on purpose, in builds with debug assertions only")]
fn provoke_fault() {
    if env::fault().as_deref() == Some("panic") {
        panic!("provoked by RALPH_FAULT");
    }
}
