//! Settings, hooks, commands and permissions that are not as they should be. Each test breaks one thing, and mends it as it was told to.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use serde_json::{Value, json};

use super::{Patient, all_entries, answering, entry, executable, waiter, waiting, write};
use crate::common::RALPH;

#[test]
fn s2_8_a_hook_that_is_not_registered() {
    let patient = Patient::new();
    patient.mends("hook.registered", "error", &["not registered with Claude Code"], "ralph init");
}

#[test]
fn s2_8_a_plugin_and_settings_that_both_register_the_hook() {
    let patient = Patient::sound();
    plugin(&patient, "ralph", &all_entries(RALPH));
    let found = patient.complains("hook.twice", "warning", &["user settings", "plugin ralph@market"]);
    assert_eq!((&found["fix"], &found["fixable"]), (&json!("ralph doctor --fix"), &json!(true)));
    let fixed = patient.fix();
    assert!(fixed[0].starts_with("the hooks were taken out of ") && fixed[0].contains("settings.json"), "{fixed:?}");
    patient.is_quiet_about("hook.twice");
    // The short commands stay, and the hook of the plugin answers.
    patient.is_quiet_about("commands.missing");
    assert!(patient.bed.home().join(".claude/commands/ralph-loop.md").exists());
    patient.is_quiet_about("hook.answers");
}

/// The user's own registration counts in all projects, and the project's for everybody: neither goes by itself.
#[test]
fn s2_8_two_command_lines_in_two_files_and_in_one() {
    let patient = Patient::sound();
    patient.write_project(&all_entries(RALPH));
    let found = patient.complains("hook.twice", "warning", &["user settings", "project settings"]);
    assert_eq!(found["fixable"], false);
    assert_eq!(found["advice"], "It is everyone's; `ralph uninstall --user` removes yours instead.");
    patient.mends("hook.twice", "warning", &[], "ralph uninstall --project && ralph init");
    // A plugin that does not hear of everything is no reason to take out what does.
    let patient = Patient::sound();
    plugin(&patient, "ralph", &json!({"hooks": {"Stop": entry(RALPH)}}));
    assert_eq!(patient.complains("hook.twice", "warning", &[])["fixable"], false);
    patient.mends("hook.twice", "warning", &["plugin ralph@market"], "claude plugin disable ralph@market");
    // t13: one program in two files, under a name for each, is no mistake; what it costs is told.
    let patient = Patient::sound();
    patient.write_project(&json!({"hooks": {"Stop": entry("ralph")}}));
    let words = ["user settings", "project settings", "counts once and costs a process more"];
    patient.complains("hook.twice", "note", &words);
    // One command line in two files runs once.
    let mut same = entry("ralph");
    same[0]["hooks"][0]["args"].as_array_mut().unwrap().extend(["--via".into(), "user".into()]);
    patient.write_project(&json!({"hooks": {"Stop": same}}));
    patient.is_quiet_about("hook.twice");
    // Two in one file: taking both out would leave none.
    let patient = Patient::sound();
    patient.edit_user(|s| s["hooks"]["Stop"].as_array_mut().unwrap().push(entry(RALPH)[0].clone()));
    assert_eq!(patient.complains("hook.twice", "warning", &["user settings"])["fixable"], false);
    patient.mends("hook.twice", "warning", &[], "ralph uninstall --user && ralph init");
    patient.is_quiet_about("hook.registered");
}

