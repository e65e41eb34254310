//! How Claude Code is told to call ralph: the one source of the hooks that the plugin, `ralph init` and `ralph doctor` speak of.

use std::{ffi::OsString, path::Path, time::Duration};

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

/// In seconds: enough for a judge that measures nothing. Also what a hook that was not told its limit must make do with.
pub const SHORT: u64 = 60;

/// In seconds: what a project's own tests and linters may take together.
pub const LONG: u64 = 3_600;

/// Only events that every supported client knows: 2.1.197 drops all hooks of a plugin for one event that it does not know.
pub const HOOKS: [Hook; 7] = [
    measuring("Stop", "ralph judges the stop", "no loop is held"),
    measuring("SubagentStop", "ralph verifies the subagent's work", "the work of check agents is not verified"),
    hook("StopFailure", None, "API errors are missing in the journal"),
    hook("UserPromptSubmit", None, "a message after Esc does not pause the loop"),
    hook("UserPromptExpansion", None, "2.1.197 hands the text of /cancel-ralph to the model after all"),
    hook("SessionStart", None, "a loop is lost with /clear, and nobody is told of a loop that waits"),
    hook("SessionEnd", None, "a loop that was left behind is seen late"),
];

const fn hook(event: &'static str, status: Option<&'static str>, without: &'static str) -> Hook {
    Hook { event, timeout: SHORT, status, without }
}

/// A hook that runs commands.
const fn measuring(event: &'static str, status: &'static str, without: &'static str) -> Hook {
    Hook { event, timeout: LONG, status: Some(status), without }
}

/// The arguments of the registered command.
pub const ARGS: [&str; 2] = ["hook", "claude"];

/// How a hook that runs commands is told its own limit: the client does not say, and kills it without a word.
pub const TIMEOUT: &str = "--timeout";

/// How the hook is told that it is the one that waits in the background.
pub const WAIT: &str = "--wait";

impl Hook {
    /// The hook of that event, if ralph registers one.
    pub fn of(event: &str) -> Option<&'static Hook> {
        HOOKS.iter().find(|hook| hook.event == event)
    }

    /// Whether it runs commands, so that it has to know its limit.
    pub fn measures(&self) -> bool {
        self.timeout > SHORT
    }

    /// The arguments for a limit of so many seconds.
    pub fn args(&self, timeout: u64) -> Vec<String> {
        let limit = [TIMEOUT.to_owned(), timeout.to_string()];
        ARGS.map(str::to_owned).into_iter().chain(limit.into_iter().filter(|_| self.measures())).collect()
    }
}

/// The variable that holds the client's cap on stops in a row that were sent back without any tool call.
pub const BLOCK_CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

