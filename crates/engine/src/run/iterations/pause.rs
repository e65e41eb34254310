//! Doing nothing for a while: for a quota, for the hour, before the last try.

use std::time::{Duration, Instant};

use ralph_core::{
    journal::{Event, Parked},
    judge::ToolUse,
    text::{
        self,
        time::{self, Millis},
    },
};

use super::{Ends, HOUR, Iterations};
use crate::{
    notify::{Kind, LONG_REST, News},
    run::{
        control::Asked,
        events::{End, RunEvent},
        notify_all,
    },
    store::Error,
    sys::{clock, wait},
};

/// How often a resting run looks at its loop.
const LOOK_WHILE_RESTING: Duration = Duration::from_secs(1);

impl Iterations<'_> {
    /// Waits where a session must not be started yet: too many within the hour, or too many that changed nothing.
    pub(super) fn rest_before_a_session(&mut self) -> Result<Option<Ends>, Error> {
        for rest in [Self::hourly_rest, Self::rest_before_a_trial] {
            let Some((until, why)) = rest(self) else { continue };
            let ends = if let Some(ends) = self.wants_to_end()? { Some(ends) } else { self.rest(until, &why)? };
            if ends.is_some() {
                return Ok(ends);
            }
        }
        Ok(None)
    }

    fn hourly_rest(&mut self) -> Option<(Millis, String)> {
        let now = clock::now();
        self.calls.retain(|at| *at > now - HOUR);
        let per_hour = usize::try_from(self.orders.settings.calls_per_hour).unwrap_or(usize::MAX);
        let started = self.calls.len();
        (per_hour > 0 && started >= per_hour).then(|| {
            let sessions = text::count(started as u64, "session was", "sessions were");
            (self.calls[started - per_hour] + HOUR, format!("{sessions} started within an hour, as many as `calls_per_hour` allows"))
        })
    }

    fn rest_before_a_trial(&mut self) -> Option<(Millis, String)> {
        let stalled = self.trial_after.filter(|_| self.before.broke.is_none() && self.orders.settings.cooldown_ms > 0)?;
        let cooldown = Millis::try_from(self.orders.settings.cooldown_ms).unwrap_or(Millis::MAX);
        let why = format!("{} in a row changed nothing: after a pause comes one more, the last", text::iterations(stalled));
        Some((clock::now().saturating_add(cooldown), why))
    }

    /// Waits on for what a run before this one, or a session, was parked for.
    pub(super) fn rest_of_a_park(&mut self) -> Result<Option<Ends>, Error> {
        let Some((locked, l)) = self.open()? else { return Ok(Some(self.taken_away())) };
        let Some((until, what)) = l.state.parked.and_then(|parked| Some((parked.until?, parked.what))) else { return Ok(None) };
        drop(locked);
        self.rest(until, &what)
    }

    /// Does nothing until that moment, unless a person wants the run to end. Without waiting the run ends here, parked.
    pub(super) fn rest(&mut self, until: Millis, why: &str) -> Result<Option<Ends>, Error> {
        let Some((locked, mut l)) = self.open()? else { return Ok(Some(self.taken_away())) };
        let now = clock::now();
        if until <= now {
            return Ok(None);
        }
        l.state.disarm(now);
        l.state.parked = Some(Parked {
            since: now,
            stop: String::new(),
            what: why.to_owned(),
            until: Some(until),
            tools: ToolUse::Unknown,
            idle_rounds: 0,
        });
        locked.record(&mut l, now, None, Event::Waiting { what: why.to_owned() })?;
        drop(locked);
        let at = time::format(until);
        let is_long = until - now > LONG_REST;
        if !self.orders.waits && is_long {
            return Ok(Some((End::Parked, format!("parked until {}: {why}. `ralph run --continue` goes on then", clock::local(until)))));
        }
        self.observer.on_event(&RunEvent::Rests { until: &at, until_ms: until, why: why.to_owned() });
        if is_long {
            self.notify_of_rest(until, why);
        }
        let mut looked: Option<Instant> = None;
        let ends = wait::until_moment(until, wait::INTERRUPT, || {
            let is_due = looked.is_none_or(|at| at.elapsed() >= LOOK_WHILE_RESTING) || self.control.asked() > Asked::Nothing;
            if !is_due {
                return None;
            }
            looked = Some(Instant::now());
            self.wants_to_end().transpose()
        });
        if ends.is_none() {
            self.observer.on_event(&RunEvent::GoesOn);
        }
        ends.transpose()
    }

    /// Whether there is a reason to start no further session.
    fn wants_to_end(&mut self) -> Result<Option<Ends>, Error> {
        if let Some(ends) = self.is_asked_to_end() {
            return Ok(Some(ends));
        }
        let Some((locked, mut l)) = self.open()? else { return Ok(Some(self.taken_away())) };
        self.is_enough(&locked, &mut l)
    }

    fn notify_of_rest(&self, until: Millis, why: &str) {
        let id = self.found.id();
        let news = News {
            loop_id: &id,
            name: &self.found.name,
            folder: self.project.root(),
            kind: Kind::Parked,
            how: End::Parked.as_str(),
            line: why,
            iteration: self.iteration,
            rounds: self.done,
            usd_micros: self.spent.usd_micros,
            until: Some(until),
            next: None,
        };
        notify_all(self.orders, &news, self.observer);
    }
}
