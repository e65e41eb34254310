//! The rounds of one run: start a session, hear it out, rule on what came of it, and go on.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ralph_core::{
    attempt::{self, Did, Outcome, Then, Tokens, Trouble, Work},
    front_matter::{Problem, Value},
    iteration::Spent,
    journal::{Event, Parked, State},
    judge::{Code, Ending, Next},
    limits::{Breaker, Standstill, ToolUse},
    loop_file::LoopFile,
    prices,
    time::{self, Millis},
    usage::Spending,
};

use super::{
    Finished, Orders,
    agent::{self, Ended, Session},
    control::{Asked, Control},
    plan::{self, Before, Plan},
    told::{Audience, End, Told},
};
use crate::{
    hook::round::{self, Report, Ruled},
    hosts::claude::transcripts,
    notify::{self, Kind, News},
    ops::carry::Taken,
    snapshots,
    store::{
        Error, journal,
        locked::{Locked, Loop},
        loops::{self, Found},
        project::Project,
    },
    sys::{clock, env, files, random},
};

/// The time between the request to end and the end of a session.
const GRACE: Duration = Duration::from_secs(10);

/// How long another process may keep the project's lock.
const LOCK: Duration = Duration::from_mins(2);

/// How long to look at the files for.
const LOOK: Duration = Duration::from_secs(30);

/// So many logs of sessions are kept for each loop.
const LOGS: usize = 300;

/// How soon a person's wish is seen while nothing is done.
const STEP: Duration = Duration::from_millis(200);

/// How a run ends, in one sentence.
type Ends = (End, String);

pub(super) struct Rounds<'a> {
    project: &'a Project,
    orders: &'a Orders,
    audience: &'a Arc<dyn Audience>,
    control: Control,
    mark: &'a str,
    pub(super) found: Found,
    /// Nobody has carried the loop before.
    begins: bool,
    before: Before,
    /// A session that a runner before this one did not live to hear out.
    unfinished: Option<String>,
    /// The commit and the files before the session that runs.
    tree: Option<String>,
    /// When sessions were started within the last hour.
    calls: Vec<Millis>,
    done: u64,
    iteration: u64,
    spent: Spent,
    tokens: Tokens,
    denied: BTreeMap<String, u64>,
    /// That files cannot be kept is told once.
    has_told_of_files: bool,
    /// Whoever looks on knows that the run ends after this round.
    is_finishing: Arc<AtomicBool>,
    /// Why a person should look before it goes on.
    doubt: Option<String>,
}

