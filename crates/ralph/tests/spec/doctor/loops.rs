//! Loops that were left, paused, broken or misspelt, ralph's own folder, the clock and the disk.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    time::Duration,
};

use ralph_testkit::Skip;
use serde_json::{Value, json};

use super::{Patient, age, changed, write};
use crate::common::{LOOP, ME, RALPH, loop_text, now_ms};

/// A process that is not there.
const NOBODY: &str = "4194303";

fn with_loop(text: &str) -> Patient {
    let patient = Patient::sound();
    patient.bed.write(LOOP, text);
    patient
}

#[test]
fn s2_8_a_loop_whose_session_is_gone() {
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless");
    patient.bed.work().env("CLAUDE_PID", NOBODY).send();
    let found = patient.complains("loop.left-behind", "warning", &["its session is gone"]);
    assert_eq!(found["advice"], "`ralph cancel main` ends it instead.");
    patient.mends("loop.left-behind", "warning", &[], "ralph resume main");
    assert_eq!(patient.bed.iteration(), 2, "the loop is where it was");
}

#[test]
fn s2_8_a_paused_loop() {
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless --name night --session x && ralph pause");
    patient.mends("loop.paused", "note", &["night"], "ralph resume night");
}

#[test]
fn s2_8_a_loop_file_that_cannot_be_read() {
    let patient = with_loop("---\niteration: many\n---\nGo\n");
    let found = patient.complains("loop.corrupt", "error", &["line 2: `iteration` must be a whole number"]);
    assert!(found["advice"].as_str().unwrap().contains(patient.bed.path(LOOP).to_str().unwrap()), "{found}");
    patient.mends("loop.corrupt", "error", &[], "ralph cancel main");
    assert_eq!(patient.bed.archived(), b"---\niteration: many\n---\nGo\n");
}

#[test]
fn s2_8_a_loop_file_that_git_tracks() {
    let patient = with_loop(&loop_text("null", 1, 9, "DONE"));
    patient.bed.git(&["add", "--force", LOOP]);
    let found = patient.complains("loop.tracked", "warning", &["git tracks its file"]);
    assert_eq!(found["fix"], "ralph resume main");
    patient.bed.git(&["rm", "--quiet", "--cached", LOOP]);
    patient.is_quiet_about("loop.tracked");
}

#[test]
fn s2_8_keys_that_are_misspelt() {
    let patient = with_loop(&loop_text(ME, 1, 9, "DONE").replace("max_iterations", "max_iteration"));
    let found = patient.complains("loop.keys", "warning", &["`max_iteration` sets nothing", "`max_iterations`"]);
    assert_eq!(found["advice"], "Correct the loop file.");
    patient.bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    patient.is_quiet_about("loop.keys");
}

#[test]
fn s2_8_temporary_files_of_an_interrupted_ralph() {
    let patient = Patient::sound();
    let claude = patient.bed.home().join(".claude");
    let left = [
        patient.bed.path(format!(".claude/.settings.json.ralph-{NOBODY}")),
        claude.join(format!(".settings.json.ralph-{NOBODY}")),
        claude.join(format!("commands/.ralph.md.ralph-{NOBODY}")),
    ];
    for path in &left {
        write(path, "{}");
    }
    // Somebody may still be working on them.
    patient.is_quiet_about("store.leftovers");
    for path in &left {
        age(path);
    }
    patient.mends("store.leftovers", "warning", &["3 temporary files", left[1].to_str().unwrap()], "ralph doctor --fix");
    assert!(left.iter().all(|path| !path.exists()));
    for name in ["settings.ralph-new", "settings.local.ralph-new", "ralph-loop.local.ralph-new", "ralph-loop.docs.local.ralph-new"] {
        write(&claude.join(name), "{}");
        age(&claude.join(name));
        patient.mends("store.leftovers", "warning", &["a temporary file", name], "ralph doctor --fix");
    }
}

