//! A runner that is killed: the next one picks up where it was.

use std::{
    fs,
    time::{Duration, Instant},
};

use super::{Runs, lives, until};

/// The round begins again, what the dead runner had started is ended, and both are said.
#[test]
fn s4_6_after_kill_9_the_round_begins_again() {
    let script = "echo \"$$\" > \"$OUT/pid.$N\"\nif [ $N = 2 ]; then setsid sleep 600 & sleep 600; fi\necho $N >> work.txt\nif [ $RALPH_ITERATION = 3 ]; then echo '<promise>DONE</promise>'; fi\n";
    let runs = Runs::new(script);
    let mut running = runs.start(&["Go", "--completion-promise", "DONE"]);
    until("the second session", || runs.out("pid.2").exists());
    std::thread::sleep(Duration::from_millis(200));
    let orphan: u32 = runs.noted("pid.2").trim().parse().unwrap();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert!(lives(orphan), "nobody ended the agent");
    assert_eq!(runs.bed.status()["status"], "left-behind");
    let out = runs.ends(0, &["--continue"]);
    assert!(out.stdout.contains("was interrupted; it begins again") && out.stdout.contains("still running and ended"), "{}", out.stdout);
    assert!(!lives(orphan));
    assert_eq!(runs.iterations(), [1, 2, 2, 3]);
    assert!(runs.prompt(3).contains("An earlier session of this iteration was cut off"), "{}", runs.prompt(3));
    let rounds: Vec<u64> = runs.ruled().into_iter().map(|(round, _)| round).collect();
    assert_eq!(rounds, [1, 2, 3], "none is lost, none is counted twice");
}

/// A night after the crash nobody has used up the loop's hours.
#[test]
fn s4_6_the_time_after_kill_9_is_not_the_loops() {
    const GAP: Duration = Duration::from_secs(2);
    let runs = Runs::new("if [ $N = 1 ]; then sleep 600; fi\necho '<promise>DONE</promise>'\n");
    let begun = Instant::now();
    let mut running = runs.start(&["Go", "--completion-promise", "DONE"]);
    until("the first session", || runs.sessions() == 1);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    std::thread::sleep(GAP);
    let left = runs.bed.status()["spent_ms"].as_u64().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(runs.bed.status()["spent_ms"], left, "what nobody works on does not age");
    runs.ends(0, &["--continue"]);
    let worked = u64::try_from(begun.elapsed().saturating_sub(GAP).as_millis()).unwrap();
    let spent = runs.bed.last_ended()["spent_ms"].as_u64().unwrap();
    assert!(spent <= worked, "{spent} ms of {worked}");
}

/// Killed again and again, at whatever moment: the loop completes, and every round is ruled on once.
#[test]
fn s4_6_killed_twenty_times_the_loop_completes() {
    let script = "sleep 0.0$(( (N * 7) % 10 ))\necho $N >> work.txt; commit\nif [ $RALPH_ITERATION -ge 25 ]; then echo '<promise>DONE</promise>'; fi\n";
    let runs = Runs::new(script);
    let mut running = runs.start(&["Go", "--completion-promise", "DONE"]);
    let mut killed = 0;
    let mut seed: u64 = 0x2545_f491_4f6c_dd1d;
    let ended = loop {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        std::thread::sleep(Duration::from_millis(if killed < 20 { seed % 400 } else { 100 }));
        if let Some(status) = running.child.try_wait().unwrap() {
            break status;
        }
        if killed < 20 {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
            killed += 1;
            // Before there is a loop there is nothing to go on with, and one that has ended is not begun again.
            let has_begun = runs.is_live() || !runs.bed.files_in(".ralph/journal").is_empty();
            let args: &[&str] = if has_begun { &["--continue"] } else { &["Go", "--completion-promise", "DONE"] };
            running = runs.start(args);
        }
    };
    let ruled = runs.ruled();
    // Killed between its last line and its exit, it leaves a loop that has ended, and the next runner finds nothing to go on with.
    let is_over = ruled.last().is_some_and(|(_, code)| code == "promise.accepted");
    assert!(ended.code() == Some(0) || (ended.code() == Some(1) && is_over), "{ended:?} {}", running.shown());
    assert!(killed >= 10, "it was over too soon: {killed}");
    let rounds: Vec<u64> = ruled.into_iter().map(|(round, _)| round).collect();
    // A kill between the change of the loop's file and the line about it: the file counts, and the next runner says so.
    let unwritten = runs.of_kind("taken").into_iter().filter_map(|e| e["unwritten"].as_u64());
    let mut rounds: Vec<u64> = rounds.into_iter().chain(unwritten).collect();
    rounds.sort_unstable();
    assert_eq!(rounds, (1..=25).collect::<Vec<u64>>(), "none is lost, none is counted twice");
    assert!(
        fs::read_dir("/proc").unwrap().flatten().all(|entry| {
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            !String::from_utf8_lossy(&environ).contains(&format!("HOME={}", runs.bed.home().display()))
                || entry.file_name().to_string_lossy().parse() == Ok(std::process::id())
        }),
        "no process is left"
    );
}
