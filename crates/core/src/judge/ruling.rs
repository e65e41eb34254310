//! The judge's answer: what happens to the stop, and what becomes of the loop.

use serde::{Deserialize, Serialize};

use crate::judge::Code;

/// The fate of this stop, and of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ruling {
    pub decision: Decision,
    pub code: Code,
    pub next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The agent may stop.
    Allow,
    /// The agent is sent back to work.
    Block,
}

/// The loop after the ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "loop")]
pub enum Next {
    /// Armed, in a new iteration.
    GoesOn {
        iteration: u64,
    },
    /// Just as it was.
    Stays,
    /// Armed, in the same iteration, until something outside has decided.
    Parks,
    /// Kept, and not armed until a person resumes it.
    Pauses,
    Ends {
        ending: Ending,
    },
}

/// How a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    Complete,
    /// A limit was reached.
    Capped,
    Cancelled,
    /// The loop file could not be read.
    Failed,
}

impl Ending {
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Complete => "complete",
            Ending::Capped => "capped",
            Ending::Cancelled => "cancelled",
            Ending::Failed => "failed",
        }
    }
}
