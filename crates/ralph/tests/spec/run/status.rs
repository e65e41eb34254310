//! What `ralph status` says of a loop that a run carries, or has left.

use super::{Runs, brakes::with_settings, lives, until};

const SLOW: &str = "echo \"$$\" > \"$OUT/pid\"; setsid sleep 600 & sleep 600\n";

/// A loop whose runner was killed in its first round, and the agent's process, which goes on.
fn left_behind() -> (Runs, u32) {
    let runs = Runs::new(SLOW);
    let mut running = runs.start(&["Go", "--completion-promise", "DONE"]);
    until("a session", || runs.noted("pid").ends_with('\n'));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let agent: u32 = runs.noted("pid").trim().parse().unwrap();
    assert!(lives(agent), "nobody ended the agent");
    (runs, agent)
}

#[test]
fn s4_6_a_loop_that_a_run_left_says_why_and_goes_on_with_a_run() {
    let runs = Runs::new("exit 7\n");
    let out = runs.ends(12, &["Go", "--completion-promise", "DONE"]);
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("`ralph run --continue` goes on") && !status.contains("ralph resume"), "{status}");
    assert!(!status.contains("the first one that stops here"), "{status}");
    let why = runs.bed.status()["why"].as_str().unwrap().to_owned();
    assert!(why.contains('7') && status.contains(&why) && out.stdout.contains(&why), "{why}\n{status}\n{}", out.stdout);
    // u6: the next session that stops here may be about something else, so that has to be asked for.
    let refused = runs.bed.ralph(&["resume"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("`ralph run --continue` goes on with it"), "{refused:?}");
    assert_eq!(runs.bed.value("active"), "false");
    runs.bed.ralph_ok(&["resume", "--session"]);
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("the first one that stops here") && runs.bed.status()["why"].is_null(), "{status}");
}

#[test]
fn s4_6_a_pause_of_a_run_goes_on_with_a_run() {
    let runs = Runs::new("echo $N > work.txt; while [ ! -f \"$OUT/go\" ]; do sleep 0.05; done\n");
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    until("a session", || runs.sessions() == 1);
    let said = runs.bed.ralph_ok(&["pause"]);
    assert!(said.contains(&format!("`ralph run` (pid {}) ends after this iteration", running.pid())), "{said}");
    assert!(said.contains("`ralph run --continue` goes on"), "{said}");
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("`ralph resume` takes the pause back"), "{status}");
    std::fs::write(runs.out("go"), "").unwrap();
    running.ends();
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("`ralph run --continue` goes on") && !status.contains("ralph resume"), "{status}");
}

/// While a runner rests, it is the one that goes on, and the time is told.
#[test]
fn s4_6_a_runner_that_rests_goes_on_by_itself() {
    let runs = with_settings("[run]\ncooldown = \"30m\"\n", "true\n");
    let running = runs.start(&["Go", "--completion-promise", "DONE", "--stall-iterations", "1"]);
    until("the rest", || runs.is_live() && runs.bed.status()["status"] == "parked");
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("`ralph run` goes on by itself, in 29") || status.contains("`ralph run` goes on by itself, in 30"), "{status}");
    assert_eq!(runs.bed.status()["waits"]["by"], "runner");
    running.signal("TERM");
    running.ends();
}

/// A cancel ends what a dead runner left running, and says so.
#[test]
fn s4_6_a_cancel_after_kill_9_ends_what_is_left() {
    let (runs, agent) = left_behind();
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(
        status.contains("`ralph run` has ended: `ralph run --continue` goes on") && !status.contains("its session has ended"),
        "{status}"
    );
    let said = runs.bed.ralph_ok(&["cancel"]);
    assert!(said.contains("processes that its `ralph run` had left running were ended"), "{said}");
    assert!(!lives(agent) && !runs.is_live());
}

#[test]
fn s4_6_a_pause_after_kill_9_ends_what_is_left() {
    let (runs, agent) = left_behind();
    let said = runs.bed.ralph_ok(&["pause"]);
    assert!(said.contains("left running were ended") && said.contains("`ralph run --continue` goes on"), "{said}");
    assert!(!lives(agent) && runs.is_live());
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("`ralph run --continue` goes on"), "{status}");
}
