//! The parts of `--help` and the manual that are about ralph as a whole: groups of commands, exit codes, variables, files. The rest is with each command.

use std::fmt::Write as _;

use clap::Command;

use crate::{
    exit,
    term::width::{columns, wrap},
    ui,
};

/// The commands by what people want to do. One that stands nowhere here is shown at the end.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start and control", &["start", "run", "steer", "pause", "resume", "wait", "cancel", "rollback"]),
    ("See", &["watch", "report", "status", "statusline", "phase", "list", "log", "explain", "diff"]),
    ("Prove", &["gate", "item", "trust"]),
    ("Set up", &["init", "doctor", "notify", "demo", "plugin", "uninstall", "completions", "man"]),
    ("For agents", &["hook"]),
];

/// The environment variables, and what ralph takes from them.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    (
        "RALPH_DISABLE",
        "1 makes every hook silent at once, before anything is read or written, and the status line shows no loop. Empty and 0 mean nothing.",
    ),
    ("RALPH_LOOP_DIR", "The feature folder, if it is not .claude/data/ralph-loops/current; a relative path starts at the project."),
    ("RALPH_GATE", "Set for the commands of gates, to the gate's name. Under it no gate is run and hooks are silent."),
    (
        "RALPH_RUN, RALPH_ITERATION, RALPH_SESSION, RALPH_MODEL",
        "Set for the sessions of `ralph run`: which run, which iteration, which session, which model. Under the first one hooks leave the session to `ralph run`.",
    ),
    ("RALPH_RUNNER", "Set for the gates of a run, by which the next run finds what is left of them."),
    ("RALPH_STATUSLINE", "Set for the command of `ralph statusline --after`; under it `ralph statusline` is silent."),
    ("RALPH_LOG", "A file that gets a line for every hook call, in projects without a loop too."),
    ("RALPH_REPORT", "`off`: no page is written to .ralph/reports when a loop ends, pauses or parks; `ralph report` still writes one."),
    ("GITHUB_STEP_SUMMARY", "The file that `ralph report --step-summary` adds to. GitHub Actions sets it."),
    (
        "RALPH_NOTIFY",
        "Where to send notifications of every run, besides ralph.toml and --notify: desktop, terminal, an address, separated by commas; `cmd:LINE` comes last. Not read in an agent's shell.",
    ),
    (
        "RALPH_NEWS, RALPH_HOW, RALPH_LOOP, RALPH_NAME, RALPH_ITERATION, RALPH_UNTIL, RALPH_TITLE, RALPH_LINE, RALPH_PROJECT",
        "Set for notification commands: what happened (ended, needs-person, parked), how, to which loop, how far it is, when it goes on, in words, and in which folder.",
    ),
    ("DISPLAY, WAYLAND_DISPLAY, DBUS_SESSION_BUS_ADDRESS", "One of them is set where a desktop notification can be shown."),
    ("TMUX, STY", "Set within tmux and screen, which have to pass a terminal notification on."),
    ("IS_SANDBOX", "1 where the client may be run by root without asking for permissions."),
    ("SUDO_UID", "Whose repositories root may read, as in git."),
    ("XDG_CONFIG_HOME", "Where git keeps your own configuration (git/config, git/ignore), if not in ~/.config."),
    ("CLAUDE_PLUGIN_ROOT", "The folder of the plugin that runs the hook: it tells this registration from others. The client sets it."),
    ("CLAUDE_PROJECT_DIR", "The project of a hook call: the folder that the client was started in. The client sets it."),
    ("CLAUDE_CODE_SESSION_ID", "The session that calls the hook or runs a command. The client sets it."),
    (
        "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
        "The client's own cap on stops that are blocked in a row without any tool call (8 if unset, 0 for none). Ralph pauses a loop before the cap ends the turn.",
    ),
    ("AI_AGENT, CLAUDE_PID", "The client's version and process. The client sets them."),
    ("CLAUDE_CODE_ENTRYPOINT", "`cli` in an interactive session, which a hook in the background may wake. The client sets it."),
    ("CLAUDECODE", "Set in the shell of an agent, where ralph refuses what only a person may do (docs/SECURITY.md). The client sets it."),
    (
        "CLAUDE_CONFIG_DIR",
        "Where the client keeps a user's settings, commands and plugins (~/.claude if unset); `init` and `doctor` look there.",
    ),
    (
        "XDG_STATE_HOME, LOCALAPPDATA",
        "Where `init` remembers what it changed, so that `uninstall` can undo it to the byte, and `trust` what you trust (~/.local/state, on macOS ~/Library/Application Support, if unset).",
    ),
    ("BROWSER", "The program with which `ralph report --open` shows the page; otherwise the system's default."),
    ("PATH", "Where `init` and `doctor` look for ralph and the client."),
    ("GH_HOST", "Your own GitHub server: only this server gets the token in GH_ENTERPRISE_TOKEN."),
    ("NO_COLOR", "No colour, if it is set and not empty."),
    (
        "CLICOLOR, CLICOLOR_FORCE",
        "CLICOLOR=0 means no colour; CLICOLOR_FORCE=1 means colour in a pipe too. --color overrides all of these.",
    ),
    ("COLUMNS", "The width of a terminal that does not report it."),
    ("TERM", "`dumb` where a terminal shows lines only: `ralph watch` does not draw there."),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "The first that is set names the characters of the terminal. Unless that is UTF-8, `ralph watch` draws with plain ones.",
    ),
    ("SHELL", "The shell that `ralph completions` writes for, if none is named."),
    ("HOME, USERPROFILE", "The home folder, which is never taken for a project."),
    ("MANPAGER, PAGER", "What man shows the pages of `ralph man` with."),
];

