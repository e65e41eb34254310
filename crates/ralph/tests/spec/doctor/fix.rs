//! `ralph doctor --fix`: what is safe is mended and told, the rest is left alone, and one repair that fails stops no other.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::json;

use super::{Patient, age, all_entries, answering, changed, entry, write};
use crate::common::{LOOP, RALPH};

#[test]
fn s4_7_fix_sets_ralph_up_reports_it_and_is_done() {
    let patient = Patient::new();
    let out = patient.doctor(&["--fix"]);
    assert_eq!(out.code, Some(0), "{}", out.stdout);
    let fixed: Vec<&str> = out.stdout.lines().filter(|line| line.starts_with("fixed ")).collect();
    assert_eq!(fixed.len(), 2, "{fixed:?}");
    assert_eq!(fixed[0], "fixed registered, as `ralph init` does");
    assert!(fixed[1].starts_with("fixed added to ") && fixed[1].ends_with("**/.claude/ralph-loop*.local.md"), "{fixed:?}");
    // A second time there is nothing to do, and nothing is done.
    let before = patient.snapshot();
    assert_eq!(patient.fix(), Vec::<String>::new());
    assert_eq!(before, patient.snapshot());
    // All of it goes again.
    patient.sh_ok("ralph uninstall");
    assert!(!patient.user_file().exists());
}

#[test]
fn s4_7_fix_changes_nothing_that_a_person_made() {
    let patient = Patient::sound();
    patient.bed.write(LOOP, "---\niteration: many\n---\nGo\n");
    patient.sh_ok("ralph start Go --endless --name paused --session x && ralph pause paused && ralph start Go --endless --name left");
    patient.bed.work().env("CLAUDE_PID", "4194303").send();
    write(&patient.bed.home().join(".claude/commands/cancel-ralph.md"), "My own.\n");
    let other = json!({"hooks": [{"type": "command", "command": "notify-send done"}]});
    patient.edit_user(|s| {
        s["hooks"]["Stop"].as_array_mut().unwrap().insert(0, other);
        answering(s, "Stop")["timeout"] = json!(2);
        s["disableAllHooks"] = json!(true);
    });
    patient.bed.write("README.md", "Changed.\n");
    patient.bed.git(&["checkout", "-q", "--detach"]);
    let before = patient.snapshot();
    assert_eq!(patient.fix(), Vec::<String>::new());
    assert_eq!(changed(&before, &patient.snapshot()), Vec::<PathBuf>::new());
    for id in
        ["loop.corrupt", "loop.paused", "loop.left-behind", "commands.changed", "hook.others", "hook.timeout", "hooks.disabled", "git"]
    {
        assert_eq!(patient.complaints(id).len(), 1, "{id}: {:#}", patient.report(&[]));
    }
}

/// A missing event is added beside somebody else's hooks, and nothing else of the file changes.
#[test]
fn s4_7_fix_changes_only_the_line_that_is_missing() {
    let patient = Patient::sound();
    let whole = fs::read_to_string(patient.user_file()).unwrap();
    let mut without: serde_json::Value = serde_json::from_str(&whole).unwrap();
    without["hooks"].as_object_mut().unwrap().remove("SessionEnd");
    without["hooks"]["SessionEnd"] = json!([{"hooks": [{"type": "command", "command": "say bye"}]}]);
    patient.write_user(&without);
    let before = patient.snapshot();
    assert_eq!(patient.fix(), ["registered, as `ralph init` does"]);
    let paths = changed(&before, &patient.snapshot());
    let records = patient.bed.home().join(".local/state");
    assert!(paths.iter().all(|p| *p == patient.user_file() || p.starts_with(&records)), "{paths:?}");
    let after: serde_json::Value = serde_json::from_str(&fs::read_to_string(patient.user_file()).unwrap()).unwrap();
    assert_eq!(after["hooks"]["SessionEnd"][0], without["hooks"]["SessionEnd"][0]);
    let mut theirs = after.clone();
    theirs["hooks"]["SessionEnd"].as_array_mut().unwrap().truncate(1);
    assert_eq!(theirs, without);
}

