//! The journal's records: one JSON line for everything that happened to a loop, each carrying the loop's state after it.
//!
//! Because the state rides on every line, a hook reads only the last one, and a torn last line costs no more than that line. A stop's
//! record holds the whole evidence, so that it can be judged again.

mod by_kind;
mod spending;

pub use spending::{Known, Spending, is_older};

use serde::{Deserialize, Serialize};

use crate::{
    gate::Finding,
    judge::{
        Ending, Evidence, Ruling,
        brakes::{Repeated, Standstill, ToolUse},
        session_outcome::{Failures, Outcome, Then, Tokens, Work},
    },
    loops::{LoopFile, Terms},
    text::time::Millis,
};

/// The version of the records that this program writes.
pub const VERSION: u32 = 1;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    pub v: u32,
    /// Position in the journal, from 1.
    pub seq: u64,
    /// RFC 3339, UTC.
    pub at: String,
    #[serde(rename = "loop")]
    pub loop_id: String,
    /// The session that this was about, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub event: Event,
    pub state: State,
}

/// Declares the events once for both directions: they are written with their kind as a tag, and read by it (see `by_kind`).
macro_rules! events {
    ($($variants:tt)*) => {
        /// The event.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case", tag = "kind")]
        pub enum Event { $($variants)* }

        #[derive(Deserialize)]
        #[serde(remote = "Event", rename_all = "kebab-case")]
        enum Variants { $($variants)* }
    };
}