/// The entry of one hook with this limit, field by field, in exec form: no shell, so no quoting. A client before 2.1.139 runs the bare command,
/// which acts as the hook too.
pub fn entry(hook: &Hook, timeout: u64, command: &str) -> Vec<(&'static str, Value)> {
    let args = json!(hook.args(timeout));
    let mut fields = vec![("type", "command".into()), ("command", command.into()), ("args", args), ("timeout", timeout.into())];
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
    /// What ralph registers for this program and event.
    pub fn own(program: &str, event: &str) -> Self {
        let args = Hook::of(event).map_or_else(|| ARGS.map(str::to_owned).to_vec(), |hook| hook.args(hook.timeout));
        CommandLine::Exec { program: program.to_owned(), args }
    }

    /// Whether it is what ralph registers for this program, at this or another time: with any limit, or with none.
    pub fn is_own_of(&self, program: &str) -> bool {
        matches!(self, CommandLine::Exec { program: own, args } if own == program && args.starts_with(&ARGS.map(str::to_owned)) && calls_the_hook(args))
    }

    /// The limit that the hook is told, in seconds.
    pub fn limit(&self) -> Option<u64> {
        let of = |words: &[&str]| {
            let at = words.iter().position(|word| *word == TIMEOUT)?;
            words.get(at + 1)?.parse().ok()
        };
        match self {
            CommandLine::Exec { args, .. } => of(&args.iter().map(String::as_str).collect::<Vec<_>>()),
            CommandLine::Shell(line) => of(&line.split_whitespace().collect::<Vec<_>>()),
        }
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

/// Whether these arguments call the hook and say nothing else than its limit.
pub fn calls_the_hook<S: AsRef<str>>(args: &[S]) -> bool {
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    let is_number = |text: &str| !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    match args.strip_prefix(&ARGS) {
        Some([]) => true,
        Some([TIMEOUT, seconds]) => is_number(seconds),
        Some(_) => false,
        None => ARGS.starts_with(&args),
    }
}

/// More than a day is no limit that a hook ever sees.
const MAX_LIMIT: f64 = 86_400.0;

/// How long the client lets a hook with these arguments run. A value that makes no sense is none: the shortest limit that ralph registers is the
/// safe guess.
pub fn limit_of(args: &[OsString]) -> Duration {
    let apart = args.iter().position(|arg| arg == TIMEOUT).and_then(|at| args.get(at + 1)?.to_str());
    let joined = || args.iter().find_map(|arg| arg.to_str()?.strip_prefix(TIMEOUT)?.strip_prefix('='));
    let seconds = apart.or_else(joined).and_then(|text| text.trim().parse::<f64>().ok()).filter(|seconds| *seconds > 0.0);
    let usual = Duration::from_secs(SHORT);
    seconds.map_or(usual, |seconds| Duration::try_from_secs_f64(seconds.min(MAX_LIMIT)).unwrap_or(usual))
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
            let entry: Value = entry(hook, hook.timeout, "ralph").into_iter().collect();
            let line = CommandLine::of(&entry).unwrap();
            assert!(line.is_ralphs() && line.is_own_of("ralph") && !line.is_own_of("/opt/ralph"), "{line}");
            assert_eq!(line, CommandLine::own("ralph", hook.event));
            // A hook that runs commands knows how long it may take, and it is what the client gives it.
            let told = line.limit();
            assert_eq!((entry["timeout"].as_u64(), told), if hook.measures() { (told, Some(3_600)) } else { (Some(60), None) }, "{entry}");
        }
        let measuring: Vec<&str> = HOOKS.iter().filter(|hook| hook.measures()).map(|hook| hook.event).collect();
        assert_eq!(measuring, ["Stop", "SubagentStop"]);
    }

    #[test]
    fn a_call_of_the_hook_says_nothing_else() {
        for call in [&[][..], &["hook"], &["hook", "claude"], &["hook", "claude", "--timeout", "7"]] {
            assert!(calls_the_hook(call), "{call:?}");
        }
        for other in [
            &["run"][..],
            &["hook", "claude", "x"],
            &["hook", "claude", "--timeout"],
            &["hook", "claude", "--timeout", "x"],
            &["hook", "claude", "--timeout", ""],
            &["hook", "claude", "--timeout", "7", "--directory", "/"],
            &["hook", "--timeout", "7"],
        ] {
            assert!(!calls_the_hook(other), "{other:?}");
        }
        let limit = |line: &str| CommandLine::Shell(line.to_owned()).limit();
        assert_eq!(limit("ralph hook claude --timeout 90"), Some(90));
        assert_eq!([limit("ralph"), limit("ralph hook claude --timeout"), limit("ralph hook claude --timeout soon")], [None; 3]);
    }

    #[test]
    fn s3_3_a_limit_in_any_form_is_a_limit() {
        let limit = |args: &[&str]| limit_of(&args.iter().map(OsString::from).collect::<Vec<_>>()).as_secs_f64();
        for (timeout, seconds) in [
            ("3600", 3_600.0),
            (" 90 ", 90.0),
            ("1.5", 1.5),
            ("0", 60.0),
            ("-3", 60.0),
            ("", 60.0),
            ("soon", 60.0),
            ("NaN", 60.0),
            ("inf", 86_400.0),
            ("1e300", 86_400.0),
        ] {
            for args in [&["claude", "--timeout", timeout][..], &["claude", &format!("--timeout={timeout}")]] {
                assert!((limit(args) - seconds).abs() < 1e-6, "{args:?}");
            }
        }
        for args in [&[][..], &["claude"], &["claude", "--timeout"], &["--timeouts=8"]] {
            assert!((limit(args) - 60.0).abs() < 1e-6, "{args:?}");
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
