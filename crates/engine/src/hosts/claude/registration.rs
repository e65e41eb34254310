//! How Claude Code is told to call ralph: the one source of the hooks that the plugin, `ralph init` and `ralph doctor` speak of.

use std::path::Path;

use serde_json::{Value, json};

use crate::sys::process;

/// One event that ralph wants to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    pub event: &'static str,
    /// In seconds. Always written down: a hook that runs into the client's own limit is an allowed stop without a word.
    pub timeout: u64,
    /// What the client shows while the hook runs.
    pub status: Option<&'static str>,
    /// What does not work without it.
    pub without: &'static str,
}

/// Only events that every supported client knows: 2.1.197 drops all hooks of a plugin for one event that it does not know.
pub const HOOKS: [Hook; 6] = [
    hook("Stop", Some("ralph judges the stop"), "no loop is held"),
    hook("StopFailure", None, "API errors are missing in the journal"),
    hook("UserPromptSubmit", None, "a message after Esc does not pause the loop"),
    hook("UserPromptExpansion", None, "2.1.197 hands the text of /cancel-ralph to the model after all"),
    hook("SessionStart", None, "a loop is lost with /clear, and nobody is told of a loop that waits"),
    hook("SessionEnd", None, "a loop that was left behind is seen late"),
];

const fn hook(event: &'static str, status: Option<&'static str>, without: &'static str) -> Hook {
    Hook { event, timeout: 60, status, without }
}

/// The arguments of the registered command.
pub const ARGS: [&str; 2] = ["hook", "claude"];

/// The variable that holds the client's cap on stops in a row that were sent back without any tool call.
pub const BLOCK_CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

/// The entry of one hook, field by field, in exec form: no shell, so no quoting. A client before 2.1.139 runs the bare command, which acts as
/// the hook too.
pub fn entry(hook: &Hook, command: &str) -> Vec<(&'static str, Value)> {
    let mut fields = vec![("type", "command".into()), ("command", command.into()), ("args", json!(ARGS)), ("timeout", hook.timeout.into())];
    fields.extend(hook.status.map(|status| ("statusMessage", status.into())));
    fields
}

/// What a registered entry runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A program and its arguments, as they are.
    Exec { program: String, args: Vec<String> },
    /// A line for the shell.
    Shell(String),
}

impl CommandLine {
    /// What ralph registers for this program.
    pub fn own(program: &str) -> Self {
        CommandLine::Exec { program: program.to_owned(), args: ARGS.map(str::to_owned).to_vec() }
    }

    pub fn of(entry: &Value) -> Option<Self> {
        let command = entry.get("command")?.as_str()?.to_owned();
        let is_command = entry.get("type").and_then(Value::as_str).is_none_or(|t| t == "command");
        match entry.get("args").and_then(Value::as_array) {
            _ if !is_command => None,
            Some(args) => {
                Some(CommandLine::Exec { program: command, args: args.iter().filter_map(Value::as_str).map(str::to_owned).collect() })
            }
            None => Some(CommandLine::Shell(command)),
        }
    }

    /// Whether it calls ralph's hook: a program named `ralph`, or this very one, with `hook` as its first argument. Without any, only the bare name or this very
    /// program: somebody's own script can be called that, too.
    pub fn is_ralphs(&self) -> bool {
        let is_ours = |program: &str, first: Option<&str>| match first {
            Some("hook") => is_ralph(program),
            Some(_) => false,
            None => program == "ralph" || process::is_this_program(Path::new(program)),
        };
        match self {
            CommandLine::Exec { program, args } => is_ours(program, args.first().map(String::as_str)),
            CommandLine::Shell(line) => {
                let (program, rest) = program_of(line);
                is_ours(program, rest.split_whitespace().next())
            }
        }
    }
}

impl std::fmt::Display for CommandLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandLine::Exec { program, args } => {
                f.write_str(program)?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            CommandLine::Shell(line) => f.write_str(line),
        }
    }
}

fn is_ralph(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name) == "ralph" || process::is_this_program(Path::new(program))
}

/// The program of a shell line and the rest of it. Variables, `exec` and `env` before the program are passed over.
fn program_of(line: &str) -> (&str, &str) {
    let (word, rest) = first_word(line);
    let is_variable =
        word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    let is_wrapper = matches!(word.rsplit('/').next(), Some("exec" | "env" | "command" | "nohup"));
    if (is_variable || is_wrapper) && !rest.trim().is_empty() { program_of(rest) } else { (word, rest) }
}

/// The program of a shell line, which may be quoted, and the rest of the line.
fn first_word(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    match line.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) => line[1..].split_once(quote).unwrap_or((line, "")),
        None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_1_entries_are_in_exec_form_with_a_timeout() {
        for hook in &HOOKS {
            let entry: Value = entry(hook, "ralph").into_iter().collect();
            assert!(entry["timeout"].as_u64().is_some_and(|t| t >= 10), "{entry}");
            assert_eq!(entry["args"], json!(["hook", "claude"]));
            assert!(CommandLine::of(&entry).is_some_and(|line| line.is_ralphs()));
        }
    }

    #[test]
    fn ralphs_own_entries_are_recognised_in_every_form() {
        let shell = |line: &str| CommandLine::of(&json!({ "type": "command", "command": line })).is_some_and(|l| l.is_ralphs());
        for ours in ["ralph", "ralph hook", "ralph hook claude", "/opt/tools/ralph hook"] {
            assert!(shell(ours), "{ours}");
        }
        assert!(shell("\"/opt/my tools/ralph\" hook claude"));
        assert!(shell("'C:\\Program Files\\ralph\\ralph.exe' hook claude"));
        for ours in ["RALPH_LOG=$HOME/l ralph hook claude", "exec ralph hook", "/usr/bin/env A=1 B=2 ralph hook claude"] {
            assert!(shell(ours), "{ours}");
        }
        for others in
            ["ralph status", "ralphy hook", "bash ralph hook", "echo ralph hook", "", "\"ralph", "/home/me/bin/ralph", "A=1", "env"]
        {
            assert!(!shell(others), "{others}");
        }
        let exec =
            |program: &str, args: Value| CommandLine::of(&json!({ "command": program, "args": args })).is_some_and(|l| l.is_ralphs());
        assert!(exec("/opt/my tools/ralph", json!(["hook", "claude"])));
        assert!(exec("${CLAUDE_PLUGIN_ROOT}/bin/ralph", json!(["hook"])));
        assert!(!exec("ralph", json!(["run"])));
        assert_eq!(CommandLine::of(&json!({ "type": "prompt", "prompt": "is it done?" })), None);
    }
}
