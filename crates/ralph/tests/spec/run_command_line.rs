//! `ralph run`: what its command line takes, and what it refuses before anything is done.

use crate::common::Bed;

/// What makes no sense is answered with what would; nothing is started.
#[test]
fn s4_6_a_run_that_makes_no_sense_is_refused() {
    let bed = Bed::new();
    for (args, why) in [
        (vec!["Go on", "--continue"], "name only the loop"),
        (vec!["--continue", "--stdin"], "cannot be used with"),
        (vec!["--continue", "--verify", "true"], "cannot be used with"),
        (vec!["Go", "--once", "-n", "3"], "cannot be used with"),
        (vec!["Go", "--quiet", "--json"], "cannot be used with"),
        (vec!["Go", "--agent", "claude", "--agent-cmd", "cat"], "cannot be used with"),
        (vec!["Go", "--agent-cmd", "cat", "--permission-mode", "auto"], "cannot be used with"),
        (vec!["Go", "-n", "0"], "must be a whole number from 1 on"),
        (vec!["Go", "--iterations", "-2"], "must be a whole number from 1 on"),
        (vec!["Go", "--rounds", "-2"], "must be a whole number from 1 on"),
        (vec!["Go", "--stall-rounds", "few"], "--stall-iterations"),
        (vec!["Go", "--permission-mode", "plan"], "may change nothing"),
        (vec!["Go", "--permission-mode", "acceptedits"], "'acceptEdits'"),
        (vec!["Go", "--agent", "other"], "claude"),
        (vec!["Go", "--notify", "pigeon"], "use desktop, terminal, an address"),
        (vec!["Go", "--notify", "cmd: "], "no command after cmd:"),
        (vec!["Go", "--worktree=../up"], "use up to 64 letters"),
        (vec!["--completion-promise", "DONE"], "--promise describes a new loop"),
        (vec!["--verify", "true", "--once"], "--verify describes a new loop"),
        (vec![" "], "there is no prompt"),
    ] {
        let out = bed.ralph(&[vec!["run"], args.clone()].concat());
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?}: {out:?}");
        assert!(out.stderr.contains(why), "{args:?}: {}", out.stderr);
    }
    assert!(!bed.path(".claude/ralph-loop.local.md").exists() && !bed.path(".ralph").exists());
    let out = bed.ralph(&["run", "--json", "--verify", "true"]);
    let error: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!((out.code, &error["error"]["kind"]), (Some(2), &"usage".into()), "programs find it in JSON: {out:?}");
}

/// The options stand under what they are about.
#[test]
fn s4_6_the_help_has_its_options_in_groups() {
    let help = Bed::new().ralph_ok(&["run", "--help"]);
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    let groups = [
        "\nThe loop:\n",
        "      --max-iterations",
        "      --continue\n",
        "--no-wait",
        "\nThe sessions:\n",
        "--permission-mode",
        "--worktree[=<NAME>]",
    ];
    let more = ["\nWhat is shown:\n", "      --json", "\nExamples:\n"];
    let places: Vec<usize> = groups.iter().chain(&more).map(|text| at(text)).collect();
    assert!(places.is_sorted(), "{places:?}: {help}");
    assert!(!help.contains("plan,") && help.contains("bypassPermissions"), "{help}");
}