/// A name that ralph never gives is a person's, whatever it looks like.
#[test]
fn s4_7_files_that_only_look_like_leftovers_stay() {
    let patient = Patient::sound();
    let claude = patient.bed.home().join(".claude");
    let names = [
        "notes.ralph-2024".to_owned(),
        ".mine.ralph-then".to_owned(),
        format!(".mine.ralph-{NOBODY}"),
        format!(".settings.json.bak.ralph-{NOBODY}"),
        format!("settings.json.ralph-{NOBODY}"),
        ".settings.json.ralph-20261115".to_owned(),
        format!(".settings.json.ralph-+{NOBODY}"),
        format!(".settings.json.ralph-0{NOBODY}"),
        ".settings.json.ralph-".to_owned(),
        format!(".settings.json.ralph-{}", std::process::id()),
        format!(".ralph-loop.md.ralph-{NOBODY}"),
        format!("commands/.mine.md.ralph-{NOBODY}"),
        format!("commands/.settings.json.ralph-{NOBODY}"),
        "my.ralph-new".to_owned(),
        "settings.mine.ralph-new".to_owned(),
        "ralph-loop.notes.ralph-new".to_owned(),
        "ralph-loop.a b.local.ralph-new".to_owned(),
    ];
    for name in &names {
        write(&claude.join(name), "mine");
        age(&claude.join(name));
    }
    fs::create_dir(claude.join(format!(".settings.local.json.ralph-{NOBODY}"))).unwrap();
    symlink(claude.join(&names[0]), claude.join(".settings.json.ralph-4194302")).unwrap();
    patient.is_quiet_about("store.leftovers");
    let before = patient.snapshot();
    patient.fix();
    assert_eq!(before, patient.snapshot());
}

/// A checkout can carry a `.ralph` that points anywhere: nothing there is touched, least of all deleted.
#[test]
fn s2_8_ralphs_own_folder_as_a_link_or_a_file() {
    let patient = Patient::sound();
    let elsewhere = patient.bed.home().join("elsewhere");
    write(&elsewhere.join("doctor"), "");
    write(&elsewhere.join(".gitignore"), "");
    symlink(&elsewhere, patient.bed.path(".ralph")).unwrap();
    let before = patient.snapshot();
    let own = patient.bed.path(".ralph");
    let found = patient.complains("store.folder", "error", &[own.to_str().unwrap()]);
    assert_eq!(found["advice"], format!("Make {} a folder that you can write to, or move it away.", own.display()));
    patient.report(&["--fix"]);
    fs::remove_file(elsewhere.join(".gitignore")).unwrap();
    patient.report(&[]);
    write(&elsewhere.join(".gitignore"), "");
    let paths = changed(&before, &patient.snapshot());
    assert_eq!(paths, [elsewhere.join(".gitignore")]);
    fs::rename(&own, patient.bed.path("moved")).unwrap();
    patient.is_quiet_about("store.folder");
    fs::write(&own, "a file").unwrap();
    patient.complains("store.folder", "error", &[own.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&own).unwrap(), "a file");
}

#[test]
fn s2_8_a_link_in_the_place_of_ralphs_folder_is_not_mended_through() {
    let patient = Patient::sound();
    let elsewhere = patient.bed.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, patient.bed.path(".ralph")).unwrap();
    patient.report(&["--fix"]);
    patient.complains("store.folder", "error", &[".ralph"]);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn s2_8_ralphs_folder_that_git_no_longer_ignores() {
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless --session x");
    fs::remove_file(patient.bed.path(".ralph/.gitignore")).unwrap();
    patient.mends("store.ignored", "warning", &[".ralph"], "ralph doctor --fix");
    assert_eq!(patient.bed.read(".ralph/.gitignore"), "*\n");
}

#[test]
fn s4_7_a_lock_that_another_process_holds_does_not_keep_the_doctor() {
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless --session x");
    let lock = File::options().write(true).open(patient.bed.path(".ralph/lock")).unwrap();
    lock.lock().unwrap();
    let out = patient.doctor(&[]);
    assert!(out.duration < Duration::from_secs(12), "{:?}", out.duration);
    patient.complains("store.lock", "error", &["another process has locked", ".ralph/lock"]);
    drop(lock);
    patient.is_quiet_about("store.lock");
}