/// The files in a project, and one of the user's.
pub(crate) const FILES: &[(&str, &str)] = &[
    (".claude/ralph-loop.local.md", "The loop: its limits, and the prompt. Edit it while it runs; edits count from the next stop on."),
    (".claude/ralph-loop.<name>.local.md", "Further loops, one for each session."),
    (
        ".claude/data/ralph-loops/current/feature_list.json",
        "A loop without a loop file: its features, each with `passes`. The agent is sent back while one is open.",
    ),
    (".claude/data/ralph-loops/current/progress.txt", "How far that loop is: Iteration, Max Iterations, Status."),
    (".claude/data/ralph-loops/current/hook.log", "A line for every decision about that loop."),
    ("ralph.toml", "What the project wants proven before a loop may end; its commands run once you trust it (`ralph trust`)."),
    (".ralph/journal/<id>.jsonl", "What happened to a loop, one line of JSON for each event."),
    (".ralph/reports/<id>.html", "The page of a loop, written when it ends, pauses or parks, and by `ralph report`."),
    (".ralph/archive/<id>.md", "The file of a loop that ended; `ralph resume` brings it back."),
    (".ralph/backup/<name>.md", "The version of a loop file before its last change."),
    (".ralph/backup/<list>", "The version of a list before `ralph item done` changed it."),
    (".ralph/hook.log", "One line for every hook call in this project."),
    (".ralph/logs/<time>-<gate>.log", "All that a gate's command printed; the oldest logs go by themselves."),
    (".ideal/worktree.yaml, .trellis/worktree.yaml", "`verify:`, the commands that a check agent must pass."),
    (
        ".ideal/.verify-state.json, .trellis/.verify-state.json, .ralph/verify-state.json",
        "How often each check agent was sent back, beside the settings that asked; the last one for ralph.toml.",
    ),
    (".ralph/rounds/<id>/", "All that each session of `ralph run` said, a file for each; the oldest go by themselves."),
    (".ralph/worktrees/<name>/", "A working tree for a loop of its own, on the branch ralph/<name>; `git worktree remove` takes it away."),
    ("refs/ralph/<id>/<n>", "In git: the files after each iteration, for `ralph diff` and `ralph rollback`; gone 30 days after the loop."),
    (".ralph/lock", "Held for some milliseconds at a time."),
    (".ralph/locks/<id>.lock", "Held while a loop's gates are measured."),
    (".ralph/locks/<id>.runner", "Held by `ralph run` while it has the loop."),
    ("~/.local/state/ralph/hook.log", "What hooks could not do, of all projects; `ralph doctor` shows the last lines."),
    ("~/.local/state/ralph/trust/<hash>.json", "The commands of one repository's files that you let run; `ralph trust --list` shows them."),
    (
        "~/.local/state/ralph/projects/<hash>/",
        "Ralph's state of one project, which `root` names; --all shows the loops of all of them. It is outside the project, where an agent could change it.",
    ),
    (
        "loops/<name>, ended/<id>",
        "In there: the last line of each loop's journal as ralph wrote it. Decisions go by this copy; a journal that differs is reported.",
    ),
    ("notices.json", "In there: lines that a person has yet to see."),
    ("last-ending.json", "In there: what the last ended loop was answered, for a second hook on the same stop."),
    ("compaction.json", "In there: how far a session with `compact_every` is, and what its settings were."),
    ("waiters/<id>.json", "In there: the process that waits in the background to wake a parked session."),
    ("verify/<folder>.json", "In there: how often each check agent was sent back."),
    ("~/.local/state/ralph/sessions/<id>", "The loop of a session, which hears of it if it loses the loop."),
    ("took/", "In there: how long the commands of gates took the last times; may be removed at any time."),
    ("verdicts/", "In there: what gates found on which tree; may be removed at any time."),
    (
        "baseline/<id>.json",
        "In there: what tests, gates and lists looked like when a loop began; `<id>.failures.jsonl` has what failed then, `<id>.counts.json` how many tests each gate ran at first.",
    ),
    (
        "subjects/<id>.json, forge/heads.json",
        "In there: which repositories and which pull request a loop is about, and since when head commits are known.",
    ),
    (
        "items/, fresh.json",
        "In there: which items were proven, and which reports were newer than their sources; may be removed at any time.",
    ),
];

