//! The abilities of Claude Code's versions.

use super::variables;
use crate::hosts::{Client, Version};

/// From this version on a hook can be a program with arguments, without a shell.
pub const EXEC_SINCE: Version = (2, 1, 139);

/// The newest version that ralph's tests run with.
pub const TESTED: Version = (2, 1, 325);

/// From this version on a stop hook may add context instead of blocking.
pub const CONTEXT_SINCE: Version = (2, 1, 163);

/// The oldest version that is known to wake a session when a hook in its background asks for it.
const REWAKE_SINCE: Version = (2, 1, 197);

/// The oldest version that is known to report a command that the person entered, and no other, as `UserPromptExpansion`.
const EXPANDS_SINCE: Version = (2, 1, 197);

/// The oldest version that is known to compact when its settings change in the middle of a session.
const COMPACTS_SINCE: Version = (2, 1, 197);

/// The oldest version that is known to say when an account's limit ends, and to go on then by itself.
const RESUMES_SINCE: Version = (2, 1, 325);

/// From this version on the event carries the last message, so that its absence means a message without text.
pub const MESSAGE_SINCE: Version = (2, 1, 47);

/// The abilities of the client that calls itself so in `AI_AGENT`.
pub(in crate::hosts) fn of_ai_agent(ai_agent: &str) -> Client {
    let version = version(ai_agent);
    let is_at_least = |since: Version| version.is_some_and(|version| version >= since);
    Client {
        host: &super::HOST,
        version,
        sends_message: is_at_least(MESSAGE_SINCE),
        takes_context: is_at_least(CONTEXT_SINCE),
        wakes: is_at_least(REWAKE_SINCE),
        // Who may set variables for a command needs no forged event. Who may not must not gain by one.
        reports_typed: is_at_least(EXPANDS_SINCE) && variables::is_of_client(ai_agent),
        compacts: is_at_least(COMPACTS_SINCE),
        resumes: is_at_least(RESUMES_SINCE),
    }
}

/// Reads `claude-code_2-1-325_harness`.
fn version(ai_agent: &str) -> Option<Version> {
    parse(ai_agent.strip_prefix("claude-code_")?.split('_').next()?)
}

/// Reads `2.1.325` or `2-1-325`.
pub(super) fn parse(text: &str) -> Option<Version> {
    let mut numbers = text.split(['-', '.']).map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_agents_name() {
        assert_eq!(version("claude-code_2-1-325_harness"), Some((2, 1, 325)));
        assert_eq!(version("claude-code_2.1.163"), Some((2, 1, 163)));
        assert_eq!(version("claude-code_next"), None);
        assert_eq!(version("codex_1-2-3"), None);
    }
}
