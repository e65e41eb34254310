//! `--json`: standard output is always something that a program can read, and the exit codes stay what they are.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path};

use ralph_testkit::Output;
use serde_json::{Value, json};

use crate::common::{Bed, LOOP, ME, OTHER, PROMPT, RALPH, loop_text, run};

const WITH_JSON: [&str; 8] = ["start", "cancel", "pause", "resume", "status", "list", "log", "explain"];

#[track_caller]
fn parsed(out: &Output) -> Value {
    assert!(!out.stdout.contains('\u{1b}'), "{:?}", out.stdout);
    serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"))
}

/// Every command that programs may call says so, and answers with one piece of JSON where there is no loop.
#[test]
fn without_a_loop_there_is_json_all_the_same() {
    let bed = Bed::new();
    let none = |message: &str| json!({"error": {"kind": "no-loop", "message": message}});
    let never = "No loop has run in this project yet. Start one: ralph run \"…\"";
    for (command, code, expected) in [
        ("cancel", 3, none("No active Ralph loop")),
        ("pause", 3, none("No active Ralph loop")),
        ("resume", 3, none("No active Ralph loop")),
        ("status", 0, json!({"loops": [], "last_ended": null})),
        ("list", 0, json!([])),
        ("log", 3, none(never)),
        ("explain", 3, none(never)),
    ] {
        let out = bed.ralph(&[command, "--json"]);
        assert_eq!((out.code, out.stderr.as_str()), (Some(code), ""), "{command}");
        assert_eq!(parsed(&out), expected, "{command}");
    }
}

/// What was done to a loop is answered with the loop, in the one shape that `status` has.
#[test]
fn what_changes_a_loop_answers_with_the_loop() {
    let bed = Bed::new();
    let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let started = bed.ralph_json(&["start", "Go", "--json", "--max-iterations", "3", "--hours", "2", "--completion-promise", "DONE"]);
    assert_eq!(started, bed.status());
    assert_eq!(started["file"], json!(bed.path(LOOP)));
    assert_eq!(json!([started["status"], started["iteration"], started["max_iterations"]]), json!(["waiting", 1, 3]));
    assert_eq!(json!([started["max_ms"], started["completion_promise"], started["prompt"]]), json!([7_200_000, "DONE", "Go"]));
    for (args, status) in [
        (vec!["pause", "--json"], "paused"),
        (vec!["resume", "--json", "--session", ME], "active"),
        (vec!["cancel", "--json"], "cancelled"),
        (vec!["resume", "--json", "--session", ME], "active"),
    ] {
        let answer = bed.ralph_json(&args);
        assert_eq!((&answer["id"], &answer["status"]), (&started["id"], &json!(status)), "{args:?}");
        assert_eq!(keys(&answer), keys(&started), "{args:?}");
    }
}

/// What cannot be done is said in JSON too; people who watch a script see it on standard error as ever.
#[test]
fn a_failure_is_json_and_keeps_its_code() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.write(".claude/ralph-loop.two.local.md", loop_text(OTHER, 1, 0, "DONE"));
    for (args, code, kind) in [
        (vec!["start", "again", "--json"], 1, "failed"),
        (vec!["start", "--json"], 2, "usage"),
        (vec!["cancel", "--json"], 2, "usage"),
        (vec!["resume", "nobody", "--json"], 1, "failed"),
        (vec!["log", "nobody", "--json"], 1, "failed"),
        (vec!["explain", "nobody", "--json"], 1, "failed"),
        (vec!["explain", "--loop", "main", "--json"], 1, "failed"),
    ] {
        let out = bed.ralph(&args);
        let error = parsed(&out)["error"].clone();
        assert_eq!((out.code, &error["kind"]), (Some(code), &json!(kind)), "{args:?}");
        assert_eq!(out.stderr, format!("error: {}\n", error["message"].as_str().unwrap()), "{args:?}");
    }
    let out = bed.ralph(&["cancel", "nobody", "--json"]);
    assert_eq!((out.code, out.stderr.as_str(), &parsed(&out)["error"]["kind"]), (Some(3), "", &json!("no-loop")));
}

/// One document, even if what it reports is a failure.
#[test]
fn a_replay_that_finds_nothing_is_one_document() {
    let bed = Bed::new();
    bed.write("empty.jsonl", "");
    let out = bed.ralph(&["explain", "--replay", "empty.jsonl", "--json"]);
    assert_eq!(out.code, Some(1));
    assert_eq!(parsed(&out), json!({"same": 0, "different": [], "unreadable_lines": 0}));
}

/// Forced colour is for people.
#[test]
fn no_colour_gets_into_json() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    for command in WITH_JSON {
        for args in [vec![command, "--json"], vec![command, "--json", "--color", "always"]] {
            let mut child = bed.command(RALPH);
            let out = run(child.args(&args).env("CLICOLOR_FORCE", "1").env("CLICOLOR", "1"), b"");
            assert!(!out.stdout.is_empty() && !out.stdout.contains('\u{1b}'), "{args:?}: {out:?}");
            match command {
                "log" => out.stdout.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap())),
                _ => drop(parsed(&out)),
            }
        }
    }
}

/// Control characters of a loop file come out spelled, so that they steer no terminal, and mean the same.
#[test]
fn pains_20_control_characters_in_json_are_spelled() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "a\\u009b31m\\x7f\\eb"));
    bed.stop("<promise>a\u{9b}31m</promise>").send();
    for args in [vec!["status", "--json"], vec!["list", "--json"], vec!["log", "--json"], vec!["explain", "--json"]] {
        let text = bed.ralph_ok(&args);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {text:?}");
    }
    assert_eq!(bed.status()["completion_promise"], "a\u{9b}31m\u{7f}\u{1b}b");
}

/// Half a line of a killed writer does not stop a program that reads the journal.
#[test]
fn pains_7_log_passes_over_what_is_no_json() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let path = bed.files_in(".ralph/journal")[0].clone();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{{\"at\":\"2026\n\n{whole}")).unwrap();
    let out = bed.ralph(&["log", "--json"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), "(a line that cannot be read)\n"));
    assert_eq!(out.stdout, whole);
}

/// A folder whose name is no text costs its name, not the answer.
#[test]
fn pains_20_json_in_a_folder_without_a_readable_name() {
    let bed = Bed::new();
    let dir = bed.dir().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(dir.join(".claude")).unwrap();
    fs::write(dir.join(Path::new(LOOP)), loop_text(ME, 1, 0, "DONE")).unwrap();
    for command in ["status", "list"] {
        let out = run(bed.command(RALPH).args([command, "--json"]).current_dir(&dir), b"");
        let all = parsed(&out);
        let one = if command == "list" { &all[0] } else { &all["loops"][0] };
        assert_eq!((out.code, &one["prompt"]), (Some(0), &json!(PROMPT.replace('\n', " "))), "{command}");
        assert!(one["file"].as_str().unwrap().ends_with("caf\u{fffd}/.claude/ralph-loop.local.md"), "{one}");
    }
}
