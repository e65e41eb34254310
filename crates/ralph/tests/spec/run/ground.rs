//! Where a run begins, and where it does not.

use super::{PATIENCE, Runs};
use crate::common::Bed;

use ralph_testkit::process::run_bounded;

/// An agent that nobody watches does not get a whole home folder, or the whole system, for its project; nothing is written there.
#[test]
fn s4_6_a_run_in_the_home_folder_or_at_the_top_is_refused() {
    let runs = Runs::new("touch ran\n");
    for (folder, words) in [(runs.bed.home().to_owned(), "your home folder"), ("/".into(), "the top folder of the system")] {
        let out = run_bounded(runs.command(&["Go", "--once"]).arg("-C").arg(&folder), b"", PATIENCE);
        assert_eq!(out.code, Some(12), "{}\n{}", out.stdout, out.stderr);
        assert!(out.stderr.contains(words) && out.stderr.contains("-C"), "{}", out.stderr);
        assert!(!folder.join(".ralph").exists() && !folder.join(".claude/ralph-loop.local.md").exists());
    }
    assert_eq!(runs.sessions(), 0);
}

/// Without git nothing can be kept; that is said once, before the first round.
#[test]
fn s4_6_a_run_without_git_says_what_will_be_missing() {
    let runs = Runs::of(Bed::new(), "echo $N > work.txt\n");
    let said = |out: &ralph_testkit::Output| out.stdout.matches("no git repository").count();
    assert_eq!(said(&runs.ends(0, &["Go", "--completion-promise", "DONE", "-n", "2"])), 1);
    assert_eq!(said(&runs.ends(0, &["--continue", "--once", "--no-snapshots"])), 0);
    assert_eq!(said(&Runs::new("true\n").ends(0, &["Go", "--completion-promise", "DONE", "--once"])), 0);
}

/// Whoever has no loop is told that, and not what is wrong with the client.
#[test]
fn s4_6_a_run_without_a_loop_says_so_first() {
    let bed = Bed::new();
    let out = bed.ralph(&["run", "--continue"]);
    assert!(out.code == Some(3) && out.stdout.contains("No active Ralph loop"), "{}\n{}", out.stdout, out.stderr);
}