events! {
    /// The loop was started, or seen for the first time.
    Started {
        file: String,
        by: Actor,
        prompt: String,
    },
    /// A session took a loop that had no session.
    Adopted,
    /// `/clear` gave the owner a new session id.
    Rebound {
        from: String,
    },
    /// The agent tried to stop.
    Stop {
        evidence: Box<Evidence>,
        ruling: Ruling,
        /// The end of the agent's message, bounded.
        said: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        /// Usage of the iteration's own session, where it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Box<Work>>,
    },
    /// A runner took the loop: from now on each iteration has a session of its own.
    Taken {
        pid: u32,
        /// The session that had it before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// The iteration that a runner before had begun and did not live to end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unfinished: Option<u64>,
        /// The iteration that it had ruled on, as the loop's file shows, and did not live to write down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unwritten: Option<u64>,
    },
    /// A session was started for an iteration.
    Began {
        iteration: u64,
        /// From 1: the iteration may need more than one session.
        attempt: u64,
        /// The agent: `claude`, or `command`.
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The item of a list that it should work on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
        /// The numbers of the notes that its prompt holds.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<u64>,
        /// Where all that it says is kept, from the project's root on.
        log: String,
    },
    /// That session came to no stop that could be judged.
    Broke {
        iteration: u64,
        attempt: u64,
        outcome: Outcome,
        then: Then,
        work: Box<Work>,
    },
    /// The runner ended; the loop is as its state says.
    Left {
        why: String,
    },
    /// A person left a note for the agent.
    Steered {
        by: Actor,
        id: u64,
        note: String,
    },
    /// The files after an iteration were kept.
    Snapshot {
        name: String,
        commit: String,
    },
    /// A gate's command began to run.
    Checking {
        gate: String,
        command: String,
        /// How long it may run.
        limit_ms: u64,
    },
    /// Ralph began to wait for what is decided elsewhere.
    Waiting {
        /// For what, in words.
        what: String,
    },
    /// The gates were measured by hand.
    Measured {
        findings: Vec<Finding>,
    },
    /// A person accepted what the guard suspected.
    Accepted {
        suspicions: Vec<String>,
    },
    Paused {
        by: Actor,
        why: String,
    },
    Resumed {
        by: Actor,
        iteration: u64,
    },
    Cancelled {
        by: Actor,
        iteration: u64,
    },
    /// The loop file could not be read, and was put aside.
    Corrupt {
        problem: String,
    },
    /// Something that the client reported and that changes nothing: a subagent's stop, a compaction, an API error, an unknown event.
    Heard {
        event: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The loop file was edited.
    Edited {
        changes: Vec<String>,
        /// Changes that do not count, because the agent made them itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
    },
    /// The journal is not as ralph left it. What ralph knows about the loop comes from its own copy.
    Misfit {
        what: String,
    },
    /// Ralph itself failed; the stop was allowed.
    Error {
        what: String,
    },
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// A person, at the command line.
    CommandLine,
    /// A person, in the agent's session.
    Session,
    /// Ralph's own brakes.
    Ralph,
    /// The loop file appeared without ralph.
    File,
}

/// Ralph's knowledge about a loop that its file does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct State {
    /// The loop's name, which its file is called after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The list of a loop that lives in a feature folder other than the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Stops ruled on so far: the N of `ralph explain N`.
    pub stops: u64,
    pub iteration: u64,
    /// The session that adopted the loop, where the file names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The owner's client process, to tell a loop that was left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_pid: Option<u32>,
    /// The agent program of the owner's session, where it is not the first one that ralph knew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The owner's session was cleared: the next one of its program takes the loop.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cleared: bool,
    /// The owner's session has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_behind: bool,
    /// A person asked for it: the next session may adopt the loop even if git tracks its file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// Since when the loop has been armed; `None` while it is paused or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub armed_since: Option<Millis>,
    /// Time armed before that.
    pub spent_ms: u64,
    /// Money spent, where there is a limit on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spending: Option<Spending>,
    /// Tokens that fresh sessions used.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub tokens: Tokens,
    /// The runner that carries the loop, as long as it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// Failures in this iteration until now.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub failures: Failures,
    /// Failing iterations in a row, and how much held at the last one.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub failing: Failing,
    /// Notes from a person for the agent, until an iteration with them was judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// How many notes there have been.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub notes_left: u64,
    pub idle_rounds: u64,
    /// How often the session was sent back in this turn, where its agent counts that.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub turn_blocks: u64,
    /// Since when nothing has changed, where there is a limit on that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standstill: Option<Standstill>,
    /// The loop has, or had, something to prove.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// What the work looked like at the beginning was noted, so that the guard has something to compare with.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
    /// Iterations in a row whose proof could not be had.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub unknown_rounds: u64,
    /// Iterations in a row in which the agent said that it cannot go on.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub blocked_rounds: u64,
    /// The gate's failure that was found last, and how often in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Repeated>,
    /// How many items of lists were done when they were last counted, and whose count it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    /// The ruling after which the idle iterations began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Millis>,
    /// The person's turn that the idle iterations belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Fingerprint of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The loop waits for something outside, and the agent was allowed to stop meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<Parked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Answered>,
    /// Messages that waited in the client's queue at the last ruling, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<String>,
    /// How far the transcript had been read then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Read>,
    /// Fingerprint of the typed command that was carried out last: clients report one command through two events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ending>,
    /// The limits and endings of the loop's file, as far as they count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// Edits of the file that do not count, and were told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Lines about this loop that its person has not been told yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// It is complete, and the proof is not what it was when the loop began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

/// How far a transcript was read: what is written later is new, whatever its time stamp says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Read {
    /// Fingerprint of the session and the file's path.
    pub of: String,
    pub upto: u64,
}

/// A process that carries a loop in fresh sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Runner {
    pub pid: u32,
    /// When it was born, where the system tells: numbers are given again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub born_ms: Option<u64>,
    /// The mark that its sessions have in their environment.
    pub mark: String,
    /// Which session of this iteration runs, or ran last; from 1.
    pub attempt: u64,
    /// How often that session's own hook sent it back.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub inner: u64,
    /// How often it may.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub inner_limit: u64,
}

/// Who has a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder<'a> {
    /// A runner that took it and has not given it back; whether it lives, only the system can tell.
    Runner(&'a Runner),
    Session(&'a str),
    /// No session has it yet, or the one that had it has ended.
    Nobody,
}

/// Iterations that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Failing {
    /// In a row.
    pub rounds: u64,
    /// Items that were done and gates that passed, at the last one.
    pub held: u64,
}

/// A note of a person's for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// From 1.
    pub id: u64,
    pub text: String,
    /// The iteration whose prompt held it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_in: Option<u64>,
}

/// The thing that a loop waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parked {
    pub since: Millis,
    /// Fingerprint of the stop that parked it.
    #[serde(default)]
    pub stop: String,
    /// In words.
    pub what: String,
    /// When that will be, where it is known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// The evidence of the iteration before: judging again after the wait has nothing newer to look at.
    pub tools: ToolUse,
    pub idle_rounds: u64,
}

