//! What follows from a session that is over: it is judged, tried again, waited for, or a person is asked.

use ralph_core::{
    attempt::{self, Did, Outcome, Then, Trouble, Work},
    front_matter::Value,
    journal::Event,
    limits::ToolUse,
    loop_file::LoopFile,
    usage::Spending,
};

use super::{Begun, Ends, LOOK, Rounds, is_used_up};
use crate::{
    hook::round,
    hosts::claude::transcripts,
    runner::{
        agent::Ended,
        plan::Before,
        told::{End, Told},
    },
    store::{
        Error,
        locked::{Locked, Loop},
    },
    sys::{clock, env, random},
};

impl Rounds<'_> {
    /// What follows from a session that is over.
    pub(super) fn settle(&mut self, begun: &Begun, ended: &Ended) -> Result<Option<Ends>, Error> {
        let l = self.put_right(begun)?;
        let now = clock::now();
        let before = l.map(|l| (l.state.failures, is_used_up(&l, &ended.work, now)));
        let (failures, is_used_up) = before.unwrap_or_default();
        let did = self.did(ended);
        let retries = self.orders.settings.retries;
        let then = match attempt::after(&ended.outcome, did, failures, retries, now, random::number() % 1_000) {
            // There is nothing left to try it again with.
            Then::Again { .. } | Then::Park { .. } if is_used_up => Then::Judge,
            then => then,
        };
        self.audience.hears(&Told::Over {
            iteration: begun.iteration,
            attempt: begun.attempt,
            outcome: &ended.outcome,
            work: &ended.work,
            then,
        });
        self.before = Before {
            broke: (then != Then::Judge).then(|| ended.outcome.clone()),
            unfinished: false,
            tools: ended.tools,
            denied: ended.work.denied.iter().map(|denied| denied.rule.clone()).collect(),
        };
        if then == Then::Judge {
            return self.rule(&begun.session, begun.iteration, &begun.plan.prompt, ended);
        }
        if !self.note_that_it_broke(begun, ended, then)? {
            return Ok(Some(self.taken_away()));
        }
        let why = broke_in_words(&ended.outcome);
        match then {
            Then::Again { at } => self.rest(at, &format!("{why}; the same round is tried again")),
            Then::Park { until } => self.rest(until, &why),
            Then::Pause => Ok(Some((End::Blocked, in_need(&ended.outcome, &why)))),
            Then::Leave | Then::Judge => Ok(None),
        }
    }

    /// The loop after the session; `None`: it is gone. While a runner carries a loop, nobody else counts its rounds and what it spends: less of that than before is the agent's doing, or an accident. A
    /// person may raise limits in the loop's file at any time, and so can an agent: that is told.
    pub(super) fn put_right(&mut self, begun: &Begun) -> Result<Option<Loop>, Error> {
        let Some((locked, mut l)) = self.open()? else { return Ok(None) };
        let now = clock::now();
        let mut wrong = raised(&begun.file, &l.file);
        self.doubt = (!wrong.is_empty()).then(|| {
            format!(
                "while the session worked, {} in the loop's file: if that was you, `ralph run --continue` goes on with it",
                wrong.join(" and ")
            )
        });
        if l.file.iteration < begun.iteration {
            wrong.push(format!("its iteration was set back to {}, and is {} again", l.file.iteration, begun.iteration));
            if !locked.set(&mut l, &[("iteration", Value::Plain(&begun.iteration.to_string()))])? {
                return Ok(None);
            }
        }
        let spending = l.state.spending.get_or_insert_with(|| Spending::since(now));
        let is_less = spending.usd_micros < self.spent.usd_micros || l.state.tokens.total() < self.tokens.total();
        if is_less {
            spending.usd_micros = spending.usd_micros.max(self.spent.usd_micros);
            l.state.tokens = if l.state.tokens.total() < self.tokens.total() { self.tokens } else { l.state.tokens };
        }
        let is_younger = l.state.spent(now) < self.spent.ms;
        if is_younger {
            l.state.spent_ms = self.spent.ms;
        }
        if is_less || is_younger {
            wrong.push("its journal said that less was spent than was, and is put right".to_owned());
        }
        for what in wrong {
            let text = format!("the loop was changed while the session of round {} worked: {what}", begun.iteration);
            self.audience.hears(&Told::Warning { text: text.clone() });
            locked.record(&mut l, now, None, Event::Heard { event: "changed".to_owned(), detail: Some(text) })?;
        }
        Ok(Some(l))
    }

    /// Whether a session did anything. The files are only looked at where that decides.
    pub(super) fn did(&self, ended: &Ended) -> Did {
        let matters = matches!(ended.outcome, Outcome::Cut { .. }) && ended.tools != ToolUse::Used;
        let changed = matters && {
            let now = round::tree(self.project, &self.found.id(), LOOK);
            now.is_some() && now != self.tree
        };
        Did { tools: ended.tools, changed }
    }

    /// Writes down that a session came to nothing. `false`: the loop is gone.
    pub(super) fn note_that_it_broke(&mut self, begun: &Begun, ended: &Ended, then: Then) -> Result<bool, Error> {
        let event = |then| Event::Broke {
            iteration: begun.iteration,
            attempt: begun.attempt,
            outcome: ended.outcome.clone(),
            then,
            work: Box::new(ended.work.clone()),
        };
        let Some((locked, mut l)) = self.open()? else {
            // It was cancelled: its journal still tells what the session came to.
            let locked = Locked::acquire(self.project)?;
            locked.note(&self.found.id(), Some(&begun.session), event(Then::Leave))?;
            return Ok(false);
        };
        let now = clock::now();
        ended.work.charge(&mut l.state, now);
        if let Outcome::Failed { trouble } = &ended.outcome {
            l.state.failures = l.state.failures.after(trouble);
        } else if matches!(ended.outcome, Outcome::Cut { .. }) {
            l.state.failures.own += 1;
        }
        locked.record(&mut l, now, Some(&begun.session), event(then))?;
        self.note_spent(&l.state);
        Ok(true)
    }

    /// What a session used that nobody heard out is in its transcript, as far as it came.
    pub(super) fn charge_the_unfinished(&mut self) -> Result<(), Error> {
        let Some(session) = self.unfinished.take() else { return Ok(()) };
        let Some(used) = env::claude_config().and_then(|config| transcripts::used(&config, &session)) else { return Ok(()) };
        let Some((locked, mut l)) = self.open()? else { return Ok(()) };
        let now = clock::now();
        let work = Work { tokens: used.tokens, usd_micros: used.usd_micros, estimated: true, ..Work::default() };
        work.charge(&mut l.state, now);
        let event = Event::Broke {
            iteration: l.file.iteration,
            attempt: l.state.runner.as_ref().map_or(1, |runner| runner.attempt),
            outcome: Outcome::Failed { trouble: Trouble::Crash { code: None, signal: None } },
            then: Then::Again { at: now },
            work: Box::new(work),
        };
        locked.record(&mut l, now, Some(&session), event)
    }
}

