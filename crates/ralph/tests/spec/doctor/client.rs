//! The client: absent, old, strange, asleep; and a person without a home.

use std::{fs, time::Duration};

use serde_json::json;

use super::{Patient, all_entries};

#[test]
fn s2_8_no_client_is_a_warning_with_the_command_that_installs_it() {
    let patient = Patient::sound();
    fs::remove_file(patient.bin.join("claude")).unwrap();
    let found = patient.complains("client", "warning", &["`claude`", "PATH"]);
    assert_eq!(found["fix"], "npm install -g @anthropic-ai/claude-code");
    // Where its own installer puts it, it is found without a path.
    super::executable(&patient.bed.home().join(".local/bin/claude"), "#!/bin/sh\necho '2.1.325 (Claude Code)'\n");
    patient.is_quiet_about("client");
}

#[test]
fn s2_8_old_clients_are_told_apart() {
    for (version, severity, words) in [
        ("2.1.46", "error", "too old"),
        ("1.0.128", "error", "too old"),
        ("2.1.138", "warning", "ignores the arguments"),
        ("2.1.162", "note", "Stop hook error"),
    ] {
        let patient = Patient::sound();
        patient.client(&format!("{version} (Claude Code)"));
        patient.mends("client", severity, &[version, words, patient.bin.to_str().unwrap()], "claude update");
    }
    for fine in ["2.1.163 (Claude Code)", "2.1.325", "2.2.0 (Claude Code)", "10.0.0 (Claude Code)"] {
        let patient = Patient::sound();
        patient.client(fine);
        patient.is_quiet_about("client");
    }
}

#[test]
fn s2_8_a_client_that_answers_rubbish_is_shown_with_a_short_and_harmless_excerpt() {
    let answers = ["hello", "", "2.1", "v2.1.325", "2.1.x (Claude Code)", "\u{1b}]0;title\u{7}\u{1b}[31mred", &"x".repeat(100_000)];
    for said in answers {
        let patient = Patient::sound();
        patient.client(said);
        let found = patient.complains("client", "warning", &["claude --version"]);
        let what = found["what"].as_str().unwrap();
        assert!(what.len() < 400 && !what.chars().any(char::is_control), "{what:?}");
        assert!(!patient.doctor(&[]).stdout.contains('\u{1b}'));
    }
    let patient = Patient::sound();
    patient.program("claude", "#!/bin/sh\nexit 3\n");
    patient.complains("client", "warning", &["said \"\""]);
    patient.program("claude", "\0\u{1}\u{2} no program");
    patient.complains("client", "warning", &["claude --version"]);
}

#[test]
fn s4_7_a_client_that_hangs_is_waited_for_and_no_longer() {
    let patient = Patient::sound();
    patient.program("claude", "#!/bin/sh\nsleep 300\n");
    let out = patient.doctor(&[]);
    assert!(out.duration < Duration::from_secs(28), "{:?}", out.duration);
    assert_eq!(out.code, Some(0), "{}", out.stdout);
    assert!(out.stdout.contains("claude --version did not answer"), "{}", out.stdout);
}

/// What it leaves running costs nothing, neither time nor the answer.
#[test]
fn s4_7_a_client_that_leaves_something_running_is_heard_all_the_same() {
    let patient = Patient::sound();
    let mark = patient.bin.join("alive");
    patient.program("claude", &format!("#!/bin/sh\n(sleep 3; touch {}) &\necho '2.1.325 (Claude Code)'\n", mark.display()));
    patient.is_quiet_about("client");
    std::thread::sleep(Duration::from_secs(4));
    assert!(!mark.exists(), "what the probe started was not ended with it");
    // One that leaves its group is beyond reach, and its answer counts.
    patient.program("claude", "#!/bin/sh\necho '2.1.325 (Claude Code)'\nsetsid sleep 5 &\n");
    patient.is_quiet_about("client");
}

/// A folder that nobody trusts may hold a `claude`, and a path may have a gap.
#[test]
fn s4_7_a_client_in_the_current_folder_is_never_run() {
    let patient = Patient::sound();
    fs::remove_file(patient.bin.join("claude")).unwrap();
    for name in ["claude", "git"] {
        patient.bed.script(name, &format!("#!/bin/sh\ntouch {}\necho '2.1.325 (Claude Code)'\n", patient.bed.home().join("ran").display()));
    }
    for path in [".", "", "./", "nowhere:.", ".:/usr/bin:/bin", ":/usr/bin:/bin", "/usr/bin:"] {
        let out = patient.bed.run(patient.bin.join("ralph")).args(["doctor", "--json"]).env("PATH", path).output();
        assert!(!out.timed_out && out.stdout.starts_with('{'), "{out:?}");
        assert!(!patient.bed.home().join("ran").exists(), "PATH={path}");
    }
}

