//! A set-up that is in order, and `ralph start`, which looks before it leaps.

use std::{os::unix::fs::symlink, time::Duration};

use ralph_testkit::{Client, Version, or_skip, pty::Pty};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::{Patient, changed, entry, findings};
use crate::common::{Bed, RALPH};

/// What a look at a sound set-up always speaks of.
const CHECKS: [&str; 12] = [
    "ralph",
    "client",
    "hook.registered",
    "commands",
    "block-cap",
    "hook.answers",
    "permissions",
    "loops",
    "clock",
    "disk",
    "git",
    "store",
];

#[test]
fn s4_7_a_sound_set_up_is_called_sound_and_every_check_is_there() {
    let patient = Patient::sound();
    let out = patient.doctor(&[]);
    assert_eq!(out.code, Some(0), "{}", out.stdout);
    assert!(out.stdout.ends_with("\nNo problems found.\n"), "{}", out.stdout);
    assert!(!out.stdout.contains('\u{1b}'), "no colour in a pipe");
    let report = patient.report(&[]);
    let all = findings(&report);
    // t2: a sound set-up allows the agent a shell, and that is worth a note.
    let (noted, found): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|f| f["id"] == "permissions.ralph");
    assert_eq!(noted.iter().map(|f| &f["severity"]).collect::<Vec<_>>(), ["note"], "{report:#}");
    let ids: Vec<Value> = found.iter().map(|f| f["id"].clone()).collect();
    // Ralph's own folder comes with the first loop.
    let expected: Vec<Value> = CHECKS.iter().filter(|id| **id != "store").map(|id| json!(id)).collect();
    assert_eq!(ids, expected);
    assert!(found.iter().all(|f| f["severity"] == "good"), "{report:#}");
    patient.sh_ok("ralph start Go --endless --session x && ralph cancel");
    let report = patient.report(&[]);
    assert!(CHECKS.iter().all(|id| findings(&report).iter().any(|f| f["id"] == *id && f["severity"] == "good")), "{report:#}");
}

