//! What happens to a run overnight: signals while gates run, limits that are used up, files that others touch, readers that go to sleep.

use std::{
    fs::File,
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{Runs, lives, until};
use crate::common::{Bed, LOOP};

const WORK: &str = "echo $N >> work.txt\n";

/// Waits until the test says so.
const SLOW: &str = "echo $N >> work.txt; while [ ! -f \"$OUT/go.$N\" ]; do sleep 0.05; done\n";

fn go(runs: &Runs, session: u64) {
    std::fs::write(runs.out(&format!("go.{session}")), "").unwrap();
}

fn gated(gate: &str, script: &str) -> Runs {
    let bed = Bed::in_git();
    bed.write("ralph.toml", format!("[[gate]]\nname = \"g\"\n{gate}\n"));
    bed.ralph_ok(&["trust", "--yes"]);
    bed.commit_all("begin");
    Runs::of(bed, script)
}

fn codes(runs: &Runs) -> Vec<String> {
    runs.ruled().into_iter().map(|(_, code)| code).collect()
}

/// Ctrl-C once finishes the round, and the gates are part of it, also once gates have run in this process.
#[test]
fn s4_6_an_interrupt_lets_the_gates_of_the_round_run() {
    let runs = gated("command = \"test -f done\"", SLOW);
    let running = runs.start(&["Go"]);
    go(&runs, 1);
    until("the second session", || runs.sessions() == 2);
    running.signal("INT");
    until("the word of it", || running.shown().contains("after this iteration"));
    runs.bed.write("done", "");
    go(&runs, 2);
    let (code, shown) = running.ends();
    assert_eq!((code, codes(&runs)), (Some(0), vec!["gate.failed".to_owned(), "gates.passed".to_owned()]), "{shown}");
}

/// A run under `nohup` outlives its terminal, and so do its gates.
#[test]
fn s4_6_with_nohup_gates_run_after_a_hangup() {
    let runs = gated("command = \"test -f done\"", SLOW);
    let shown = runs.out("shown");
    let command = runs.command(&["Go", "-n", "3"]);
    let args: Vec<_> = [command.get_program().to_owned()].into_iter().chain(command.get_args().map(ToOwned::to_owned)).collect();
    let mut nohup = runs.bed.command("nohup");
    nohup.args(args).stdin(Stdio::null()).stdout(File::create(&shown).unwrap()).stderr(Stdio::null());
    let mut child = nohup.spawn().unwrap();
    go(&runs, 1);
    until("the second session", || runs.sessions() == 2);
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    go(&runs, 2);
    go(&runs, 3);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", std::fs::read_to_string(&shown).unwrap());
    assert_eq!(codes(&runs), ["gate.failed"; 3]);
}

/// A runner that is killed while gates run: the next one ends them before it begins.
#[test]
fn s4_6_gates_of_a_dead_runner_are_ended() {
    let runs = gated("command = 'echo $$ >> \"$HOME/gates\"; test -f done || exec sleep 600'", WORK);
    let pids = || std::fs::read_to_string(runs.bed.home().join("gates")).unwrap_or_default();
    let mut running = runs.start(&["Go"]);
    until("the gate", || pids().ends_with('\n'));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let gate: u32 = pids().trim().parse().unwrap();
    assert!(lives(gate), "nobody ended it");
    runs.bed.write("done", "");
    let out = runs.ends(0, &["--continue"]);
    assert!(out.stdout.contains("1 process of its was still running and ended"), "{}", out.stdout);
    assert!(!lives(gate));
}

/// What is noted before the first session may take long: who does not want to wait leaves no loop for the next session that stops.
#[test]
fn s4_6_an_interrupt_before_the_first_session_puts_the_loop_to_rest() {
    let runs = gated("command = 'touch \"$HOME/begun\"; sleep 600'\nold_failures = \"allow\"", WORK);
    let running = runs.start(&["Go"]);
    until("the gate", || runs.bed.home().join("begun").exists());
    running.signal("INT");
    let (code, shown) = running.ends();
    assert_eq!((code, runs.sessions(), runs.bed.value("active")), (Some(130), 0, "false".to_owned()), "{shown}");
}

/// A session that did nothing until the loop's time was over is not tried again without any limit.
#[test]
fn s4_6_a_silent_session_does_not_outlive_the_loops_time() {
    let runs = Runs::new("exec sleep 600\n");
    let out = runs.ends(10, &["Go", "--completion-promise", "DONE", "--hours", "0.0004"]);
    assert!(out.stdout.contains("time limit"), "{}", out.stdout);
    assert_eq!((runs.iterations(), codes(&runs)), (vec![1], vec!["limit.time".to_owned()]));
}

/// A loop that is left behind with nothing left to spend gets no session.
#[test]
fn s4_6_a_loop_that_is_used_up_gets_no_session() {
    let runs = Runs::new("exec sleep 600\n");
    let mut running = runs.start(&["Go", "--completion-promise", "DONE", "--hours", "1"]);
    until("the session", || runs.sessions() == 1);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    runs.bed.write(LOOP, runs.bed.read(LOOP).replace("max_hours: 1", "max_hours: 0.0000003"));
    runs.ends(10, &["--continue"]);
    assert_eq!((runs.sessions(), codes(&runs)), (1, vec!["limit.time".to_owned()]));
}

/// A limit that is given to a loop that was left behind counts.
#[test]
fn s4_6_new_tokens_count_for_a_loop_that_is_left_behind() {
    let runs = Runs::new("if [ $N = 1 ]; then exec sleep 600; fi\n");
    let mut running = runs.start(&["Go", "--completion-promise", "DONE"]);
    until("the session", || runs.sessions() == 1);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    runs.ends(0, &["--continue", "--once", "--tokens", "5000"]);
    assert_eq!(runs.bed.value("max_tokens"), "5000");
}

/// A loop that replaces a cancelled one is not the run's: it is neither carried nor put to rest.
#[test]
fn s4_6_a_new_loop_in_the_place_of_the_old_one_is_left_alone() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    until("the session", || runs.sessions() == 1);
    runs.bed.ralph_ok(&["cancel"]);
    runs.bed.ralph_ok(&["start", "Another", "task", "--completion-promise", "DONE"]);
    go(&runs, 1);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("cancelled at iteration 1"), "{shown}");
    assert_eq!((runs.bed.value("active"), runs.bed.iteration(), runs.sessions()), ("true".to_owned(), 1, 1));
    assert_eq!(runs.bed.status()["status"], "waiting");
}

