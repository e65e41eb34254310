//! The parts of `--help` and the manual that are about ralph as a whole: groups of commands, exit codes, variables, files. The rest is with each command.

use std::fmt::Write as _;

use clap::{
    Arg, Command,
    error::{ContextKind, ContextValue},
};

use crate::{
    exit,
    term::width::{columns, wrap},
    ui,
};

/// The commands of the first day, in the order of `ralph --help`.
const FIRST: [&str; 8] = ["init", "run", "start", "status", "watch", "report", "cancel", "doctor"];

/// The commands by what people want to do. One that stands nowhere here is shown at the end.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start and control", &["start", "run", "fleet", "steer", "pause", "resume", "cancel", "rollback"]),
    ("See", &["status", "watch", "report", "log", "explain", "diff", "pr", "statusline"]),
    ("Prove", &["gate", "item", "trust"]),
    ("Set up", &["init", "doctor", "demo", "uninstall", "completions", "man", "help"]),
    ("For agents", &["hook"]),
    ("For other programs", &["bundle"]),
];

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
    (
        "RALPH_AGENTS_SHELL, OPENCODE_PID",
        "Set where opencode's agent runs something; the first by ralph's plugin. There ralph refuses what only a person may do.",
    ),
    ("RALPH_STATUSLINE", "Set for the command of `ralph statusline --after`; under it `ralph statusline` is silent."),
    ("RALPH_LOG", "A file that gets a line for every hook call, in projects without a loop too."),
    (
        "RALPH_GATES_AT_ONCE",
        "How many commands of gates may run at a time on this machine, over all loops; a fleet sets it from `gates_at_once`.",
    ),
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
    ("container", "Set in containers by podman and systemd: `bypassPermissions` gets no warning there."),
    ("IS_SANDBOX", "1 where the client may be run by root without asking for permissions."),
    ("SUDO_UID", "Whose repositories root may read, as in git."),
    ("XDG_CONFIG_HOME", "Where git keeps your own configuration (git/config, git/ignore), if not in ~/.config."),
    ("XDG_CACHE_HOME", "Where a fleet keeps its clones (ralph/fleets), if not in ~/.cache."),
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
    ("TZ", "The zone of the times that people read; the system's own, if it is unset. Journals, logs and JSON are in UTC."),
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
    ("previous/<name>", "In there: the copy before, for the case that a power cut breaks the last one."),
    ("notices.json", "In there: lines that a person has yet to see."),
    ("last-ending.json", "In there: what the last ended loop was answered, for a second hook on the same stop."),
    ("compaction.json", "In there: how far a session with `compact_every` is, and what its settings were."),
    ("waiters/<id>.json", "In there: the process that waits in the background to wake a parked session."),
    ("verify/<folder>.json", "In there: how often each check agent was sent back."),
    (
        "~/.local/state/ralph/repositories/<hash>/",
        "What gates with any_clone found, for every clone of a repository; may be removed at any time. In turns/ beside it: whose turn it is with what gates share.",
    ),
    ("~/.local/state/ralph/sessions/<id>", "The loop of a session, which hears of it if it loses the loop."),
    ("took/", "In there: how long the commands of gates took the last times; may be removed at any time."),
    ("tests/", "In there: which tests the files of which tree hold; may be removed at any time."),
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

/// Makes the commands' help fit the terminal, and the first page fit one screen.
pub(crate) fn arranged(command: Command) -> Command {
    let first = |command: &Command| shown(command, &[("Commands", FIRST.to_vec())]);
    paged(command, first, |_| {
        let rows = [
            ("ralph", "where this project stands, and what comes next"),
            ("ralph help COMMAND", "one command, with examples"),
            ("ralph help --all", "all other commands; `ralph man` has everything"),
        ];
        rows.map(|(line, help)| format!("{line:<20}{help}")).join("\n")
    })
}

/// The page that has every command, and what all of them share.
fn complete(command: Command) -> Command {
    let groups = |command: &Command| shown(command, &sections(command));
    paged(command, groups, |command| {
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let codes: Vec<String> = exit::EXIT_CODES.iter().map(|(code, word, _)| format!("{code} {word}")).collect();
        let codes = codes.join(", ");
        format!(
            "{examples}\n\nExit codes: {codes}\n\n`ralph help COMMAND` says more about a command. `ralph man` shows all of it as a page, with the variables and files that \
             ralph uses.\n\nFor programs:\n  {FOR_PROGRAMS}"
        )
    })
}

/// The root command with these sections of commands, and this text below its options.
fn paged(command: Command, sections: impl Fn(&Command) -> String, after: impl Fn(&Command) -> String) -> Command {
    let heading = *command.get_styles().get_header();
    let about = wrap(&command.get_about().map(|about| format!("{about}.")).unwrap_or_default(), width(), 0);
    let template = format!(
        "{about}\n\n{{usage-heading}} {{usage}}\n{}\n{heading}Options:{heading:#}\n{}{{after-help}}",
        sections(&command),
        options(&command)
    );
    let after = with_headings(&after(&command), heading);
    command
        .help_template(template)
        .after_help(after.clone())
        .after_long_help(after)
        .mut_subcommands(|sub| styled(sub, heading))
        .term_width(width())
}