/// The count of the items that were done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Items {
    pub session: String,
    /// How many were done before this session's count began.
    pub before: u64,
    pub done: u64,
}

impl Items {
    /// The count after a stop of `session` at which `done` items were done. Items done before the first stop that ralph saw belong to no session.
    pub fn counted(last: Option<&Items>, session: &str, done: u64) -> Self {
        let before = match last {
            None => done,
            Some(last) if last.session == session => last.before.min(done),
            Some(last) => last.done.min(done),
        };
        Items { session: session.to_owned(), before, done }
    }
}

/// The last stop that was answered, so that a second hook on the same stop gets the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answered {
    /// Fingerprint of the stop.
    pub stop: String,
    /// Wall clock, and the clock that no one sets, both in milliseconds.
    pub at: Millis,
    pub uptime_ms: u64,
    /// The registrations that have reported it. One of them that reports the same words again reports the next stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    pub ruling: Ruling,
    /// The message to the agent besides the prompt, or the message to the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The message to the person about the gates; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

impl State {
    /// Adds the work of a session to what the loop has spent.
    pub fn charge(&mut self, work: &Work, at: Millis) {
        let spending = self.spending.get_or_insert_with(|| Spending::since(at));
        spending.usd_micros = spending.usd_micros.saturating_add(work.usd_micros);
        // Transcripts up to now are of sessions that were charged: a session that goes on with the loop counts from here.
        spending.since = at;
        self.tokens = self.tokens.plus(work.tokens);
    }

    /// The state of a loop that has a file. A file in the place of a loop that ended is a new loop: only the count of stops goes on. So is a file that was
    /// written by hand (and has no id) and whose iteration is lower than the last one.
    #[must_use]
    pub fn of_live_file(self, file: Option<&LoopFile>) -> Self {
        let is_rewritten = file.is_some_and(|f| f.loop_id.is_none() && f.iteration < self.iteration);
        if self.ended.is_some() || is_rewritten {
            // A new count does not take the gates away.
            let gated = self.gated && self.ended.is_none();
            State { stops: self.stops, name: self.name, list: self.list, gated, ..State::default() }
        } else {
            self
        }
    }

    /// Who has the loop: one answer for the report, `watch` and `status`. `named` is the session that the loop's file names; of a loop whose file is not at
    /// hand, its records tell.
    pub fn holder<'a>(&'a self, named: Option<&'a str>) -> Holder<'a> {
        match (&self.runner, named.or(self.owner.as_deref())) {
            _ if self.left_behind => Holder::Nobody,
            (Some(runner), _) => Holder::Runner(runner),
            (None, Some(session)) => Holder::Session(session),
            (None, None) => Holder::Nobody,
        }
    }

    /// The part of a journal without a seal that is believed: how far the loop is, never who has it, what was answered, spent or noted, or that it ended.
    /// A repository may have brought that journal, or an agent that may write files in the project.
    #[must_use]
    pub fn unsealed(self) -> Self {
        State { name: self.name, list: self.list, stops: self.stops, iteration: self.iteration, gated: self.gated, ..State::default() }
    }

    /// Whether the loop is parked by this very stop.
    pub fn is_parked_by(&self, stop: &str) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.stop == stop)
    }

    /// Time that the loop has been armed, pauses not counted.
    pub fn spent(&self, now: Millis) -> u64 {
        let running = self.armed_since.map_or(0, |since| u64::try_from(now - since).unwrap_or(0));
        self.spent_ms.saturating_add(running)
    }

    pub fn arm(&mut self, now: Millis) {
        self.armed_since.get_or_insert(now);
    }

    pub fn disarm(&mut self, now: Millis) {
        self.spent_ms = self.spent(now);
        self.armed_since = None;
    }
}

/// The last readable record in the end of a journal; a torn or foreign line is passed over.
pub fn last_record(tail: &[u8]) -> Option<Record> {
    let mut end = tail.len();
    loop {
        let start = memchr::memrchr(b'\n', &tail[..end]).map_or(0, |at| at + 1);
        if let Ok(record) = serde_json::from_slice(&tail[start..end]) {
            return Some(record);
        }
        end = start.checked_sub(1)?;
    }
}