/// A loop file that somebody broke needs a person, and is not called cancelled.
#[test]
fn s4_6_a_file_that_cannot_be_read_is_named() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    until("the session", || runs.sessions() == 1);
    let text = runs.bed.read(LOOP);
    runs.bed.write(LOOP, "what is this?");
    go(&runs, 1);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(12), "{shown}");
    assert!(shown.contains("ralph-loop.local.md") && shown.contains("Fix it"), "{shown}");
    runs.bed.write(LOOP, text);
    go(&runs, 2);
    runs.ends(0, &["--continue", "--once"]);
    assert_eq!(runs.iterations(), [1, 1]);
}

/// t7: `git clean` in a session can take ralph's folder away. Ralph's own copy is elsewhere: the run goes on, and says so.
#[test]
fn s4_6_without_its_records_the_loop_goes_on() {
    let runs = Runs::new("if [ $N = 1 ]; then rm -rf .ralph; fi\necho $N > work.txt\n");
    let out = runs.ends(10, &["Go", "--completion-promise", "DONE", "--max-iterations", "3"]);
    assert!(out.stdout.contains("it was deleted") && !out.stdout.contains("cancelled"), "{}", out.stdout);
    assert_eq!(runs.sessions(), 3);
}

/// A list that the agent puts away for a while is no cancel of its loop.
#[test]
fn s4_6_a_list_may_be_away_while_a_session_works() {
    let bed = Bed::in_git();
    let list = ".claude/data/ralph-loops/current/feature_list.json";
    bed.write(list, json!({"features": [{"id": "A", "description": "a", "passes": false}]}).to_string());
    let script = format!("mv {list} \"$OUT/list\"; sleep 2; sed 's/\"passes\":false/\"passes\":true/' \"$OUT/list\" > {list}\n");
    let runs = Runs::of(bed, &script);
    runs.ends(0, &[]);
    assert_eq!(runs.sessions(), 1);
}