/// Prints the help of a command of this tree, or with `all` that of every one in short; otherwise the first page.
pub(crate) fn show(tree: Command, name: Option<&str>, all: bool) {
    let root = if all { complete(tree) } else { arranged(tree) };
    let words = ["ralph"].into_iter().chain(name).chain(["--help"]);
    if let Err(help) = root.try_get_matches_from(words) {
        let _ = help.print();
    }
}

/// Clap puts the closest of its suggestions last.
pub(crate) fn with_the_closest_first(mut error: clap::Error) -> clap::Error {
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        if let Some(ContextValue::Strings(names)) = error.get(kind).cloned() {
            error.insert(kind, ContextValue::Strings(names.into_iter().rev().collect()));
        }
    }
    error
}

fn width() -> usize {
    ui::width().unwrap_or(WIDEST).min(WIDEST)
}

/// A command whose examples have headings like those of its options.
fn styled(command: Command, heading: anstyle::Style) -> Command {
    let short = command.get_after_help().map(|text| with_headings(&text.to_string(), heading));
    let long = command.get_after_long_help().map(|text| with_headings(&text.to_string(), heading));
    let command = if let Some(text) = short { command.after_help(text) } else { command };
    if let Some(text) = long { command.after_long_help(text) } else { command }
}

/// Lines like `Examples:` as headings. What does not fit in a line goes on below its own text.
fn with_headings(text: &str, heading: anstyle::Style) -> String {
    let line = |l: &str| if is_heading(l) { format!("{heading}{l}{heading:#}\n") } else { wrap(l, width(), hang(l)) + "\n" };
    text.lines().map(line).collect::<String>().trim_end().to_owned()
}

/// Where a line goes on: below its second column, or further in than an example without one; a sentence goes on at the margin.
fn hang(line: &str) -> usize {
    let indent = line.len() - line.trim_start().len();
    let text = &line[indent..];
    match text.find("  ") {
        Some(gap) => indent + columns(&text[..gap]) + text[gap..].len() - text[gap..].trim_start().len(),
        None if indent > 0 => indent + 4,
        None => 0,
    }
}

/// Whether a line of a command's closing text is a heading.
pub(crate) fn is_heading(line: &str) -> bool {
    line.ends_with(':') && !line.starts_with(' ')
}

/// Commands under a title. Clap knows groups for options only, so this part of its template is made here, from the commands themselves.
type Section<'a> = (&'a str, Vec<&'a str>);

fn sections(command: &Command) -> Vec<Section<'_>> {
    let shown = || command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
    let mut all: Vec<Section<'_>> = GROUPS.iter().map(|(title, names)| (*title, names.to_vec())).collect();
    let known = |name: &&str| GROUPS.iter().any(|(_, names)| names.contains(name));
    all.push(("Other commands", shown().filter(|name| !known(name)).collect()));
    all.retain(|(_, names)| !names.is_empty());
    all
}

/// Sections of commands, with the descriptions below each other.
fn shown(command: &Command, sections: &[Section<'_>]) -> String {
    let (heading, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let pad = sections.iter().flat_map(|(_, names)| names).map(|name| columns(name)).max().unwrap_or(0);
    let mut out = String::new();
    for (title, names) in sections {
        let _ = writeln!(out, "\n{heading}{title}:{heading:#}");
        for sub in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let line = format!("  {literal}{:<pad$}{literal:#}  {about}", sub.get_name());
            let _ = writeln!(out, "{}", wrap(&line, width(), pad + 4));
        }
    }
    out
}

/// The options of every command, a line for each.
fn options(command: &Command) -> String {
    let literal = command.get_styles().get_literal();
    let mut built = command.clone();
    built.build();
    let rows: Vec<(String, String)> = built.get_arguments().filter(|arg| !arg.is_hide_set()).map(option).collect();
    let pad = rows.iter().map(|(spelled, _)| columns(spelled)).max().unwrap_or(0);
    let line =
        |(spelled, help): &(String, String)| wrap(&format!("  {literal}{spelled:<pad$}{literal:#}  {help}"), width(), pad + 4) + "\n";
    rows.iter().map(line).collect::<String>().trim_end().to_owned()
}

/// `-C, --directory <DIR>`, and its help.
fn option(arg: &Arg) -> (String, String) {
    let short = arg.get_short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let long = arg.get_long().unwrap_or_default();
    let value = if arg.get_action().takes_values() {
        arg.get_value_names().and_then(<[_]>::first).map(|name| format!(" <{name}>")).unwrap_or_default()
    } else {
        String::new()
    };
    // This page is the same for `-h` and `--help`.
    let help = if long == "help" { "Print help".to_owned() } else { arg.get_help().map(ToString::to_string).unwrap_or_default() };
    (format!("{short}--{long}{value}"), help)
}
