//! The signs of an agent in the environment: who calls, and whether a person started this program.

use std::{ffi::OsString, sync::OnceLock};

use super::claude;
use crate::sys::{env, process_tree};

/// Variables that other agents set for what they start.
const SIGNS: [&str; 9] = [
    env::AGENTS_SHELL,
    "QWEN_CODE_SESSION_ID",
    "COPILOT_CLI",
    "GROK_SESSION_ID",
    "GROK_HOOK_EVENT",
    "DROID_PROJECT_DIR",
    "FACTORY_PROJECT_DIR",
    "GEMINI_SESSION_ID",
    "OPENCODE_PID",
];

/// Whether a variable of an agent other than Claude Code is set.
pub(super) fn of_others() -> bool {
    SIGNS.iter().any(|name| env::os(name).is_some())
}

/// Whether the agent itself started this process in its shell, as the client says, or, of another agent, ralph's plugin.
pub(crate) fn is_in_the_agents_shell() -> bool {
    match claude::variables::ai_agent().filter(|agent| agent.starts_with("claude-code_")) {
        // A client that was started in another agent's shell has a shell, and hooks, of its own.
        Some(agent) => agent.ends_with("_agent"),
        None => env::os(env::AGENTS_SHELL).is_some(),
    }
}

/// Variables of a session around this process that a new session must not see.
pub(crate) fn of_a_session() -> Vec<OsString> {
    claude::variables::OF_A_SESSION.into_iter().chain(SIGNS).map(Into::into).collect()
}

/// The variable that shows that an agent started this program, not a person: set here, or, where the system tells, in a process above this one. An agent
/// can clear the environment of a command, but not that of its shell.
pub fn of_an_agent() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&'static str>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let claude = [env::RUN, "CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "AI_AGENT"].into_iter();
        let names: Vec<&'static str> = claude.chain(SIGNS).collect();
        let here = names.iter().copied().find(|name| env::os(name).is_some());
        here.or_else(|| if env::stands_alone() { None } else { process_tree::set_above(&names) })
    })
}
