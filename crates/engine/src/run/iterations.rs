//! The iterations of one run: start a session, hear it out, have it judged, and go on.

mod after_session;
mod pause;
mod snapshots;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::{
    config::Running,
    gate::Check,
    journal::{Event, State},
    judge::{Breaker, Budget, Next, Standstill, session_outcome::Work},
    messages::{gate_messages, prompt::Spent},
    money,
    text::{
        self, Problem,
        time::{Millis, millis},
    },
};

use super::{
    Finished, Orders,
    control::{Asked, Control},
    events::{End, Observer, RunEvent},
    plan::{self, Before, Plan},
    session::{Ended, Session},
};
use crate::{
    gates::declared,
    ops::take_over::{self, Taken},
    stop::{self, RuledSession, SessionReport, rule_on_session},
    store::{
        Error, journal,
        loops::{self, LoopOnDisk},
        project::Project,
        project_lock::{Locked, Loop},
        seal,
    },
    sys::{clock, files, random},
};

/// The time between the request to end and the end of a session.
const GRACE: Duration = Duration::from_secs(10);

/// How long another process may keep the project's lock.
const LOCK: Duration = Duration::from_mins(2);

/// How long to look at the files for.
const LOOK: Duration = Duration::from_secs(30);

/// So many logs of sessions are kept for each loop.
const LOGS: usize = 300;

const HOUR: Millis = 3_600_000;
const MONTH: Duration = Duration::from_hours(30 * 24);

/// How a run ends, in one sentence.
type Ends = (End, String);

pub(super) struct Iterations<'a> {
    project: &'a Project,
    orders: &'a Orders,
    observer: &'a Arc<dyn Observer>,
    control: Control,
    mark: &'a str,
    pub(super) found: LoopOnDisk,
    /// No run had the loop before.
    is_first_run: bool,
    before: Before,
    /// A session that a run before this one left unfinished.
    unfinished: Option<String>,
    /// The commit and the files before the session that runs.
    tree: Option<String>,
    /// So many iterations changed nothing that the next one is the last try.
    trial_after: Option<u64>,
    /// When sessions were started within the last hour.
    calls: Vec<Millis>,
    /// Until when the quota of each agent is used up.
    used_up_until: Vec<Millis>,
    /// So many sessions in a row, all of one agent, ended with too many requests.
    too_many: (usize, u64),
    done: u64,
    iteration: u64,
    spent: Spent,
    denied: BTreeMap<String, u64>,
    /// Models and agents of which it was told that money cannot stop them.
    unpriced: BTreeSet<String>,
    /// That files cannot be kept is told once.
    has_told_of_files: bool,
    /// Why a person should look before it goes on.
    doubt: Option<String>,
    /// The loop is complete, and the proof is not what it was when it began.
    doubtful: bool,
}

/// A session that is about to start.
struct Begun {
    /// Which of the agents.
    agent: usize,
    session: String,
    iteration: u64,
    attempt: u64,
    log: PathBuf,
    plan: Plan,
    usd_micros_left: u64,
    limit: Duration,
}

/// The next step, after one look at the loop.
enum Start {
    Session(Box<Begun>),
    /// The loop's time, money or tokens are used up: the judge ends it.
    UsedUp(Box<Loop>),
    Ends(Ends),
}

impl<'a> Iterations<'a> {
    pub(super) fn new(
        project: &'a Project,
        orders: &'a Orders,
        observer: &'a Arc<dyn Observer>,
        control: Control,
        mark: &'a str,
        taken: Taken,
    ) -> Self {
        let journal = project.journal(&taken.found.id());
        Iterations {
            project,
            orders,
            observer,
            control,
            mark,
            iteration: taken.file.iteration,
            is_first_run: taken.picked_up.is_none() && !journal::has_begun(&journal),
            before: Before {
                unfinished: taken.unfinished.is_some(),
                measured: gate_messages::last_measured(journal::history(&journal).findings()),
                ..Before::default()
            },
            unfinished: taken.unfinished,
            found: taken.found,
            tree: None,
            trial_after: None,
            calls: journal::began_since(&journal, clock::now() - HOUR),
            used_up_until: vec![0; orders.agents.len()],
            too_many: (0, 0),
            done: 0,
            spent: Spent::default(),
            denied: BTreeMap::new(),
            unpriced: BTreeSet::new(),
            has_told_of_files: false,
            doubt: None,
            doubtful: false,
        }
    }