/// The lines of a journal that are not blank.
pub(crate) fn lines(journal: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = journal;
    let lines = std::iter::from_fn(move || {
        // Line breaks are passed over at once, however many there are.
        rest = &rest[rest.iter().position(|byte| *byte != b'\n')?..];
        let (line, after) = rest.split_at(memchr::memchr(b'\n', rest).unwrap_or(rest.len()));
        rest = after;
        Some(line)
    });
    lines.filter(|line| !line.trim_ascii().is_empty())
}

/// Every readable record of a journal, and how many lines were not.
pub fn records(journal: &[u8]) -> (Vec<Record>, usize) {
    let mut unreadable = 0;
    let records = lines(journal).filter_map(|l| serde_json::from_slice(l).inspect_err(|_| unreadable += 1).ok()).collect();
    (records, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(seq: u64) -> String {
        let record = Record {
            v: VERSION,
            seq,
            at: crate::text::time::format(0),
            loop_id: "main-1".to_owned(),
            session: None,
            event: Event::Paused { by: Actor::Ralph, why: "x".to_owned() },
            state: State { stops: seq, ..State::default() },
        };
        serde_json::to_string(&record).unwrap_or_default() + "\n"
    }

    #[test]
    fn items_are_counted_for_each_session() {
        let first = Items::counted(None, "a", 3);
        let later = Items::counted(Some(&first), "a", 5);
        assert_eq!((later.before, later.done - later.before), (3, 2));
        let other = Items::counted(Some(&later), "b", 6);
        assert_eq!((other.before, other.done - other.before), (5, 1));
        assert_eq!(Items::counted(Some(&other), "b", 1).before, 1, "items were opened again");
    }

    #[test]
    fn a_torn_line_costs_only_itself() {
        let whole = line(1) + &line(2);
        assert_eq!(last_record(whole.as_bytes()).map(|r| r.seq), Some(2));
        let torn = whole.clone() + &line(3)[..20];
        assert_eq!(last_record(torn.as_bytes()).map(|r| r.seq), Some(2));
        let mended = torn + "\n" + &line(4);
        assert_eq!(last_record(mended.as_bytes()).map(|r| r.seq), Some(4));
        let (all, bad) = records(mended.as_bytes());
        assert_eq!((all.len(), bad), (3, 1));
        assert_eq!(last_record(b""), None);
    }

    #[test]
    fn an_event_is_read_wherever_its_kind_is() {
        let first = r#"{"kind":"checking","gate":"tests","command":"t","limit_ms":5}"#;
        let last = r#"{"command":"t","gate":"tests","limit_ms":5,"kind":"checking"}"#;
        let read = |text: &str| serde_json::from_str::<Event>(text);
        let expected = Event::Checking { gate: "tests".to_owned(), command: "t".to_owned(), limit_ms: 5 };
        assert_eq!((read(first).unwrap(), read(last).unwrap()), (expected.clone(), expected.clone()));
        assert_eq!(serde_json::to_string(&expected).unwrap(), first);
        assert_eq!(read(r#"{"kind":"adopted","since":1}"#).unwrap(), Event::Adopted);
        assert_eq!(read(r#"{"where":"mars","kind":"teleported"}"#).unwrap(), Event::Unknown);
        for wrong in [r#"{"gate":"tests"}"#, r#"{"kind":"checking"}"#, r#"{"kind":7}"#, "{}", "[]", "7"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn newer_records_are_readable() {
        let newer = r#"{"v":2,"seq":9,"at":"x","loop":"a","event":{"kind":"teleported","where":"mars"},"state":{"stops":3,"wings":2}}"#;
        let record = last_record(newer.as_bytes());
        assert_eq!(record.map(|r| (r.event, r.state.stops)), Some((Event::Unknown, 3)));
    }

    #[test]
    fn time_counts_while_armed_only() {
        let mut state = State::default();
        state.arm(1_000);
        state.arm(2_000);
        assert_eq!(state.spent(5_000), 4_000);
        state.disarm(5_000);
        assert_eq!(state.spent(9_000), 4_000);
        state.arm(10_000);
        assert_eq!(state.spent(9_000), 4_000, "a clock that was set back takes nothing away");
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = last_record(&bytes);
            let _ = records(&bytes);
        }
    }
}
