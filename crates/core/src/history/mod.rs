//! The history of a loop: everything that its journal tells, gathered record by record.
//!
//! Everything that people see comes from this one fold: `watch` feeds it while the journal grows, `report` the whole file, `status` and the status line its
//! end. It keeps a few bytes for each iteration, so ten thousand of them are no burden. It trusts no record: what an agent wrote into a journal must not break a page.

mod agents;
mod gates;
mod passing;
mod timeline;

use std::collections::{BTreeMap, HashSet};

use memchr::arch::all::is_suffix;
use serde::Serialize;

use agents::Workers;
pub use agents::{AgentWork, FIRST_AGENT, OwnUse, Worker};
use gates::Ran;
pub use gates::{GateHistory, Mark};
use passing::{Part, Passing};
use timeline::Timeline;
pub use timeline::{Phase, Span, Took};

use crate::{
    journal::{Actor, Event, Holder, Record, State, lines},
    judge::{
        Code, Decision, Ending, Evidence, Next, Ruling,
        claim::Claim,
        session_outcome::{Denied, Outcome, Tokens, Work},
    },
    messages::{self, Reader},
    money::Micros,
    text::{
        self,
        time::{self, Millis},
    },
};

/// How much of the agent's message is kept with a claim that was refused.
const SAID: usize = 400;

/// How many refused claims, notes, troubles and denied rules are kept: the newest. All of them are counted.
const MOST: usize = 200;

/// Everything that a journal tells about a loop.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub id: String,
    pub prompt: String,
    /// Who started it.
    pub by: Option<Actor>,
    pub started: Option<Millis>,
    /// When the last record was written.
    pub last: Option<Millis>,
    pub records: u64,
    /// Lines that cannot be read.
    pub unreadable: u64,
    /// The loop's state after the last record.
    pub state: State,
    /// Iterations that were ruled on, the oldest first.
    pub rounds: Vec<Iteration>,
    /// Used by the iteration that goes on, in sessions that broke.
    pub open: Used,
    /// Who worked on that iteration in sessions that broke.
    broke: Vec<Worker>,
    workers: Workers,
    /// Stops of sessions that ralph did not start.
    own_stops: u64,
    pub timeline: Timeline,
    /// The gates, in the order in which they were first measured.
    pub gates: Vec<GateHistory>,
    /// The last command that ran for a gate, or for an item of a list, by its name.
    pub ran: BTreeMap<String, Ran>,
    /// The last stop that was ruled on.
    pub last_stop: Option<Stop>,
    /// Claims that did not end the loop.
    pub refused: Newest<Refused>,
    /// Notes of people for the agent.
    pub notes: Newest<Said>,
    /// Sessions that came to no stop, errors of ralph's own, loop files that could not be read.
    pub troubles: Newest<Said>,
    /// How often the journal was found changed by something other than ralph.
    pub misfits: u64,
    /// Signs that the proof was weakened, as the last stop saw them.
    pub suspicions: Vec<String>,
    /// Tool calls that were denied because no person was asked.
    pub denied: Vec<Denials>,
    /// The same since a runner last took the loop: a person may have allowed the older ones since.
    pub denied_in_run: Vec<Denials>,
    /// The sessions that worked on it, in order, each once.
    pub sessions: Vec<String>,
    /// The same, to be looked up: a loop may have one for each of its iterations.
    known_sessions: HashSet<String>,
    /// The session that the loop's file names, as far as its records tell: states do not repeat what the file says.
    named: Option<String>,
    /// Snapshots of the files.
    pub snapshots: Vec<Kept>,
    /// `ralph run` had it last, and no session has it since.
    pub by_run: bool,
    /// Why it is paused, or what went wrong last, if it was not taken up since.
    pub why: Option<String>,
    /// The stop that paused it, if that was the last thing that changed it.
    pub paused_at: Option<u64>,
    /// The wait of a hook and its start, if the hook has not answered or begun something else since.
    pub waiting: Option<(String, Millis)>,
    /// The session or command that works on this iteration.
    pub working: Option<Working>,
    pub ended: Option<Ended>,
}