#[test]
fn s2_8_without_a_home_it_says_so_and_the_project_can_still_be_set_up() {
    let patient = Patient::new();
    let run = |line: &str| {
        let mut command = patient.bed.command("/bin/sh");
        command.env_remove("HOME").env("PATH", format!("{}:/usr/bin:/bin", patient.bin.display())).args(["-c", line]);
        crate::common::run(&mut command, b"")
    };
    let out = run("ralph doctor");
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.contains("! home             HOME is not set"), "{}", out.stdout);
    assert!(out.stdout.contains("fix: ralph init --local"), "{}", out.stdout);
    assert_eq!(run("ralph init --local").code, Some(0));
    let out = run("ralph doctor");
    assert_eq!(out.code, Some(0), "{}", out.stdout);
    assert!(out.stdout.contains("✓ hook.registered"), "{}", out.stdout);
}

#[test]
fn s2_8_a_folder_that_is_not_trusted_yet_is_a_note() {
    let patient = Patient::sound();
    patient.trust(false);
    patient.complains("client.trust", "note", &["trust this folder"]);
    patient.trust(true);
    patient.is_quiet_about("client.trust");
    // A folder above counts; a client that was never used has nothing to say.
    let above = json!({"projects": {patient.bed.home().parent().unwrap().to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    fs::write(patient.bed.home().join(".claude.json"), above.to_string()).unwrap();
    patient.is_quiet_about("client.trust");
    fs::remove_file(patient.bed.home().join(".claude.json")).unwrap();
    patient.is_quiet_about("client.trust");
}

/// The client and the registration are not to blame for it, and no reinstalling mends it.
#[test]
fn s4_7_a_folder_for_temporary_files_that_is_no_good_is_a_finding_of_its_own() {
    let mut patient = Patient::sound();
    // A second line, so that there are two that cannot be tried.
    patient.bed.write(".claude/settings.local.json", all_entries(crate::common::RALPH).to_string());
    let file = patient.bed.home().join("file");
    fs::write(&file, "").unwrap();
    for folder in ["/nowhere/at/all", file.to_str().unwrap(), "/proc"] {
        patient.env = vec![("TMPDIR", folder.to_owned())];
        let found = patient.complains("machine.temp", "warning", &["was not tried", folder]);
        assert!(found["fix"].is_null() && found["advice"].as_str().unwrap().starts_with("Set TMPDIR"), "{found}");
        patient.is_quiet_about("client");
        patient.is_quiet_about("hook.answers");
    }
}

/// Whoever can write into the folder for temporary files must not be able to prepare it for the client.
#[test]
fn s4_7_the_client_is_asked_outside_of_everybodys_folders() {
    let patient = Patient::sound();
    let mark = patient.bed.home().join("asked-in");
    patient.program("claude", &format!("#!/bin/sh\npwd > {}\necho '2.1.325 (Claude Code)'\n", mark.display()));
    patient.is_quiet_about("client");
    assert_eq!(fs::read_to_string(mark).unwrap(), "/\n");
}

#[test]
fn s4_7_what_an_interrupted_doctor_left_goes() {
    let patient = Patient::sound();
    let tmp = patient.bed.home().parent().unwrap().join("tmp");
    let folder = |name: &str, is_old: bool| {
        let path = tmp.join(name);
        super::write(&path.join(".claude/x"), "x");
        if is_old {
            fs::File::open(&path).unwrap().set_modified(std::time::SystemTime::now() - Duration::from_hours(1)).unwrap();
        }
        path
    };
    let left = folder("ralph-doctor-4194303-0123456789abcdef", true);
    let others = [
        folder("ralph-doctor-4194302-0123456789abcdef", false),
        folder("ralph-doctor-notes", true),
        folder(&format!("ralph-doctor-{}-0123456789abcdef", std::process::id()), true),
    ];
    patient.report(&[]);
    assert!(!left.exists() && others.iter().all(|path| path.join(".claude/x").exists()));
}
