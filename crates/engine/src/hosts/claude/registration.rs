//! How Claude Code is told to call ralph: the one source of the hooks that the plugin, `ralph init` and `ralph doctor` speak of.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    hosts::{
        Host,
        invocation::{PLACES, SHORT, TIMEOUT, VIA, WAIT},
    },
    sys::process,
};

/// One entry that ralph wants the client to have: known by its event, and by whether it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    pub event: &'static str,
    /// It answers nothing: the client runs it in the background and is woken by it.
    pub waits: bool,
    /// It answers nothing, and the client need not wait for it.
    pub in_background: bool,
    /// In seconds. Always written down: a hook that runs into the client's own limit is an allowed stop without a word.
    pub timeout: u64,
    /// Shown by the client while the hook runs.
    pub status: Option<&'static str>,
    /// The feature that does not work without it.
    pub without: &'static str,
}

/// In seconds: as long as a loop lasts that was given no time of its own.
pub(crate) const WAITING: u64 = 28_800;

const fn hook(event: &'static str, status: Option<&'static str>, without: &'static str) -> Hook {
    Hook { event, waits: false, in_background: false, timeout: SHORT, status, without }
}

/// A hook that runs commands.
const fn measuring(event: &'static str, status: &'static str, without: &'static str) -> Hook {
    Hook { timeout: Hook::LONG, ..hook(event, Some(status), without) }
}

/// A hook that waits for the world outside. It has no status: 2.1.197 would show it in place of the judge's.
const fn waiting(event: &'static str, without: &'static str) -> Hook {
    Hook { waits: true, timeout: WAITING, ..hook(event, None, without) }
}

/// The arguments of the registered command.
pub(crate) const ARGS: [&str; 2] = ["hook", "claude"];

/// The field of an entry that has the client run it in the background, and go on at once.
pub(super) const ASYNC: &str = "async";

impl Hook {
    /// In seconds: what a project's own tests and linters may take together.
    pub const LONG: u64 = 3_600;

    /// The field of an entry that has the client run it in the background and wake the model when it ends with 2.
    pub const REWAKES: &str = "asyncRewake";

    /// Only events that every supported client knows: 2.1.197 drops all hooks of a plugin for one event that it does not know.
    ///
    /// The one that waits is listed before the one that judges: a client before 2.1.139 ignores arguments, takes the two for one, and runs the last of them.
    pub const ALL: [Hook; 10] = [
        waiting("Stop", "in an interactive session ralph waits for CI inside the stop hook, and the screen is held meanwhile"),
        measuring("Stop", "ralph judges the stop", "loops have no effect"),
        measuring("SubagentStop", "ralph verifies the subagent's work", "the work of check agents is not verified"),
        waiting("StopFailure", "an interactive session does not go on by itself after a rate limit or an error of the service"),
        hook("StopFailure", None, "a rate limit or an error of the service does not park the loop, and is missing in the journal"),
        hook("UserPromptSubmit", None, "a message after Esc does not pause the loop"),
        hook(
            "UserPromptExpansion",
            None,
            "typed commands (/ralph-loop, /cancel-ralph and the others) do nothing: this event tells that a person entered them",
        ),
        hook("SessionStart", None, "a loop is lost with /clear, and a waiting loop is not announced"),
        hook("SessionEnd", None, "a loop that was left behind is seen late"),
        Hook {
            in_background: true,
            ..hook("Notification", None, "you are not told that the agent waits for a permission, and `ralph status` does not say so")
        },
    ];

    /// The hook that answers to that event, if ralph registers one.
    pub fn of(event: &str) -> Option<&'static Hook> {
        Hook::ALL.iter().find(|hook| hook.event == event && !hook.waits)
    }

    /// The hook that such a line under that event is.
    pub fn of_line(event: &str, line: &CommandLine) -> Option<&'static Hook> {
        Hook::ALL.iter().find(|hook| hook.event == event && hook.waits == line.waits())
    }

    /// Whether it takes its time, so that it has to know its limit.
    pub fn measures(&self) -> bool {
        self.timeout > SHORT
    }

    /// The arguments for a limit of so many seconds, where it is registered in `via`.
    pub fn args(&self, timeout: u64, via: &str) -> Vec<String> {
        let mut args = ARGS.map(str::to_owned).to_vec();
        args.extend(self.waits.then(|| WAIT.to_owned()));
        if self.measures() {
            args.extend([TIMEOUT.to_owned(), timeout.to_string()]);
        }
        args.extend([VIA.to_owned(), via.to_owned()]);
        args
    }
}