/// The newest of many.
#[derive(Debug, Clone)]
pub struct Newest<T> {
    pub kept: Vec<T>,
    pub count: u64,
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Newest { kept: Vec::new(), count: 0 }
    }
}

impl<T> Newest<T> {
    fn push(&mut self, one: T) {
        if self.kept.len() >= MOST {
            self.kept.remove(0);
        }
        self.kept.push(one);
        self.count += 1;
    }
}

/// An iteration that was ruled on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Iteration {
    pub iteration: u64,
    /// The number of its last stop: the N of `ralph explain N`.
    pub stop: u64,
    pub began: Millis,
    pub ended: Millis,
    pub code: Code,
    /// The agent was sent back.
    pub sent_back: bool,
    /// The agent said that it was done.
    pub claimed: bool,
    /// How long it took, by what was done meanwhile.
    pub took: Took,
    pub used: Used,
    /// The item of a list that it worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The agent that ended it, as `--agent` names it; `command`: a program of the person's own.
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The others that worked on it before: their sessions broke, or something outside decided first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Worker>,
    /// The commit that was checked out at its end, where that is written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// Usage, as far as it is known: an agent that is a plain command reports nothing, nor does a session without a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Used {
    /// Sessions that ralph started for it; 0 where the agent's own session carries the loop.
    pub sessions: u64,
    /// Absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Absent where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<Micros>,
    /// Not reported by the agent: estimated from a transcript.
    pub estimated: bool,
    /// Some of it has no known price, and is not in the money.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
    /// Tokens of models whose price is not known.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub unpriced_tokens: u64,
    /// How full the context was at its fullest, and how large it is: in tokens, or of 100 where only the share is known; 0: not known.
    pub context: u64,
    pub context_window: u64,
    /// The part of the money that was counted of a session that ralph did not start.
    #[serde(skip)]
    pub counted: Micros,
}

impl Used {
    fn of(work: &Work) -> Self {
        let mut used = Used { estimated: work.estimated, context: work.context, context_window: work.context_window, ..Used::default() };
        used.add(work.tokens, work.tool_calls, work.usd_micros);
        if work.cost_unknown {
            (used.usd_micros, used.cost_unknown, used.unpriced_tokens) = (None, true, work.tokens.total());
        }
        used
    }

    /// Adds an amount. An agent that tells of tokens tells of calls and of money too; without tokens, nothing is not the same as none.
    pub fn add(&mut self, tokens: Tokens, tool_calls: u64, usd_micros: Micros) {
        let is_told = tokens.total() > 0;
        self.tokens = plus(self.tokens, is_told.then_some(tokens), Tokens::plus);
        self.tool_calls = plus(self.tool_calls, (is_told || tool_calls > 0).then_some(tool_calls), u64::saturating_add);
        self.usd_micros = plus(self.usd_micros, (is_told || usd_micros > 0).then_some(usd_micros), u64::saturating_add);
    }

    fn add_own(&mut self, one: &OwnUse) {
        let (before, tokens) = (self.usd_micros, one.tokens.total());
        self.add(one.tokens, one.tool_calls, one.usd_micros.unwrap_or(0));
        if one.usd_micros.is_none() && tokens > 0 {
            (self.usd_micros, self.cost_unknown) = (before, true);
            self.unpriced_tokens = self.unpriced_tokens.saturating_add(tokens);
        }
        self.estimated = true;
        self.context = self.context.max(one.context);
    }

    fn join(&mut self, other: &Used) {
        self.sessions += other.sessions;
        self.tool_calls = plus(self.tool_calls, other.tool_calls, u64::saturating_add);
        self.tokens = plus(self.tokens, other.tokens, Tokens::plus);
        self.usd_micros = plus(self.usd_micros, other.usd_micros, u64::saturating_add);
        self.estimated |= other.estimated;
        self.cost_unknown |= other.cost_unknown;
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
        self.context = self.context.max(other.context);
        self.context_window = self.context_window.max(other.context_window);
        self.counted = self.counted.saturating_add(other.counted);
    }

