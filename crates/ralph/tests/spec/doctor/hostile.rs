//! A checkout that somebody prepared: the doctor runs none of its programs, waits for none of its files, and prints none of its tricks.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Patient, entry, executable, sound::fifo, write};
use crate::common::RALPH;

/// A patient in a checkout that nobody has trusted yet, and the file that shows that a program of it ran.
fn stranger() -> (Patient, PathBuf) {
    let patient = Patient::new();
    patient.trust(false);
    let mark = patient.bed.home().join("ran");
    executable(&patient.bed.path("tools/ralph"), &format!("#!/bin/sh\ntouch {}\nexec {RALPH} \"$@\"\n", mark.display()));
    (patient, mark)
}

/// Registers a command line in the project's settings.
fn register(patient: &Patient, line: &Value) {
    patient.write_project(&json!({"hooks": {"Stop": [{"hooks": [line]}]}}));
}

#[test]
fn s4_7_a_program_of_an_untrusted_checkout_is_not_run() {
    let (patient, mark) = stranger();
    let tool = patient.bed.path("tools/ralph").display().to_string();
    let ran = format!("touch {}", mark.display());
    let lines = [
        json!({"type": "command", "command": tool, "args": ["hook", "claude"]}),
        json!({"type": "command", "command": "./tools/ralph", "args": ["hook"]}),
        json!({"type": "command", "command": "${CLAUDE_PROJECT_DIR}/tools/ralph", "args": ["hook"]}),
        json!({"type": "command", "command": format!("{tool} hook claude")}),
        json!({"type": "command", "command": format!("ralph hook claude; {ran}")}),
        json!({"type": "command", "command": format!("ralph hook claude\n{ran}")}),
        json!({"type": "command", "command": format!("ralph hook `{ran}`")}),
        json!({"type": "command", "command": format!("ralph hook claude | ({ran})")}),
        json!({"type": "command", "command": format!("{RALPH} hook claude $({ran})")}),
        json!({"type": "command", "command": RALPH, "args": ["hook", "claude", "--directory", "/"]}),
        json!({"type": "command", "command": RALPH, "args": ["hook", "claude", "--timeout", "9", "--directory", "/"]}),
    ];
    for line in lines {
        register(&patient, &line);
        let found =
            patient.complains("hook.untried", "warning", &["was not tried", patient.bed.path(".claude/settings.json").to_str().unwrap()]);
        assert!(found["advice"].as_str().unwrap().starts_with("Read that line."), "{found}");
        patient.report(&["--fix"]);
        assert!(!mark.exists(), "{line}");
        fs::remove_dir_all(patient.bed.home().join(".claude")).ok();
    }
    // Personal settings can be checked in just as well.
    fs::rename(patient.bed.path(".claude/settings.json"), patient.bed.path(".claude/settings.local.json")).unwrap();
    patient.complains("hook.untried", "warning", &["settings.local.json"]);
}

/// This program is this program, whoever names it; and once the folder is trusted the client would run the rest as well.
#[test]
fn s4_7_this_program_is_run_and_a_trusted_checkouts_too() {
    let (patient, mark) = stranger();
    for line in [
        json!({"type": "command", "command": "ralph", "args": ["hook", "claude"]}),
        json!({"type": "command", "command": RALPH, "args": ["hook"]}),
        json!({"type": "command", "command": RALPH, "args": []}),
        json!({"type": "command", "command": "ralph hook claude"}),
        json!({"type": "command", "command": RALPH, "args": ["hook", "claude", "--timeout", "3600"]}),
        json!({"type": "command", "command": "ralph hook claude --timeout 900"}),
    ] {
        register(&patient, &line);
        patient.is_quiet_about("hook.untried");
        patient.is_quiet_about("hook.answers");
    }
    register(&patient, &json!({"type": "command", "command": "./tools/ralph", "args": ["hook"]}));
    patient.trust(true);
    patient.is_quiet_about("hook.untried");
    patient.is_quiet_about("hook.answers");
    assert!(mark.exists());
}

