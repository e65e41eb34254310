//! A loop as one file: it goes on elsewhere as if it had never moved.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};

use crate::{
    common::{Bed, LOOP, RALPH, run},
    run::Runs,
};

/// Claims to be done from the start; the gate holds once `done` exists. Its third session makes it.
const SCRIPT: &str = "[ $N = 3 ] && touch done\necho $RALPH_ITERATION >> work.txt\necho '<promise>DONE</promise>'\n";

/// Two iterations of five, a gate that fails, one note for the agent; then it rests.
fn in_the_middle() -> Runs {
    let runs = Runs::new(SCRIPT);
    let args = [
        "Work in $PWD",
        "--completion-promise",
        "DONE",
        "--verify",
        "test -f done",
        "--max-iterations",
        "5",
        "--idle-iterations",
        "4",
        "-n",
        "2",
    ];
    runs.ends(0, &args);
    runs.bed.ralph_ok(&["steer", "Use tabs"]);
    runs
}

/// A clone with the same files beside it, for the same user.
fn clone(runs: &Runs) -> std::path::PathBuf {
    let to = runs.bed.home().join("elsewhere");
    runs.bed.git(&["clone", "--quiet", ".", to.to_str().unwrap()]);
    fs::copy(runs.bed.path("work.txt"), to.join("work.txt")).unwrap();
    to
}

fn ralph_in(bed: &Bed, folder: &Path, args: &[&str]) -> ralph_testkit::Output {
    bed.ralph(&[&["-C", folder.to_str().unwrap()], args].concat())
}

fn status_of(bed: &Bed, folder: &Path) -> Value {
    let text = ralph_in(bed, folder, &["status", "--json"]).stdout;
    let root = folder.canonicalize().unwrap();
    serde_json::from_str(&text.replace(root.to_str().unwrap(), "ROOT")).unwrap()
}

#[test]
fn f3_a_loop_goes_on_in_another_folder_at_the_same_iteration() {
    let runs = in_the_middle();
    let (bed, file) = (&runs.bed, runs.out("loop.bundle"));
    let said: Value = serde_json::from_str(&bed.ralph_ok(&["bundle", "export", file.to_str().unwrap(), "--json"])).unwrap();
    assert_eq!((&said["name"], &said["iteration"]), (&json!("main"), &json!(3)), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let to = clone(&runs);
    let out = ralph_in(bed, &to, &["bundle", "import", "--trust", file.to_str().unwrap()]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let root = bed.path("").canonicalize().unwrap();
    assert_eq!(status_of(bed, &to), status_of(bed, &root));
    let doctor = ralph_in(bed, &to, &["status"]);
    assert!(!doctor.stdout.contains("journal"), "it fits its seal: {}", doctor.stdout);
    // The same agent, the next iteration, the note, the gate, a proven ending.
    let out = ralph_in(bed, &to, &["run", "--continue"]);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    assert_eq!(runs.iterations(), [1, 2, 3]);
    assert!(runs.prompt(3).contains("Use tabs") && runs.prompt(3).contains("iteration 3 of 5"), "{}", runs.prompt(3));
    assert!(to.join("done").exists() && !bed.exists("done") && !to.join(LOOP).exists());
    let report: Value = serde_json::from_str(&ralph_in(bed, &to, &["report", "--json"]).stdout).unwrap();
    assert_eq!(report["rounds"].as_array().map(Vec::len), Some(3), "{report}");
    // What ended there comes back, over the older state.
    let back = runs.out("back.bundle");
    assert_eq!(ralph_in(bed, &to, &["bundle", "export", back.to_str().unwrap()]).code, Some(0));
    let refused = bed.ralph(&["bundle", "import", back.to_str().unwrap()]);
    assert!(refused.code == Some(1) && refused.stderr.contains("here already"), "{}", refused.stderr);
    bed.ralph_ok(&["bundle", "import", back.to_str().unwrap(), "--replace", "--trust"]);
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.last_ended()["id"], said["id"]);
}

#[test]
fn f3_a_bundle_brings_no_trust_of_its_own() {
    let runs = in_the_middle();
    let file = runs.out("loop.bundle");
    runs.bed.ralph_ok(&["bundle", "export", file.to_str().unwrap()]);
    let to = clone(&runs);
    assert_eq!(ralph_in(&runs.bed, &to, &["bundle", "import", file.to_str().unwrap()]).code, Some(0));
    // Nor does it say which program is the agent: that is given again.
    let sessions = runs.sessions();
    let out = run(runs.bed.command(RALPH).args(["-C", to.to_str().unwrap(), "run", "--continue"]).env("PATH", "/nowhere"), b"");
    assert!(out.code != Some(0) && runs.sessions() == sessions, "{}{}", out.stdout, out.stderr);
    let out = ralph_in(&runs.bed, &to, &["run", "--continue", "--agent-cmd", &runs.agent_cmd()]);
    assert!(
        runs.sessions() > sessions && out.code != Some(0) && to.join(LOOP).exists(),
        "nobody let its command run: {}{}",
        out.stdout,
        out.stderr
    );
}

#[test]
fn f3_what_is_no_bundle_writes_nothing() {
    let runs = in_the_middle();
    let file = runs.out("loop.bundle");
    runs.bed.ralph_ok(&["bundle", "export", file.to_str().unwrap()]);
    let good: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let changed = |change: fn(&mut Value)| {
        let mut bundle = good.clone();
        change(&mut bundle);
        bundle.to_string()
    };
    let cases = [
        ("{".to_owned(), "no bundle"),
        (changed(|b| b["ralph_bundle"] = json!(2)), "version 2"),
        (changed(|b| b["project"]["../x"] = json!("x")), "../x"),
        (changed(|b| b["project"]["/etc/x"] = json!("x")), "/etc/x"),
        (changed(|b| b["project"][".ralph/logs/../../x"] = json!("x")), "would write"),
        (changed(|b| b["project"]["ralph.toml"] = json!("x")), "ralph.toml"),
        (changed(|b| b["state"]["verdicts/x"] = json!("x")), "verdicts/x"),
        (changed(|b| b["state"]["../trust/x.json"] = json!("x")), "would write"),
        (changed(|b| b["name"] = json!("../x")), "no loop"),
        (changed(|b| b["state"]["loops/main"] = json!("1 other named 0\n{}\n")), "no seal"),
    ];
    let to = clone(&runs);
    for (text, says) in cases {
        fs::write(&file, &text).unwrap();
        let out = ralph_in(&runs.bed, &to, &["bundle", "import", file.to_str().unwrap()]);
        assert!(out.code == Some(1) && out.stderr.contains(says), "{says}: {}", out.stderr);
        assert!(!to.join(LOOP).exists() && !to.join(".ralph/journal").exists(), "{says}");
    }
}

#[test]
fn f3_neither_an_armed_loop_nor_an_agent_makes_a_bundle() {
    let bed = Bed::with_loop(2, 5, "DONE");
    bed.stop("Not yet").send();
    let file = bed.home().join("loop.bundle");
    let out = bed.ralph(&["bundle", "export", file.to_str().unwrap()]);
    assert!(out.code == Some(1) && out.stderr.contains("ralph pause"), "{}", out.stderr);
    bed.ralph_ok(&["pause"]);
    bed.ralph_ok(&["bundle", "export", file.to_str().unwrap()]);
    let mut command = bed.command(crate::common::RALPH);
    command.args(["bundle", "import"]).arg(&file).env("CLAUDECODE", "1");
    let out = crate::common::run(&mut command, b"");
    assert!(out.code == Some(1) && out.stderr.contains("agent's shell"), "{}", out.stderr);
}
