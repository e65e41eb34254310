//! `ralph log` with filters, and what it looks like on a terminal.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::{
    common::{Bed, LOOP, ME, RALPH, loop_text},
    screen::shown,
};

/// A loop with a claim refused, two rounds without one, and a pause by hand; the first two stops lie hours back.
fn storied() -> Bed {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    bed.stop("I cannot say <promise>DONE</promise> yet.").send();
    bed.work().send();
    bed.ralph_ok(&["pause"]);
    let journal = bed.files_in(".ralph/journal").remove(0);
    let aged = |(n, line): (usize, &str)| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if n < 2 {
            record["at"] = "2026-01-05T10:00:00.000Z".into();
        }
        format!("{record}\n")
    };
    let text: String = std::fs::read_to_string(&journal).unwrap().lines().enumerate().map(aged).collect();
    std::fs::write(&journal, text).unwrap();
    bed
}

/// What a filter leaves, by the reason or the kind of each record.
fn left(bed: &Bed, args: &[&str]) -> Vec<String> {
    let out = bed.ralph_ok(&[&["log", "--json"], args].concat());
    let name = |line: &str| {
        let event = serde_json::from_str::<Value>(line).unwrap()["event"].clone();
        event["ruling"]["code"].as_str().or(event["kind"].as_str()).unwrap().to_owned()
    };
    let words = bed.ralph_ok(&[&["log"], args].concat());
    assert_eq!(words.lines().count(), out.lines().count(), "one line for each record: {words}");
    out.lines().map(name).collect()
}

#[test]
fn eyes_3_log_shows_what_is_asked_for() {
    let bed = storied();
    let all = left(&bed, &[]);
    assert_eq!(all, ["promise.missing", "promise.refused", "promise.missing", "paused"]);
    for (args, expected) in [
        (&["--reason", "promise.refused"][..], &all[1..2]),
        (&["--reason", "promise"], &all[..3]),
        (&["-r", "promise.*", "-n", "1"], &all[2..3]),
        (&["--reason", "gate", "--reason", "promise.refused"], &all[1..2]),
        (&["--reason", "gate"], &[]),
        (&["--since", "2h"], &all[2..]),
        (&["--since", "2026-01-05"], &all[..]),
        (&["--since", "2026-01-05 10:00:01Z", "--reason", "promise"], &all[2..3]),
        (&["-n", "2"], &all[2..]),
        (&["-n", "0"], &[]),
        (&["-n", "99"], &all[..]),
    ] {
        assert_eq!(left(&bed, args), expected, "{args:?}");
    }
}

/// What can only be a mistake is one, and the way out stands there.
#[test]
fn eyes_3_log_refuses_what_makes_no_sense() {
    let bed = storied();
    for (args, told) in [
        (["--reason", "promise.mising"], "did you mean promise.missing? There are: promise.accepted, "),
        (["--reason", "gats"], "did you mean gate? There are: "),
        (["--reason", "g"], "There are: "),
        (["--since", "yesterday"], "say how long ago (90s, 30m, 2h, 3d)"),
        (["--since", "2"], "say how long ago"),
        (["-n", "-1"], "-1"),
    ] {
        let out = bed.ralph(&[&["log"][..], &args].concat());
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(out.stderr.contains(told), "{args:?}: {}", out.stderr);
    }
    let out = bed.ralph(&["log", "--json", "--reason", "nonsense"]);
    assert_eq!(serde_json::from_str::<Value>(&out.stdout).unwrap()["error"]["kind"], "usage");
}

/// A followed journal shows the last lines that fit the filter, then the new ones, and ends with the loop though its last line is filtered out.
#[test]
fn eyes_3_log_follows_through_a_filter() {
    let bed = storied();
    bed.ralph_ok(&["resume", "--session", ME]);
    let mut follow = bed.command(RALPH);
    follow.args(["log", "-f", "-n", "1", "--reason", "promise", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = follow.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut code = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["event"]["ruling"]["code"].clone();
    assert_eq!(code(), "promise.missing");
    bed.stop("Still no <promise>DONE</promise> from me.").send();
    assert_eq!(code(), "promise.refused");
    bed.ralph_ok(&["cancel"]);
    assert!(child.wait().unwrap().success());
    assert!(lines.next().is_none());
}

/// On a terminal what is usual is plain, and what is not has its colour.
#[test]
fn eyes_3_log_is_coloured_by_what_it_means() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    bed.work().send();
    bed.ralph_ok(&["pause"]);
    bed.ralph_ok(&["resume", "--session", ME]);
    bed.stop("It is done.\n\n<promise>DONE</promise>").send();
    let text = shown(&bed, 80, &["log"], &[]);
    let line = |words: &str| text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(line("promise.accepted").contains("\x1b[32m"), "{text}");
    assert!(line("paused").contains("\x1b[33m"), "{text}");
    assert!(!line("promise.missing").contains("\x1b[3"), "{text}");
}
