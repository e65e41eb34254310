//! All that the judge sees of one stop.

use serde::{Deserialize, Serialize};

use crate::{
    gate::{self, Finding, Kind, Verdict},
    judge::{
        Code,
        brakes::{IdleLimitFrom, ToolUse},
        claim::Claim,
    },
    money::Micros,
};

/// Iterations in a row that changed nothing and in which tools were denied, after which a person is asked.
const DENIED_ROUNDS: u64 = 2;

/// All that is known about one stop of a loop's own session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// `false` where a person or a brake paused the loop.
    pub active: bool,
    pub iteration: u64,
    /// 0 means no limit.
    pub max_iterations: u64,
    pub promise: Option<String>,
    pub claim: Claim,
    /// Why the agent says that it cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// Iterations in a row in which it says so, this one included.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub blocked_rounds: u64,
    /// Notes of a person's that the agent has not been told yet.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub notes_waiting: u64,
    pub message: Message,
    /// The person interrupted the agent, and then typed something else.
    #[serde(default)]
    pub interrupted: bool,
    /// The last thing that the person typed is "stop", or another word for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_to_stop: bool,
    /// The person typed something that the client has not delivered yet.
    pub queued_input: bool,
    /// Background work that still runs, in words.
    pub background: Vec<String>,
    pub spent_ms: u64,
    /// 0 means no limit.
    pub max_ms: u64,
    /// Money spent, estimated, in millionths of a dollar; counted only where there is a limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub spent_usd_micros: Micros,
    /// 0 means no limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub max_usd_micros: Micros,
    /// Tokens of all kinds that were used; counted only where there is a limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub spent_tokens: u64,
    /// 0 means no limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub max_tokens: u64,
    pub tools: ToolUse,
    /// Iterations in a row without any tool call, this one included.
    pub idle_rounds: u64,
    pub idle_limit: u64,
    pub idle_limit_from: IdleLimitFrom,
    /// Iterations in a row in which nothing changed, this one included; counted only where there is a limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub stalled_rounds: u64,
    /// 0 means no limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub stall_limit: u64,
    /// How often in a row the files came back to what they were two iterations before.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub swings: u64,
    /// The iteration had a session of its own, which ralph started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// No session was started yet: it is only asked whether there is anything to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_the_first: bool,
    /// Permission rules that would have allowed the denied tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// How full the session's context is, in hundredths; counted only where there is a limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub context: u64,
    /// 0 means no limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub max_context: u64,
    /// The findings of the gates, one for each. Empty: there is no gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Finding>,
    /// Iterations in a row whose proof could not be had, this one included.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub unknown_rounds: u64,
    /// How often in a row the first failing gate was found to fail in the same way, this time included.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub same_failure: u64,
    /// Items of lists that were done in this session.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub items_done: u64,
    /// So many may be done in one session; 0 means no limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub items_per_session: u64,
    /// Signs that the proof was weakened since the loop began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicions: Vec<String>,
    /// How long ralph waited for something outside before this ruling.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub waited_ms: u64,
}

impl Evidence {
    /// Whether this stop says that the work is done. Without gates only a claim does.
    pub fn claims(&self) -> bool {
        if self.gates.is_empty() { self.claim == Claim::Made && self.notes_waiting == 0 } else { self.said().says_done() }
    }

    pub(super) fn said(&self) -> Said<'_> {
        Said {
            claim: &self.claim,
            has_promise: self.promise.is_some(),
            before_the_first: self.before_the_first,
            is_disturbed: self.interrupted || self.told_to_stop || !self.background.is_empty() || self.is_unheard(),
            notes_waiting: self.notes_waiting,
        }
    }

    /// The agent's message could not be read, and something here depends on it: a promise, or words that it must have. A list, a command or a file needs no
    /// message.
    pub(super) fn is_unheard(&self) -> bool {
        let by_words = self.promise.is_some() || self.gates.is_empty() || self.gates.iter().any(|f| f.kind == Kind::Markers);
        by_words && matches!(self.message, Message::Unreadable { .. })
    }

    pub(super) fn budget(&self) -> Budget {
        Budget {
            ms: (self.spent_ms, self.max_ms),
            usd_micros: (self.spent_usd_micros, self.max_usd_micros),
            tokens: (self.spent_tokens, self.max_tokens),
        }
    }

    /// Whether too many iterations in a row changed nothing.
    pub(super) fn is_stalled(&self) -> bool {
        self.stall_limit > 0 && self.stalled_rounds >= self.stall_limit
    }

    /// Whether nothing changed and the agent was denied tools.
    pub(super) fn stuck_on_permissions(&self) -> bool {
        !self.denied.is_empty() && self.stalled_rounds >= DENIED_ROUNDS
    }

    /// Whether there is nothing to do but to wait. The agent need not claim anything: an iteration spent on asking again would be wasted.
    pub fn waits(&self) -> bool {
        gate::only_waits(&self.gates)
    }

    /// Whether a service had to be asked and could not be, and nothing else asks for work. No claim is needed for that either: the agent can do
    /// nothing about it.
    pub fn forge_unreachable(&self) -> bool {
        let fails = self.gates.iter().any(|f| f.verdict == Verdict::Fail);
        !fails && self.gates.iter().any(|f| f.verdict == Verdict::Unknown && !f.skipped && f.kind.is_decided_elsewhere())
    }
}

/// The statement of a stop about the work, in a loop with gates. Known before the gates are measured, and decides whether they are measured in full.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    pub claim: &'a Claim,
    pub has_promise: bool,
    /// No session was started yet: it is only asked whether there is anything to do.
    pub before_the_first: bool,
    /// A person interrupted the agent, something still runs in the background, or the message cannot be read.
    pub is_disturbed: bool,
    pub notes_waiting: u64,
}

impl Said<'_> {
    /// By the claim, or, where no promise is configured, by the stop itself. While the agent has not been told what the person said last, nothing is done.
    pub fn says_done(&self) -> bool {
        let says_so = *self.claim == Claim::Made || self.before_the_first || (!self.has_promise && !self.is_disturbed);
        says_so && self.notes_waiting == 0
    }
}

/// Each budget of a loop as spent and limit; a limit of 0 is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Budget {
    pub ms: (u64, u64),
    pub usd_micros: (Micros, Micros),
    pub tokens: (u64, u64),
}

impl Budget {
    /// The first limit that is reached.
    pub fn used_up(&self) -> Option<Code> {
        let limits = [(self.ms, Code::LimitTime), (self.usd_micros, Code::LimitCost), (self.tokens, Code::LimitTokens)];
        limits.into_iter().find(|((spent, max), _)| *max > 0 && spent >= max).map(|(_, code)| code)
    }
}

/// Where the agent's last message was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum Message {
    /// In the event itself.
    Event,
    Transcript,
    /// The turn ended without any text.
    NoText,
    /// The event carries no message, as older clients' don't, and the transcript that would is not there.
    Unreadable {
        transcript: String,
    },
}
