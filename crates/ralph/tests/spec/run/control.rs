//! A run while it works: signals, other terminals, other runners, other carriers.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{Runs, lives, until};
use crate::common::{LOOP, ME};

const SLOW: &str = "echo \"$$\" > \"$OUT/pid\"; echo $N >> work.txt; while [ ! -f \"$OUT/go\" ]; do sleep 0.05; done; rm \"$OUT/go\"\n";

fn begun(runs: &Runs, sessions: u64) {
    until("a session", || runs.sessions() == sessions && runs.out("pid").exists());
}

fn go(runs: &Runs) {
    fs::write(runs.out("go"), "").unwrap();
    until("the session's end", || !runs.out("go").exists());
}

/// Ctrl-C once: the round is finished, and the loop rests.
#[test]
fn s4_6_one_interrupt_finishes_the_round() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    begun(&runs, 1);
    running.signal("INT");
    until("the word of it", || running.shown().contains("after this iteration"));
    go(&runs);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert_eq!((runs.ruled().len(), runs.bed.iteration(), runs.bed.value("active")), (1, 2, "false".to_owned()));
}

/// Twice: now. The round begins again later.
#[test]
fn s4_6_two_interrupts_end_it_now() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    begun(&runs, 1);
    let agent: u32 = runs.noted("pid").trim().parse().unwrap();
    running.signal("INT");
    until("the word of it", || running.shown().contains("after this iteration"));
    running.signal("INT");
    let (code, shown) = running.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert!(!lives(agent));
    assert_eq!((runs.ruled().len(), runs.bed.iteration(), runs.bed.value("active")), (0, 1, "false".to_owned()));
}

/// The system's wish, and a terminal that is closed.
#[test]
fn s4_6_a_request_to_end_is_clean() {
    for signal in ["TERM", "HUP"] {
        let runs = Runs::new(SLOW);
        let running = runs.start(&["Go", "--completion-promise", "DONE"]);
        begun(&runs, 1);
        let agent: u32 = runs.noted("pid").trim().parse().unwrap();
        running.signal(signal);
        let (code, shown) = running.ends();
        assert_eq!(code, Some(130), "{signal}: {shown}");
        assert!(!lives(agent));
        assert_eq!((runs.bed.iteration(), runs.bed.value("active")), (1, "false".to_owned()));
        assert_eq!(runs.bed.kinds().last().map(String::as_str), Some("left"));
    }
}

/// A cancel from another terminal wins at once.
#[test]
fn s4_6_a_cancel_ends_the_session() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    begun(&runs, 1);
    let agent: u32 = runs.noted("pid").trim().parse().unwrap();
    runs.bed.ralph_ok(&["cancel"]);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert!(!lives(agent) && !runs.is_live() && shown.contains("cancelled"), "{shown}");
    // eyes_2: the report shows the iteration that was cut off.
    let report = runs.bed.ralph_json(&["report", "--json"]);
    assert_eq!((&report["unfinished"]["iteration"], &report["rounds"]), (&serde_json::json!(1), &serde_json::json!([])), "{report}");
    let page = runs.bed.ralph_ok(&["report", "--html", "-"]);
    assert!(page.contains("iterations, and one that was cut off") && page.contains("Iteration 1 cut off: "), "{page}");
}

/// A pause lets the session finish, rules on its round, and starts no other.
#[test]
fn s4_6_a_pause_starts_no_further_session() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    begun(&runs, 1);
    runs.bed.ralph_ok(&["pause"]);
    go(&runs);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("paused") && runs.sessions() == 1, "{shown}");
    assert_eq!((runs.ruled().len(), runs.bed.iteration(), runs.bed.value("active")), (1, 2, "false".to_owned()), "nothing of it is lost");
}

/// u6: a pause is said where the run is looked at, its time counts until the iteration ends, and it can be taken back.
#[test]
fn u6_a_pause_of_a_run_is_shown_and_can_be_taken_back() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE", "-n", "2"]);
    begun(&runs, 1);
    runs.bed.ralph_ok(&["pause"]);
    until("the word of it", || running.shown().contains("paused: this iteration is the last"));
    let spent = || runs.bed.status()["spent_ms"].as_u64().unwrap();
    let before = spent();
    until("time that passes", || spent() > before);
    let said = runs.bed.ralph_ok(&["resume"]);
    assert!(said.contains(&format!("`ralph run` (pid {}) goes on after this iteration", running.pid())), "{said}");
    until("the word of it", || running.shown().contains("not paused any more"));
    go(&runs);
    begun(&runs, 2);
    go(&runs);
    let (code, shown) = running.ends();
    assert_eq!((code, runs.sessions()), (Some(0), 2), "{shown}");
}

