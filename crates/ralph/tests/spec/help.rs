//! Help: every command explains itself, and the first page leads to all of them.

use crate::common::Bed;

/// The names of all commands, hidden ones too: the completion script for bash knows them all.
pub(crate) fn commands(bed: &Bed) -> Vec<String> {
    let script = bed.ralph_ok(&["completions", "bash"]);
    let name = |line: &str| line.trim().strip_prefix("ralph,")?.strip_suffix(')').map(str::to_owned);
    let names: Vec<String> = script.lines().filter_map(name).filter(|name| name != "help").collect();
    assert!(names.len() >= 11, "{names:?}");
    names
}

/// Every command has a summary, and an example in its short and in its long help, however it is asked for.
#[test]
fn every_command_has_a_summary_and_an_example() {
    let bed = Bed::new();
    for command in commands(&bed) {
        let (long, short) = (bed.ralph_ok(&[&command, "--help"]), bed.ralph_ok(&[&command, "-h"]));
        // `ralph-fleet` has options of its own; what they are for is the same.
        let whole = bed.ralph_ok(&["help", &command]);
        let compared = |help: &str| if command == "fleet" { help.split("\nOptions:").next().unwrap().to_owned() } else { help.to_owned() };
        assert_eq!(compared(&whole), compared(&long), "{command}");
        let summary = long.lines().next().unwrap();
        assert!((10..=90).contains(&summary.len()) && !summary.starts_with("Usage"), "{command}: {summary}");
        assert!(short.starts_with(summary), "{command}: {short}");
        assert!(short.lines().count() <= long.lines().count(), "{command}: {short}");
        for help in [&long, &short] {
            let example = help.split("\nExample").nth(1).unwrap_or_else(|| panic!("{command} has no example: {help}"));
            assert!(example.contains("ralph"), "{command}: {example}");
        }
    }
}

/// The first page fits one screen, and has the commands of the first day (u1).
#[test]
fn u1_help_fits_a_screen() {
    let bed = Bed::new();
    let screen = "\
Keeps a coding agent working until the work is proven done.

Usage: ralph [OPTIONS] [COMMAND]

Commands:
  init    Set up ralph: the checks of this project, and Claude Code
  run     Run a loop in fresh sessions, a new one for each iteration
  start   Start a loop in this project
  status  Show where the loops of this project stand
  watch   Watch a loop as it goes: limits, gates, what the agent does
  report  Write one page about a loop: how it went, what is proven
  cancel  End a loop now; its file moves to the archive
  doctor  Check the setup and suggest fixes

Options:
  -C, --directory <DIR>  The project's folder [default: found from here upwards]
      --color <WHEN>     When to use colour: auto, always or never
  -h, --help             Print help
  -V, --version          Print version

ralph               where this project stands, and what comes next
ralph help COMMAND  one command, with examples
ralph help --all    all other commands; `ralph man` has everything
";
    assert!(screen.lines().count() <= 24 && screen.lines().all(|line| line.len() <= 80), "{screen}");
    for args in [&["--help"][..], &["-h"], &["help"]] {
        assert_eq!(bed.ralph_ok(args), screen, "{args:?}");
    }
}

/// Each visible command stands once on the page of all commands, in one of its groups; names that another command took over are hidden, and work.
#[test]
fn u1_all_commands_are_in_groups() {
    let bed = Bed::new();
    let page = bed.ralph_ok(&["help", "--all"]);
    for title in
        ["Start and control:", "See:", "Prove:", "Set up:", "For agents:", "For other programs:", "Options:", "Examples:", "For programs:"]
    {
        assert!(page.lines().any(|l| l == title), "{title}: {page}");
    }
    assert!(!page.contains("Other commands"), "a command that stands in no group of help.rs: {page}");
    for command in commands(&bed) {
        let line = format!("  {command} ");
        let times = usize::from(!HIDDEN.contains(&command.as_str()));
        assert_eq!(page.lines().filter(|l| l.starts_with(&line)).count(), times, "{command}: {page}");
    }
    let codes = "Exit codes: 0 done, 1 failed, 2 usage, 3 no loop, 10 capped, 11 stalled, 12 blocked, 75 parked, 130 interrupted ";
    assert!(page.replace('\n', " ").contains(codes), "{page}");
    assert!(bed.ralph_ok(&["--version"]).starts_with("ralph "));
    let order: Vec<usize> = ["  start ", "  status ", "  completions ", "  hook "].iter().map(|c| page.find(c).unwrap()).collect();
    assert!(order.is_sorted(), "{page}");
}

/// Names of commands that are options of others now.
pub(crate) const HIDDEN: [&str; 5] = ["list", "phase", "wait", "plugin", "notify"];

/// The closest name comes first.
#[test]
fn u1_the_closest_suggestion_comes_first() {
    let bed = Bed::new();
    let out = bed.ralph(&["stat"]);
    let at = |name: &str| out.stderr.find(&format!("'{name}'"));
    assert!(at("start") < at("statusline") && at("start").is_some(), "{}", out.stderr);
}

/// Who mistypes is told what they may have meant.
#[test]
fn a_mistyped_command_or_option_is_answered_with_the_right_one() {
    let bed = Bed::new();
    for (args, meant) in [
        (vec!["statsu"], "'status'"),
        (vec!["cancle"], "'cancel'"),
        (vec!["status", "--jsno"], "'--json'"),
        (vec!["start", "x", "--max-iteration", "3"], "'--max-iterations'"),
        (vec!["completions", "bsh"], "'bash'"),
        (vec!["man", "strat"], "'start'"),
        (vec!["status", "--color", "allways"], "'always'"),
    ] {
        let out = bed.ralph(&args);
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(out.stderr.contains("tip: ") && out.stderr.contains(meant), "{args:?}: {}", out.stderr);
    }
}