    pub(super) fn finished(self, loop_id: String, end: End, line: String) -> Finished {
        let mut denied: Vec<(String, u64)> = self.denied.into_iter().collect();
        denied.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let denied = denied.into_iter().map(|(rule, _)| rule).collect();
        Finished { loop_id, end, line, rounds: self.done, iteration: self.iteration, spent: self.spent, denied, doubtful: self.doubtful }
    }

    /// Works until there is a reason not to.
    pub(super) fn until_it_ends(&mut self) -> Result<Ends, Error> {
        self.charge_the_unfinished()?;
        if let Some(ends) = self.nothing_to_do()? {
            return Ok(ends);
        }
        for text in &self.orders.remarks {
            self.observer.on_event(&RunEvent::Warning { text: text.clone() });
        }
        self.keep_the_start()?;
        self.tree = stop::tree(self.project, &self.found.id(), LOOK);
        if let Some(ends) = self.rest_of_a_park()? {
            return Ok(ends);
        }
        loop {
            if let Some(ends) = self.rest_before_a_session()? {
                return Ok(ends);
            }
            let ends = match self.begin()? {
                Start::Session(begun) => {
                    let ended = self.hear(&begun);
                    self.after_session(&begun, &ended)?
                }
                Start::UsedUp(l) => {
                    self.rule(l.owner().unwrap_or(self.mark), l.file.iteration, "", &Ended::of_nothing(Some(String::new())))?
                }
                Start::Ends(ends) => Some(ends),
            };
            if let Some(ends) = ends {
                return Ok(ends);
            }
        }
    }

