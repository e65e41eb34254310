//! The variables that Claude Code sets for its hooks and its shell, and those that a person sets for it.

use std::{ffi::OsString, path::PathBuf};

use crate::sys::env;

/// Variables that make the client believe that it runs within another session, or speak to that one, or wait silently for the end of a limit.
pub(in crate::hosts) const OF_A_SESSION: [&str; 15] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_RETRY_WATCHDOG",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PROJECT_DIR",
];

/// Claude Code's session id; it is also set for the commands that the model runs.
pub fn session() -> Option<String> {
    env::text("CLAUDE_CODE_SESSION_ID")
}

/// The client and its version: `claude-code_2-1-325_harness`.
pub(crate) fn ai_agent() -> Option<String> {
    env::text("AI_AGENT")
}

/// The folder of the plugin whose hook this is; the client sets it for no other hook.
pub(crate) fn plugin_root() -> Option<OsString> {
    env::os("CLAUDE_PLUGIN_ROOT")
}

/// Whether a person sits at the client's own screen, rather than a program that waits for its output.
pub(crate) fn is_interactive() -> bool {
    env::text("CLAUDE_CODE_ENTRYPOINT").as_deref() == Some("cli")
}

/// The client's process, where it says so.
pub(crate) fn pid() -> Option<u32> {
    env::text("CLAUDE_PID")?.parse().ok()
}

/// Whether the client itself started this process: a hook, or the status line. Clients that do not tell their version do not tell this either.
pub fn is_called_by_client() -> bool {
    ai_agent().is_some_and(|agent| is_of_client(&agent))
}

pub(super) fn is_of_client(ai_agent: &str) -> bool {
    ai_agent.starts_with("claude-code_") && ai_agent.ends_with("_harness")
}

/// The client's own cap on consecutive blocks.
pub(crate) fn block_cap() -> Option<String> {
    env::text("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP")
}

/// Where Claude Code keeps a user's settings, commands and plugins.
pub fn config_folder() -> Option<PathBuf> {
    env::os("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(|| Some(env::home()?.join(".claude")))
}

/// The file in which Claude Code remembers projects and answers.
pub(crate) fn memory_file() -> Option<PathBuf> {
    Some(env::os("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(env::home)?.join(".claude.json"))
}