/// Another process that holds the lock for too long does not end a run.
#[test]
fn s4_6_a_lock_that_is_held_for_long_is_waited_for() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE", "--once"]);
    until("the session", || runs.sessions() == 1);
    let lock = File::options().write(true).open(runs.bed.path(".ralph/lock")).unwrap();
    lock.lock().unwrap();
    go(&runs, 1);
    std::thread::sleep(Duration::from_millis(3_500));
    lock.unlock().unwrap();
    let (code, shown) = running.ends();
    assert_eq!((code, runs.ruled().len()), (Some(0), 1), "{shown}");
}

/// Nobody reads what the run prints: the agent waits, but whoever wants the end does not.
#[test]
fn s4_6_a_full_pipe_does_not_keep_a_run_from_ending() {
    let runs = Runs::new("while true; do echo 0123456789012345678901234567890123456789; done\n");
    let mut command = runs.command(&["Go", "--completion-promise", "DONE"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until("the session", || runs.sessions() == 1);
    let log = || std::fs::metadata(runs.bed.files_in(".ralph/rounds")[0].join("0001-1.jsonl")).map_or(0, |meta| meta.len());
    until("a full pipe", || log() > 100_000);
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    until("the end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(runs.bed.value("active"), "false");
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(printed.contains("Iteration 1"), "{printed}");
}

/// An agent that says the same each time, and works: what it changed counts, not what it says.
#[test]
fn pains_11_silent_rounds_that_change_something_are_not_idle() {
    let runs = Runs::new("echo $N >> work.txt; echo Done.\n");
    runs.ends(10, &["Go", "--completion-promise", "DONE", "--idle-iterations", "2", "--max-iterations", "5"]);
    assert_eq!(runs.sessions(), 5);
}

/// A gate that waits for CI: no session is started meanwhile, `--no-wait` does not wait, and Ctrl-C ends the wait at once.
#[test]
fn s4_6_a_run_waits_for_ci_without_the_model() {
    let Some((bed, _, head)) = crate::hub::Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.ralph_ok(&["pause"]);
    bed.hub.pending(&head, "build");
    let sessions = bed.home().join("sessions");
    let agent = format!("cat > /dev/null; echo x >> '{}'", sessions.display());
    let run = |more: &[&str]| {
        let mut command = bed.asking_command(&[&["run", "--agent-cmd", &agent, "--continue"], more].concat());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env("RALPH_REPORT", "on");
        command.spawn().unwrap()
    };
    let count = || std::fs::read_to_string(&sessions).unwrap_or_default().len() / 2;
    assert_eq!((run(&["--no-wait"]).wait().unwrap().code(), count()), (Some(75), 1));
    assert_eq!(bed.files_in(".ralph/reports").len(), 1, "the page of a run that ended parked");
    let mut child = run(&[]);
    until("the wait", || bed.kinds().last().is_some_and(|kind| kind == "waiting"));
    let looked = bed.hub.count_of("PullRequestList");
    until("another look", || bed.hub.count_of("PullRequestList") > looked + 1);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let begun = Instant::now();
    until("the end", || child.try_wait().unwrap().is_some());
    assert!(begun.elapsed() < Duration::from_secs(30), "not before it looks again, and again: {:?}", begun.elapsed());
    assert_eq!((child.wait().unwrap().code(), count()), (Some(130), 2));
    let mut child = run(&["--once"]);
    until("the wait", || count() == 3 && bed.kinds().last().is_some_and(|kind| kind == "waiting"));
    bed.hub.failed(&head, "build", "error: the widget is broken\n");
    until("the end", || child.try_wait().unwrap().is_some());
    assert_eq!((child.wait().unwrap().code(), count(), bed.iteration()), (Some(0), 3, 2));
}