/// The promises to programs.
pub(crate) const FOR_PROGRAMS: &str = "With --json standard output is JSON and nothing else: one document, for `ralph log` and `ralph run` one for each line. \
    start, steer, pause, resume and cancel print the loop as `ralph status --json` does. \
    If nothing could be done it is {\"error\":{\"kind\":…,\"message\":…}}, with the kind failed, usage, no-loop, capped, stalled, blocked, parked or interrupted; the exit codes are the same as without. \
    Unknown options and commands are answered on standard error only. \
    Fields may be added, but none is renamed or left out.";

/// Lines wider than this are hard to read on any terminal.
const WIDEST: usize = 100;

/// The commands in the order of their groups, for every list that is made of them.
pub(crate) fn in_order(command: Command) -> Command {
    let names: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    command.mut_subcommands(|sub| {
        let at = names.iter().position(|name| *name == sub.get_name()).unwrap_or(names.len());
        sub.display_order(at)
    })
}

/// Makes the commands' help fit the terminal, and the first page easy to find one's way on.
pub(crate) fn arranged(command: Command) -> Command {
    let width = ui::width().unwrap_or(WIDEST).min(WIDEST);
    let heading = *command.get_styles().get_header();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n{heading}Options:{heading:#}\n{{options}}{{after-help}}",
        commands(&command, width)
    );
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let short = format!("{examples}\n\n{}\n`ralph help COMMAND` says more about a command.", exit_codes());
    let long = format!(
        "{short} `ralph man` shows all of it as a page, with the variables and files that ralph uses.\n\nFor programs:\n  {FOR_PROGRAMS}"
    );
    command
        .help_template(template)
        .after_help(with_headings(&short, heading))
        .after_long_help(with_headings(&long, heading))
        .mut_subcommands(|sub| styled(sub, heading))
        .term_width(width)
}

/// A command whose examples have headings like those of its options.
fn styled(command: Command, heading: anstyle::Style) -> Command {
    let short = command.get_after_help().map(|text| with_headings(&text.to_string(), heading));
    let long = command.get_after_long_help().map(|text| with_headings(&text.to_string(), heading));
    let command = if let Some(text) = short { command.after_help(text) } else { command };
    if let Some(text) = long { command.after_long_help(text) } else { command }
}

/// Lines like `Examples:` as headings.
fn with_headings(text: &str, heading: anstyle::Style) -> String {
    let line = |l: &str| if is_heading(l) { format!("{heading}{l}{heading:#}\n") } else { format!("{l}\n") };
    text.lines().map(line).collect::<String>().trim_end().to_owned()
}

/// Whether a line of a command's closing text is a heading.
pub(crate) fn is_heading(line: &str) -> bool {
    line.ends_with(':') && !line.starts_with(' ')
}

pub(crate) fn exit_codes() -> String {
    let codes: Vec<String> = exit::EXIT_CODES.iter().map(|(code, word, _)| format!("{code} {word}")).collect();
    format!("Exit codes: {}", codes.join(", "))
}

/// The commands in their groups. Clap knows groups for options only, so this part of its template is made here, from the commands themselves.
fn commands(command: &Command, width: usize) -> String {
    let heading = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let shown: Vec<&Command> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
    let pad = shown.iter().map(|sub| columns(sub.get_name())).max().unwrap_or(0);
    let mut out = String::new();
    let mut group = |title: &str, subs: &[&Command]| {
        if subs.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{heading}{title}:{heading:#}");
        for sub in subs {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let line = format!("  {literal}{:<pad$}{literal:#}  {about}", sub.get_name());
            let _ = writeln!(out, "{}", wrap(&line, width, pad + 4));
        }
    };
    for (title, names) in GROUPS {
        let subs: Vec<&Command> = names.iter().filter_map(|name| shown.iter().find(|sub| sub.get_name() == *name).copied()).collect();
        group(title, &subs);
    }
    let known = |sub: &&&Command| GROUPS.iter().any(|(_, names)| names.contains(&sub.get_name()));
    let others: Vec<&Command> = shown.iter().filter(|sub| !known(sub)).copied().collect();
    group("Other commands", &others);
    out
}
