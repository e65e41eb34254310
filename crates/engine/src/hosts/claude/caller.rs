//! Who is calling? Several agents read Claude Code's settings and run the hooks that they find there.
//!
//! They are told apart by what only they send, and by what only Claude Code sets: for every hook its session id is in the environment too.

use crate::{hosts::claude::event::Event, sys::env};

/// A version of the client: `(2, 1, 325)`.
pub type Version = (u32, u32, u32);

/// From this version on a hook can be a program with arguments, without a shell.
pub const EXEC_SINCE: Version = (2, 1, 139);

/// The newest version that ralph's tests run with.
pub const TESTED: Version = (2, 1, 325);

/// From this version on a stop hook may add context instead of blocking.
pub const CONTEXT_SINCE: Version = (2, 1, 163);

/// The oldest version that is known to wake a session when a hook in its background asks for it.
pub const REWAKE_SINCE: Version = (2, 1, 197);

/// The oldest version that is known to report a command that the person entered, and no other, as `UserPromptExpansion`.
pub const EXPANDS_SINCE: Version = (2, 1, 197);

/// The oldest version that is known to compact when its settings change in the middle of a session.
pub const COMPACTS_SINCE: Version = (2, 1, 197);

/// The oldest version that is known to say when an account's limit ends, and to go on then by itself.
pub const RESUMES_SINCE: Version = (2, 1, 325);

/// From this version on the event carries the last message, so that its absence means a message without text.
pub const MESSAGE_SINCE: Version = (2, 1, 47);

/// The agent that sent the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    ClaudeCode {
        version: Option<Version>,
    },
    /// Another agent, by name. Its loops are not ours to judge.
    Foreign(&'static str),
}

/// Fields that Claude Code never sends, and who does.
const FOREIGN_FIELDS: [(&str, &str); 11] = [
    ("turn_id", "codex"),
    ("hookEventName", "grok"),
    ("sessionId", "copilot"),
    ("stop_reason", "copilot"),
    ("prompt_response", "gemini"),
    ("context_usage", "qwen"),
    ("crons", "qwen"),
    ("message_id", "droid"),
    ("tool_execution_count", "droid"),
    ("client_type", "kimi"),
    ("timestamp", "another agent"),
];

impl Caller {
    pub fn of(event: &Event) -> Self {
        let claude = Caller::ClaudeCode { version: env::ai_agent().as_deref().and_then(version) };
        // The one sign that nobody else gives, not even an agent that was started from Claude Code's own shell.
        if event.session().is_some() && event.session() == env::claude_session().as_deref() {
            return claude;
        }
        let by_field = FOREIGN_FIELDS.iter().find(|(field, _)| event.has(field)).map(|(_, agent)| *agent);
        by_field.or_else(env::foreign_agent).map_or(claude, Caller::Foreign)
    }
}

/// Reads `claude-code_2-1-325_harness`.
fn version(ai_agent: &str) -> Option<Version> {
    let numbers = ai_agent.strip_prefix("claude-code_")?.split('_').next()?;
    let mut parts = numbers.split(['-', '.']).map(|n| n.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
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