/// The rule that keeps an agent from editing ralph's own files, in whichever project it works.
pub const DENY_EDITS: &str = "Edit(.ralph/**)";

/// The variable that holds the client's cap on stops in a row that were sent back without any tool call.
pub const BLOCK_CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

/// The entry of one hook with this limit, field by field, in exec form: no shell, so no quoting. A client before 2.1.139 runs the bare command,
/// which acts as the hook too.
pub(crate) fn entry(hook: &Hook, timeout: u64, command: &str, via: &str) -> Vec<(&'static str, Value)> {
    let args = json!(hook.args(timeout, via));
    let mut fields = vec![("type", "command".into()), ("command", command.into()), ("args", args), ("timeout", timeout.into())];
    fields.extend(hook.status.map(|status| ("statusMessage", status.into())));
    fields.extend(hook.waits.then(|| (Hook::REWAKES, true.into())));
    fields.extend(hook.in_background.then(|| (ASYNC, true.into())));
    fields
}

/// The command of a registered entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A program and its arguments, as they are.
    Exec { program: String, args: Vec<String> },
    /// A line for the shell.
    Shell(String),
}

impl CommandLine {
    /// The line that ralph registers for this program in `via` as this hook; without a hook, the part that all of them share.
    pub fn own(program: &str, hook: Option<&Hook>, via: &str) -> Self {
        let args = hook.map_or_else(|| ARGS.map(str::to_owned).to_vec(), |hook| hook.args(hook.timeout, via));
        CommandLine::Exec { program: program.to_owned(), args }
    }

    /// Whether it is what ralph registers for this program, at this or another time: with any limit and in any place, or with none.
    pub fn is_own_of(&self, program: &str) -> bool {
        matches!(self, CommandLine::Exec { program: own, args } if own == program && args.starts_with(&ARGS.map(str::to_owned)) && CommandLine::calls_the_hook(args))
    }

    /// Whether these arguments call the hook and say nothing else than whether it waits, its limit, and where it is registered; in this order.
    pub fn calls_the_hook<S: AsRef<str>>(args: &[S]) -> bool {
        let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        let is_number = |text: &str| !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        let (Some(&"hook"), Some(mut rest)) = (args.first(), args.get(2..)) else { return ARGS.starts_with(&args) };
        if args.get(1).is_none_or(|name| Host::by_name(name).is_none()) {
            return false;
        }
        rest = rest.strip_prefix(&[WAIT]).unwrap_or(rest);
        rest = match rest {
            [TIMEOUT, seconds, more @ ..] if is_number(seconds) => more,
            all => all,
        };
        match rest {
            [VIA, place] => PLACES.contains(place),
            all => all.is_empty(),
        }
    }

    /// The limit that the hook is told, in seconds.
    pub fn limit(&self) -> Option<u64> {
        let words = self.words();
        let at = words.iter().position(|word| *word == TIMEOUT)?;
        words.get(at + 1)?.parse().ok()
    }

    /// Whether the hook is told that it is the one that waits.
    pub fn waits(&self) -> bool {
        self.words().contains(&WAIT)
    }

    /// The program, by its name or path.
    pub fn program(&self) -> &str {
        match self {
            CommandLine::Exec { program, .. } => program,
            CommandLine::Shell(line) => program_of(line).0,
        }
    }