    /// Forgets what was counted, because something else tells it better.
    fn drop_counted(&mut self) {
        self.usd_micros = self.usd_micros.map(|usd| usd.saturating_sub(self.counted)).filter(|usd| *usd > 0 || self.tokens.is_some());
        self.counted = 0;
    }

    /// All tokens, or 0 where they are not known.
    pub fn total_tokens(&self) -> u64 {
        self.tokens.map_or(0, Tokens::total)
    }

    /// Millionths of a dollar, or 0 where it is not known.
    pub fn usd(&self) -> Micros {
        self.usd_micros.unwrap_or(0)
    }
}

/// The sum of what is known.
fn plus<T>(a: Option<T>, b: Option<T>, sum: fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(sum(a, b)),
        (a, b) => a.or(b),
    }
}

/// Tool calls that one rule would have allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denials {
    /// For `permissions.allow` in the client's settings.
    pub rule: String,
    pub times: u64,
    /// The subject of the last one: the command, the file.
    pub what: String,
}

impl Denials {
    /// Adds what a session was denied.
    fn count(all: &mut Vec<Denials>, denied: &[Denied]) {
        for one in denied {
            let is_full = all.len() >= MOST;
            match all.iter_mut().find(|known| known.rule == one.rule) {
                Some(known) => (known.times, known.what) = (known.times + 1, one.what.clone()),
                None if is_full => {}
                None => all.push(Denials { rule: one.rule.clone(), times: 1, what: one.what.clone() }),
            }
        }
    }

    /// The most frequent first; those that are equally frequent stay in their order.
    pub fn sorted(mut all: Vec<Denials>) -> Vec<Denials> {
        all.sort_by_key(|denials| std::cmp::Reverse(denials.times));
        all
    }
}

/// A stop and its ruling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub number: u64,
    pub at: Millis,
    pub evidence: Evidence,
    pub ruling: Ruling,
}

/// A claim that did not end the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    pub stop: u64,
    pub iteration: u64,
    pub at: Millis,
    pub code: Code,
    /// In words.
    pub why: String,
    /// The end of what the agent said.
    pub said: String,
}

/// A sentence with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Said {
    pub at: Millis,
    pub iteration: u64,
    pub what: String,
}

/// The files after an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    pub name: String,
    pub commit: String,
    /// The iterations that were ruled on by then.
    pub stop: u64,
}

/// A session that ralph started and that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    pub iteration: u64,
    pub attempt: u64,
    pub since: Millis,
    pub agent: String,
    pub model: Option<String>,
    pub item: Option<String>,
    /// Where all that it says is kept, from the project's root on.
    pub log: String,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    pub ending: Ending,
    pub at: Millis,
    /// The ruling that ended it; a person's cancel has none.
    pub code: Option<Code>,
}

/// What is before the state in a line that ralph wrote.
const STATE: &str = ",\"state\":";

/// Puts a history together from the lines of a journal.
#[derive(Debug, Default)]
pub struct Reading {
    history: History,
    /// The last state, as it is written: only that one is wanted as a whole.
    state: String,
    /// The end of a line with that state. Many a line ends like the one before: then its state need not be read again.
    end: String,
    /// Such a line, with nothing for its state.
    line: String,
}

impl Reading {
    pub fn line(&mut self, line: &[u8]) {
        if !line.trim_ascii().is_empty() && self.read(line).is_none() {
            self.history.unreadable += 1;
        }
    }

    fn read(&mut self, line: &[u8]) -> Option<()> {
        let Ok(line) = std::str::from_utf8(line) else {
            // Nothing that ralph wrote.
            self.history.take(serde_json::from_slice(line).ok()?);
            self.state.clear();
            self.end.clear();
            return Some(());
        };
        if !self.end.is_empty() && is_suffix(line.as_bytes(), self.end.as_bytes()) {
            self.line.clear();
            self.line.push_str(&line[..line.len() - self.end.len()]);
            self.line.push_str(",\"state\":0}");
            let record: Passing<'_> = serde_json::from_str(&self.line).ok()?;
            record.add_to(&mut self.history, |_| ());
            return Some(());
        }
        let record: Passing<'_> = serde_json::from_str(line).ok()?;
        let state = record.state.get();
        let part: Part = serde_json::from_str(state).ok()?;
        record.add_to(&mut self.history, |before| part.change(before));
        state.clone_into(&mut self.state);
        self.end.clear();
        let from = state.as_ptr().addr() - line.as_ptr().addr();
        if line[..from].ends_with(STATE) && &line[from + state.len()..] == "}" {
            self.end.push_str(&line[from - STATE.len()..]);
        }
        Some(())
    }

