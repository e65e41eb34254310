//! Gates that could not prove anything: they cannot be read, are not trusted, or name what is not there.

use super::Patient;

const TESTS: &str = "[[gate]]\nname = \"tests\"\ncommand = \"true\"\n";

#[test]
fn s3_2_settings_that_cannot_be_read_are_named_with_their_line() {
    let patient = Patient::sound();
    patient.bed.write("ralph.toml", "\n[[gate]]\ncomand = \"x\"\n");
    patient.complains("gates.settings", "error", &["ralph.toml", "line 3", "comand"]);
    patient.bed.write("ralph.toml", "");
    patient.is_quiet_about("gates.settings");
}

/// What a subagent has to pass is left out then, and the loop's own gates stay.
#[test]
fn s3_2_a_broken_worktree_yaml_is_a_warning() {
    let patient = Patient::sound();
    for file in [".ideal/worktree.yaml", ".trellis/worktree.yaml"] {
        patient.bed.write(file, "verify: [\n");
        patient.complains("gates.verify", "warning", &[file]);
        patient.bed.write(file, "");
        patient.is_quiet_about("gates.verify");
    }
}

#[test]
fn s4_1_a_list_that_cannot_be_read() {
    let patient = Patient::sound();
    patient.bed.write("ralph.toml", "[[gate]]\nfeatures = \"work/list.json\"\n");
    let found = patient.complains("gates.list", "error", &["work/list.json is not there"]);
    assert!(!found["what"].as_str().unwrap().contains("os error") && found["advice"] != "Fix it.", "{found}");
    patient.bed.write("work/list.json", "{\"features\": [");
    patient.complains("gates.list", "error", &["work/list.json", "line 1"]);
    patient.bed.write("work/list.json", r#"{"features": [{"id": "1", "description": "x", "passes": false}]}"#);
    patient.is_quiet_about("gates.list");
}

#[test]
fn commands_that_nobody_trusted_are_an_error_that_ralph_trust_mends() {
    let patient = Patient::sound();
    patient.bed.write("ralph.toml", TESTS);
    let found = patient.complains("gates.trust", "error", &["ralph.toml", "not trusted"]);
    assert_eq!(found["fix"], "ralph trust");
    patient.sh_ok("ralph trust --yes");
    patient.is_quiet_about("gates.trust");
    assert!(patient.doctor(&[]).stdout.contains("1 check of ralph.toml may run, for 2 min at most"));
    patient.bed.write("ralph.toml", TESTS.replace("true", "true && true"));
    patient.complains("gates.trust", "error", &["ralph.toml", "changed since you trusted it"]);
}

/// A list that merely lies there asks nobody for anything; one that a loop has to work off does.
#[test]
fn commands_that_nobody_has_to_pass_are_a_note() {
    let patient = Patient::sound();
    patient.bed.write("prd.json", r#"{"userStories": [{"id": "1", "passes": false, "verify": "true"}]}"#);
    patient.complains("gates.trust", "note", &["prd.json", "No loop needs it now"]);
    patient.sh_ok("ralph start Go --endless --session x --preset features 2> /dev/null");
    patient.complains("gates.trust", "error", &["prd.json", "no loop can prove anything"]);
    patient.sh_ok("ralph cancel");
    patient.bed.write("ralph.toml", "[[gate]]\nfeatures = \"prd.json\"\n");
    patient.complains("gates.trust", "error", &["prd.json"]);
}

#[test]
fn s3_2_commands_of_check_agents_are_told_as_such() {
    let patient = Patient::sound();
    patient.bed.write(".ideal/worktree.yaml", "verify:\n  - sh -c true\n");
    patient.complains("gates.trust", "error", &[".ideal/worktree.yaml", "the work of check agents stays unverified"]);
    patient.edit_user(|s| drop(s["hooks"].as_object_mut().unwrap().remove("SubagentStop")));
    patient.complains("gates.trust", "note", &[".ideal/worktree.yaml"]);
    patient.sh_ok("ralph start Go --endless --session x --preset verify 2> /dev/null");
    patient.complains("gates.trust", "error", &["no loop can prove anything"]);
}

#[test]
fn a_folder_that_is_not_there_is_found_and_a_program_told_once() {
    let patient = Patient::sound();
    let gate = |name: &str, rest: &str| format!("[[gate]]\nname = \"{name}\"\n{rest}\n");
    let gates = [
        gate("a", "command = \"./run\"\nfolder = \"gone\""),
        gate("b", "command = \"no-such-tool one\""),
        gate("c", "command = \"no-such-tool two\"\ndeadline = \"5m\""),
    ];
    patient.bed.write("ralph.toml", gates.concat());
    patient.sh_ok("ralph trust --yes");
    patient.complains("gates.folder", "warning", &["\"a\" of ralph.toml", "gone"]);
    patient.complains("gates.program", "warning", &["\"b\" of ralph.toml and 1 more need `no-such-tool`"]);
    assert!(!patient.doctor(&[]).stdout.contains("--fix"), "nothing of it can be fixed by itself");
    patient.bed.write("ralph.toml", [gate("b", "command = \"true\""), gate("c", "command = \"true\"\ndeadline = \"5m\"")].concat());
    patient.sh_ok("ralph trust --yes");
    assert!(patient.doctor(&[]).stdout.contains("2 checks of ralph.toml may run, the longest for 5 min at most"));
}

/// The permission mode is no check, and holds for runs only.
#[test]
fn u9_a_check_is_counted_as_one_and_the_mode_is_told_apart() {
    let patient = Patient::sound();
    patient.edit_user(|s| drop(s.as_object_mut().unwrap().remove("permissions")));
    let mode = "[run]\npermission_mode = \"acceptEdits\"\n";
    patient.bed.write("ralph.toml", [TESTS, mode].concat());
    let said = patient.doctor(&[]).stdout;
    assert!(said.contains("you have not trusted it, so its command does not run"), "{said}");
    assert!(!said.contains("In sessions of `ralph run`"), "not agreed to yet: {said}");
    patient.sh_ok("ralph trust --yes");
    let said = patient.doctor(&[]).stdout;
    assert!(said.contains("1 check of ralph.toml may run, for 2 min at most; `ralph run` uses the permission mode acceptEdits"), "{said}");
    assert!(said.contains("refused. In sessions of `ralph run`, \"acceptEdits\" of ralph.toml allows Edit, Write\n"), "{said}");
    assert!(!said.contains("\"decision\"") && !said.contains("additionalContext"), "an answer is no reading for people: {said}");
}

#[test]
fn s4_7_start_warns_of_commands_that_nobody_trusted() {
    let patient = Patient::sound();
    patient.bed.write("ralph.toml", TESTS);
    let out = patient.sh("ralph start Go --endless --session x");
    assert_eq!(out.code, Some(0));
    assert!(out.stderr.contains("ralph.toml: you have not trusted it") && out.stderr.contains("`ralph trust`"), "{out:?}");
    patient.sh_ok("ralph trust --yes && ralph cancel");
    assert_eq!(patient.sh("ralph start Go --endless --session x").stderr, "");
}

#[test]
fn a_program_that_is_not_there_is_a_warning_where_it_is_plain_to_see() {
    let patient = Patient::sound();
    let tells = |gate: &str| {
        patient.bed.write("ralph.toml", format!("[[gate]]\nname = \"x\"\n{gate}\n"));
        patient.sh_ok("ralph trust --yes");
        !patient.complaints("gates.program").is_empty()
    };
    for missing in
        ["command = \"no-such-tool --all\"", "command = \"A=1 no-such-tool\"", "command = [\"./no-such\"]", "command = \"bin/no-such\""]
    {
        assert!(tells(missing), "{missing}");
    }
    patient.complains("gates.program", "warning", &["\"x\" of ralph.toml", "`bin/no-such`"]);
    patient.bed.write("sub/bin/tool", "");
    for there in [
        "command = \"sh -c true\"",
        "command = \"cd sub && no-such-tool\"",
        "command = \"$TOOL --all\"",
        "command = \"(no-such-tool)\"",
        "command = [\"bin/tool\"]\nfolder = \"sub\"",
    ] {
        assert!(!tells(there), "{there}");
    }
}

#[test]
fn s3_1_a_proof_of_subagents_that_nobody_hears_of() {
    let patient = Patient::sound();
    patient.bed.write(".ideal/worktree.yaml", "verify:\n  - sh -c true\n");
    patient.sh_ok("ralph trust --yes");
    patient.is_quiet_about("gates.subagents");
    patient.edit_user(|s| drop(s["hooks"].as_object_mut().unwrap().remove("SubagentStop")));
    patient.mends("gates.subagents", "error", &[".ideal/worktree.yaml", "SubagentStop"], "ralph init");
}

/// What the hook has no time for proves nothing; those that run side by side take the time of the longest.
#[test]
fn deadlines_and_the_hooks_own_time_agree() {
    let patient = Patient::sound();
    let gates = |deadline: &str, parallel: bool| -> String {
        let one = |n: usize| format!("[[gate]]\nname = \"{n}\"\ncommand = \"true\"\ndeadline = \"{deadline}\"\nparallel = {parallel}\n");
        (1..=3).map(one).collect()
    };
    patient.bed.write("ralph.toml", gates("19m", false));
    patient.is_quiet_about("gates.time");
    patient.bed.write("ralph.toml", gates("20m", false));
    patient.complains("gates.time", "warning", &["at Stop may take 1 h together", "the hook has 58 min 48 s"]);
    patient.bed.write("ralph.toml", gates("20m", true));
    patient.is_quiet_about("gates.time");
    patient.bed.write("ralph.toml", "[verify]\ncommands = [{ run = \"true\", deadline = \"2h\" }]\n");
    patient.complains("gates.time", "warning", &["at SubagentStop may take 2 h"]);
    patient.bed.write("ralph.toml", gates("20s", false));
    patient.edit_user(|s| super::answering(s, "Stop")["args"] = serde_json::json!(["hook", "claude"]));
    patient.complains("gates.time", "warning", &["at Stop may take 1 min together", "the hook has 55 s"]);
}

/// Looking runs nothing, and a stranger's words steer no terminal.
#[test]
fn a_hostile_file_runs_nothing_and_draws_nothing() {
    let patient = Patient::sound();
    let evil = "\\u001b[2J\\u001b]0;owned\\u0007";
    for text in [
        format!("[[gate]]\ncommand = \"touch ran; echo {evil}\"\n"),
        format!("[[gate]]\ncommand = [\"{evil}\", \"x\"]\n"),
        format!("[[gate]]\nname = \"{evil}\"\ncommand = \"x\"\n"),
        format!("\"{evil}\" = 1\n"),
        format!("[[gate]]\ncommand = \"{}\"\n", "x".repeat(900_000)),
        "x = [".repeat(100_000),
    ] {
        patient.bed.write("ralph.toml", &text);
        let out = patient.doctor(&[]);
        assert!(!out.stdout.contains(['\u{1b}', '\u{7}']), "{:?}", out.stdout);
        assert!(out.stdout.len() < 20_000, "{}", out.stdout.len());
        assert!(!patient.bed.path("ran").exists());
    }
}
