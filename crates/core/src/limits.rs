//! The brakes: how many rounds without any tool call are borne, and what counts as such a round.

use serde::{Deserialize, Serialize};

/// Consecutive blocks that Claude Code honours before it ends the turn by itself, unless its environment says otherwise.
pub const DEFAULT_BLOCK_CAP: u64 = 8;

/// Rounds without any tool call that are borne where the host has no cap of its own.
pub const DEFAULT_IDLE_ROUNDS: u64 = 25;

/// Whether the agent used a tool in the round that just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolUse {
    Used,
    None,
    /// There is no transcript to tell.
    Unknown,
}

/// Who set the limit of idle rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IdleLimitFrom {
    Loop,
    HostCap,
    Default,
}

/// The host's block cap as its variable sets it; `None` means no cap. The client reads the value as a JavaScript number.
pub fn block_cap(variable: Option<&str>) -> Option<u64> {
    match variable.map(str::trim).and_then(|v| v.parse::<f64>().ok()) {
        None => Some(DEFAULT_BLOCK_CAP),
        Some(cap) if cap.is_nan() => Some(DEFAULT_BLOCK_CAP),
        Some(cap) if !(1.0..1_000_000.0).contains(&cap) => None,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a million")]
        Some(cap) => Some(cap as u64),
    }
}

/// How many idle rounds are borne. 0 in the loop file lifts the loop's own limit, never the host's.
///
/// Under a cap of n the host honours n blocks in a row, ours or anybody's; ralph pauses one block earlier than it must, so that the turn
/// never ends "as a success" behind its back.
pub fn idle_limit(wanted: Option<u64>, cap: Option<u64>) -> (u64, IdleLimitFrom) {
    let own = match wanted {
        Some(0) => (u64::MAX, IdleLimitFrom::Loop),
        Some(rounds) => (rounds, IdleLimitFrom::Loop),
        None => (DEFAULT_IDLE_ROUNDS, IdleLimitFrom::Default),
    };
    match cap.map(|cap| cap.saturating_sub(1).max(2)) {
        Some(bound) if bound < own.0 => (bound, IdleLimitFrom::HostCap),
        _ => own,
    }
}

/// Idle rounds in a row, this one included. Without a transcript, only a message that repeats the last one is known to be idle.
pub fn count_idle(before: u64, tools: ToolUse, same_message: bool) -> u64 {
    match (tools, same_message) {
        (ToolUse::Used, _) => 0,
        (ToolUse::None, _) | (ToolUse::Unknown, true) => before + 1,
        (ToolUse::Unknown, false) => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_is_read_as_the_client_reads_it() {
        let cases = [
            (None, Some(8)),
            (Some("abc"), Some(8)),
            (Some(""), Some(8)),
            (Some("0"), None),
            (Some("-1"), None),
            (Some("1000000"), None),
            (Some("3"), Some(3)),
            (Some("1.5"), Some(1)),
        ];
        for (variable, cap) in cases {
            assert_eq!(block_cap(variable), cap, "{variable:?}");
        }
    }

    #[test]
    fn ralph_pauses_before_the_host_gives_up() {
        assert_eq!(idle_limit(None, Some(8)), (7, IdleLimitFrom::HostCap));
        assert_eq!(idle_limit(None, None), (25, IdleLimitFrom::Default));
        assert_eq!(idle_limit(Some(3), Some(8)), (3, IdleLimitFrom::Loop));
        assert_eq!(idle_limit(Some(50), Some(8)), (7, IdleLimitFrom::HostCap));
        assert_eq!(idle_limit(Some(0), None), (u64::MAX, IdleLimitFrom::Loop));
        for cap in 1..20 {
            // The host overrides the block that would follow `cap` honoured ones.
            assert!(idle_limit(None, Some(cap)).0 <= cap + 1);
        }
    }

    #[test]
    fn only_known_idleness_counts() {
        assert_eq!(count_idle(3, ToolUse::Used, true), 0);
        assert_eq!(count_idle(3, ToolUse::None, false), 4);
        assert_eq!(count_idle(3, ToolUse::Unknown, true), 4);
        assert_eq!(count_idle(3, ToolUse::Unknown, false), 3);
    }
}