/// A project can bring a marketplace of its own, and switch its plugin on.
#[test]
fn s4_7_a_plugin_that_came_with_the_checkout_is_not_run() {
    let (patient, mark) = stranger();
    let market = patient.bed.path("market");
    write(&market.join(".claude-plugin/marketplace.json"), &json!({"plugins": [{"name": "p", "source": "./p"}]}).to_string());
    executable(&market.join("p/bin/ralph"), &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    write(&market.join("p/hooks/hooks.json"), &json!({"hooks": {"Stop": entry("${CLAUDE_PLUGIN_ROOT}/bin/ralph")}}).to_string());
    let source = json!({"source": {"source": "directory", "path": market}});
    patient.write_project(&json!({"enabledPlugins": {"p@m": true}, "extraKnownMarketplaces": {"m": source}}));
    patient.complains("hook.untried", "warning", &["${CLAUDE_PLUGIN_ROOT}/bin/ralph", "p/hooks/hooks.json"]);
    assert!(!mark.exists());
    // One that the person added is theirs.
    patient.write_user(&json!({"extraKnownMarketplaces": {"m": source}}));
    patient.is_quiet_about("hook.untried");
    assert!(mark.exists());
}

/// Variables of the project's settings could make any program run another.
#[test]
fn s4_7_variables_of_an_untrusted_checkout_do_not_count() {
    let (patient, mark) = stranger();
    let bad = executable(&patient.bed.path("bad/ralph"), &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    let folder = bad.parent().unwrap().display().to_string();
    let env = json!({
        "PATH": folder, "LD_PRELOAD": "/nowhere.so", "BASH_ENV": bad, "ENV": bad, "GIT_SSH_COMMAND": bad, "GIT_EXEC_PATH": folder,
        "GIT_DIR": "/nowhere", "GIT_EXTERNAL_DIFF": bad, "HOME": folder, "RALPH_LOG": patient.bed.home().join("ran"), "RALPH_FAULT": "panic",
    });
    for command in [json!({"type": "command", "command": "ralph", "args": ["hook"]}), json!({"type": "command", "command": "ralph hook"})] {
        patient.write_project(&json!({"env": env, "hooks": {"Stop": [{"hooks": [command]}]}}));
        patient.is_quiet_about("hook.answers");
        assert!(!mark.exists());
    }
}

/// An unpacked archive brings a `.git` with a configuration.
#[test]
fn s4_7_git_runs_nothing_that_the_checkout_brings() {
    let (patient, mark) = stranger();
    let touch = format!("touch {}; cat", mark.display());
    for key in ["filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "core.sshCommand", "diff.external", "core.pager"] {
        patient.bed.git(&["config", key, &touch]);
    }
    patient.bed.write(".gitattributes", "* filter=evil\n");
    for hook in ["post-index-change", "pre-commit", "post-checkout"] {
        executable(&patient.bed.path(format!(".git/hooks/{hook}")), &format!("#!/bin/sh\n{touch}\n"));
    }
    let readme = fs::File::options().write(true).open(patient.bed.path("README.md")).unwrap();
    readme.set_modified(std::time::SystemTime::now() - Duration::from_hours(1)).unwrap();
    patient.complains("git", "note", &["branch main", "uncommitted"]);
    patient.report(&["--fix"]);
    patient.trust(true);
    patient.complains("git", "note", &["uncommitted"]);
    assert!(!mark.exists(), "nor in a trusted folder");
    patient.bed.git(&["status"]);
    assert!(mark.exists(), "git itself does run it");
}

/// A submodule is asked by a git of its own, which reads a configuration of its own.
#[test]
fn s4_7_git_asks_no_submodule() {
    let (patient, mark) = stranger();
    let file = patient.bed.write("sub/a", "a\n");
    let git = |line: &str| patient.sh_ok(&format!("cd sub && git {line}"));
    git("init -q && git add a && git -c user.name=T -c user.email=t@e.invalid commit -q -m x");
    patient.bed.git(&["add", "sub"]);
    patient.bed.git(&["commit", "-q", "-m", "a submodule"]);
    git(&format!("config filter.evil.clean 'touch {}; cat'", mark.display()));
    patient.bed.write("sub/.git/info/attributes", "* filter=evil\n");
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_hours(1)).unwrap();
    patient.report(&[]);
    assert!(!mark.exists());
    patient.bed.git(&["status"]);
    assert!(mark.exists(), "git itself does run it");
}

/// Pipes, folders, devices and very large files where text should be.
#[test]
fn s4_7_strange_files_keep_nobody_waiting() {
    let places = [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/commands/ralph-loop.md",
        ".claude/ralph-loop.local.md",
        ".ralph/lock",
        ".ralph/hook.log",
        ".ralph/journal/x.jsonl",
    ];
    let homes = [".claude/settings.json", ".claude.json", ".claude/plugins/installed_plugins.json", ".claude/commands/ralph.md"];
    let ways: [fn(&Path); 4] = [
        fifo,
        |path| fs::create_dir(path).unwrap(),
        |path| symlink("/dev/zero", path).unwrap(),
        |path| fs::File::create(path).unwrap().set_len(40 << 30).unwrap(),
    ];
    for way in ways {
        let patient = Patient::new();
        patient.sh_ok("ralph start Go --endless --name other --session x && ralph init");
        for path in places.map(|place| patient.bed.path(place)).into_iter().chain(homes.map(|place| patient.bed.home().join(place))) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            way(&path);
        }
        let out = patient.doctor(&["--fix"]);
        assert!(out.code == Some(1) && out.duration < Duration::from_secs(15), "{:?}: {}", out.duration, out.stdout);
        assert!(out.stdout.contains("settings.invalid") && out.stdout.len() < 20_000, "{}", out.stdout);
    }
}