#[test]
fn s2_8_events_that_are_missing() {
    let others = ["SubagentStop", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd", "Notification"];
    for event in others {
        let patient = Patient::sound();
        patient.edit_user(|s| drop(s["hooks"].as_object_mut().unwrap().remove(event)));
        patient.mends("hook.events", "warning", &[event], "ralph init");
    }
    for (n, words) in
        [(1, "the hook for StopFailure is not registered"), (0, "the hook for StopFailure that waits for the model's service")]
    {
        let patient = Patient::sound();
        patient.edit_user(|s| drop(s["hooks"]["StopFailure"].as_array_mut().unwrap().remove(n)));
        patient.mends("hook.events", "warning", &[words], "ralph init");
    }
    let patient = Patient::sound();
    patient.edit_user(|s| drop(s["hooks"]["Stop"].as_array_mut().unwrap().pop()));
    patient.mends("hook.events", "error", &["the hook for Stop is not registered: loops have no effect"], "ralph init");
    // An entry without its type is skipped by the client, or costs the whole file.
    let patient = Patient::sound();
    patient.edit_user(|s| drop(answering(s, "Stop").as_object_mut().unwrap().remove("type")));
    patient.mends("hook.events", "error", &["Stop"], "ralph init");
}

/// As the version before registered it, there is no hook that waits.
#[test]
fn s2_5_a_hook_that_waits_and_is_missing() {
    let patient = Patient::sound();
    let whole = fs::read_to_string(patient.user_file()).unwrap();
    patient.edit_user(|s| drop(s["hooks"]["Stop"].as_array_mut().unwrap().remove(0)));
    let words = ["the hook that waits for CI is not registered", "waits for CI inside the stop hook, and the screen is held meanwhile"];
    let found = patient.complains("hook.events", "warning", &words);
    assert_eq!((&found["fix"], &found["fixable"]), (&json!("ralph init"), &json!(true)));
    assert_eq!(patient.fix(), ["registered, as `ralph init` does"]);
    patient.is_quiet_about("hook.events");
    let settings = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(settings(&fs::read_to_string(patient.user_file()).unwrap()), settings(&whole));
    // A plugin of the version before is brought up to date by its own means.
    let patient = Patient::new();
    patient.write_user(&json!({}));
    let mut old = all_entries(RALPH);
    old["hooks"]["Stop"].as_array_mut().unwrap().remove(0);
    plugin(&patient, "ralph", &old);
    assert_eq!(patient.complains("hook.events", "warning", &words)["fix"], "claude plugin update ralph@market");
}

/// One that waits in the way of the stop would hold it for hours; one that judges in the background holds nothing.
#[test]
fn s2_5_a_hook_that_runs_in_the_wrong_place() {
    for (field, value) in [("asyncRewake", json!(null)), ("asyncRewake", json!(false)), ("async", json!(true))] {
        let patient = Patient::sound();
        patient.is_quiet_about("hook.background");
        patient.edit_user(|s| {
            let entry = waiting(s).as_object_mut().unwrap();
            entry.remove("asyncRewake");
            entry.insert(field.to_owned(), value.clone());
            entry.retain(|_, value| !value.is_null());
        });
        let words = ["the hook that waits for CI has no \"asyncRewake\" in user settings", "for hours"];
        let found = patient.complains("hook.background", "error", &words);
        assert_eq!((&found["fix"], &found["fixable"]), (&json!("ralph init"), &json!(true)));
        // Whoever starts a loop is told at once.
        let said = patient.sh("ralph start Go --endless && ralph cancel").stderr;
        assert!(said.contains("asyncRewake") && said.contains("`ralph init`"), "{said}");
        assert_eq!(patient.fix(), ["registered, as `ralph init` does"]);
        patient.is_quiet_about("hook.background");
    }
    for (event, field) in [("Stop", "async"), ("Stop", "asyncRewake"), ("SubagentStop", "async"), ("SessionStart", "asyncRewake")] {
        let patient = Patient::sound();
        patient.edit_user(|s| answering(s, event)[field] = json!(true));
        patient.mends(
            "hook.background",
            "error",
            &[&format!("the hook for {event} runs in the background"), "its answer is lost"],
            "ralph init",
        );
    }
    // In a plugin it is for the plugin to mend.
    let patient = Patient::new();
    patient.write_user(&json!({}));
    let mut hooks = all_entries(RALPH);
    waiting(&mut hooks).as_object_mut().unwrap().remove("asyncRewake");
    plugin(&patient, "ralph", &hooks);
    assert_eq!(patient.complains("hook.background", "error", &["plugin ralph@market"])["fix"], "claude plugin update ralph@market");
}

/// One that judges and one that waits are not two; two of a kind are.
#[test]
fn s2_5_two_hooks_that_wait() {
    let patient = Patient::sound();
    patient.is_quiet_about("hook.twice");
    patient.edit_user(|s| s["hooks"]["Stop"].as_array_mut().unwrap().push(waiter(RALPH)[0].clone()));
    let words = ["the hook that waits for CI is registered twice, in user settings"];
    patient.mends("hook.twice", "warning", &words, "ralph uninstall --user && ralph init");
    // One command line in two files runs once; another one of the same program beside it.
    let mut same = waiter("ralph");
    patient.write_project(&json!({"hooks": {"Stop": same}}));
    patient.complains("hook.twice", "note", &["that waits for CI", "project settings"]);
    same[0]["hooks"][0]["args"].as_array_mut().unwrap().extend(["--via".into(), "user".into()]);
    patient.write_project(&json!({"hooks": {"Stop": same}}));
    patient.is_quiet_about("hook.twice");
    // A plugin's runs beside it.
    let patient = Patient::sound();
    plugin(&patient, "ralph", &json!({"hooks": {"Stop": waiter("ralph")}}));
    assert_eq!(patient.complains("hook.twice", "warning", &["that waits for CI", "plugin ralph@market"])["fixable"], false);
    // A plugin of the version before is no reason to take out what is whole.
    let patient = Patient::sound();
    let mut old = all_entries(RALPH);
    old["hooks"]["Stop"].as_array_mut().unwrap().remove(0);
    plugin(&patient, "ralph", &old);
    assert_eq!(patient.complains("hook.twice", "warning", &["plugin ralph@market"])["fixable"], false);
}

/// A program that is gone would be missed only when CI is done; the one that judges is tried.
#[test]
fn s2_5_a_hook_that_waits_with_another_program() {
    let patient = Patient::sound();
    patient.edit_user(|s| waiting(s)["command"] = json!("/gone/ralph"));
    patient.mends("hook.program", "warning", &["`/gone/ralph hook claude --wait", "in user settings"], "ralph init");
}

#[test]
fn s2_8_a_timeout_that_is_too_short() {
    let patient = Patient::sound();
    patient.edit_user(|s| answering(s, "Stop")["timeout"] = json!(2));
    let found = patient.complains("hook.timeout", "warning", &["2 s", "user settings"]);
    assert_eq!(found["advice"], format!("Set \"timeout\" to 3600 in {}.", patient.user_file().display()));
    patient.edit_user(|s| answering(s, "Stop")["timeout"] = json!(3600));
    patient.is_quiet_about("hook.timeout");
    patient.is_quiet_about("hook.limit");
    patient.edit_user(|s| waiting(s)["timeout"] = json!(2));
    let found = patient.complains("hook.timeout", "warning", &["that waits for CI", "2 s", "wakes no session"]);
    assert_eq!(found["advice"], format!("Set \"timeout\" to 28800 in {}.", patient.user_file().display()));
}

/// Issue 4, point 8: the client ends a hook after the entry's `timeout`, and the hook goes by its own `--timeout`.
#[test]
fn s3_3_a_limit_that_the_hook_is_told_otherwise() {
    let old = json!({"type": "command", "command": "ralph", "args": ["hook", "claude"], "timeout": 60});
    for event in ["Stop", "SubagentStop"] {
        let entry = |change: Value| {
            let patient = Patient::sound();
            patient.is_quiet_about("hook.limit");
            patient.edit_user(|s| {
                let entry = answering(s, event).as_object_mut().unwrap();
                entry.extend(change.as_object().unwrap().clone());
                entry.retain(|_, value| !value.is_null());
            });
            patient
        };
        // As an older ralph registered it.
        let patient = entry(old.clone());
        patient.mends("hook.limit", "warning", &[event, "is given 60 s", "is not told so", "60 s at most"], "ralph init");
        assert_eq!(limits(&patient, event), (json!(3600), json!(["hook", "claude", "--timeout", "3600", "--via", "user"])));
        // A limit that a person chose stays, and the hook is told.
        let patient = entry(json!({"timeout": 900}));
        let found = patient.complains("hook.limit", "warning", &[event, "is given 900 s", "is told that it has 3600 s"]);
        assert_eq!((&found["fix"], &found["fixable"]), (&json!("ralph init"), &json!(true)));
        assert_eq!(patient.fix(), ["registered, as `ralph init` does"]);
        assert_eq!(limits(&patient, event), (json!(900), json!(["hook", "claude", "--timeout", "900", "--via", "user"])));
        patient.is_quiet_about("hook.limit");
        // One that is not there is the client's own, whatever that is.
        let patient = entry(json!({"timeout": null}));
        patient.mends("hook.limit", "warning", &[event, "is given no time of its own"], "ralph init");
        assert_eq!(limits(&patient, event), (json!(3600), json!(["hook", "claude", "--timeout", "3600", "--via", "user"])));
    }
    // The same for the one that waits.
    let patient = Patient::sound();
    patient.edit_user(|s| waiting(s)["timeout"] = json!(7200));
    let words = ["the hook that waits for CI is given 7200 s", "is told that it has 28800 s", "the wait for CI short"];
    patient.mends("hook.limit", "warning", &words, "ralph init");
    patient.edit_user(|s| {
        assert_eq!(waiting(s)["args"], json!(["hook", "claude", "--wait", "--timeout", "7200", "--via", "user"]));
        waiting(s)["args"] = json!(["hook", "claude", "--wait"]);
    });
    patient.mends("hook.limit", "warning", &["is not told so: the wait for CI may take 60 s at most"], "ralph init");
    // A plugin is mended by whoever made it.
    let patient = Patient::new();
    patient.write_user(&json!({}));
    plugin(&patient, "ralph", &json!({"hooks": {"Stop": [{"hooks": [old]}]}}));
    assert_eq!(patient.complains("hook.limit", "warning", &["plugin ralph@market"])["fix"], "claude plugin update ralph@market");
}

/// What an event's entry in the user's settings says about time.
fn limits(patient: &Patient, event: &str) -> (Value, Value) {
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(patient.user_file()).unwrap()).unwrap();
    let entry = answering(&mut settings, event);
    (entry["timeout"].clone(), entry["args"].clone())
}

