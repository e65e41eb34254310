//! What was used, as programs are told: a number that nobody knows is absent, and not 0.

use serde::Serialize;

use super::Used;
use crate::{judge::session_outcome::Tokens, money::Micros};

/// What was used, as far as it is known: an agent that is a plain command tells nothing, nor does a session without a transcript.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Used"))]
pub(super) struct Known {
    /// Sessions that ralph started for it; 0 where the agent's own session carries the loop.
    sessions: u64,
    /// Absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<u64>,
    /// Absent where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Tokens>,
    /// Absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_micros: Option<Micros>,
    /// Not reported by the agent: estimated from a transcript.
    estimated: bool,
    /// How full the context was at its fullest, and how large it is: in tokens, or of 100 where only the share is known; 0: not known.
    context: u64,
    context_window: u64,
}

impl From<Used> for Known {
    fn from(used: Used) -> Self {
        Known {
            sessions: used.sessions,
            tool_calls: used.known_tool_calls(),
            tokens: used.known_tokens(),
            usd_micros: used.known_usd(),
            estimated: used.estimated,
            context: used.context,
            context_window: used.context_window,
        }
    }
}

impl Used {
    /// Every answer of a model takes some.
    pub fn known_tokens(&self) -> Option<Tokens> {
        (self.tokens.total() > 0).then_some(self.tokens)
    }

    /// Whoever tells of tokens tells of calls.
    pub fn known_tool_calls(&self) -> Option<u64> {
        (self.tool_calls > 0 || self.tokens.total() > 0).then_some(self.tool_calls)
    }

    /// A model that costs nothing is known by its tokens.
    pub fn known_usd(&self) -> Option<Micros> {
        (self.usd_micros > 0 || self.tokens.total() > 0).then_some(self.usd_micros)
    }
}
