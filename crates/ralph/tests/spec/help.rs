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
        assert_eq!(bed.ralph_ok(&["help", &command]), long, "{command}");
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

/// Each visible command stands once on the first page, in one of its groups.
#[test]
fn the_first_page_has_every_command_in_a_group() {
    let bed = Bed::new();
    let page = bed.ralph_ok(&["--help"]);
    for title in ["Start and control:", "See:", "Prove:", "Set up:", "For agents:", "Options:", "Examples:"] {
        assert!(page.lines().any(|l| l == title), "{title}: {page}");
    }
    assert!(!page.contains("Other commands"), "a command that stands in no group of help.rs: {page}");
    for command in commands(&bed) {
        let line = format!("  {command} ");
        assert_eq!(page.lines().filter(|l| l.starts_with(&line)).count(), 1, "{command}: {page}");
    }
    let codes = "Exit codes: 0 done, 1 failed, 2 usage, 3 no loop, 10 capped, 11 stalled, 12 blocked, 75 parked, 130 interrupted ";
    assert!(page.replace('\n', " ").contains(codes), "{page}");
    assert!(bed.ralph_ok(&["--version"]).starts_with("ralph "));
    let order: Vec<usize> = ["  start ", "  status ", "  completions ", "  hook "].iter().map(|c| page.find(c).unwrap()).collect();
    assert!(order.is_sorted(), "{page}");
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