/// u6: where the run ends after this iteration in any case, a pause that was taken back does not promise more.
#[test]
fn u6_a_pause_taken_back_in_the_last_iteration_says_that_the_run_ends() {
    for interrupted in [false, true] {
        let runs = Runs::new(SLOW);
        let running = runs.start(if interrupted { &["Go", "--promise", "DONE"][..] } else { &["Go", "--promise", "DONE", "-n", "1"] });
        begun(&runs, 1);
        if interrupted {
            running.signal("INT");
            until("the word of it", || running.shown().contains("ends after this iteration"));
        }
        runs.bed.ralph_ok(&["pause"]);
        until("the pause", || running.shown().contains("paused: this iteration is the last"));
        let said = runs.bed.ralph_ok(&["resume"]);
        assert!(said.contains("unless it was told to end then (-n, Ctrl-C)"), "{said}");
        until("the end of it", || running.shown().contains("not paused any more; the run ends after this iteration all the same"));
        go(&runs);
        let (_, shown) = running.ends();
        assert!(runs.sessions() == 1 && !shown.contains("takes the pause back") && !shown.contains("the run goes on"), "{shown}");
    }
}

/// u6: `ralph resume` tells the truth about a run that was paused: after the last ruling it still goes on, and once it has given the loop back it does not.
#[test]
fn u6_a_resume_just_before_a_run_leaves_tells_the_truth() {
    let runs = Runs::new(SLOW);
    // Git stands still where the files of an iteration are kept, between its ruling and the next look at the loop.
    let (bin, held, free) = (runs.out("bin"), runs.out("held"), runs.out("free"));
    let (work, hold) =
        (runs.bed.path("work.txt"), format!("touch '{}'; while [ ! -e '{}' ]; do sleep 0.02; done", held.display(), free.display()));
    let git = format!("case \"$*\" in *commit-tree*) if [ -e '{}' ]; then {hold}; fi;; esac", work.display());
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("git"), format!("#!/bin/sh\n{git}\nPATH=${{PATH#*:}} exec git \"$@\"\n")).unwrap();
    fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = runs.command(&["Go", "--completion-promise", "DONE"]);
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let running = runs.spawn(command);
    begun(&runs, 1);
    runs.bed.ralph_ok(&["pause"]);
    go(&runs);
    until("the files of the iteration", || held.exists());
    let said = runs.bed.ralph_ok(&["resume"]);
    fs::write(free, "").unwrap();
    assert!(said.contains("goes on after this iteration"), "{said}");
    begun(&runs, 2);
    runs.bed.ralph_ok(&["pause"]);
    go(&runs);
    until("the end", || runs.of_kind("left").len() == 1);
    let said = runs.bed.ralph(&["resume"]);
    assert!(said.code == Some(1) && said.stderr.contains("`ralph run --continue` goes on with it"), "{}{}", said.stdout, said.stderr);
    let (code, shown) = running.ends();
    assert_eq!((code, runs.sessions(), runs.of_kind("left").len()), (Some(130), 2, 1), "{shown}");
}

/// u4: after a pause the next run's first prompt has what was last measured.
#[test]
fn u4_a_continued_run_is_told_what_failed_before() {
    let runs = Runs::new("echo $N >> work.txt\n");
    runs.ends(0, &["Go", "--verify", "echo broken-thing; exit 1", "-n", "1"]);
    let out = runs.ends(0, &["--continue", "-n", "1"]);
    assert!(runs.prompt(2).contains("When it was last measured:") && runs.prompt(2).contains("broken-thing"), "{}", runs.prompt(2));
    assert!(out.stdout.contains("1 iteration in this run"), "{}", out.stdout);
}

