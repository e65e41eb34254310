//! `kill -9` at every write (in the nightly run at every system call; pains 7, 22): whatever was interrupted, the state can be read, nothing is lost, and nobody is trapped.

use std::process::Command;

use ralph_testkit::killer::{Filter, Outcome, count_syscalls, kill_at_syscall};

use crate::common::{Bed, LOOP, ME, OTHER, PROMPT, RALPH, loop_text};

/// Runs `victim` in a fresh `setup` once for each of its crash points, kills it there, and looks at what it left.
fn at_every_crash_point(setup: impl Fn() -> Bed, victim: impl Fn(&Bed) -> (Command, String), check: impl Fn(&Bed, &str)) {
    let bed = setup();
    let (mut command, stdin) = victim(&bed);
    let count = count_syscalls(&mut command, Filter::crash_points(), stdin.as_bytes());
    assert!(count > 10, "only {count} calls: is this the program?");
    check(&bed, "not killed");
    for n in 1..=count {
        let bed = setup();
        let (mut command, stdin) = victim(&bed);
        let outcome = kill_at_syscall(&mut command, Filter::crash_points(), n, stdin.as_bytes());
        let what = match outcome {
            Outcome::Killed { syscall, .. } => format!("killed at call {n} of {count} (number {syscall})"),
            Outcome::Finished { code, .. } => format!("ended with {code:?} before call {n} of {count}"),
        };
        check(&bed, &what);
    }
}

/// A victim that answers this event.
fn hook(event: &crate::common::Event<'_>) -> (Command, String) {
    (event.command(), event.json())
}

fn ralph(bed: &Bed, args: &[&str]) -> (Command, String) {
    let mut command = bed.command(RALPH);
    command.args(args);
    (command, String::new())
}

/// Another session is never trapped by what a crash left.
fn strangers_are_free(bed: &Bed, what: &str) {
    assert!(!bed.work().session(OTHER).send().blocks(), "{what}: a stranger was sent back");
}

/// The loop's file is in its place or in the archive, with these bytes.
fn is_kept(bed: &Bed, text: &str, what: &str) {
    let archived = bed.files_in(".ralph/archive");
    if bed.exists(LOOP) {
        assert_eq!(bed.read(LOOP), text, "{what}");
    } else {
        assert_eq!(archived.len(), 1, "{what}: lost");
        assert_eq!(std::fs::read_to_string(&archived[0]).unwrap(), text, "{what}");
    }
}

#[test]
fn pains_7_a_hook_that_blocks_can_be_killed_anywhere() {
    at_every_crash_point(
        || Bed::with_loop(9, 0, "DONE"),
        |bed| hook(&bed.work()),
        |bed, what| {
            let status = bed.status();
            let iteration = status["iteration"].as_u64().unwrap();
            assert!(iteration == 9 || iteration == 10, "{what}: {status}");
            assert_eq!(status["status"], "active", "{what}");
            assert_eq!(bed.read(LOOP), loop_text(ME, iteration, 0, "DONE"), "{what}");
            strangers_are_free(bed, what);
            bed.work().send().blocks_with(PROMPT);
            assert_eq!(bed.iteration(), iteration + 1, "{what}");
        },
    );
}

#[test]
fn pains_7_a_hook_that_completes_can_be_killed_anywhere() {
    let text = loop_text(ME, 3, 0, "DONE");
    at_every_crash_point(
        || Bed::with_loop(3, 0, "DONE"),
        |bed| hook(&bed.stop("<promise>DONE</promise>")),
        |bed, what| {
            is_kept(bed, &text, what);
            let there = bed.exists(LOOP);
            assert_eq!(bed.ralph(&["status"]).code, Some(if there { 0 } else { 3 }), "{what}");
            strangers_are_free(bed, what);
            if there {
                bed.stop("Once more.\n<promise>DONE</promise>").send().line();
            } else {
                bed.work().send().is_silent();
            }
            is_kept(bed, &text, what);
            bed.ralph_ok(&["resume", "--again", "--session", ME]);
            assert!(bed.work().send().blocks(), "{what}: cannot be resumed");
        },
    );
}

#[test]
fn pains_7_a_hook_that_pauses_can_be_killed_anywhere() {
    let setup = || {
        let bed = Bed::with_loop(1, 0, "DONE");
        let transcript = bed.transcript();
        transcript.user("go").says("m1", "One.");
        bed.stop("One.").send();
        crate::common::tick();
        transcript.feedback(PROMPT).says("m2", "Tw").user("[Request interrupted by user]").user("2 + 2?").says("m3", "4");
        bed
    };
    at_every_crash_point(
        setup,
        |bed| hook(&bed.stop("4").field("prompt_id", "p2")),
        |bed, what| {
            let active = bed.value("active");
            assert_eq!(bed.read(LOOP), loop_text(ME, 2, 0, "DONE").replace("active: true", &format!("active: {active}")), "{what}");
            assert_eq!(bed.status()["status"], if active == "true" { "active" } else { "paused" }, "{what}");
            strangers_are_free(bed, what);
            assert!(!bed.stop("4.").field("prompt_id", "p2").send().blocks(), "{what}");
            assert_eq!(bed.value("active"), "false", "{what}");
            bed.ralph_ok(&["resume"]);
            assert!(bed.work().send().blocks(), "{what}");
        },
    );
}