/// One file that says so is enough for the client, even the weakest; the other key counts for administrators only.
#[test]
fn s2_8_hooks_that_are_switched_off() {
    let patient = Patient::sound();
    patient.edit_user(|s| s["disableAllHooks"] = json!(true));
    patient.bed.write(".claude/settings.local.json", "{\"disableAllHooks\": false}");
    let file = patient.user_file();
    let found = patient.complains("hooks.disabled", "error", &["disableAllHooks", file.to_str().unwrap()]);
    assert_eq!(found["advice"], "Set \"disableAllHooks\" to false there.");
    patient.edit_user(|s| s["disableAllHooks"] = json!(false));
    patient.is_quiet_about("hooks.disabled");
    patient.write_project(&json!({"allowManagedHooksOnly": true}));
    patient.is_quiet_about("hooks.disabled");
}

#[test]
fn s2_8_settings_that_the_client_cannot_read() {
    let cases: [(&[u8], &str); 7] = [
        (b"{\"a\": 1", "not valid JSON"),
        (b"{\n  // mine\n  \"a\": 1\n}", "not plain JSON (a comment or a trailing comma"),
        (b"{\"a\": [1,],}", "not plain JSON"),
        (b"[]", "not a JSON object"),
        (b"{\"permissions\": {\"defaultMode\": \"yolo\"}}", "\"permissions.defaultMode\" is \"yolo\""),
        (b"{\"permissions\": {\"defaultMode\": 5}}", "\"permissions.defaultMode\" is 5"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ];
    for (text, words) in cases {
        let patient = Patient::sound();
        let path = patient.bed.write(".claude/settings.json", text);
        let found = patient.complains("settings.invalid", "error", &[path.to_str().unwrap(), words]);
        assert_eq!(found["what"].as_str().unwrap().matches(path.to_str().unwrap()).count(), 1, "{found}");
        patient.write_project(&json!({}));
        patient.is_quiet_about("settings.invalid");
    }
    for fine in ["", " \n", "{}", "\u{feff}{}", "{\"permissions\": {\"defaultMode\": \"plan\"}}"] {
        let patient = Patient::sound();
        patient.bed.write(".claude/settings.json", fine);
        patient.is_quiet_about("settings.invalid");
    }
}

/// The hook is there for whoever reads the file, but not for the client: it is not registered a second time beside it.
#[test]
fn s2_8_a_registration_in_a_file_that_cannot_be_read_is_mended_there() {
    let patient = Patient::sound();
    let text = fs::read_to_string(patient.user_file()).unwrap();
    write(&patient.user_file(), &format!("// mine\n{text}"));
    let found = patient.complains("hook.registered", "error", &[]);
    assert_eq!((&found["fix"], &found["fixable"]), (&Value::Null, &json!(false)));
    assert_eq!(found["advice"], format!("Fix {} first, then look again.", patient.user_file().display()));
    write(&patient.user_file(), &text);
    patient.is_quiet_about("hook.registered");
}

#[test]
fn s2_8_a_registered_program_that_does_not_answer_as_ralph_does() {
    let cases = [
        ("text", "#!/bin/sh\necho Hello, I am another ralph.\n", "not one of ralph's: Hello, I am another ralph."),
        ("exit2", "#!/bin/sh\necho no such option >&2; exit 2\n", "exit code 2: no such option"),
        ("log", &*format!("#!/bin/sh\necho starting up\nexec {RALPH} \"$@\"\n"), "not one of ralph's: "),
        ("silent", "#!/bin/sh\n", "it said nothing, so the agent would have been let go"),
        ("killed", "#!/bin/sh\nkill -9 $$\n", "was killed"),
        ("other", "#!/bin/sh\necho '{\"decision\":\"block\",\"reason\":\"No.\"}'\n", "not one of ralph's"),
        ("loud", "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\n", "not one of ralph's: …xxx"),
    ];
    for (name, script, words) in cases {
        let patient = Patient::sound();
        let program = executable(&patient.bin.join(name).join("ralph"), script);
        patient.register(program.to_str().unwrap());
        patient.mends("hook.answers", "error", &[program.to_str().unwrap(), words], "ralph init");
    }
}

#[test]
fn s2_8_a_registered_program_that_is_gone_or_cannot_be_run() {
    let patient = Patient::sound();
    patient.register("/gone/ralph");
    patient.mends("hook.answers", "error", &["/gone/ralph", "the program was not found"], "ralph init");
    let program = patient.program("not/ralph", "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    patient.register(program.to_str().unwrap());
    patient.mends("hook.answers", "error", &[program.to_str().unwrap(), "could not be started"], "ralph init");
    // In a file of the project, that file is mended.
    let patient = Patient::new();
    patient.trust(true);
    patient.sh_ok("ralph init --project");
    let text = patient.bed.read(".claude/settings.json").replace("\"ralph\"", "\"/gone/ralph\"");
    patient.bed.write(".claude/settings.json", text);
    patient.mends("hook.answers", "error", &["project settings"], "ralph init --project");
}

#[test]
fn s4_7_a_registered_program_that_hangs_is_waited_for_and_no_longer() {
    let patient = Patient::sound();
    let program = patient.program("slow/ralph", "#!/bin/sh\nsleep 300\n");
    patient.register(program.to_str().unwrap());
    let out = patient.doctor(&[]);
    assert!(out.duration < Duration::from_secs(18), "{:?}", out.duration);
    assert!(out.code == Some(1) && out.stdout.contains("did not answer within 10 s"), "{}", out.stdout);
    assert_eq!(fs::read_dir(patient.bed.home().parent().unwrap().join("tmp")).unwrap().count(), 0);
}

/// What the client would do with the line is done with it: settings' variables, a program in the project, the shell.
#[test]
fn s4_7_the_made_up_stop_goes_the_way_that_the_client_takes() {
    let patient = Patient::sound();
    executable(&patient.bed.path("tools/ralph"), &format!("#!/bin/sh\n[ \"$WORD\" = yes ] && exec {RALPH} \"$@\"\n"));
    patient.write_project(&json!({"env": {"WORD": "yes"}}));
    patient.bed.write(".claude/settings.local.json", json!({"env": {"OTHER": "1"}}).to_string());
    for exec in ["./tools/ralph", "tools/ralph", "${CLAUDE_PROJECT_DIR}/tools/ralph", patient.bed.path("tools/ralph").to_str().unwrap()] {
        patient.register(exec);
        patient.is_quiet_about("hook.answers");
    }
    for shell in ["\"$CLAUDE_PROJECT_DIR/tools/ralph\" hook claude", "\"${CLAUDE_PROJECT_DIR}/tools/ralph\" hook"] {
        patient.edit_user(|s| *answering(s, "Stop") = json!({"type": "command", "command": shell, "timeout": 60}));
        patient.is_quiet_about("hook.answers");
    }
    // A path of the settings' own is the one that counts.
    patient.register("ralph");
    patient.write_project(&json!({"env": {"PATH": "/nowhere"}}));
    patient.complains("hook.answers", "error", &["the program was not found"]);
}

/// A plugin that is switched on.
pub(super) fn plugin(patient: &Patient, name: &str, hooks: &Value) {
    let home = patient.bed.home();
    let root = home.join(format!(".claude/plugins/cache/market/{name}/1.0.0"));
    write(&root.join("hooks/hooks.json"), &hooks.to_string());
    let id = format!("{name}@market");
    let installed = json!({"version": 2, "plugins": {&id: [{"scope": "user", "installPath": root, "version": "1.0.0"}]}});
    write(&home.join(".claude/plugins/installed_plugins.json"), &installed.to_string());
    patient.edit_user(|s| s["enabledPlugins"] = json!({ id: true }));
}

#[test]
fn s2_8_the_official_plugin_beside_ralph() {
    for name in ["ralph-loop", "ralph-wiggum"] {
        let patient = Patient::sound();
        plugin(&patient, name, &json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bash stop-hook.sh"}]}]}}));
        patient.is_quiet_about("hook.others");
        let id = format!("{name}@market");
        patient.mends("plugin.official", "error", &[&id, "same loop file"], &format!("claude plugin disable {id}"));
    }
}

#[test]
fn s2_8_other_stop_hooks_are_a_note() {
    let patient = Patient::sound();
    let other = json!({"hooks": [{"type": "command", "command": "notify-send done"}]});
    patient.edit_user(|s| s["hooks"]["Stop"].as_array_mut().unwrap().push(other));
    patient.complains("hook.others", "note", &["`notify-send done`", "user settings"]);
    assert!(patient.doctor(&[]).stdout.ends_with("\nNo problems found.\n"));
}

#[test]
fn s2_8_command_files_that_are_missing_changed_or_hidden() {
    let patient = Patient::sound();
    let file = patient.bed.home().join(".claude/commands/cancel-ralph.md");
    fs::remove_file(&file).unwrap();
    patient.mends("commands.missing", "warning", &["/cancel-ralph"], "ralph init");
    // Somebody's own is left alone, and named.
    write(&file, "My own.\n");
    let found = patient.complains("commands.changed", "note", &[file.to_str().unwrap()]);
    assert_eq!(found["advice"], "If you do not need it, move it away, then `ralph init`.");
    fs::remove_file(&file).unwrap();
    patient.sh_ok("ralph init");
    patient.is_quiet_about("commands.changed");
    // The user's beats the project's, so it is the one that counts, either way.
    patient.bed.write(".claude/commands/ralph-loop.md", "The project's.\n");
    patient.is_quiet_about("commands.changed");
    let users = patient.bed.home().join(".claude/commands/ralph-loop.md");
    fs::rename(&users, patient.bed.path("saved.md")).unwrap();
    patient.complains("commands.changed", "note", &[patient.bed.path(".claude/commands/ralph-loop.md").to_str().unwrap()]);
    // The hook of a project brings its commands along.
    let patient = Patient::new();
    patient.sh_ok("ralph init --project");
    fs::remove_dir_all(patient.bed.path(".claude/commands")).unwrap();
    patient.mends("commands.missing", "warning", &["/ralph-loop"], "ralph init --project");
    assert!(!patient.user_file().exists());
}

#[test]
fn s2_8_the_clients_cap() {
    let patient = Patient::new();
    patient.sh_ok("ralph init");
    patient.mends("block-cap", "note", &["after 8 stops", "after 7 such iterations"], "ralph init --block-cap 0");
    patient.edit_user(|s| s["env"]["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = json!("many"));
    patient.mends("block-cap", "warning", &["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "\"many\"", "takes 8"], "ralph init --block-cap 0");
    // Stronger settings have the last word, and are named.
    patient.write_project(&json!({"env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "12"}}));
    let found = patient.complains("block-cap", "note", &["after 12 stops"]);
    let file = patient.bed.path(".claude/settings.json");
    assert_eq!(found["advice"], format!("Set \"env\".\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\" to \"0\" in {}.", file.display()));
    patient.write_project(&json!({"env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}}));
    patient.is_quiet_about("block-cap");
    // Without a word in the settings, the variable of the shell counts.
    let mut patient = Patient::new();
    patient.env.push(("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0".to_owned()));
    patient.is_quiet_about("block-cap");
}

#[test]
fn s2_8_permission_modes() {
    for (mode, severity, words) in [
        ("plan", "warning", "the agent may change nothing"),
        ("dontAsk", "warning", "Edit, Write, Bash will be refused"),
        ("acceptEdits", "note", "Bash may need your approval"),
        ("default", "note", "Edit, Write, Bash may need"),
        ("bypassPermissions", "note", "nothing is held back"),
        ("auto", "", ""),
    ] {
        let patient = Patient::new();
        patient.write_user(&json!({"permissions": {"defaultMode": mode}}));
        if severity.is_empty() {
            patient.is_quiet_about("permissions");
        } else {
            patient.complains("permissions", severity, &[mode, words]);
        }
    }
    // In a project's settings these two do not count.
    for mode in ["auto", "bypassPermissions"] {
        let patient = Patient::sound();
        patient.write_project(&json!({"permissions": {"defaultMode": mode}}));
        let file = patient.bed.path(".claude/settings.json");
        patient.complains("permissions.ignored", "warning", &[mode, file.to_str().unwrap(), "does not count"]);
        patient.write_project(&json!({}));
        patient.edit_user(|s| s["permissions"]["defaultMode"] = json!(mode));
        patient.is_quiet_about("permissions.ignored");
    }
}

#[test]
fn s2_8_permission_rules() {
    let all = json!(["Edit(./**)", "Bash"]);
    for (permissions, severity, words) in [
        (json!({"allow": all}), "", ""),
        (json!({"allow": ["Edit(/**)", "Bash(*)"]}), "", ""),
        (json!({"allow": ["Edit", "Write", "Bash"], "defaultMode": "dontAsk"}), "", ""),
        (json!({"allow": ["Edit", "Bash"]}), "note", "Write may need"),
        (json!({"allow": ["Bash(cargo test)"], "defaultMode": "acceptEdits"}), "note", "Bash may need"),
        (json!({"allow": all, "deny": ["Bash"]}), "warning", "Bash will be refused"),
        (json!({"allow": all, "ask": ["Bash"]}), "note", "Bash may need"),
        (json!({"allow": all, "deny": ["Bash(rm:*)"]}), "", ""),
        (json!({"deny": ["Bash"], "defaultMode": "bypassPermissions"}), "warning", "Bash will be refused"),
    ] {
        let patient = Patient::new();
        patient.write_user(&json!({ "permissions": permissions }));
        if severity.is_empty() {
            assert_eq!(patient.complaints("permissions"), Vec::<Value>::new(), "{permissions}");
            continue;
        }
        patient.complains("permissions", severity, &[words]);
        // What the advice says, done.
        patient.write_user(&json!({"permissions": {"allow": ["Edit(./**)", "Bash"]}}));
        patient.is_quiet_about("permissions");
    }
}
