//! After a session: it is judged, tried again, waited for, or a person is asked.

use ralph_core::{
    journal::Event,
    judge::{
        ToolUse,
        session_outcome::{Did, Outcome, Then, Trouble, Work},
    },
    loops::Value,
    money,
    text::{self, time::Millis},
};

use super::{Begun, Ends, Iterations, LOOK, is_used_up};
use crate::{
    hosts::{Advice, claude::Spent, client},
    run::{
        events::{End, RunEvent},
        plan::Before,
        session::Ended,
    },
    stop,
    store::{
        Error,
        project_lock::{Locked, Loop},
    },
    sys::{clock, env, random},
};

impl Iterations<'_> {
    /// Does what follows from a session that is over. `None`: the run goes on.
    pub(super) fn after_session(&mut self, begun: &Begun, ended: &Ended) -> Result<Option<Ends>, Error> {
        let l = self.put_right(begun)?;
        let now = clock::now();
        if let Some(l) = &l {
            self.warn_of_no_price(begun.agent, ended, l);
        }
        let before = l.map(|l| (l.state.failures, is_used_up(&l, &ended.work, now)));
        let (failures, is_used_up) = before.unwrap_or_default();
        let did = self.did(ended);
        let retries = self.orders.settings.retries;
        let then = match Then::after(&ended.outcome, did, failures, retries, now, random::number() % 1_000) {
            // There is nothing left to try it again with.
            Then::Again { .. } | Then::Park { .. } if is_used_up => Then::Judge,
            Then::Again { at } => {
                let at = now.saturating_add((at - now) / env::time_scale());
                self.or_another_agent(begun.agent, &ended.outcome, Then::Again { at }, now)
            }
            then => self.or_another_agent(begun.agent, &ended.outcome, then, now),
        };
        self.observer.on_event(&RunEvent::Over {
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
            measured: self.before.measured.take().filter(|_| then != Then::Judge),
        };
        if then == Then::Judge {
            return self.rule(&begun.session, begun.iteration, &begun.plan.prompt, ended);
        }
        if !self.note_that_it_broke(begun, ended, then)? {
            return Ok(Some(self.taken_away()));
        }
        let why = broke_in_words(&ended.outcome);
        match then {
            Then::Again { at } if at <= now => {
                let next = self.orders.agents[self.agent(now)].0.title();
                self.observer.on_event(&RunEvent::Warning { text: format!("{why}; {next} goes on with the same iteration") });
                Ok(None)
            }
            Then::Again { at } => self.rest(at, &format!("{why}; the same iteration is tried again")),
            Then::Park { until } => self.rest(until, &why),
            Then::Pause => Ok(Some((End::Blocked, in_need(&ended.outcome, &why, self.orders.agents[self.agent(now)].0.name())))),
            Then::Leave | Then::Judge => Ok(None),
        }
    }

    /// Where this agent's account is used up and another agent is free, that one goes on at once; otherwise the first that comes back is waited for.
    fn or_another_agent(&mut self, agent: usize, outcome: &Outcome, then: Then, now: Millis) -> Then {
        let Some(until) = self.not_before(agent, outcome, then, now) else { return then };
        self.used_up_until[agent] = until;
        let next = self.agent(now);
        let free_at = self.used_up_until[next];
        match then {
            _ if free_at <= now => Then::Again { at: now },
            Then::Park { .. } => Then::Park { until: free_at },
            then => then,
        }
    }

    /// When it makes sense to ask this agent again, as far as one that is used up tells; `None`: at once.
    fn not_before(&mut self, agent: usize, outcome: &Outcome, then: Then, now: Millis) -> Option<Millis> {
        const SOON: Millis = 10 * 60_000;
        const LATER: Millis = 3_600_000;
        let has_too_many = self.has_too_many_requests(agent, outcome);
        match then {
            Then::Park { until } => Some(until),
            // Only a person can change that, and perhaps one does before the next hour.
            Then::Pause if matches!(outcome, Outcome::Failed { trouble: Trouble::Billing { .. } | Trouble::SignIn { .. } }) => {
                Some(now.saturating_add(LATER))
            }
            // It does not say so, and looks like an account that is used up.
            Then::Again { .. } if has_too_many => {
                let is_other_free = (0..self.used_up_until.len()).any(|other| other != agent && self.used_up_until[other] <= now);
                is_other_free.then(|| now.saturating_add(SOON))
            }
            _ => None,
        }
    }

    /// A limit on money stops nothing that has no price. That is told once.
    fn warn_of_no_price(&mut self, agent: usize, ended: &Ended, l: &Loop) {
        let (work, most) = (&ended.work, l.file.max_usd_micros());
        let tells_tokens = work.tokens.total() > 0;
        if most == 0 || !work.cost_unknown || !(tells_tokens || ended.outcome == Outcome::Stopped) {
            return;
        }
        let of = work.model.as_deref().map_or_else(|| self.orders.agents[agent].0.title().to_owned(), text::clean);
        if !self.unpriced.insert(of.clone()) {
            return;
        }
        let most = money::shown(most);
        let text = match (tells_tokens, l.file.max_tokens()) {
            (false, _) => format!(
                "what {of} costs and how many tokens it uses is not told, so the limit of {most} cannot stop it: `--max-iterations N` and `--hours H` can"
            ),
            (true, 0) => format!(
                "no price is known for {of}, so the limit of {most} cannot stop it: `ralph run --continue --tokens N` sets a limit that can, \
                 and `[run] prices` in ralph.toml sets a price"
            ),
            (true, _) => format!(
                "no price is known for {of}, so the limit of {most} cannot stop it, and only the one on tokens can: `[run] prices` in ralph.toml sets a price"
            ),
        };
        self.observer.on_event(&RunEvent::Warning { text });
    }

    /// Counts too many requests of an agent in a row; whether it were several.
    fn has_too_many_requests(&mut self, agent: usize, outcome: &Outcome) -> bool {
        const SEVERAL: u64 = 3;
        let is_one = matches!(outcome, Outcome::Failed { trouble: Trouble::Service { status: Some(429) } });
        let before = if self.too_many.0 == agent { self.too_many.1 } else { 0 };
        self.too_many = (agent, if is_one { before + 1 } else { 0 });
        self.too_many.1 >= SEVERAL
    }

    /// The loop after the session; `None`: it is gone. While a run has a loop, only ralph counts its iterations: one that was set back is put right. A person may raise limits in the loop's
    /// file at any time, and so can an agent: that ends the run, and the person is asked.
    fn put_right(&mut self, begun: &Begun) -> Result<Option<Box<Loop>>, Error> {
        let Some((locked, mut l)) = self.open()? else { return Ok(None) };
        if l.file.iteration < begun.iteration {
            let what = format!("its iteration was set back to {}, and is {} again", l.file.iteration, begun.iteration);
            let text = format!("the loop was changed while the session of iteration {} worked: {what}", begun.iteration);
            if !locked.set(&mut l, &[("iteration", Value::Plain(&begun.iteration.to_string()))])? {
                return Ok(None);
            }
            self.observer.on_event(&RunEvent::Warning { text: text.clone() });
            locked.record(&mut l, clock::now(), None, Event::Heard { event: "changed".to_owned(), detail: Some(text) })?;
        }
        let looser: Vec<String> = l.edits().into_iter().filter(|edit| edit.looser).map(|edit| edit.what).collect();
        self.doubt = (!looser.is_empty()).then(|| {
            format!(
                "while the session worked, the loop file was edited ({}): if that was you, `ralph run --continue` goes on with it",
                looser.join(", ")
            )
        });
        Ok(Some(l))
    }

    /// Whether a session did anything. The files are only looked at where that decides.
    fn did(&self, ended: &Ended) -> Did {
        let matters = matches!(ended.outcome, Outcome::Cut { .. }) && ended.tools != ToolUse::Used;
        let changed = matters && {
            let now = stop::tree(self.project, &self.found.id(), LOOK);
            now.is_some() && now != self.tree
        };
        Did { tools: ended.tools, changed }
    }

    /// Writes down that a session came to nothing. `false`: the loop is gone.
    fn note_that_it_broke(&mut self, begun: &Begun, ended: &Ended, then: Then) -> Result<bool, Error> {
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
        l.state.charge(&ended.work, now);
        if let Outcome::Failed { trouble } = &ended.outcome {
            l.state.failures = l.state.failures.after(trouble);
        } else if matches!(ended.outcome, Outcome::Cut { .. }) {
            l.state.failures.own += 1;
        }
        locked.record(&mut l, now, Some(&begun.session), event(then))?;
        self.note_spent(&l.state);
        Ok(true)
    }

    /// Charges a session that a run before this one did not hear out: its transcript tells what it used.
    pub(super) fn charge_the_unfinished(&mut self) -> Result<(), Error> {
        let Some(session) = self.unfinished.take() else { return Ok(()) };
        let Some((tokens, usd_micros)) = client::config_folder().and_then(|config| Spent::of_session(&config, &session)) else {
            return Ok(());
        };
        let Some((locked, mut l)) = self.open()? else { return Ok(()) };
        let now = clock::now();
        let work = Work { tokens, usd_micros, estimated: true, ..Work::default() };
        l.state.charge(&work, now);
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

fn broke_in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { trouble } => trouble.words(),
        Outcome::Cut { .. } => "nothing was heard of the session, and it did nothing".to_owned(),
        Outcome::Stopped | Outcome::Interrupted => "the session was interrupted".to_owned(),
    }
}

/// The sentence for a person who has to act.
fn in_need(outcome: &Outcome, why: &str, agent: &str) -> String {
    let remedy = match outcome {
        Outcome::Failed { trouble: Trouble::SignIn { .. } } => {
            Some(format!("{}, then `ralph run --continue`", Advice::of(Some(agent)).sign_in))
        }
        Outcome::Failed { trouble } => trouble.remedy().map(str::to_owned),
        Outcome::Cut { .. } | Outcome::Stopped | Outcome::Interrupted => None,
    };
    let remedy = remedy.as_deref().unwrap_or("the logs in .ralph/rounds/ may tell why; `ralph run --continue` tries again");
    let crashed = matches!(
        outcome,
        Outcome::Failed { trouble: Trouble::Crash { .. } | Trouble::Refused { too_long: false, .. } } | Outcome::Cut { .. }
    );
    let often = if crashed { ", several times in a row" } else { "" };
    format!("{why}{often}: {remedy}")
}
