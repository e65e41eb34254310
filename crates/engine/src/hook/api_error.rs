//! A turn that ended in an error of the model's service: the loop is parked until it may work again, or paused where only a person can help. A second hook
//! waits in the background of the session meanwhile, and wakes it with its task.

use std::time::Duration;

use ralph_core::{
    journal::{Actor, Event, Parked},
    judge::{Reason, ToolUse},
    text::{
        self,
        time::{self, Millis},
    },
};

use crate::{
    hook::{
        Call, MAX_TASK, Outcome,
        news::News,
        session::note_heard,
        wake::{self, Watch},
    },
    hosts::{
        Answer, api_error, client, service_error,
        transcript::{self, ApiError, OpenFile},
    },
    notify::LONG_REST,
    ops::pause,
    run::events::End,
    stop::{
        find::under_lock,
        measure::{Waiting, is_of_this_client},
        waiting_hook::can_wake,
    },
    store::{Error, notices},
    sys::{clock, env, signals, wait},
};

/// The client writes the error's line down after it has called the hook.
const LINE_PATIENCE: Duration = Duration::from_secs(1);

/// How long the hook beside this one may take to park the loop.
const PARKING: Duration = Duration::from_secs(10);

/// A client that resumes by itself after a limit does so within this time of the reset (measured: 60 s, rounded up to a tick of 30 s).
const RESUMES_WITHIN_MS: Millis = 150_000;

/// While it waits: how often it looks whether it still should.
const LONGEST_STEP: Duration = Duration::from_secs(2);

/// A fingerprint of this failure: a second hook on it counts nothing.
fn fingerprint(call: &Call) -> String {
    format!("{}-{}", call.event.stop_fingerprint(), text::excerpt(error(call), 40))
}

fn error(call: &Call) -> &str {
    call.event.about.as_deref().unwrap_or_default()
}

/// The first hook: says what becomes of the loop.
pub(super) fn on_failure(call: &Call) -> Result<Outcome, Error> {
    let session = call.session();
    let Some(seen) = call.own_loop() else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    let host = call.client.host;
    let trouble = if host.is_claude() {
        api_error::trouble(error(call), line_in_time(call).as_ref())
    } else {
        service_error::of_turn(&call.event.error, error(call))
    };
    let Some((locked, mut l)) = under_lock(&call.project, seen)? else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    let stop = fingerprint(call);
    let outcome = Outcome::silent(Reason::HOST_API_ERROR).of_loop(&l.id);
    if l.state.is_parked_by(&stop) {
        return Ok(Outcome::silent(Reason::STOP_REPEATED).of_loop(&l.id));
    }
    let Some(trouble) = trouble.filter(|_| l.file.active) else {
        note_heard(call, &locked, &mut l)?;
        return Ok(outcome);
    };
    let now = clock::now();
    if let Some(what) = api_error::waits_for(&trouble) {
        let until = api_error::until(&trouble, l.state.failures.service, now, env::time_scale());
        l.state.failures = l.state.failures.after(&trouble);
        l.state.disarm(now);
        let idle_rounds = l.state.idle_rounds;
        let round = text::of_limit(l.file.iteration, l.file.max_iterations());
        let is_long = |since: Millis, until: Millis| until - since > LONG_REST;
        let is_known = l.state.parked.as_ref().is_some_and(|parked| parked.until.is_some_and(|until| is_long(parked.since, until)));
        let is_news = is_long(now, until) && !is_known;
        let news = if is_news { News::of(End::Parked, format!("parked at iteration {round}: {what}")) } else { None };
        l.state.parked = Some(Parked { since: now, stop, what, until: Some(until), tools: ToolUse::Unknown, idle_rounds });
        note_heard(call, &locked, &mut l)?;
        return Ok(outcome.at_rest().with_news(news));
    }
    note_heard(call, &locked, &mut l)?;
    let mut news = None;
    if pause::set_paused(&locked, &mut l, Some(session), Actor::Ralph, &trouble.words())? {
        let iteration = text::of_limit(l.file.iteration, l.file.max_iterations());
        let line = format!("Ralph: paused at iteration {iteration}: {}. {}.", trouble.words(), service_error::remedy(&trouble, host));
        drop(locked);
        // The client shows no answer to this event.
        let _ = notices::keep(&call.project, session, now, &line);
        news = News::of(End::Blocked, line);
    }
    Ok(outcome.at_rest().with_news(news))
}

