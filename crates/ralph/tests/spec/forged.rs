//! What an agent could write or run itself to look as if its work were proven.

use std::{fs, os::unix::fs::PermissionsExt};

use ralph_testkit::Output;

use crate::{
    common::{Bed, LOOP, ME, RALPH, loop_text, run},
    gated::{COUNT, Gated, gate, reason},
};

/// `ralph` in the shell of an agent whose path begins with a folder of its own, in which `check` passes.
fn by_agent(bed: &Bed, args: &[&str]) -> Output {
    let fake = bed.home().join("fake");
    fs::create_dir_all(&fake).unwrap();
    fs::write(fake.join("check"), "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(fake.join("check"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", fake.display());
    run(bed.command(RALPH).args(args).env("CLAUDECODE", "1").env("PATH", path), b"")
}

/// S3-3: nothing that is believed lies where an agent that may edit the project writes.
#[test]
fn what_is_believed_lies_with_the_user() {
    let bed = Gated::new(&gate("bad", "exit 1", "old_failures = \"allow\""));
    reason(&bed.claim().send());
    for folder in [".ralph/cache", ".ralph/baseline"] {
        assert!(!bed.exists(folder), "{folder}");
    }
    assert_eq!((bed.kept("verdicts").len(), bed.kept("baseline").len()), (1, 1));
    assert_eq!(fs::read_to_string(bed.place_of_kept("root")).unwrap().trim_end(), bed.dir().display().to_string());
}

/// S3-3: a state folder that the project's own settings name is none.
#[test]
fn a_state_folder_in_the_project_is_not_used() {
    let bed = Gated::new(&gate("bad", &format!("{COUNT}; exit 1"), ""));
    let state = bed.path("state");
    // What was trusted lies in the user's own state folder, so nothing runs; and nothing is written beside it.
    bed.claim().env("XDG_STATE_HOME", &state).send();
    assert!(!state.exists());
}

/// S3-3: a pass that was made with an agent's programs is not believed.
#[test]
fn a_pass_in_an_agents_shell_proves_nothing() {
    let bed = Gated::new(&gate("check", "check || exit 3", ""));
    let out = by_agent(&bed, &["gate"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert_eq!(bed.kept("verdicts").len(), 0);
    assert!(reason(&bed.claim().send()).contains("exit code 3"), "there is no such program");
    let out = by_agent(&bed, &["gate"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert_eq!(bed.kept("verdicts").len(), 0, "the failure is measured again");
    assert!(reason(&bed.claim().send()).contains("exit code 3"));
    assert!(!bed.findings()[0]["cached"].as_bool().unwrap_or(false));
}

/// S3-3: nor are items.
#[test]
fn an_item_that_passed_in_an_agents_shell_is_proven_again() {
    let bed = Gated::new("");
    bed.write(
        "prd.json",
        r#"{"userStories": [{"id": "1", "title": "a", "passes": false, "verify": ["check || exit 1"]}, {"id": "2", "title": "b", "passes": false}]}"#,
    );
    bed.set("[[gate]]\nname = \"list\"\nfeatures = \"prd.json\"\n");
    let out = by_agent(&bed, &["item", "done", "1"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let told = reason(&bed.claim().send());
    assert!(told.contains("1 is marked as done, but its command fails"), "{told}");
}

/// S3-4: a suite that crashes does not fail as it did when the loop began.
#[test]
fn another_end_is_no_old_failure() {
    let bed = Bed::new();
    bed.write("code", "1");
    bed.write("ralph.toml", gate("suite", "exit $(cat code)", "old_failures = \"allow\""));
    bed.ralph_ok(&["trust", "--yes"]);
    assert_eq!(bed.ralph(&["start", "Go", "--completion-promise", "DONE", "--max-iterations", "9"]).code, Some(0));
    bed.write("code", "139");
    let told = reason(&bed.stop("<promise>DONE</promise>").send());
    assert!(told.contains("before the loop began it failed too, but with exit code 1"), "{told}");
    bed.write("code", "1");
    assert!(!bed.stop("Again. <promise>DONE</promise>").send().blocks(), "as it did at the start");
}

/// S3-4: a loop file that was written by hand again is another loop, even if it is called like the one before.
#[test]
fn a_second_loop_of_the_same_name_has_a_start_of_its_own() {
    let bed = Gated::new(&gate("fine", "true", ""));
    let is_by_hand = |line: &&str| !line.starts_with("started_at") && !line.starts_with("session_id");
    let by_hand: Vec<String> = loop_text(ME, 1, 20, "DONE").lines().filter(is_by_hand).map(str::to_owned).collect();
    let by_hand = by_hand.join("\n");
    bed.write(LOOP, &by_hand);
    bed.write("tests/a.rs", "#[test] fn one() {}\n#[test] fn two() {}\n");
    bed.works().send();
    bed.claim().send();
    assert!(!bed.exists(LOOP), "the first loop has ended");
    bed.write("tests/a.rs", "#[test] fn one() {}\n");
    bed.write(LOOP, &by_hand);
    bed.works().send();
    let last = bed.claim().send();
    assert!(!format!("{last:?}").contains("gone"), "{last:?}");
    assert!(!bed.exists(LOOP));
}

/// S3-4: who trusts changed settings sees first what they no longer ask for.
#[test]
fn trust_shows_what_became_weaker() {
    let bed = Gated::new(&(gate("tests", "make test", "") + &gate("lint", "make lint", "")));
    bed.works().send();
    bed.write("ralph.toml", gate("tests", "true", ""));
    let out = bed.ralph(&["trust", "--yes"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let shown = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Weaker than when the loop began: gate \"lint\" is gone (`make lint`)", "gate \"tests\" asked for `make test`"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
