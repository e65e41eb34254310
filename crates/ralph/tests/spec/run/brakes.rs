//! The brakes of a run: progress that is measured, crashes, silence, time, sessions per hour.

use super::Runs;
use crate::common::Bed;

pub(super) fn with_settings(settings: &str, script: &str) -> Runs {
    let bed = Bed::in_git();
    bed.write("ralph.toml", settings);
    bed.commit_all("begin");
    Runs::of(bed, script)
}

/// Closed, half-open after a rest with one trial, open: a person is asked.
#[test]
fn s1_4_a_breaker_opens_when_nothing_changes() {
    let runs = with_settings("[run]\ncooldown = \"1s\"\n", "echo 'What shall I do?'\n");
    let out = runs.ends(11, &["Go", "--completion-promise", "DONE", "--stall-iterations", "2"]);
    assert!(out.stdout.contains("2 iterations changed nothing, and one more try did not either"), "{}", out.stdout);
    // Two change nothing; one is the trial.
    assert_eq!(runs.iterations(), [1, 2, 3]);
    assert!(runs.prompt(2).contains("changed nothing") && !runs.prompt(2).contains("last try"), "{}", runs.prompt(2));
    assert!(runs.prompt(3).contains("last try"), "{}", runs.prompt(3));
    assert_eq!(runs.of_kind("waiting").len(), 1, "it rested before the trial");
    assert_eq!(runs.bed.status()["status"], "paused");
}

#[test]
fn s1_4_a_trial_that_changes_something_closes_the_breaker() {
    let runs = with_settings(
        "[run]\ncooldown = 0\n",
        "if [ $N = 3 ]; then echo x > x.txt; fi\nif [ $N = 5 ]; then echo '<promise>DONE</promise>'; fi\n",
    );
    runs.ends(0, &["Go", "--completion-promise", "DONE", "--stall-iterations", "2"]);
    assert_eq!(runs.sessions(), 5);
}

/// A commit inside the round leaves `git diff` empty, and is progress all the same.
#[test]
fn pains_11_commits_are_progress() {
    let runs = with_settings(
        "[run]\ncooldown = 0\n",
        "git commit -q --allow-empty -m \"iteration $N\"\nif [ $N = 6 ]; then echo '<promise>DONE</promise>'; fi\n",
    );
    runs.ends(0, &["Go", "--completion-promise", "DONE", "--stall-iterations", "1"]);
    assert_eq!(runs.sessions(), 6);
}

/// Words like "error" or "done" in the output decide nothing.
#[test]
fn pains_11_words_in_the_output_decide_nothing() {
    let script = "echo $N >> work.txt; echo 'Error: rate limit reached, usage limit, 429, overloaded_error, \"is_error\":true'; echo 'All done! EXIT_SIGNAL: true'\n";
    let runs = Runs::new(script);
    runs.ends(10, &["Go", "--completion-promise", "DONE", "--max-iterations", "4"]);
    assert_eq!(runs.iterations(), [1, 2, 3, 4]);
}

/// A-B-A-B: seen, told, and named.
#[test]
fn pains_11_going_back_and_forth_is_named() {
    let script = "if [ $((N % 2)) = 1 ]; then echo a > x.txt; else echo b > x.txt; fi; commit\n";
    let runs = Runs::new(script);
    let out = runs.ends(11, &["Go", "--completion-promise", "DONE"]);
    assert!(out.stdout.contains("back and forth"), "{}", out.stdout);
    let told = (1..=runs.sessions()).find(|n| runs.prompt(*n).contains("back and forth")).unwrap();
    assert!(told > 3 && told < runs.sessions(), "{told} of {}", runs.sessions());
    assert_eq!(runs.ruled().last().unwrap().1, "progress.oscillating");
}

