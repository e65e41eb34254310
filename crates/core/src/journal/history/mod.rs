//! A loop as people look at it: everything that its journal tells, gathered record by record.
//!
//! One fold for all eyes: `watch` feeds it while the journal grows, `report` feeds it the whole file. It keeps a few bytes for a round, so ten thousand
//! rounds are no burden, and it believes no record more than it has to: what an agent wrote into a journal must not break a page.

mod hours;
mod known;
mod proofs;

use std::collections::HashSet;

use serde::Serialize;

use hours::Has;
pub use hours::{Hours, Phase, Span, Took};
pub use proofs::{Mark, Proofs, Ran, Story};

use crate::{
    gate::Finding,
    journal::{Actor, Event, Holder, Record, State, lines},
    judge::{
        Code, Decision, Ending, Evidence, Next, Ruling,
        claim::Claim,
        session_outcome::{Denied, Outcome, Tokens, Work},
    },
    money::Micros,
    text::{
        messages,
        time::{self, Millis},
    },
};

/// So much of what an agent said is kept for a claim that was refused.
const SAID: usize = 400;

/// So many refused claims, notes, suspicions and troubles are kept, the newest; how many there were is counted.
const MOST: usize = 200;

/// Everything that a journal tells about a loop.
#[derive(Debug, Clone, Default)]
pub struct Chronicle {
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
    /// Rounds that were ruled on, the oldest first.
    pub rounds: Vec<Round>,
    /// What the round that goes on has used so far: sessions that broke.
    pub open: Used,
    pub hours: Hours,
    pub proofs: Proofs,
    /// The last stop that was ruled on.
    pub last_stop: Option<Stop>,
    /// Claims that did not end the loop.
    pub refused: Newest<Refused>,
    /// What people told the agent.
    pub notes: Newest<Said>,
    /// Sessions that came to no stop, errors of ralph's own, loop files that could not be read.
    pub troubles: Newest<Said>,
    /// How often the journal was found changed by something other than ralph.
    pub misfits: u64,
    /// What looks as if the proof had been weakened, as the last stop saw it.
    pub suspicions: Vec<String>,
    /// What nobody was there to allow: each rule once, with how often it was missing.
    pub denied: Vec<(Denied, u64)>,
    /// The sessions that worked on it, in order, each once.
    pub sessions: Vec<String>,
    /// The same, to be looked up: a loop may have one for each of its rounds.
    known_sessions: HashSet<String>,
    /// The session that the loop's file names, as far as its records tell: states do not repeat what the file says.
    named: Option<String>,
    /// Files that are kept: the round's number, the name, the commit.
    pub snapshots: Vec<Kept>,
    /// Why the loop rests, or its runner left, if nobody has taken it up since.
    pub rests: Option<String>,
    /// The session or command that works on this round.
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

/// A round that was ruled on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Round {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The commit that was checked out at its end, where that is written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// What was used, as far as anybody tells. For programs, what nobody tells is absent, and not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "known::Known")]
pub struct Used {
    /// Sessions that ralph started for it; 0 where the agent's own session carries the loop.
    pub sessions: u64,
    pub tool_calls: u64,
    pub tokens: Tokens,
    pub usd_micros: Micros,
    /// Not reported by the agent: estimated from a transcript.
    pub estimated: bool,
    /// How full the context was at its fullest, and how large it is: in tokens, or of 100 where only the share is known; 0: not known.
    pub context: u64,
    pub context_window: u64,
}

impl Used {
    fn of(work: &Work) -> Self {
        Used {
            sessions: 0,
            tool_calls: work.tool_calls,
            tokens: work.tokens,
            usd_micros: work.usd_micros,
            estimated: work.estimated,
            context: work.context,
            context_window: work.context_window,
        }
    }

    fn join(&mut self, other: &Used) {
        self.sessions += other.sessions;
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.tokens = self.tokens.plus(other.tokens);
        self.usd_micros = self.usd_micros.saturating_add(other.usd_micros);
        self.estimated |= other.estimated;
        self.context = self.context.max(other.context);
        self.context_window = self.context_window.max(other.context_window);
    }
}

/// A stop and how it was ruled, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub number: u64,
    pub at: Millis,
    pub evidence: Evidence,
    pub ruling: Ruling,
    pub said: String,
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

/// The files after a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    pub name: String,
    pub commit: String,
    /// The rounds that were ruled on by then.
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

impl Chronicle {
    /// The chronicle of a whole journal.
    pub fn of(journal: &[u8]) -> Self {
        let mut chronicle = Chronicle::default();
        for line in lines(journal) {
            match serde_json::from_slice(line) {
                Ok(record) => chronicle.take(record),
                Err(_) => chronicle.unreadable += 1,
            }
        }
        chronicle
    }

