//! A loop in a working tree of its own is found again from the project around it.

use super::Runs;

/// Asks without a loop in the project itself: the exit code is 3, and the words say where one is.
#[track_caller]
fn told(runs: &Runs, args: &[&str], wanted: &str) {
    let out = runs.bed.ralph(args);
    assert_eq!(out.code, Some(3), "ralph {args:?}\n{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.contains(wanted), "ralph {args:?}\n{}", out.stdout);
}

#[test]
fn s4_6_a_loop_that_ended_in_its_working_tree_is_found_from_the_project() {
    let runs = Runs::new("touch ok\n");
    let out = runs.ends(0, &["Go", "--worktree", "--verify", "test -f ok"]);
    for words in ["`ralph -C .ralph/worktrees/main report`", "in .ralph/worktrees/main, on the branch ralph/main", "`git merge ralph/main`"]
    {
        assert!(out.stdout.contains(words), "{words}\n{}", out.stdout);
    }
    for command in ["log", "explain", "status", "diff"] {
        told(&runs, &[command], &format!("`ralph -C .ralph/worktrees/main {command}` (complete)"));
        assert_ne!(runs.bed.ralph(&["-C", ".ralph/worktrees/main", command]).stdout, "", "{command}");
    }
    let list = runs.bed.ralph_ok(&["list"]);
    assert!(list.contains(".ralph/worktrees/main  Ralph loop: complete"), "{list}");
    // There is nothing to pause or to cancel.
    for command in ["pause", "cancel"] {
        let out = runs.bed.ralph(&[command]);
        assert!(out.code == Some(3) && !out.stdout.contains("worktrees"), "{}", out.stdout);
    }
}

#[test]
fn s4_6_a_loop_that_rests_in_its_working_tree_is_found_from_the_project() {
    let runs = Runs::new("echo $N > work.txt\n");
    let out = runs.ends(0, &["Go", "--worktree=foo", "--completion-promise", "DONE", "--once"]);
    assert!(out.stdout.contains("`ralph run --continue --worktree=foo`"), "{}", out.stdout);
    told(&runs, &["run", "--continue"], "`ralph run --continue --worktree=foo` (paused)");
    told(&runs, &["pause"], "`ralph -C .ralph/worktrees/foo pause`");
    told(&runs, &["cancel"], "`ralph -C .ralph/worktrees/foo cancel`");
    told(&runs, &["steer", "Use", "tabs"], "`ralph -C .ralph/worktrees/foo steer \"…\"`");
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("`ralph run --continue --worktree=foo` goes on"), "{status}");
    runs.ends(0, &["--continue", "--worktree=foo", "--once"]);
    assert_eq!(runs.iterations(), [1, 2]);
}