    fn words(&self) -> Vec<&str> {
        match self {
            CommandLine::Exec { args, .. } => args.iter().map(String::as_str).collect(),
            CommandLine::Shell(line) => line.split_whitespace().collect(),
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
    /// program: a user's own script can have that name, too.
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
        for hook in &Hook::ALL {
            let entry: Value = entry(hook, hook.timeout, "ralph", "user").into_iter().collect();
            let line = CommandLine::of(&entry).unwrap();
            assert!(line.is_ralphs() && line.is_own_of("ralph") && !line.is_own_of("/opt/ralph"), "{line}");
            assert_eq!((&line, Hook::of_line(hook.event, &line)), (&CommandLine::own("ralph", Some(hook), "user"), Some(hook)));
            // A hook that takes its time knows how much it has, and it is what the client gives it.
            let limit = match (hook.event, hook.waits) {
                (_, true) => Some(28_800),
                ("Stop" | "SubagentStop", false) => Some(3_600),
                _ => None,
            };
            assert_eq!((line.limit(), entry["timeout"].as_u64()), (limit, limit.or(Some(60))), "{entry}");
        }
    }

    #[test]
    fn s2_5_the_hook_that_waits_is_another_than_the_one_that_judges() {
        let waiter = Hook::ALL.iter().find(|hook| hook.waits).unwrap();
        let entry: Value = entry(waiter, waiter.timeout, "ralph", "local").into_iter().collect();
        let args = json!(["hook", "claude", "--wait", "--timeout", "28800", "--via", "local"]);
        assert_eq!(entry, json!({"type": "command", "command": "ralph", "args": args, "timeout": 28_800, "asyncRewake": true}));
        let hours = ralph_core::loops::LoopSettings::DEFAULT_HOURS;
        assert!((std::time::Duration::from_secs(WAITING).as_secs_f64() - hours * 3_600.0).abs() < 1e-6, "as long as a loop lasts");
        // It stands before the judge, which answers where there are no arguments.
        let stops: Vec<bool> = Hook::ALL.iter().filter(|hook| hook.event == "Stop").map(|hook| hook.waits).collect();
        assert_eq!(stops, [true, false]);
        assert!(Hook::ALL.iter().all(|hook| Hook::of(hook.event).is_some_and(|judge| !judge.waits)));
        let shell = |line: &str| CommandLine::Shell(line.to_owned());
        assert_eq!(Hook::of_line("Stop", &shell("ralph hook claude --wait")), Some(waiter));
        assert_eq!(Hook::of_line("Stop", &shell("ralph hook claude")), Hook::of("Stop"));
        assert_eq!(Hook::of_line("SubagentStop", &shell("ralph hook claude --wait")), None);
    }

    #[test]
    fn a_call_of_the_hook_says_nothing_else() {
        const WAITS: [&str; 5] = ["hook", "claude", "--wait", "--timeout", "7"];
        const NAMED: [&str; 7] = ["hook", "claude", "--wait", "--timeout", "7", "--via", "plugin"];
        for call in [
            &[][..],
            &["hook"],
            &["hook", "claude"],
            &["hook", "claude", "--timeout", "7"],
            &["hook", "claude", "--wait"],
            &WAITS,
            &NAMED,
            &["hook", "claude", "--via", "user"],
        ] {
            assert!(CommandLine::calls_the_hook(call), "{call:?}");
        }
        for other in [
            &["run"][..],
            &["hook", "claude", "x"],
            &["hook", "claude", "--timeout"],
            &["hook", "claude", "--timeout", "x"],
            &["hook", "claude", "--timeout", ""],
            &["hook", "claude", "--timeout", "7", "--directory", "/"],
            &["hook", "--timeout", "7"],
            &["hook", "--wait"],
            &["hook", "claude", "--wait", "x"],
            &["hook", "claude", "--wait", "--wait"],
            &["hook", "claude", "--wait", "--timeout"],
            &["hook", "claude", "--via"],
            &["hook", "claude", "--via", "elsewhere"],
            &["hook", "claude", "--via", "user", "--via", "user"],
            &["hook", "claude", "--via", "user", "--timeout", "7"],
        ] {
            assert!(!CommandLine::calls_the_hook(other), "{other:?}");
        }
        let limit = |line: &str| CommandLine::Shell(line.to_owned()).limit();
        assert_eq!(limit("ralph hook claude --timeout 90"), Some(90));
        assert_eq!([limit("ralph"), limit("ralph hook claude --timeout"), limit("ralph hook claude --timeout soon")], [None; 3]);
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