#[test]
fn s4_7_what_programs_read_has_stable_keys() {
    let patient = Patient::new();
    let report = patient.report(&[]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(keys(&report), named(&["ok", "version", "project", "fixed", "failed", "findings"]));
    assert_eq!(report["project"], json!(patient.bed.dir()));
    for finding in findings(&report) {
        assert_eq!(keys(&finding), named(&["id", "severity", "what", "fix", "advice", "fixable"]));
        assert!(["good", "note", "warning", "error"].iter().any(|s| finding["severity"] == *s), "{finding}");
    }
}

#[test]
fn s4_7_looking_changes_nothing_and_leaves_nothing() {
    for is_sound in [true, false] {
        let patient = if is_sound { Patient::sound() } else { Patient::new() };
        let before = patient.snapshot();
        patient.doctor(&[]);
        patient.report(&[]);
        assert_eq!(changed(&before, &patient.snapshot()), Vec::<std::path::PathBuf>::new());
        assert_eq!(before, patient.snapshot(), "not even the time of a folder");
    }
    // Where ralph has a folder of its own, nothing in it is changed or added.
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless --session x");
    let before = patient.snapshot();
    patient.doctor(&[]);
    assert_eq!(changed(&before, &patient.snapshot()), Vec::<std::path::PathBuf>::new());
}

/// A folder that has only some of what ralph would make in it gets nothing more by being looked at.
#[test]
fn s4_7_looking_at_ralphs_own_folder_makes_nothing_in_it() {
    let patient = Patient::sound();
    for has in [vec![], vec![".gitignore"], vec![".gitignore", "journal/x.jsonl"]] {
        std::fs::create_dir_all(patient.bed.path(".ralph")).unwrap();
        for file in has {
            patient.bed.write(format!(".ralph/{file}"), "*\n");
        }
        let before = patient.bed.tree();
        patient.doctor(&[]);
        patient.is_quiet_about("store.folder");
        assert_eq!(before, patient.bed.tree());
    }
}

#[test]
fn s4_7_the_report_fits_the_terminal() {
    for patient in [Patient::sound(), Patient::new()] {
        for cols in [60_u16, 80] {
            let mut command = patient.bed.command(patient.bin.join("ralph"));
            command.arg("doctor").env("TERM", "xterm-256color").env("PATH", format!("{}:/usr/bin:/bin", patient.bin.display()));
            let pty = Pty::spawn(command, 200, cols);
            assert!(pty.wait_closed(Duration::from_secs(30)));
            let text = anstream::adapter::strip_str(&String::from_utf8_lossy(&pty.raw()).replace("\r\n", "\n")).to_string();
            // A command is not broken: somebody may want to copy it.
            let is_excused =
                |line: &str| line.trim_start().starts_with("fix: ") || line.split_whitespace().any(|word| word.width() + 20 > cols.into());
            for line in text.lines() {
                assert!(line.width() <= cols.into() || is_excused(line), "{cols}: {line:?}\n{text}");
            }
            assert!(text.contains("ralph 0."), "{text}");
        }
    }
}

/// The real client's answer to `--version` is understood, and asking for it writes nothing into the home.
#[test]
fn s4_7_the_real_client_is_recognised() {
    for version in Version::BOTH {
        let client = or_skip!(Client::installed(version));
        let patient = Patient::sound();
        std::fs::remove_file(patient.bin.join("claude")).unwrap();
        symlink(&client.binary, patient.bin.join("claude")).unwrap();
        let before = patient.snapshot();
        let report = patient.report(&[]);
        let found = findings(&report).into_iter().find(|f| f["id"] == "client").unwrap();
        assert_eq!(found["severity"], "good", "{found}");
        assert!(found["what"].as_str().unwrap().starts_with(&format!("Claude Code {} (", version.number())), "{found}");
        assert_eq!(before, patient.snapshot());
    }
}

/// One ralph init away from a loop that is held: nobody should find out in the morning.
#[test]
fn s4_7_start_warns_where_the_hook_is_not_registered_and_nowhere_else() {
    let start = |patient: &Patient| patient.sh("ralph start Go --endless --session x");
    let patient = Patient::new();
    let out = start(&patient);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(out.stderr, "warning: the hook is not registered with Claude Code: loops have no effect. `ralph init`\n");
    let patient = Patient::sound();
    let out = start(&patient);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    // A registration that the client does not get to see is none.
    let patient = Patient::sound();
    patient.edit_user(|s| s["disableAllHooks"] = json!(true));
    assert!(start(&patient).stderr.starts_with("warning: \"disableAllHooks\" is set in "));
    // A file that came with the project cannot keep it waiting.
    let bed = Bed::new();
    bed.write("plugins/.claude-plugin/marketplace.json", json!({"plugins": [{"name": "p", "source": "./p"}]}).to_string());
    std::fs::create_dir_all(bed.path("plugins/p/hooks")).unwrap();
    fifo(&bed.path("plugins/p/hooks/hooks.json"));
    let market = json!({"m": {"source": {"source": "directory", "path": bed.path("plugins")}}});
    let settings = json!({"hooks": {"Stop": entry("ralph")}, "enabledPlugins": {"p@m": true}, "extraKnownMarketplaces": market});
    bed.write(".claude/settings.json", settings.to_string());
    let out = bed.run(RALPH).args(["start", "Go", "--endless"]).output();
    assert_eq!((out.code, out.timed_out), (Some(0), false), "{out:?}");
    // And a name that leads nowhere is as good as nothing.
    assert!(
        out.stderr.contains(
            "`ralph hook claude --timeout 3600` in project settings, and no such program is on your PATH. `ralph init --project`"
        ),
        "{out:?}"
    );
}

/// A pipe where a file should be: whoever opens it to read waits for ever.
pub(super) fn fifo(path: &std::path::Path) {
    let done = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(done.success());
}
