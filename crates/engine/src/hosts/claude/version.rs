//! The abilities of Claude Code's versions.

use std::fmt;

use super::variables;
use crate::hosts::Client;

/// `2.1.325`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub(in crate::hosts) u32, pub(in crate::hosts) u32, pub(in crate::hosts) u32);

impl Version {
    /// From this version on a hook can be a program with arguments, without a shell.
    pub const EXEC_SINCE: Version = Version(2, 1, 139);

    /// The newest version that ralph's tests run with.
    pub const TESTED: Version = Version(2, 1, 325);

    /// From this version on a stop hook may add context instead of blocking.
    pub const CONTEXT_SINCE: Version = Version(2, 1, 163);

    /// The oldest version that is known to wake a session when a hook in its background asks for it.
    const REWAKE_SINCE: Version = Version(2, 1, 197);

    /// The oldest version that is known to report a command that the person entered, and no other, as `UserPromptExpansion`.
    const EXPANDS_SINCE: Version = Version(2, 1, 197);

    /// The oldest version that is known to compact when its settings change in the middle of a session.
    const COMPACTS_SINCE: Version = Version(2, 1, 197);

    /// The oldest version that is known to say when an account's limit ends, and to go on then by itself.
    const RESUMES_SINCE: Version = Version(2, 1, 325);

    /// From this version on the event carries the last message, so that its absence means a message without text.
    pub const MESSAGE_SINCE: Version = Version(2, 1, 47);

    /// Reads the answer to `--version`: `2.1.325 (Claude Code)`.
    pub fn said_in(answer: &str) -> Option<Self> {
        Version::parse(answer.split_whitespace().next()?)
    }

    /// Reads `claude-code_2-1-325_harness`.
    fn of_ai_agent(ai_agent: &str) -> Option<Self> {
        Version::parse(ai_agent.strip_prefix("claude-code_")?.split('_').next()?)
    }

    /// Reads `2.1.325` or `2-1-325`.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(['-', '.']).map(|n| n.parse().ok());
        Some(Version(numbers.next()??, numbers.next()??, numbers.next()??))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The abilities of the client that calls itself so in `AI_AGENT`.
pub(in crate::hosts) fn of_ai_agent(ai_agent: &str) -> Client {
    let version = Version::of_ai_agent(ai_agent);
    let is_at_least = |since: Version| version.is_some_and(|version| version >= since);
    Client {
        host: &super::HOST,
        version,
        sends_message: is_at_least(Version::MESSAGE_SINCE),
        takes_context: is_at_least(Version::CONTEXT_SINCE),
        wakes: is_at_least(Version::REWAKE_SINCE),
        // Who may set variables for a command needs no forged event. Who may not must not gain by one.
        reports_typed: is_at_least(Version::EXPANDS_SINCE) && variables::is_of_client(ai_agent),
        compacts: is_at_least(Version::COMPACTS_SINCE),
        resumes: is_at_least(Version::RESUMES_SINCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_agents_name() {
        assert_eq!(Version::of_ai_agent("claude-code_2-1-325_harness"), Some(Version(2, 1, 325)));
        assert_eq!(Version::of_ai_agent("claude-code_2.1.163"), Some(Version(2, 1, 163)));
        assert_eq!(Version::of_ai_agent("claude-code_next"), None);
        assert_eq!(Version::of_ai_agent("codex_1-2-3"), None);
    }
}