/// Root may write anything, so this is tried as somebody else.
#[test]
fn s2_8_ralphs_folder_that_cannot_be_written() {
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless --session x && ralph cancel");
    fs::remove_file(patient.bed.path(".ralph/lock")).unwrap();
    let Ok(as_nobody) = as_somebody_else(patient.bed.home().parent().unwrap(), &patient.bed.path(".ralph")) else {
        return Skip("this needs root and setpriv".to_owned()).tell();
    };
    let mut command = patient.bed.command(&as_nobody[0]);
    command.args(&as_nobody[1..]).args([RALPH, "doctor", "--json"]);
    let out = crate::common::run(&mut command, b"");
    let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let found = super::findings(&report).into_iter().find(|f| f["id"] == "store.folder").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!((&found["severity"], out.code), (&json!("error"), Some(1)));
}

/// Root may write anything, so this is tried as somebody else.
#[test]
fn u9_a_project_that_cannot_be_written() {
    let patient = Patient::sound();
    let root = patient.bed.path("");
    let Ok(as_nobody) = as_somebody_else(patient.bed.home().parent().unwrap(), &root) else {
        return Skip("this needs root and setpriv".to_owned()).tell();
    };
    let mut command = patient.bed.command(&as_nobody[0]);
    command.args(&as_nobody[1..]).args([RALPH, "doctor", "--json"]);
    let out = crate::common::run(&mut command, b"");
    let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let found = super::findings(&report).into_iter().find(|f| f["id"] == "store.folder").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!((&found["severity"], out.code), (&json!("error"), Some(1)));
    assert!(found["what"].as_str().unwrap().ends_with("cannot be written, so no loop can start here"), "{found}");
}

/// A prefix that runs a command as an ordinary user, who may look at everything below `base` and not write into `folder`.
fn as_somebody_else(base: &Path, folder: &Path) -> Result<Vec<String>, Skip> {
    let setpriv = Skip::unless_installed("setpriv")?;
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n");
    // The program itself must be within reach of everybody.
    let reachable = Path::new(RALPH).ancestors().skip(1).all(|dir| {
        use std::os::unix::fs::PermissionsExt;
        dir.as_os_str().is_empty() || dir.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
    });
    let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(base).status().is_ok_and(|s| s.success());
    let closed = Command::new("chmod").args(["-R", "go-w"]).arg(folder).status().is_ok_and(|s| s.success());
    if !(is_root && reachable && opened && closed) {
        return Err(Skip("not root".to_owned()));
    }
    let args = ["--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned);
    Ok([setpriv.display().to_string()].into_iter().chain(args).collect())
}

#[test]
fn s2_8_a_log_that_cannot_be_written() {
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless --session x");
    let log = patient.bed.path(".ralph/hook.log");
    let _ = fs::remove_file(&log);
    fs::create_dir(&log).unwrap();
    patient.complains("store.log", "warning", &[log.to_str().unwrap()]);
    fs::remove_dir(&log).unwrap();
    patient.is_quiet_about("store.log");
}

#[test]
fn s2_8_a_journal_from_the_future() {
    let patient = Patient::sound();
    patient.sh_ok("ralph start Go --endless --session x");
    let last = patient.bed.journal().pop().unwrap();
    let (id, at) = (last["loop"].as_str().unwrap(), last["at"].as_str().unwrap());
    let later = ralph_core::text::time::format(now_ms() + 3 * 3_600_000);
    patient.bed.change_journal(id, |text| text.replace(at, &later));
    patient.complains("clock", "warning", &["a journal was written", "later"]);
    patient.bed.change_journal(id, |text| text.replace(&later, at));
    patient.is_quiet_about("clock");
}

#[test]
fn s2_8_a_disk_that_is_nearly_full() {
    for (size, severity) in [("8m", "error"), ("200m", "warning")] {
        let patient = Patient::sound();
        let place = patient.bed.path("small");
        fs::create_dir(&place).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&place).output();
        if !mounted.is_ok_and(|out| out.status.success()) {
            return Skip("a small file system cannot be mounted here".to_owned()).tell();
        }
        let out = patient.run(RALPH, &["doctor", "--json", "--directory", place.to_str().unwrap()]);
        assert!(Command::new("umount").arg(&place).status().unwrap().success());
        let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
        let found = super::findings(&report).into_iter().find(|f| f["id"] == "disk").unwrap();
        assert_eq!(found["severity"], severity, "{found}");
        assert!(found["what"].as_str().unwrap().contains(place.to_str().unwrap()), "{found}");
    }
}