#[test]
fn s4_7_nothing_that_is_printed_drives_the_terminal() {
    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\u{8}";
    let patient = Patient::sound();
    patient.trust(false);
    let json = json!({
        "hooks": {"Stop": [{"hooks": [
            {"type": "command", "command": format!("{EVIL}/ralph"), "args": ["hook"]},
            {"type": "command", "command": format!("other {EVIL}")},
        ]}]},
        "env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": EVIL},
        "permissions": {"defaultMode": EVIL},
    });
    patient.write_project(&json);
    patient.bed.write(format!(".claude/.{EVIL}.ralph-4194303"), "");
    patient.bed.write(".claude/ralph-loop.local.md", format!("---\nmax_iteration{EVIL}: 1\niteration: {EVIL}\n---\nGo {EVIL}\n"));
    let is_tricky = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    for args in [vec![], vec!["--fix"]] {
        let out = patient.doctor(&args);
        assert!(!is_tricky(&out.stdout), "{:?}", out.stdout);
    }
    let folder = patient.bed.dir().join(format!("a{EVIL}b"));
    fs::create_dir(&folder).unwrap();
    let out = patient.bed.run(RALPH).args(["doctor"]).cwd(&folder).output();
    assert!(!is_tricky(&out.stdout) && !is_tricky(&out.stderr), "{out:?}");
}

/// What is printed as a command may be copied into a shell.
#[test]
fn s4_7_a_printed_command_is_one_command() {
    let (patient, mark) = stranger();
    let market = format!("m; touch {} #'", mark.display());
    let place = patient.bed.path("market");
    write(&place.join(".claude-plugin/marketplace.json"), &json!({"plugins": [{"name": "ralph-loop", "source": "./p"}]}).to_string());
    let source = json!({"source": {"source": "directory", "path": place}});
    let id = format!("ralph-loop@{market}");
    patient.write_project(&json!({"enabledPlugins": {&id: true}, "extraKnownMarketplaces": {market: source}}));
    let found = patient.complains("plugin.official", "error", &["ralph-loop@m"]);
    patient.program("claude", "#!/bin/sh\nprintf '%s' \"$3\" > ~/third\n");
    patient.sh_ok(found["fix"].as_str().unwrap());
    assert!(!mark.exists());
    assert_eq!(fs::read_to_string(patient.bed.home().join("third")).unwrap(), id);
}