/// The limits that are higher now, or gone.
fn raised(before: &LoopFile, now: &LoopFile) -> Vec<String> {
    let limits = [
        ("max_iterations", before.max_iterations, now.max_iterations),
        ("max_hours", before.max_millis(), now.max_millis()),
        ("max_usd", before.max_usd_micros(), now.max_usd_micros()),
        ("max_tokens", before.max_tokens, now.max_tokens),
    ];
    let is_raised = |(_, before, now): &(&str, u64, u64)| *before > 0 && (*now == 0 || now > before);
    let words = |(name, _, now): (&str, u64, u64)| format!("{name} was {}", if now == 0 { "taken away" } else { "raised" });
    limits.into_iter().filter(is_raised).map(words).collect()
}

fn broke_in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { trouble } => trouble.words(),
        Outcome::Cut { .. } => "nothing was heard of the session, and it did nothing".to_owned(),
        Outcome::Stopped | Outcome::Interrupted => "the session was interrupted".to_owned(),
    }
}

/// What a person is asked to do.
fn in_need(outcome: &Outcome, why: &str) -> String {
    let remedy = if let Outcome::Failed { trouble } = outcome { trouble.remedy() } else { None };
    let remedy = remedy.unwrap_or("the logs in .ralph/rounds/ may tell why; `ralph run --continue` tries again");
    let crashed = matches!(outcome, Outcome::Failed { trouble: Trouble::Crash { .. } | Trouble::Refused { .. } } | Outcome::Cut { .. });
    let often = if crashed { ", several times in a row" } else { "" };
    format!("{why}{often}: {remedy}")
}