    pub fn finish(mut self) -> History {
        if let Ok(state) = serde_json::from_str(&self.state) {
            self.history.state = state;
        }
        self.history
    }
}

impl History {
    /// The history that a journal, or its end, tells.
    pub fn of(journal: &[u8]) -> Self {
        let mut reader = Reading::default();
        lines(journal).for_each(|line| reader.line(line));
        reader.finish()
    }

    /// The next record.
    pub fn take(&mut self, record: Record) {
        let Record { at, loop_id, session, event, state, .. } = record;
        self.add(&at, &loop_id, session.as_deref(), event, |before| *before = state);
    }

    /// The parts of the next record; `change` makes the state after it from the one before.
    fn add(&mut self, at: &str, loop_id: &str, session: Option<&str>, event: Event, change: impl FnOnce(&mut State)) {
        // A record whose time cannot be read has the time of the record before it.
        let at = time::parse(at).or(self.last).unwrap_or(0);
        let (stops, spent) = (self.state.stops, spent(&self.state));
        change(&mut self.state);
        if self.state.stops < stops || (self.ended.is_some() && self.state.ended.is_none()) {
            // The loop was brought back after it ended.
            self.ended = None;
        }
        self.records += 1;
        loop_id.clone_into(&mut self.id);
        self.note_session(&event, session);
        if let Some(session) = session.filter(|session| self.sessions.last().is_none_or(|last| last != session)) {
            if !self.known_sessions.insert(session.to_owned()) {
                self.sessions.retain(|known| known != session);
            }
            self.sessions.push(session.to_owned());
        }
        self.workers.run(self.state.runner.is_some(), at, self.last);
        let is_held = self.holder() != Holder::Nobody;
        self.timeline.at(at, &event, &self.state, is_held);
        self.note(at, event, spent);
        self.last = Some(at);
        if let (Some(ending), None) = (self.state.ended, &self.ended) {
            let by_ruling = self.last_stop.as_ref().filter(|stop| matches!(stop.ruling.next, Next::Ends { .. }) && stop.at == at);
            self.ended = Some(Ended { ending, at, code: by_ruling.map(|stop| stop.ruling.code) });
        }
    }

    /// Notes which session the loop's file names after this record.
    fn note_session(&mut self, event: &Event, session: Option<&str>) {
        self.named = match event {
            Event::Started { .. } | Event::Resumed { .. } => session.map(str::to_owned),
            Event::Adopted | Event::Rebound { .. } | Event::Stop { .. } | Event::Checking { .. } | Event::Waiting { .. } => match session {
                Some(session) if self.named.as_deref() != Some(session) => Some(session.to_owned()),
                _ => return,
            },
            Event::Taken { .. } | Event::Left { .. } => None,
            _ => return,
        };
    }