#[test]
fn s4_7_fix_never_edits_settings_that_the_client_cannot_read() {
    let broken = ["{\"a\": 1", "// mine\n{}\n", "[]", "{\"permissions\": {\"defaultMode\": \"yolo\"}}"];
    for text in broken {
        for of_user in [true, false] {
            let patient = Patient::new();
            fs::write(patient.bed.path(".git/info/exclude"), ".claude/*.local.*\n").unwrap();
            let path = if of_user { patient.user_file() } else { patient.bed.path(".claude/settings.json") };
            write(&path, text);
            let before = patient.snapshot();
            let report = patient.report(&["--fix"]);
            assert!(!report.to_string().contains("is is ") && report.to_string().contains("settings.json is not "), "{report:#}");
            assert_eq!((&report["fixed"], &report["failed"]), (&json!([]), &json!([])), "{text}");
            assert_eq!(changed(&before, &patient.snapshot()), Vec::<PathBuf>::new(), "{text}");
        }
    }
}

/// The first of two repairs cannot be made: the second one is, and both are told.
#[test]
fn s4_7_one_repair_that_fails_does_not_stop_the_others() {
    let patient = Patient::new();
    let left = patient.bed.path(".claude/.settings.json.ralph-4194303");
    write(&left, "{}");
    age(&left);
    // The place for the commands is taken.
    write(&patient.bed.home().join(".claude/commands"), "a file");
    let report = patient.report(&["--fix"]);
    assert_eq!(report["failed"].as_array().unwrap().len(), 1, "{report:#}");
    assert!(report["failed"][0].as_str().unwrap().contains("commands"), "{report:#}");
    assert!(report["fixed"].as_array().unwrap().len() == 2 && !left.exists(), "{report:#}");
    let out = patient.doctor(&["--fix"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stdout.starts_with("not fixed: "), "{}", out.stdout);
    // All or nothing: no hook without its commands.
    assert!(!patient.user_file().exists());
}

/// A repair of a warning that fails is told by the exit code too.
#[test]
fn s4_7_a_failed_repair_is_a_failure() {
    let patient = Patient::sound();
    fs::remove_file(patient.bed.path(".git/info/exclude")).unwrap();
    symlink(patient.bed.home().join("mine"), patient.bed.path(".git/info/exclude")).unwrap();
    fs::write(patient.bed.home().join("mine"), "").unwrap();
    let report = patient.report(&["--fix"]);
    assert_eq!((&report["ok"], report["failed"].as_array().unwrap().len()), (&json!(true), 1), "{report:#}");
    assert_eq!(fs::read_to_string(patient.bed.home().join("mine")).unwrap(), "", "not through a link");
}

/// A line that somebody wrote is not replaced on the way.
#[test]
fn s4_7_fix_does_not_swap_the_program_that_is_registered() {
    for of_user in [true, false] {
        let patient = Patient::new();
        patient.trust(true);
        let program = patient.program("other/ralph", &format!("#!/bin/sh\nexec {RALPH} \"$@\"\n"));
        let settings = json!({"hooks": {"Stop": entry(program.to_str().unwrap())}});
        if of_user {
            patient.write_user(&settings);
        } else {
            patient.write_project(&settings);
        }
        let path = if of_user { patient.user_file() } else { patient.bed.path(".claude/settings.json") };
        let before = fs::read_to_string(&path).unwrap();
        patient.fix();
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        assert_eq!(patient.complaints("hook.events").len(), 9);
    }
}

/// Only what is registered twice is taken out: a hook that was there alone stays.
#[test]
fn s4_7_fix_of_two_registrations_leaves_one_that_answers() {
    let patient = Patient::sound();
    patient.bed.write(".claude/settings.local.json", all_entries(RALPH).to_string());
    assert_eq!(patient.fix().len(), 1);
    assert!(!patient.bed.read(".claude/settings.local.json").contains("ralph"), "what counts in all projects stays");
    for id in ["hook.twice", "hook.registered", "hook.answers", "commands.missing", "hook.events"] {
        patient.is_quiet_about(id);
    }
    let before = patient.snapshot();
    assert_eq!(patient.fix(), Vec::<String>::new());
    assert_eq!(changed(&before, &patient.snapshot()), Vec::<PathBuf>::new());
}