    /// Where everything holds before the first session, none is started. A promise is the agent's to make, so a loop with one has something to do, unless its
    /// work is a list in which everything is done. So has a loop with a note for the agent.
    fn nothing_to_do(&mut self) -> Result<Option<Ends>, Error> {
        let Some((locked, l)) = self.open()? else { return Ok(Some(self.taken_away())) };
        drop(locked);
        let declared = declared::of_loop(self.project, &l.file);
        let has_list = declared.gates.iter().any(|gate| matches!(gate.check, Check::Features(_)));
        let may_end = (l.file.completion_promise.is_none() || has_list) && !declared.gates.is_empty() && declared.problems.is_empty();
        if !may_end || !l.file.active || !l.state.notes.is_empty() {
            return Ok(None);
        }
        let report = SessionReport { before_the_first: true, ..self.report("", &Ended::of_nothing(None)) };
        match rule_on_session(self.project, &self.found, self.mark, &report, MONTH) {
            Ok(Some(ruled)) => {
                self.note_spent(&ruled.state);
                Ok(ends(&ruled))
            }
            // Another process holds the lock, or a person wants the end: both are seen before a session.
            Ok(None) | Err(Error::Busy) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether a person wants no further session. Looks at signals only.
    fn is_asked_to_end(&mut self) -> Option<Ends> {
        if self.control.asked() > Asked::Nothing {
            return Some((End::Interrupted, format!("interrupted: the loop stops at iteration {}", self.iteration)));
        }
        self.doubt.take().map(|doubt| (End::Blocked, doubt))
    }

    /// Whether the loop or the orders allow no further session. A paused loop is given back at once.
    fn is_enough(&self, locked: &Locked<'_>, l: &mut Loop) -> Result<Option<Ends>, Error> {
        if !l.file.active {
            let (end, line) = paused();
            take_over::give_back(locked, l, &line)?;
            return Ok(Some((end, line)));
        }
        Ok(self.orders.rounds.is_some_and(|most| self.done >= most).then(|| {
            let done = text::count(self.done, "iteration is", "iterations are");
            (End::Enough, format!("{done} done, as asked: the loop stops at iteration {}", l.file.iteration))
        }))
    }

    /// The loop under its lock; `None`: it is gone, or is not this run's any more.
    fn open(&self) -> Result<Option<(Locked<'a>, Box<Loop>)>, Error> {
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

    /// Why there is no further session: the loop does not exist any more, or is not this run's.
    fn taken_away(&self) -> Ends {
        let id = self.found.id();
        let iteration = self.iteration;
        let state = seal::last(self.project, &id).map(|record| record.state);
        let exists = loops::reread(self.project, self.found.clone()).ok().flatten().is_some_and(|found| found.id() == id);
        if exists && !state.as_ref().is_some_and(|state| state.ended.is_some() || state.runner.is_some()) {
            let line = "what ralph knew about the loop was deleted; it stops, and `ralph run --continue` goes on with what its file says";
            return (End::Paused, line.to_owned());
        }
        let line = match state {
            Some(State { ended: Some(_), .. }) => {
                format!("the loop was cancelled at iteration {iteration}; `ralph run --continue` brings it back")
            }
            Some(State { runner: Some(runner), .. }) if runner.mark != self.mark => {
                format!("process {} has taken the loop at iteration {iteration}", runner.pid)
            }
            _ => format!("{} was deleted or replaced at iteration {iteration}", shown(self.project, &self.found.path)),
        };
        (End::Cancelled, line)
    }

    /// Plans the next session and writes down that it begins, unless there is a reason not to.
    fn begin(&mut self) -> Result<Start, Error> {
        if let Some(ends) = self.is_asked_to_end() {
            return Ok(Start::Ends(ends));
        }
        let Some((locked, mut l)) = self.open()? else { return Ok(Start::Ends(self.taken_away())) };
        if let Some(ends) = self.is_enough(&locked, &mut l)? {
            return Ok(Start::Ends(ends));
        }
        let now = clock::now();
        if is_used_up(&l, &Work::default(), now) {
            return Ok(Start::UsedUp(l));
        }
        self.control.begins(self.orders.rounds.is_some_and(|most| self.done + 1 >= most));
        let mut plan = plan::plan(self.project, &self.orders.settings, &l, &self.before);
        let (agent, session, iteration) = (self.agent(now), random::uuid(), l.file.iteration);
        // The model that was asked for is the first agent's.
        if agent > 0 {
            plan.model.clone_from(&self.orders.agents[agent].1);
        }
        l.state.arm(now);
        l.state.owner = Some(session.clone());
        l.state.parked = None;
        for note in l.state.notes.iter_mut().filter(|note| plan.notes.contains(&note.id)) {
            note.told_in = Some(iteration);
        }
        // The first iteration is compared with what was there before it.
        if l.state.standstill.is_none() && l.file.fresh_stall_rounds() > 0 {
            l.state.standstill = Standstill::after(None, self.tree.as_deref(), &[]);
        }
        let Some(runner) = l.state.runner.as_mut() else { return Ok(Start::Ends(self.taken_away())) };
        runner.attempt += 1;
        runner.inner = 0;
        let attempt = runner.attempt;
        let log = free_log(&self.project.folder(&format!("rounds/{}", l.id))?, iteration, attempt);
        files::prune_beside(&log, LOGS);
        let event = Event::Began {
            iteration,
            attempt,
            agent: self.orders.agents[agent].0.name().to_owned(),
            model: plan.model.clone(),
            item: plan.item.clone(),
            notes: plan.notes.clone(),
            log: shown(self.project, &log),
        };
        locked.record(&mut l, now, Some(&session), event)?;
        self.iteration = iteration;
        self.calls.push(now);
        self.note_spent(&l.state);
        let usd_micros_left = l.file.max_usd_micros().saturating_sub(self.spent.usd_micros);
        let limit = time_left(&self.orders.settings, &l, now);
        Ok(Start::Session(Box::new(Begun { agent, session, iteration, attempt, log, plan, usd_micros_left, limit })))
    }

    /// The first agent that can work now; if none can, the one that can first.
    fn agent(&self, now: Millis) -> usize {
        let free = self.used_up_until.iter().position(|until| *until <= now);
        let first = || self.used_up_until.iter().enumerate().min_by_key(|(_, until)| **until).map_or(0, |(agent, _)| agent);
        free.unwrap_or_else(first)
    }

    /// Runs the session, and listens.
    fn hear(&mut self, begun: &Begun) -> Ended {
        self.observer.on_event(&RunEvent::Iteration {
            iteration: begun.iteration,
            max_iterations: self.found.parsed.as_ref().map_or(0, |file| file.max_iterations()),
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
            agent: &self.orders.agents[begun.agent].0,
            folder: self.project.root(),
            prompt: &begun.plan.prompt,
            id: &begun.session,
            model: begun.plan.model.as_deref(),
            permission_mode: settings.permission_mode.as_deref(),
            usd_micros_left: begun.usd_micros_left,
            prices: &self.orders.prices,
            mark: self.mark,
            iteration: begun.iteration,
            silence: Duration::from_millis(settings.silence_ms),
            limit: begun.limit,
            grace: GRACE,
            log: &begun.log,
        };
        let ended = session.run(&|heard| self.observer.on_event(&RunEvent::Agent { heard }), &|| self.control.is_work_wanted());
        for denied in &ended.work.denied {
            *self.denied.entry(denied.rule.clone()).or_default() += 1;
        }
        ended
    }

    /// Has the iteration judged. `None`: the run goes on.
    fn rule(&mut self, session: &str, iteration: u64, prompt: &str, ended: &Ended) -> Result<Option<Ends>, Error> {
        let ruled = loop {
            match rule_on_session(self.project, &self.found, session, &self.report(prompt, ended), MONTH) {
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
        let standstill = ruled.state.standstill.as_ref();
        let stalled = standstill.map_or(0, |s| s.rounds);
        self.trial_after = (Breaker::of(stalled, ruled.file.fresh_stall_rounds()) == Breaker::HalfOpen).then_some(stalled);
        self.tree = standstill.map(|s| s.tree.clone());
        self.observer.on_event(&RunEvent::Ruled {
            iteration,
            ruling: &ruled.ruling,
            findings: &ruled.evidence.gates,
            line: ruled.line.as_deref(),
            spent_ms: ruled.evidence.spent_ms,
            spent_usd: money::in_dollars(self.spent.usd_micros),
            spent_tokens: self.spent.tokens,
        });
        self.keep_files(iteration)?;
        self.iteration = ruled.file.iteration;
        Ok(match ends(&ruled) {
            Some((End::Parked, line)) if self.control.asked() > Asked::Nothing => Some((End::Interrupted, line)),
            ends => ends,
        })
    }

    fn report(&self, prompt: &str, ended: &Ended) -> SessionReport {
        let (wanted, waiting) = (self.control.clone(), self.control.clone());
        let observer = Arc::clone(self.observer);
        let waits = self.orders.waits;
        SessionReport {
            prompt: prompt.to_owned(),
            text: ended.text.clone(),
            tools: ended.tools,
            work: ended.work.clone(),
            before_the_first: false,
            wanted: Arc::new(move || wanted.is_work_wanted()),
            waits: Arc::new(move || waits && waiting.asked() == Asked::Nothing),
            checking: Arc::new(move |gate, time| {
                let (limit_ms, usual_ms) = (millis(time.limit), time.usual.map(millis));
                observer.on_event(&RunEvent::Checking { gate, limit_ms, usual_ms });
            }),
        }
    }

    /// There was no ruling: another process was faster, or a person wants the end. `None`: the loop could not be read for a moment.
    fn not_ruled(&self, session: &str) -> Result<Option<Ends>, Error> {
        if self.control.asked() == Asked::End {
            let line = "interrupted before the iteration was judged; `ralph run --continue` begins it again";
            return Ok(Some((End::Interrupted, line.to_owned())));
        }
        Ok(match self.open()? {
            Some((_, l)) if l.file.active && l.owner() == Some(session) => None,
            Some((locked, mut l)) if !l.file.active => self.is_enough(&locked, &mut l)?,
            _ => Some(self.taken_away()),
        })
    }

    fn note_spent(&mut self, state: &State) {
        self.spent = Spent::of(state, clock::now());
        self.doubtful = state.doubtful;
    }
}

/// The log of a session. An iteration that begins again has logs already.
fn free_log(folder: &Path, iteration: u64, attempt: u64) -> PathBuf {
    let log = |attempt: u64| folder.join(format!("{iteration:04}-{attempt}.jsonl"));
    (attempt..attempt + 1_000).map(log).find(|path| !path.exists()).unwrap_or_else(|| log(attempt))
}

/// How long a session may take: one iteration, and no longer than the loop itself.
fn time_left(settings: &Running, l: &Loop, now: Millis) -> Duration {
    let of_iteration = if settings.round_ms == 0 { MONTH } else { Duration::from_millis(settings.round_ms) };
    match l.file.max_millis() {
        0 => of_iteration,
        // Zero would mean no limit.
        max => of_iteration.min(Duration::from_millis(max.saturating_sub(l.state.spent(now)).max(1))),
    }
}

/// Whether the loop's time, money or tokens are used up, once that work is charged.
fn is_used_up(l: &Loop, work: &Work, now: Millis) -> bool {
    let spent = Spent::of(&l.state, now);
    let budget = Budget {
        ms: (spent.ms, l.file.max_millis()),
        usd_micros: (spent.usd_micros.saturating_add(work.usd_micros), l.file.max_usd_micros()),
        tokens: (l.state.tokens.plus(work.tokens).total(), l.file.max_tokens()),
    };
    budget.used_up().is_some()
}

fn unreadable(found: LoopOnDisk) -> Error {
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

/// How a ruling ends the run; `None`: it goes on.
fn ends(ruled: &RuledSession) -> Option<Ends> {
    if ruled.ruling.next == Next::Stays {
        return Some(paused());
    }
    let end = End::of(&ruled.ruling)?;
    Some((end, ruled.line.clone().unwrap_or_else(|| format!("the loop stopped ({})", ruled.ruling.code.as_str()))))
}