    /// Who has the loop, as far as its journal tells.
    pub fn holder(&self) -> Holder<'_> {
        self.state.holder(self.named.as_deref())
    }

    /// Since when the agent has worked on the iteration that goes on: pauses, waits and gates before it are not counted.
    pub fn works_since(&self) -> Option<Millis> {
        let of_session = || self.timeline.now.filter(|(phase, _)| *phase == Phase::Work).map(|(_, since)| since);
        match self.holder() {
            Holder::Runner(_) => self.working.as_ref().map(|working| working.since).or_else(of_session),
            Holder::Session(_) => of_session(),
            Holder::Nobody => None,
        }
    }

    /// `spent` is the money that was spent by the record before.
    fn note(&mut self, at: Millis, event: Event, spent: Micros) {
        let iteration = self.state.iteration;
        let said = |what: String| Said { at, iteration, what };
        if matches!(event, Event::Stop { .. } | Event::Checking { .. }) {
            self.waiting = None;
        }
        match event {
            Event::Started { by, prompt, .. } => {
                self.started.get_or_insert(at);
                (self.by, self.prompt, self.why) = (Some(by), prompt, None);
            }
            Event::Stop { evidence, ruling, said, work, .. } => {
                self.ruled(Stop { number: self.state.stops, at, evidence: *evidence, ruling }, &said, work.as_deref(), spent);
            }
            Event::Began { iteration, attempt, agent, model, item, log, .. } => {
                self.open.sessions += 1;
                (self.by_run, self.why) = (true, None);
                self.working = Some(Working { iteration, attempt, since: at, agent, model, item, log });
            }
            Event::Broke { outcome, work, .. } => {
                self.session_used(&work);
                self.session_broke(&work);
                if let Outcome::Failed { trouble } = &outcome {
                    self.why = Some(trouble.words());
                }
                // That a person interrupted it is no trouble.
                if !matches!(outcome, Outcome::Stopped | Outcome::Interrupted) {
                    self.troubles.push(said(outcome.words()));
                }
            }
            Event::Left { why } => {
                self.working = None;
                self.why = some(why).or(self.why.take());
            }
            Event::Paused { why, .. } => (self.why, self.paused_at) = (some(why), None),
            Event::Taken { .. } => {
                (self.working, self.why, self.by_run) = (None, None, true);
                self.denied_in_run.clear();
            }
            Event::Adopted | Event::Rebound { .. } => (self.working, self.why, self.by_run) = (None, None, false),
            // The pause of a run was taken back: its session works on.
            Event::Resumed { .. } if self.state.runner.is_some() => (self.why, self.paused_at) = (None, None),
            Event::Resumed { .. } => (self.working, self.why, self.by_run, self.paused_at) = (None, None, false, None),
            Event::Steered { note, .. } if !note.is_empty() => self.notes.push(Said { at, iteration, what: note }),
            Event::Snapshot { name, commit } => self.snapshots.push(Kept { name, commit, stop: self.state.stops }),
            Event::Measured { findings } => self.measured(at, self.state.stops, &findings, false),
            Event::Corrupt { problem } => self.troubles.push(said(format!("the loop file could not be read: {problem}"))),
            Event::Error { what } => self.troubles.push(said(what)),
            Event::Misfit { what } => {
                self.misfits += 1;
                self.troubles.push(said(format!("the journal was changed by something other than ralph: {what}")));
            }
            Event::Edited { changes, refused } => {
                for (what, changes) in
                    [("the loop file was edited", changes), ("an edit of the loop file by the agent did not count", refused)]
                {
                    if !changes.is_empty() {
                        self.troubles.push(said(format!("{what}: {}", changes.join(", "))));
                    }
                }
            }
            Event::Accepted { .. } => self.suspicions.clear(),
            Event::Checking { gate, command, .. } => self.runs(gate, Ran { command, at, stops: self.state.stops }),
            Event::Waiting { what } => self.waiting = Some((what, at)),
            // These change only the state or the timeline.
            Event::Steered { .. } | Event::Cancelled { .. } | Event::Heard { .. } | Event::Unknown => {}
        }
    }

    fn ruled(&mut self, stop: Stop, said: &str, work: Option<&Work>, spent_before: Micros) {
        let (e, ruling) = (&stop.evidence, &stop.ruling);
        self.measured(stop.at, stop.number, &e.gates, true);
        self.suspicions.clone_from(&e.suspicions);
        match ruling.next {
            Next::Pauses => (self.paused_at, self.why) = (Some(stop.number), messages::ending(e, ruling, Reader::Terminal)),
            Next::GoesOn { .. } | Next::Ends { .. } => (self.paused_at, self.why) = (None, None),
            Next::Parks => self.why = None,
            // Stops change nothing about a loop that is paused.
            Next::Stays => {}
        }
        if let Some(work) = work {
            self.session_used(work);
        } else {
            // Of the agent's own session only the money is counted, and only where there is a limit on it.
            self.money_counted(spent(&self.state).saturating_sub(spent_before));
            // Its context is known in percent only.
            (self.open.context, self.open.context_window) = (e.context, if e.max_context > 0 { 100 } else { 0 });
        }
        // Without a promise every stop is a claim, and its rulings say enough.
        let is_refused = e.claim != Claim::None && !matches!(ruling.next, Next::Ends { ending: Ending::Complete });
        if is_refused {
            let (why, said) = (why_refused(e), text::excerpt(said, SAID));
            self.refused.push(Refused { stop: stop.number, iteration: e.iteration, at: stop.at, code: ruling.code, why, said });
        }
        if e.before_the_first {
            // The gates held before any session was started: that is no iteration.
            self.timeline.end_iteration();
        } else if ruling.next != Next::Stays || ruling.decision == Decision::Block {
            self.round(&stop, work.and_then(|work| work.model.clone()));
        }
        self.last_stop = Some(stop);
    }

    fn round(&mut self, stop: &Stop, model: Option<String>) {
        let (from, took) = self.timeline.end_iteration();
        let (used, agent) = (std::mem::take(&mut self.open), self.agent_now().to_owned());
        let working = self.working.take();
        let head = self.state.standstill.as_ref().and_then(|s| s.tree.split(' ').next()).filter(|head| head.len() >= 40).map(str::to_owned);
        let e = &stop.evidence;
        let round = Iteration {
            iteration: e.iteration,
            stop: stop.number,
            began: from.min(stop.at),
            ended: stop.at,
            code: stop.ruling.code,
            sent_back: stop.ruling.decision == Decision::Block,
            claimed: e.claim == Claim::Made,
            took,
            used,
            item: working.as_ref().and_then(|w| w.item.clone()),
            agent,
            model: model.or_else(|| working.and_then(|w| w.model)),
            earlier: Vec::new(),
            head,
        };
        let round = round.after(std::mem::take(&mut self.broke));
        match self.rounds.last_mut().filter(|last| last.iteration == e.iteration) {
            // An iteration that was parked, and ruled on again.
            Some(last) => last.join(round),
            None => self.rounds.push(round),
        }
    }

    fn denied(&mut self, denied: &[Denied]) {
        Denials::count(&mut self.denied, denied);
        Denials::count(&mut self.denied_in_run, denied);
    }

    /// Used by all iterations, and by the sessions of the one that goes on.
    pub fn used(&self) -> Used {
        self.rounds.iter().map(|iteration| &iteration.used).chain([&self.open]).fold(Used::default(), |mut sum, used| {
            sum.join(used);
            sum
        })
    }
}

impl Iteration {
    /// The same iteration, ruled on once more.
    fn join(&mut self, later: Iteration) {
        let (took, mut used) = (self.took.plus(later.took), self.used);
        used.join(&later.used);
        let item = later.item.clone().or(self.item.take());
        let mut earlier = std::mem::take(&mut self.earlier);
        earlier.push(Worker { agent: std::mem::take(&mut self.agent), model: self.model.take() });
        let (began, claimed) = (self.began, self.claimed || later.claimed);
        *self = Iteration { began, claimed, took, used, item, ..later }.after(earlier);
    }

    /// From its beginning to its end, without pauses.
    pub fn took_ms(&self) -> u64 {
        self.took.total().saturating_sub(self.took.paused_ms)
    }
}

/// The money that counts against a loop's limit.
fn spent(state: &State) -> Micros {
    state.spending.as_ref().map_or(0, |spending| spending.usd_micros)
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The reason why a claim did not count.
fn why_refused(e: &Evidence) -> String {
    match &e.claim {
        Claim::Refused { why } => why.words(),
        _ if e.notes_waiting > 0 => "a note for the agent was not delivered yet".to_owned(),
        _ => crate::messages::gate_messages::in_short(e),
    }
}

#[cfg(test)]
mod tests;