    /// The next record.
    pub fn take(&mut self, record: Record) {
        // Whoever wrote a time that is none wrote at the time of the record before.
        let at = time::parse(&record.at).or(self.last).unwrap_or(0);
        if record.state.stops < self.state.stops || (self.ended.is_some() && record.state.ended.is_none()) {
            // A loop that stands there again after it ended. What was before it is told, but it is not over.
            self.ended = None;
        }
        self.records += 1;
        self.id.clone_from(&record.loop_id);
        self.note_session(&record);
        if let Some(session) = record.session.filter(|session| self.sessions.last() != Some(session)) {
            if !self.known_sessions.insert(session.clone()) {
                self.sessions.retain(|known| *known != session);
            }
            self.sessions.push(session);
        }
        let before = std::mem::replace(&mut self.state, record.state);
        let has = Has::of(&self.state, self.named.as_deref());
        self.hours.at(at, &record.event, &self.state, has);
        self.note(at, record.event, &before);
        self.last = Some(at);
        if let (Some(ending), None) = (self.state.ended, &self.ended) {
            let by_ruling = self.last_stop.as_ref().filter(|stop| matches!(stop.ruling.next, Next::Ends { .. }) && stop.at == at);
            self.ended = Some(Ended { ending, at, code: by_ruling.map(|stop| stop.ruling.code) });
        }
    }

    /// Whose loop it is after this record.
    fn note_session(&mut self, record: &Record) {
        match &record.event {
            Event::Started { .. } | Event::Resumed { .. } => self.named.clone_from(&record.session),
            Event::Adopted | Event::Rebound { .. } | Event::Stop { .. } | Event::Checking { .. } | Event::Waiting { .. } => {
                self.named = record.session.clone().or(self.named.take());
            }
            Event::Taken { .. } | Event::Left { .. } => self.named = None,
            _ => {}
        }
    }

    /// Who has the loop, as far as its journal tells.
    pub fn holder(&self) -> Holder<'_> {
        self.state.holder(self.named.as_deref())
    }

    /// Since when the agent has worked on the iteration that goes on: pauses, waits and gates before it are not counted. `None`: nobody works on it.
    pub fn works_since(&self) -> Option<Millis> {
        let of_session = || self.hours.now.filter(|(phase, _)| *phase == Phase::Work).map(|(_, since)| since);
        match self.holder() {
            Holder::Runner(_) => self.working.as_ref().map(|working| working.since).or_else(of_session),
            Holder::Session(_) => of_session(),
            Holder::Nobody => None,
        }
    }

    fn note(&mut self, at: Millis, event: Event, before: &State) {
        let iteration = self.state.iteration;
        let said = |what: String| Said { at, iteration, what };
        match event {
            Event::Started { by, prompt, .. } => {
                self.started.get_or_insert(at);
                (self.by, self.prompt, self.rests) = (Some(by), prompt, None);
            }
            Event::Stop { evidence, ruling, said, work, .. } => {
                self.ruled(Stop { number: self.state.stops, at, evidence: *evidence, ruling, said }, work.as_deref(), before);
            }
            Event::Began { iteration, attempt, agent, model, item, log, .. } => {
                self.open.sessions += 1;
                self.rests = None;
                self.working = Some(Working { iteration, attempt, since: at, agent, model, item, log });
            }
            Event::Broke { outcome, work, .. } => {
                self.open.join(&Used::of(&work));
                self.denied(&work.denied);
                self.working = None;
                if let Some(what) = trouble(&outcome) {
                    self.troubles.push(said(what));
                }
            }
            Event::Left { why } => (self.working, self.rests) = (None, some(why)),
            Event::Paused { why, .. } => self.rests = some(why),
            Event::Taken { .. } | Event::Adopted | Event::Rebound { .. } | Event::Resumed { .. } => {
                (self.working, self.rests) = (None, None);
            }
            Event::Steered { note, .. } if !note.is_empty() => self.notes.push(Said { at, iteration, what: note }),
            Event::Snapshot { name, commit } => self.snapshots.push(Kept { name, commit, stop: self.state.stops }),
            Event::Measured { findings } => self.proofs.measured(at, self.state.stops, &findings, false),
            Event::Corrupt { problem } => self.troubles.push(said(format!("the loop file could not be read: {problem}"))),
            Event::Error { what } => self.troubles.push(said(what)),
            Event::Misfit { what } => {
                self.misfits += 1;
                self.troubles.push(said(format!("the journal was changed by something other than ralph: {what}")));
            }
            Event::Edited { changes, refused } => {
                let mark = |changes: Vec<String>, what: &str| (!changes.is_empty()).then(|| format!("{what}: {}", changes.join(", ")));
                let told =
                    [mark(changes, "the loop file was edited"), mark(refused, "an edit of the loop file by the agent did not count")];
                told.into_iter().flatten().for_each(|what| self.troubles.push(said(what)));
            }
            Event::Accepted { .. } => self.suspicions.clear(),
            Event::Checking { gate, command, .. } => self.proofs.runs(gate, Ran { command, at, stops: self.state.stops }),
            // What they change is in the state, or in the hours.
            Event::Steered { .. } | Event::Waiting { .. } | Event::Cancelled { .. } | Event::Heard { .. } | Event::Unknown => {}
        }
    }