#[test]
fn pains_7_adoption_can_be_killed_anywhere() {
    let setup = || {
        let bed = Bed::new();
        bed.write(LOOP, loop_text("null", 1, 0, "DONE"));
        bed
    };
    at_every_crash_point(
        setup,
        |bed| hook(&bed.work()),
        |bed, what| {
            let iteration = bed.status()["iteration"].as_u64().unwrap();
            assert!(iteration == 1 || iteration == 2, "{what}");
            assert_eq!(bed.read(LOOP), loop_text("null", iteration, 0, "DONE"), "{what}");
            // The session goes on with its loop; once it has it, nobody else does.
            bed.work().send().blocks_with(PROMPT);
            strangers_are_free(bed, what);
            assert_eq!(bed.iteration(), iteration + 1, "{what}");
        },
    );
}

#[test]
fn pains_7_start_can_be_killed_anywhere() {
    at_every_crash_point(
        Bed::new,
        |bed| ralph(bed, &["start", "Do it", "--session", ME, "--completion-promise", "DONE"]),
        |bed, what| {
            strangers_are_free(bed, what);
            if bed.exists(LOOP) {
                let status = bed.status();
                assert_eq!((status["iteration"].as_u64(), status["prompt"].as_str()), (Some(1), Some("Do it")), "{what}");
            } else {
                bed.work().send().is_silent();
                bed.ralph_ok(&["start", "Do it", "--session", ME, "--completion-promise", "DONE"]);
            }
            assert!(bed.work().send().blocks(), "{what}");
            assert_eq!(bed.iteration(), 2, "{what}");
            bed.ralph_ok(&["cancel"]);
            assert!(!bed.exists(LOOP), "{what}");
        },
    );
}

#[test]
fn pains_7_cancel_can_be_killed_anywhere() {
    let text = loop_text(ME, 3, 0, "DONE");
    at_every_crash_point(
        || Bed::with_loop(3, 0, "DONE"),
        |bed| ralph(bed, &["cancel"]),
        |bed, what| {
            is_kept(bed, &text, what);
            strangers_are_free(bed, what);
            if bed.exists(LOOP) {
                bed.ralph_ok(&["cancel"]);
            }
            assert_eq!(bed.ralph(&["status"]).code, Some(3), "{what}");
            bed.work().send().is_silent();
            bed.ralph_ok(&["resume", "--session", ME]);
            assert_eq!(bed.read(LOOP), text, "{what}");
            assert!(bed.work().send().blocks(), "{what}");
        },
    );
}

#[test]
fn pains_7_resume_of_a_paused_loop_can_be_killed_anywhere() {
    let setup = || {
        let bed = Bed::with_loop(3, 0, "DONE");
        bed.ralph_ok(&["pause"]);
        bed
    };
    at_every_crash_point(
        setup,
        |bed| ralph(bed, &["resume", "--max-iterations", "7"]),
        |bed, what| {
            let status = bed.status();
            assert!(status["status"] == "paused" || status["status"] == "active", "{what}: {status}");
            assert_eq!(status["iteration"], 3, "{what}");
            strangers_are_free(bed, what);
            bed.ralph_ok(&["resume", "--max-iterations", "7"]);
            assert_eq!(bed.read(LOOP), loop_text(ME, 3, 7, "DONE"), "{what}");
            assert!(bed.work().send().blocks(), "{what}");
        },
    );
}

#[test]
fn pains_7_resume_from_the_archive_can_be_killed_anywhere() {
    let text = loop_text(ME, 3, 0, "DONE");
    let setup = || {
        let bed = Bed::with_loop(3, 0, "DONE");
        bed.ralph_ok(&["cancel"]);
        bed
    };
    at_every_crash_point(
        setup,
        |bed| ralph(bed, &["resume", "--session", ME]),
        |bed, what| {
            is_kept(bed, &text, what);
            strangers_are_free(bed, what);
            bed.ralph_ok(&["resume", "--session", ME]);
            assert_eq!(bed.read(LOOP), text, "{what}");
            assert_eq!(bed.status()["status"], "active", "{what}");
            assert!(bed.work().send().blocks(), "{what}");
            // One loop: a crash between its two places must not leave a second one behind.
            assert!(bed.files_in(".ralph/archive").is_empty(), "{what}: it is also in the archive");
        },
    );
}