/// A session that was started.
struct Begun {
    session: String,
    iteration: u64,
    attempt: u64,
    log: PathBuf,
    plan: Plan,
    usd_micros_left: u64,
    limit: Duration,
    /// The loop as it was.
    file: LoopFile,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        project: &'a Project,
        orders: &'a Orders,
        audience: &'a Arc<dyn Audience>,
        control: Control,
        mark: &'a str,
        taken: Taken,
    ) -> Self {
        let calls = journal::began_since(&project.journal(&taken.found.id()), clock::now() - HOUR);
        Rounds {
            project,
            orders,
            audience,
            control,
            mark,
            iteration: taken.file.iteration,
            begins: taken.picked_up.is_none() && !journal::has_begun(&project.journal(&taken.found.id())),
            before: Before { unfinished: taken.unfinished.is_some(), ..Before::default() },
            unfinished: taken.unfinished,
            found: taken.found,
            tree: None,
            calls,
            done: 0,
            spent: Spent::default(),
            tokens: Tokens::default(),
            denied: BTreeMap::new(),
            has_told_of_files: false,
            is_finishing: Arc::default(),
            doubt: None,
        }
    }

    pub(super) fn finished(self, loop_id: String, end: End, line: String) -> Finished {
        let mut denied: Vec<(String, u64)> = self.denied.into_iter().collect();
        denied.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let denied = denied.into_iter().map(|(rule, _)| rule).collect();
        Finished { loop_id, end, line, rounds: self.done, iteration: self.iteration, spent: self.spent, denied }
    }

    /// Works until there is a reason not to.
    pub(super) fn until_it_ends(&mut self) -> Result<Ends, Error> {
        self.charge_the_unfinished()?;
        self.keep_the_start()?;
        self.tree = round::tree(self.project, &self.found.id(), LOOK);
        loop {
            if let Some(ends) = self.wants_to_end()? {
                return Ok(ends);
            }
            if let Some(ends) = self.rest_before_a_session()? {
                return Ok(ends);
            }
            if let Some(ends) = self.end_what_is_used_up()? {
                return Ok(ends);
            }
            let Some(begun) = self.begin()? else { return Ok(self.taken_away()) };
            let ended = self.hear(&begun);
            if let Some(ends) = self.settle(&begun, &ended)? {
                return Ok(ends);
            }
        }
    }

    /// What a session used that nobody heard out is in its transcript, as far as it came.
    fn charge_the_unfinished(&mut self) -> Result<(), Error> {
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

    /// Whether a person, or the orders, want no further session.
    fn wants_to_end(&mut self) -> Result<Option<Ends>, Error> {
        if self.control.asked() > Asked::Nothing {
            return Ok(Some((End::Interrupted, format!("interrupted: the loop rests at round {}", self.iteration))));
        }
        if let Some(doubt) = self.doubt.take() {
            return Ok(Some((End::Blocked, doubt)));
        }
        let Some((_, l)) = self.open()? else { return Ok(Some(self.taken_away())) };
        if !l.file.active {
            return Ok(Some(paused()));
        }
        let enough = self.orders.rounds.is_some_and(|rounds| self.done >= rounds);
        Ok(enough.then(|| {
            let rounds = if self.done == 1 { "1 round is".to_owned() } else { format!("{} rounds are", self.done) };
            (End::Enough, format!("{rounds} done, as asked: the loop rests at round {}", l.file.iteration))
        }))
    }

    /// The loop under its lock; `None`: it is gone, or somebody else has it.
    fn open(&self) -> Result<Option<(Locked<'a>, Loop)>, Error> {
        let locked = self.lock()?;
        let Some(mut found) = loops::reread(self.project, self.found.clone())? else { return Ok(None) };
        if found.parsed.is_err() {
            let Some(settled) = locked.settled(found)? else { return Ok(None) };
            found = settled;
        }
        let l = locked.open(found).map_err(|found| unreadable(*found))?;
        let is_ours = l.id == self.found.id() && l.state.runner.as_ref().is_none_or(|runner| runner.mark == self.mark);
        Ok(is_ours.then_some((locked, l)))
    }

    /// A process that keeps the lock for longer than it should must not end a run that works for hours.
    fn lock(&self) -> Result<Locked<'a>, Error> {
        let until = Instant::now() + LOCK;
        loop {
            match Locked::acquire(self.project) {
                Err(Error::Busy) if Instant::now() < until && self.control.asked() < Asked::End => {}
                other => return other,
            }
        }
    }

    /// Why there is no further session: the loop is not there any more, or not this runner's.
    fn taken_away(&self) -> Ends {
        let id = self.found.id();
        let round = self.iteration;
        let state = journal::tail(&self.project.journal(&id)).last.map(|record| record.state);
        let there = loops::reread(self.project, self.found.clone()).ok().flatten().is_some_and(|found| found.id() == id);
        if there && !state.as_ref().is_some_and(|state| state.ended.is_some() || state.runner.is_some()) {
            let line = "what ralph knew about the loop was deleted; it rests, and `ralph run --continue` goes on with what its file says";
            return (End::Paused, line.to_owned());
        }
        let line = match state {
            Some(State { ended: Some(_), .. }) => format!("the loop was cancelled at round {round}; `ralph resume` brings it back"),
            Some(State { runner: Some(runner), .. }) if runner.mark != self.mark => {
                format!("process {} has taken the loop at round {round}", runner.pid)
            }
            _ => format!("{} was deleted or replaced at round {round}", shown(self.project, &self.found.path)),
        };
        (End::Cancelled, line)
    }

    /// Waits where a session must not be started yet: too many within the hour, or too many that changed nothing.
    fn rest_before_a_session(&mut self) -> Result<Option<Ends>, Error> {
        let settings = &self.orders.settings;
        let now = clock::now();
        self.calls.retain(|at| *at > now - HOUR);
        let per_hour = usize::try_from(settings.calls_per_hour).unwrap_or(usize::MAX);
        if per_hour > 0 && self.calls.len() >= per_hour {
            let until = self.calls[self.calls.len() - per_hour] + HOUR;
            let why = format!("{} sessions were started within an hour, as many as `calls_per_hour` allows", self.calls.len());
            if let Some(ends) = self.rest(until, &why)? {
                return Ok(Some(ends));
            }
        }
        let Some((_, l)) = self.open()? else { return Ok(Some(self.taken_away())) };
        let stalled = l.state.standstill.as_ref().map_or(0, |s| s.rounds);
        let is_due = Breaker::of(stalled, l.file.fresh_stall_rounds()) == Breaker::HalfOpen && self.before.broke.is_none();
        if is_due && settings.cooldown_ms > 0 && self.done > 0 {
            let until = now.saturating_add(Millis::try_from(settings.cooldown_ms).unwrap_or(Millis::MAX));
            return self.rest(until, &format!("{stalled} rounds in a row changed nothing: after a rest comes one more, the last"));
        }
        Ok(None)
    }

    /// Plans the next session, and writes down that it begins. `None`: the loop is gone.
    fn begin(&mut self) -> Result<Option<Begun>, Error> {
        let session = agent::new_session_id();
        let Some((locked, mut l)) = self.open()? else { return Ok(None) };
        let now = clock::now();
        let plan = plan::plan(self.project, &self.orders.settings, &l, &self.before);
        let iteration = l.file.iteration;
        l.state.arm(now);
        l.state.owner = Some(session.clone());
        l.state.parked = None;
        for note in l.state.notes.iter_mut().filter(|note| plan.notes.contains(&note.id)) {
            note.told_in = Some(iteration);
        }
        // The first round is compared with what was there before it.
        if l.state.standstill.is_none() && l.file.fresh_stall_rounds() > 0 {
            l.state.standstill = Standstill::after(None, self.tree.as_deref(), &[]);
        }
        let Some(runner) = l.state.runner.as_mut() else { return Ok(None) };
        runner.attempt += 1;
        runner.inner = 0;
        let attempt = runner.attempt;
        let folder = self.project.folder(&format!("rounds/{}", l.id))?;
        let log = free_log(&folder, iteration, attempt);
        files::prune_beside(&log, LOGS);
        let event = Event::Began {
            iteration,
            attempt,
            agent: self.orders.agent.name().to_owned(),
            model: plan.model.clone(),
            item: plan.item.clone(),
            notes: plan.notes.clone(),
            log: shown(self.project, &log),
        };
        locked.record(&mut l, now, Some(&session), event)?;
        let left = l.file.max_usd_micros().saturating_sub(l.state.spending.as_ref().map_or(0, |s| s.usd_micros));
        let limit = time_left(&self.orders.settings, &l, now);
        self.iteration = iteration;
        self.calls.push(now);
        self.note_spent(&l.state);
        Ok(Some(Begun { session, iteration, attempt, log, plan, usd_micros_left: left, limit, file: l.file }))
    }

    /// Runs the session, and listens.
    fn hear(&mut self, begun: &Begun) -> Ended {
        self.audience.hears(&Told::Round {
            iteration: begun.iteration,
            max_iterations: self.found.parsed.as_ref().map_or(0, |file| file.max_iterations),
            attempt: begun.attempt,
            session: &begun.session,
            model: begun.plan.model.as_deref(),
            item: begun.plan.item.as_deref(),
            prompt: &begun.plan.prompt,
            log: &shown(self.project, &begun.log),
            notes: &begun.plan.notes,
        });
        let settings = &self.orders.settings;
        let session = Session {
            agent: &self.orders.agent,
            folder: self.project.root(),
            prompt: &begun.plan.prompt,
            id: &begun.session,
            model: begun.plan.model.as_deref(),
            permission_mode: settings.permission_mode.as_deref(),
            usd_micros_left: begun.usd_micros_left,
            mark: self.mark,
            iteration: begun.iteration,
            silence: Duration::from_millis(settings.silence_ms),
            limit: begun.limit,
            grace: GRACE,
            log: &begun.log,
        };
        let audience = Arc::clone(self.audience);
        let ended = agent::run(&session, &|heard| audience.hears(&Told::Agent { heard }), &|| self.wish());
        for denied in &ended.work.denied {
            *self.denied.entry(denied.rule.clone()).or_default() += 1;
        }
        ended
    }

    /// What is wanted of the session.
    fn wish(&self) -> agent::Wish {
        self.tells_of_the_end()();
        self.control.wish()
    }

    /// Tells whoever looks on, once, that this round is the last.
    fn tells_of_the_end(&self) -> impl Fn() + Send + Sync + 'static {
        let (control, audience, is_finishing) = (self.control.clone(), Arc::clone(self.audience), Arc::clone(&self.is_finishing));
        move || {
            if control.asked() == Asked::Finish && !is_finishing.swap(true, Ordering::Relaxed) {
                audience.hears(&Told::Finishing);
            }
        }
    }

    /// What follows from a session that is over.
    fn settle(&mut self, begun: &Begun, ended: &Ended) -> Result<Option<Ends>, Error> {
        self.put_right(begun)?;
        let now = clock::now();
        let before = self.open()?.map(|(_, l)| (l.state.failures, is_used_up(&l, &ended.work, now)));
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

    /// While a runner carries a loop, nobody else counts its rounds and what it spends: less of that than before is the agent's doing, or an accident. A
    /// person may raise limits in the loop's file at any time, and so can an agent: that is told.
    fn put_right(&mut self, begun: &Begun) -> Result<(), Error> {
        let Some((locked, mut l)) = self.open()? else { return Ok(()) };
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
                return Ok(());
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
        Ok(())
    }

    /// Whether a session did anything. The files are only looked at where that decides.
    fn did(&self, ended: &Ended) -> Did {
        let matters = matches!(ended.outcome, Outcome::Cut { .. }) && ended.tools != ToolUse::Used;
        let changed = matters && {
            let now = round::tree(self.project, &self.found.id(), LOOK);
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

    /// A loop whose time, money or tokens are used up gets no further session: the judge ends it.
    fn end_what_is_used_up(&mut self) -> Result<Option<Ends>, Error> {
        let Some((locked, l)) = self.open()? else { return Ok(Some(self.taken_away())) };
        if !is_used_up(&l, &Work::default(), clock::now()) {
            return Ok(None);
        }
        drop(locked);
        let nothing = Ended { outcome: Outcome::Stopped, text: Some(String::new()), tools: ToolUse::Unknown, work: Work::default() };
        self.rule(l.owner().unwrap_or(self.mark), l.file.iteration, "", &nothing)
    }

    /// Has the round judged.
    fn rule(&mut self, session: &str, iteration: u64, prompt: &str, ended: &Ended) -> Result<Option<Ends>, Error> {
        let ruled = loop {
            match round::rule(self.project, &self.found, session, self.report(prompt, ended), MONTH) {
                Ok(Some(ruled)) => break ruled,
                Ok(None) | Err(Error::Busy) => {}
                Err(e) => return Err(e),
            }
            if let Some(ends) = self.not_ruled(session)? {
                return Ok(Some(ends));
            }
        };
        self.done += 1;
        self.note_spent(&ruled.state);
        self.tree = ruled.state.standstill.as_ref().map(|s| s.tree.clone());
        self.tell_ruling(iteration, &ruled);
        self.keep_files(iteration)?;
        self.iteration = ruled.file.iteration;
        Ok(match ends(&ruled) {
            Some((End::Parked, line)) if self.control.asked() > Asked::Nothing => Some((End::Interrupted, line)),
            ends => ends,
        })
    }

    fn report(&self, prompt: &str, ended: &Ended) -> Report {
        let (control, waiting, tells_of_the_end) = (self.control.clone(), self.control.clone(), self.tells_of_the_end());
        let audience = Arc::clone(self.audience);
        let waits = self.orders.waits;
        Report {
            prompt: prompt.to_owned(),
            text: ended.text.clone(),
            tools: ended.tools,
            work: ended.work.clone(),
            wanted: Arc::new(move || {
                tells_of_the_end();
                control.asked() < Asked::End && !control.is_gone()
            }),
            waits: Arc::new(move || waits && waiting.asked() == Asked::Nothing),
            checking: Arc::new(move |gate, limit_ms| audience.hears(&Told::Checking { gate, limit_ms })),
        }
    }

    /// There was no ruling: somebody was faster, or wants the end. `None`: it was only a moment in which the loop could not be read.
    fn not_ruled(&self, session: &str) -> Result<Option<Ends>, Error> {
        if self.control.asked() == Asked::End {
            let line = "interrupted before the round was judged; `ralph run --continue` begins it again";
            return Ok(Some((End::Interrupted, line.to_owned())));
        }
        Ok(match self.open()? {
            Some((_, l)) if !l.file.active => Some(paused()),
            Some((_, l)) if l.owner() == Some(session) => None,
            _ => Some(self.taken_away()),
        })
    }

    fn note_spent(&mut self, state: &State) {
        let usd_micros = state.spending.as_ref().map_or(0, |spending| spending.usd_micros);
        self.spent = Spent { ms: state.spent(clock::now()), usd_micros, tokens: state.tokens.total() };
        self.tokens = state.tokens;
    }

    fn tell_ruling(&self, iteration: u64, ruled: &Ruled) {
        self.audience.hears(&Told::Ruled {
            iteration,
            ruling: &ruled.ruling,
            findings: &ruled.evidence.gates,
            line: ruled.line.as_deref(),
            spent_ms: ruled.evidence.spent_ms,
            spent_usd: prices::in_dollars(self.spent.usd_micros),
            spent_tokens: self.spent.tokens,
        });
    }

    /// Keeps the files as they are before the first session, unless a round before has.
    fn keep_the_start(&mut self) -> Result<(), Error> {
        let before = self.iteration.saturating_sub(1);
        let kept = || snapshots::of_loop(self.project, &self.found.id(), SNAPSHOT).unwrap_or_default();
        let is_kept = !self.begins && kept().iter().any(|snapshot| snapshot.round() == Some(before));
        if is_kept { Ok(()) } else { self.keep_files(before) }
    }

    /// Keeps the files as they are after a round. What cannot be kept costs the run nothing but a sentence.
    fn keep_files(&mut self, iteration: u64) -> Result<(), Error> {
        if !self.orders.settings.snapshots {
            return Ok(());
        }
        // A round that begins again, after a pause or a limit, has left its files before.
        let is_again = self.done == 1 && !self.begins;
        let kept = match snapshots::keep(self.project, &self.found.id(), iteration, is_again, SNAPSHOT) {
            Ok(Some(kept)) => kept,
            Ok(None) => return Ok(()),
            Err(why) => {
                if !std::mem::replace(&mut self.has_told_of_files, true) {
                    self.audience.hears(&Told::Warning { text: format!("the files after this round could not be kept: {why}") });
                }
                return Ok(());
            }
        };
        if !kept.left_out.is_empty() && !std::mem::replace(&mut self.has_told_of_files, true) {
            self.audience.hears(&Told::Warning { text: format!("not kept with the files of the rounds: {}", kept.left_out.join("; ")) });
        }
        self.audience.hears(&Told::Snapshot { name: &kept.name, commit: &kept.commit });
        if let Some((locked, mut l)) = self.open()? {
            locked.record(&mut l, clock::now(), None, Event::Snapshot { name: kept.name, commit: kept.commit })?;
        }
        Ok(())
    }

    /// Does nothing until that moment, unless somebody wants the run to end. Without waiting the run ends here, parked.
    fn rest(&mut self, until: Millis, why: &str) -> Result<Option<Ends>, Error> {
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
            return Ok(Some((End::Parked, format!("parked until {at}: {why}. `ralph run --continue` goes on then"))));
        }
        self.audience.hears(&Told::Rests { until: &at, until_ms: until, why: why.to_owned() });
        if is_long {
            self.tell_that_it_rests(until, why);
        }
        // A clock that is set back must not make the rest longer.
        let (begun, longest) = (clock::uptime_ms(), u64::try_from(until - now).unwrap_or(0));
        while clock::now() < until && clock::uptime_ms().saturating_sub(begun) < longest {
            if let Some(ends) = self.wants_to_end()? {
                return Ok(Some(ends));
            }
            let left = u64::try_from(until - clock::now()).unwrap_or(0).min(longest);
            let step = Duration::from_millis(left).min(LOOK_WHILE_RESTING);
            self.sleep(step);
        }
        self.audience.hears(&Told::GoesOn);
        Ok(None)
    }

    /// Whoever wanted to be told is, before a long rest.
    fn tell_that_it_rests(&self, until: Millis, why: &str) {
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
        for text in notify::tell(&self.orders.ways, &news, notify::LIMIT) {
            self.audience.hears(&Told::Warning { text });
        }
    }

    /// Sleeps, unless somebody wants the end.
    fn sleep(&self, pause: Duration) {
        let mut left = pause;
        while !left.is_zero() && self.control.asked() == Asked::Nothing {
            let step = left.min(STEP);
            thread::sleep(step);
            left = left.saturating_sub(step);
        }
    }
}

/// How long keeping the files of a round may take.
const SNAPSHOT: Duration = Duration::from_mins(2);

const HOUR: Millis = 3_600_000;
const MONTH: Duration = Duration::from_hours(30 * 24);

/// A shorter rest is taken in any case.
const LONG_REST: Millis = 60_000;

/// How often a resting run looks at its loop.
const LOOK_WHILE_RESTING: Duration = Duration::from_secs(1);

/// Where what a session says is kept. A round that was begun before, and begins again, has its logs already.
fn free_log(folder: &Path, iteration: u64, attempt: u64) -> PathBuf {
    let log = |attempt: u64| folder.join(format!("{iteration:04}-{attempt}.jsonl"));
    (attempt..attempt + 1_000).map(log).find(|path| !path.exists()).unwrap_or_else(|| log(attempt))
}

/// How long a session may take: one round, and no longer than the loop itself.
fn time_left(settings: &ralph_core::config::Running, l: &Loop, now: Millis) -> Duration {
    let of_round = if settings.round_ms == 0 { MONTH } else { Duration::from_millis(settings.round_ms) };
    match l.file.max_millis() {
        0 => of_round,
        // Nothing at all would be no limit.
        max => of_round.min(Duration::from_millis(max.saturating_sub(l.state.spent(now)).max(1))),
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

/// Whether the loop's time, money or tokens are used up, once that work is charged.
fn is_used_up(l: &Loop, work: &Work, now: Millis) -> bool {
    let is_over = |max: u64, used: u64| max > 0 && used >= max;
    let usd_micros = l.state.spending.as_ref().map_or(0, |spending| spending.usd_micros).saturating_add(work.usd_micros);
    is_over(l.file.max_millis(), l.state.spent(now))
        || is_over(l.file.max_usd_micros(), usd_micros)
        || is_over(l.file.max_tokens, l.state.tokens.plus(work.tokens).total())
}

fn unreadable(found: Found) -> Error {
    let path = found.path.display().to_string();
    let problem = found.parsed.err().unwrap_or_else(|| Problem::new(None, "it cannot be read".to_owned()));
    Error::File { path, problem }
}

fn shown(project: &Project, path: &Path) -> String {
    path.strip_prefix(project.root()).unwrap_or(path).to_string_lossy().into_owned()
}

fn paused() -> Ends {
    (End::Paused, "the loop was paused".to_owned())
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

/// How a ruling ends the run; `None`: it goes on.
fn ends(ruled: &Ruled) -> Option<Ends> {
    let line = || ruled.line.clone().unwrap_or_else(|| format!("the loop stopped ({})", ruled.ruling.code.as_str()));
    match ruled.ruling.next {
        Next::GoesOn { .. } => None,
        Next::Stays => Some(paused()),
        Next::Parks => Some((End::Parked, line())),
        Next::Pauses => Some(match ruled.ruling.code {
            Code::ProgressNone | Code::ProgressOscillating | Code::HostBlockCap => (End::Stalled, line()),
            _ => (End::Blocked, line()),
        }),
        Next::Ends { ending } => Some(match ending {
            Ending::Complete => (End::Complete, line()),
            Ending::Capped => (End::Capped, line()),
            Ending::Cancelled => (End::Cancelled, line()),
            Ending::Failed => (End::Failed, line()),
        }),
    }
}