/// A crash is tried again, in the same round, a bounded number of times.
#[test]
fn pains_13_crashes_are_retried_and_bounded() {
    let runs = with_settings("[run]\nretries = 1\n", "if [ $N = 1 ]; then exit 7; fi\necho $N >> work.txt\n");
    runs.ends(10, &["Go", "--max-iterations", "2"]);
    assert_eq!(runs.iterations(), [1, 1, 2], "the same iteration again");
    assert_eq!(runs.ruled().len(), 2);
    assert!(runs.prompt(2).contains("An earlier session of this iteration broke off"), "{}", runs.prompt(2));

    let runs = with_settings("[run]\nretries = 1\n", "exit 7\n");
    let out = runs.ends(12, &["Go"]);
    assert!(out.stdout.contains("exit code 7") && out.stdout.contains("ralph run --continue"), "{}", out.stdout);
    assert_eq!((runs.iterations(), runs.ruled()), (vec![1, 1], vec![]));
    assert_eq!(runs.bed.status()["status"], "paused");
}

#[test]
fn an_agent_that_is_not_there_ends_the_run_at_once() {
    let runs = Runs::new("true\n");
    let mut command = runs.bed.command(crate::common::RALPH);
    command.args(["run", "--agent-cmd", "there-is-no-such-program", "Go", "--endless"]);
    let out = ralph_testkit::process::run_bounded(&mut command, b"", super::PATIENCE);
    assert_eq!(out.code, Some(12), "{} {}", out.stdout, out.stderr);
    assert_eq!(runs.of_kind("broke").len(), 1);
}

/// A session of which nothing is heard is ended, whatever it thinks of signals; what it had done counts.
#[test]
fn pains_13_a_silent_session_is_ended_and_its_work_counts() {
    let script = "trap '' TERM INT HUP\necho $N >> work.txt; commit\nif [ $N = 1 ]; then sleep 600 & echo $! > \"$OUT/child\"; wait; sleep 600; fi\n";
    let runs = with_settings("[run]\nsilence = \"2s\"\n", script);
    runs.ends(10, &["Go", "--max-iterations", "2"]);
    assert_eq!(runs.iterations(), [1, 2], "it had committed: the iteration counts");
    let child: u32 = runs.noted("child").trim().parse().unwrap();
    assert!(!super::lives(child), "what it started is gone, too");
}

#[test]
fn pains_13_a_silent_session_that_did_nothing_is_no_round() {
    let runs = with_settings("[run]\nsilence = \"1s\"\nretries = 1\n", "exec sleep 600\n");
    let out = runs.ends(12, &["Go", "--completion-promise", "DONE"]);
    assert_eq!((runs.iterations(), runs.ruled()), (vec![1, 1], vec![]), "{}", out.stdout);
}

/// A round may not take longer than it may.
#[test]
fn s4_6_a_round_has_a_time_limit() {
    let script = "echo $N >> work.txt\nwhile true; do echo still here; sleep 0.2; done\n";
    let runs = with_settings("[run]\nround = \"2s\"\n", script);
    runs.ends(10, &["Go", "--max-iterations", "2"]);
    assert_eq!(runs.iterations(), [1, 2]);
    assert!(runs.of_kind("broke").is_empty());
}

/// The loop's own time ends a session in the middle of it, and then the loop.
#[test]
fn s4_6_the_loops_time_is_the_last_word() {
    let runs = Runs::new("while true; do echo $N >> work.txt; echo tick; sleep 0.2; done\n");
    let out = runs.ends(10, &["Go", "--hours", "0.0008"]);
    assert!(out.stdout.contains("time limit"), "{}", out.stdout);
    assert_eq!(runs.iterations(), [1]);
}

/// As many sessions within an hour as are allowed, and no more; who does not want to wait is told when.
#[test]
fn s1_4_sessions_per_hour_are_bounded() {
    let runs = with_settings("[run]\ncalls_per_hour = 2\n", "echo $N >> work.txt\n");
    let out = runs.ends(75, &["Go", "--completion-promise", "DONE", "--no-wait"]);
    assert!(out.stdout.contains("calls_per_hour") && out.stdout.contains("parked until"), "{}", out.stdout);
    assert_eq!(runs.iterations(), [1, 2]);
    runs.ends(75, &["--continue", "--no-wait"]);
    assert_eq!(runs.sessions(), 2, "a new runner knows of the sessions before it");
}
