//! The events of a run, one at a time: for a screen, for plain lines, or as JSON for programs.

use ralph_core::{
    gate::Finding,
    judge::{
        Code, Ending, Next, Ruling,
        session_outcome::{Outcome, Then, Work},
    },
};
use serde::Serialize;

use crate::notify;

pub use crate::hosts::agent_event::Heard;

/// Who looks on. It must not take long: the agent's output waits for it.
pub trait Observer: Send + Sync {
    fn on_event(&self, told: &RunEvent<'_>);
}

/// One line of `ralph run --json`. Fields may be added, but none is renamed or left out.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Line<'a> {
    /// When, in UTC: RFC 3339.
    pub at: String,
    #[serde(flatten)]
    pub told: &'a RunEvent<'a>,
}

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum RunEvent<'a> {
    /// The loop was taken.
    Run {
        #[serde(rename = "loop")]
        of_loop: &'a str,
        iteration: u64,
        /// 0 means no limit.
        max_iterations: u64,
        /// The unfinished work that this run picks up, in words, if it is not the loop's first run.
        picked_up: Option<String>,
        /// Where the agent works.
        folder: &'a str,
        /// The limits and gates, in words.
        limits: Vec<String>,
    },
    /// Something that a person should see to, or know: one sentence.
    Warning { text: String },
    /// A session begins.
    #[serde(rename = "round")]
    Iteration {
        iteration: u64,
        /// 0 means no limit.
        max_iterations: u64,
        attempt: u64,
        session: &'a str,
        model: Option<&'a str>,
        item: Option<&'a str>,
        /// The prompt, whole.
        prompt: &'a str,
        log: &'a str,
        /// The numbers of the notes that it was told.
        notes: &'a [u64],
    },
    /// The agent says or does something.
    Agent {
        #[serde(flatten)]
        heard: &'a Heard,
    },
    /// A gate's command begins.
    Checking {
        gate: &'a str,
        limit_ms: u64,
        /// How long it took the last times; `null`: it has never ended by itself here.
        usual_ms: Option<u64>,
    },
    /// The session is over.
    Over { iteration: u64, attempt: u64, outcome: &'a Outcome, work: &'a Work, then: Then },
    /// The iteration was judged.
    Ruled {
        iteration: u64,
        ruling: &'a Ruling,
        findings: &'a [Finding],
        /// The person's line about it.
        line: Option<&'a str>,
        /// All that was spent on the loop.
        spent_ms: u64,
        spent_usd: f64,
        spent_tokens: u64,
    },
    /// The files after the iteration are kept.
    Snapshot { name: &'a str, commit: &'a str },
    /// Nothing is done until then.
    Rests { until: &'a str, until_ms: i64, why: String },
    /// The rest is over.
    GoesOn,
    /// A person asked for the end after this iteration.
    Finishing,
    /// A person paused the loop, so this iteration is the last; or took the pause back (`false`), and the run goes on.
    Paused {
        paused: bool,
        /// It ends after this iteration in any case: a person or `-n` said so.
        #[serde(skip)]
        is_last: bool,
    },
    /// The run is over.
    Ended {
        how: End,
        exit: u8,
        /// In one sentence.
        line: String,
        /// Iterations of this run that were ruled on.
        rounds: u64,
        /// All that was spent on the loop, by this run and before, since its limit was last set.
        spent_usd: f64,
        /// The same in tokens.
        spent_tokens: u64,
        /// All that was spent on the loop since it began, whatever limits were set meanwhile.
        total_usd: f64,
        /// The same in tokens.
        total_tokens: u64,
        /// Rules that would have allowed what was denied.
        denied: Vec<String>,
        /// How to allow it.
        #[serde(skip)]
        allow: &'static str,
        /// The loop is complete, and the proof is not what it was when it began.
        doubtful: bool,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The loop is complete.
    Complete,
    /// A limit of the loop's was reached.
    Capped,
    /// Iterations changed nothing.
    Stalled,
    /// Only a person can go on.
    Blocked,
    /// As many iterations as this run was to do are done.
    Enough,
    /// A person paused the loop.
    Paused,
    Cancelled,
    /// Something outside has not been decided yet, and the run does not wait for it.
    Parked,
    /// A person or the system wanted the run to end.
    Interrupted,
    /// Ralph itself could not go on.
    Failed,
}

impl End {
    /// How a ruling ends the work on a loop; `None`: it goes on, or nothing changes.
    pub(crate) fn of(ruling: &Ruling) -> Option<Self> {
        Some(match ruling.next {
            Next::GoesOn { .. } | Next::Stays => return None,
            Next::Parks => End::Parked,
            Next::Pauses if matches!(ruling.code, Code::ProgressNone | Code::ProgressOscillating | Code::HostBlockCap) => End::Stalled,
            Next::Pauses => End::Blocked,
            Next::Ends { ending: Ending::Complete } => End::Complete,
            Next::Ends { ending: Ending::Capped } => End::Capped,
            Next::Ends { ending: Ending::Cancelled } => End::Cancelled,
            Next::Ends { ending: Ending::Failed } => End::Failed,
        })
    }

    /// The notification that it is worth; `None`: the person who did it knows.
    pub(crate) fn news(self) -> Option<notify::Kind> {
        match self {
            End::Interrupted | End::Paused | End::Cancelled => None,
            End::Blocked | End::Stalled | End::Failed => Some(notify::Kind::NeedsPerson),
            End::Parked => Some(notify::Kind::Parked),
            End::Complete | End::Capped | End::Enough => Some(notify::Kind::Ended),
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            End::Complete => "complete",
            End::Capped => "capped",
            End::Stalled => "stalled",
            End::Blocked => "blocked",
            End::Enough => "enough",
            End::Paused => "paused",
            End::Cancelled => "cancelled",
            End::Parked => "parked",
            End::Interrupted => "interrupted",
            End::Failed => "failed",
        }
    }

    /// The exit code that says so: scripts and schedulers read it.
    pub const fn exit(self) -> u8 {
        match self {
            End::Complete | End::Enough => 0,
            End::Failed => 1,
            End::Capped => 10,
            End::Stalled => 11,
            End::Blocked => 12,
            End::Parked => 75,
            // A person wanted it, here or elsewhere, before the work was done.
            End::Paused | End::Cancelled | End::Interrupted => 130,
        }
    }
}