    fn ruled(&mut self, stop: Stop, work: Option<&Work>, before: &State) {
        let (e, ruling) = (&stop.evidence, &stop.ruling);
        self.proofs.measured(stop.at, stop.number, &e.gates, true);
        self.suspicions.clone_from(&e.suspicions);
        if let Some(work) = work {
            self.open.join(&Used::of(work));
            self.denied(&work.denied);
        } else {
            // Of the agent's own session only the money is counted, and that only where somebody asked for it.
            let spent = |state: &State| state.spending.as_ref().map_or(0, |spending| spending.usd_micros);
            self.open.usd_micros = self.open.usd_micros.saturating_add(spent(&self.state).saturating_sub(spent(before)));
            self.open.estimated = true;
            // Its context is known in hundredths alone.
            (self.open.context, self.open.context_window) = (e.context, if e.max_context > 0 { 100 } else { 0 });
        }
        let sent_back = ruling.decision == Decision::Block;
        // Without a promise every stop is a claim, and its rulings say enough.
        let is_refused = e.claim != Claim::None && !matches!(ruling.next, Next::Ends { ending: Ending::Complete });
        if is_refused {
            let (why, said) = (why_refused(e), messages::excerpt(&stop.said, SAID));
            self.refused.push(Refused { stop: stop.number, iteration: e.iteration, at: stop.at, code: ruling.code, why, said });
        }
        if ruling.next != Next::Stays || sent_back {
            self.round(&stop, work.and_then(|work| work.model.clone()));
        }
        self.last_stop = Some(stop);
    }

    fn round(&mut self, stop: &Stop, model: Option<String>) {
        let took = self.hours.end_round();
        let used = std::mem::take(&mut self.open);
        let working = self.working.take();
        let head = self.state.standstill.as_ref().and_then(|s| s.tree.split(' ').next()).filter(|head| head.len() >= 40).map(str::to_owned);
        let e = &stop.evidence;
        let round = Round {
            iteration: e.iteration,
            stop: stop.number,
            began: took.from.min(stop.at),
            ended: stop.at,
            code: stop.ruling.code,
            sent_back: stop.ruling.decision == Decision::Block,
            claimed: e.claim == Claim::Made,
            took: took.took,
            used,
            item: working.as_ref().and_then(|w| w.item.clone()),
            model: model.or_else(|| working.and_then(|w| w.model)),
            head,
        };
        match self.rounds.last_mut().filter(|last| last.iteration == e.iteration) {
            // A round that was parked, and ruled on again: one round.
            Some(last) => last.join(round),
            None => self.rounds.push(round),
        }
    }

    fn denied(&mut self, denied: &[Denied]) {
        for one in denied {
            if self.denied.len() >= MOST {
                return;
            }
            match self.denied.iter_mut().find(|(known, _)| known.rule == one.rule) {
                Some((_, times)) => *times += 1,
                None => self.denied.push((one.clone(), 1)),
            }
        }
    }

    /// What the last stop found, gate by gate, with what was measured by hand since.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.proofs.last()
    }

    /// What all rounds used, and the sessions of the one that goes on.
    pub fn used(&self) -> Used {
        self.rounds.iter().map(|round| &round.used).chain([&self.open]).fold(Used::default(), |mut sum, used| {
            sum.join(used);
            sum
        })
    }

    /// How many list items are proven done, and of how many, as the last measurement counted them.
    pub fn items(&self) -> Option<(u64, u64)> {
        let tallies = self.findings().filter_map(|finding| finding.tally.as_ref());
        tallies.map(|tally| (tally.done, tally.total)).reduce(|(done, total), (more, of)| (done + more, total + of))
    }
}

impl Round {
    /// The same round, ruled on once more.
    fn join(&mut self, later: Round) {
        let (took, mut used) = (self.took.plus(later.took), self.used);
        used.join(&later.used);
        let (item, model) = (later.item.clone().or(self.item.take()), later.model.clone().or(self.model.take()));
        *self = Round { began: self.began, claimed: self.claimed || later.claimed, took, used, item, model, ..later };
    }

    /// From its beginning to its end, without the time in which nobody worked on the loop.
    pub fn took_ms(&self) -> u64 {
        Phase::ALL.into_iter().filter(|phase| *phase != Phase::Paused).map(|phase| self.took.of(phase)).fold(0, u64::saturating_add)
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Why a claim did not count.
fn why_refused(e: &Evidence) -> String {
    match &e.claim {
        Claim::Refused { why } => why.words(),
        _ if e.notes_waiting > 0 => "a note for the agent was not delivered yet".to_owned(),
        _ => crate::text::gate_messages::in_short(e),
    }
}

/// What kept a session from its stop. That a person interrupted it is no trouble.
fn trouble(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Stopped | Outcome::Interrupted => None,
        _ => Some(outcome.words()),
    }
}

#[cfg(test)]
mod tests;