/// A note from another terminal is told to the next session, and the journal says so.
#[test]
fn pains_18_a_note_is_told_to_the_next_session() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE", "-n", "3"]);
    begun(&runs, 1);
    runs.bed.ralph_ok(&["steer", "Use", "tabs,", "please"]);
    go(&runs);
    begun(&runs, 2);
    go(&runs);
    begun(&runs, 3);
    go(&runs);
    running.ends();
    assert!(!runs.prompt(1).contains("Use tabs") && runs.prompt(2).contains("- Use tabs, please") && !runs.prompt(3).contains("Use tabs"));
    let told: Vec<usize> = runs.of_kind("began").iter().map(|e| e["notes"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!((runs.of_kind("steered").len(), told), (1, vec![0, 1, 0]));
}

/// t5: a session that claims to be done does not end the loop if a note came while it worked; the next one has the note.
#[test]
fn t5_a_note_goes_before_the_claim_of_a_session() {
    let runs = Runs::new(&format!("{SLOW}echo; echo '<promise>DONE</promise>'\n"));
    let running = runs.start(&["Go", "--completion-promise", "DONE", "-n", "3"]);
    begun(&runs, 1);
    runs.bed.ralph_ok(&["steer", "Use tabs"]);
    go(&runs);
    begun(&runs, 2);
    go(&runs);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(0), "{shown}");
    let expected = [(1, "note.undelivered".to_owned()), (2, "promise.accepted".to_owned())];
    assert_eq!(runs.ruled(), expected, "{shown}");
    assert!(runs.prompt(2).contains("was claimed, but the person had left a note by then") && runs.prompt(2).ends_with("- Use tabs"));
    assert!(shown.contains("claimed, but your note comes first"), "{shown}");
}

/// t5: a limit counts all the same, and the person is told that the note was not delivered.
#[test]
fn t5_a_capped_run_says_that_a_note_was_not_delivered() {
    let runs = Runs::new(&format!("{SLOW}echo; echo '<promise>DONE</promise>'\n"));
    let running = runs.start(&["Go", "--completion-promise", "DONE", "--max-iterations", "1"]);
    begun(&runs, 1);
    runs.bed.ralph_ok(&["steer", "Use tabs"]);
    go(&runs);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(10), "{shown}");
    assert!(shown.contains("A note that was left for the agent came too late"), "{shown}");
}

/// Two runners, one loop: the second one is told who has it.
#[test]
fn s4_6_a_second_runner_is_refused() {
    let runs = Runs::new(SLOW);
    let running = runs.start(&["Go", "--completion-promise", "DONE"]);
    begun(&runs, 1);
    let out = runs.ends(1, &["--continue"]);
    assert!(out.stderr.contains(&format!("`ralph run` (pid {})", running.pid())), "{}", out.stderr);
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains(&running.pid().to_string()), "{status}");
    assert_eq!(runs.sessions(), 1);
    running.signal("TERM");
    running.ends();
}

/// A loop that a session works on is not taken from it; a paused one is, at the same round, and goes back the same way.
#[test]
fn s4_6_hand_over_from_hook_to_run_and_back() {
    let runs = Runs::new("echo $N >> work.txt\n");
    let bed = &runs.bed;
    bed.write(LOOP, crate::common::loop_text(ME, 1, 9, "DONE"));
    let alive = std::process::id().to_string();
    assert!(bed.work().env("CLAUDE_PID", alive.clone()).send().blocks(), "iteration 1, in the session");
    let out = runs.ends(1, &["--continue"]);
    assert!(out.stderr.contains("works on this loop") && out.stderr.contains("ralph pause"), "{}", out.stderr);
    bed.ralph_ok(&["pause"]);
    let out = runs.ends(0, &["--continue", "-n", "2"]);
    assert!(out.stdout.contains("goes on at iteration 2 of 9"), "{}", out.stdout);
    assert_eq!((runs.iterations(), bed.iteration()), (vec![2, 3], 4));
    bed.work().env("CLAUDE_PID", alive.clone()).send().is_silent();
    bed.ralph_ok(&["resume", "--session", ME]);
    assert!(bed.work().env("CLAUDE_PID", alive).send().blocks());
    assert_eq!(bed.iteration(), 5);
    let ruled: Vec<u64> =
        runs.ruled().into_iter().map(|(round, code)| if code == "loop.paused" { 0 } else { round }).filter(|n| *n > 0).collect();
    assert_eq!(ruled, [1, 2, 3, 4], "one loop, one count");
}