/// The error's line in the transcript. Where a session goes on after the error, it is waited for: it may say when the limit ends.
fn line_in_time(call: &Call) -> Option<ApiError> {
    let is_worth_waiting = client::is_interactive() && resumes_by_itself(call);
    wait::poll(if is_worth_waiting { LINE_PATIENCE } else { Duration::ZERO }, wait::SOON, || line(call))
}

fn line(call: &Call) -> Option<ApiError> {
    let file = OpenFile::of_session(call.transcript(), call.event.session())?;
    transcript::last_error(&file).filter(|seen| seen.error == error(call))
}

/// Whether the client is known to say when a limit ends, and to go on then by itself.
fn resumes_by_itself(call: &Call) -> bool {
    call.client.resumes
}

/// The second hook: waits until the model may be asked again, and wakes the session.
pub(super) fn wait(call: &Call) -> Result<Outcome, Error> {
    if !can_wake(call.client) {
        return Ok(Outcome::silent(Reason::WAIT_NONE));
    }
    // A process that is asked to end removes its mark first.
    signals::notice();
    let Some(found) = call.own_loop() else {
        return Ok(Outcome::silent(Reason::WAIT_NONE));
    };
    wake::while_marked(call, &found, fingerprint(call), |watch| match watch.parked_until() {
        None => Ok(Outcome::silent(Reason::WAIT_NONE)),
        Some(until) if watch.is_still_wanted_at(until) => watch.wake(),
        Some(_) => Ok(Outcome::silent(Reason::WAIT_OVER)),
    })
}

impl Watch<'_> {
    /// The park that this very failure caused.
    fn parked_by_it(&self) -> Option<Parked> {
        self.state().parked.filter(|parked| parked.stop == self.waiter.stop)
    }

    /// Until when the hook beside this one parked the loop, if it did. A client that resumes by itself is given its time.
    fn parked_until(&self) -> Option<Millis> {
        let parked = wait::poll(PARKING, wait::SOON, || if self.is_wanted() { self.parked_by_it().map(Some) } else { Some(None) });
        let until = parked.flatten()?.until?;
        let has_reset = line(self.call).is_some_and(|line| line.resets_at == Some(until));
        let grace = if has_reset && resumes_by_itself(self.call) { RESUMES_WITHIN_MS / env::time_scale() } else { 0 };
        Some(until.saturating_add(grace))
    }

    /// Sleeps until then; whether the loop still waits for it.
    fn is_still_wanted_at(&self, until: Millis) -> bool {
        let is_over = || !self.is_wanted() || self.parked_by_it().is_none() || self.call.deadline.time_left().is_zero();
        wait::until_moment(until, LONGEST_STEP, || is_over().then_some(())).is_none() && !is_over()
    }

    /// Arms the loop again, in the same iteration, and hands its task over.
    fn wake(&self) -> Result<Outcome, Error> {
        let over = || Ok(Outcome::silent(Reason::WAIT_OVER));
        let Some((locked, mut l)) = under_lock(&self.call.project, self.found.clone())? else { return over() };
        if !self.is_wanted()
            || !l.file.active
            || !l.state.is_parked_by(&self.waiter.stop)
            || !is_of_this_client(&self.call.stop(), &l, Waiting::IsOver)
        {
            return over();
        }
        let now = clock::now();
        let waited = l.state.parked.take().map_or(0, |parked| u64::try_from(now - parked.since).unwrap_or(0));
        l.state.arm(now);
        let owner = l.owner().unwrap_or_default().to_owned();
        let event = Event::Heard { event: "woken".to_owned(), detail: Some(format!("after {}", time::in_words(waited))) };
        locked.record(&mut l, now, Some(&owner), event)?;
        drop(locked);
        let iteration = text::of_limit(l.file.iteration, l.file.max_iterations());
        let line = format!("Ralph: goes on by itself at iteration {iteration}, after {} of waiting.", time::in_words(waited));
        let _ = notices::keep(&self.call.project, &owner, now, &line);
        let text =
            if l.file.prompt.len() <= MAX_TASK { l.file.prompt } else { "The task is the one of this loop, as you know it.".to_owned() };
        let answer = Answer::Block { reason: text, line };
        Ok(Outcome::new(Reason::SESSION_WAKES, answer))
    }
}
