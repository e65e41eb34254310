//! The look before the first round (S4-6), in sealed projects; and whether the real client denies what it says, no more and no less.

use std::{collections::BTreeSet, fs, path::Path};

use ralph_engine::{
    hosts::Host,
    run::{
        preflight::{Weight, inner_iterations, look},
        session::Agent,
    },
    store::project::Project as Looked,
};
use ralph_testkit::{Client, ModelServer, Project, Reply, Version, or_skip};
use serde_json::{Value, json};

/// Not a test: the process that looks, with what the variables of [`remarks`] say.
#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn looks() {
    let Some(client) = std::env::var_os("TEST_CLIENT") else { return };
    let mode = std::env::var("TEST_MODE").ok();
    let inner = std::env::var("TEST_INNER").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let (project, agent) = (Looked::at(std::env::current_dir().unwrap()), Agent::Known(Host::ALL[0], client.into()));
    for remark in look(&project, mode.as_deref(), "", &[], &agent).into_iter().chain(inner_iterations(&project, inner, &agent)) {
        println!("\nREMARK {:?} {}", remark.weight, remark.text);
    }
}

/// What a look says in this project: the weight, and the sentence.
fn remarks(project: &Project, client: &Path, mode: Option<&str>, vars: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut run = project.run(std::env::current_exe().unwrap()).args(["preflight::looks", "--exact", "--ignored", "--nocapture"]);
    run = vars.iter().fold(run.env("TEST_CLIENT", client), |run, (name, value)| run.env(name, value));
    if let Some(mode) = mode {
        run = run.env("TEST_MODE", mode);
    }
    let out = run.output();
    assert!(out.success(), "{}{}", out.stdout, out.stderr);
    let lines = out.stdout.lines().filter_map(|line| line.strip_prefix("REMARK ")?.split_once(' '));
    lines.map(|(weight, text)| (weight.to_owned(), text.to_owned())).collect()
}

/// A program that says it is a client of this version.
fn client(project: &Project, says: &str) -> std::path::PathBuf {
    let path = project.script("client", &format!("#!/bin/sh\necho '{says}'\n"));
    let out = project.home().join("claude");
    fs::rename(path, &out).unwrap();
    out
}

fn settings(project: &Project, of_project: bool, settings: &Value) {
    let folder = if of_project { project.path(".claude") } else { project.home().join(".claude") };
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
}

fn weighs(weight: Weight) -> String {
    format!("{weight:?}")
}

#[test]
fn s4_6_what_cannot_work_is_refused_before_it_begins() {
    let project = Project::without_git();
    let good = client(&project, "2.1.325 (Claude Code)");
    let refusals = |client: &Path, mode: Option<&str>, vars: &[(&str, &str)]| -> Vec<String> {
        let all = remarks(&project, client, mode, vars);
        all.into_iter().filter(|(weight, _)| *weight == weighs(Weight::Refusal)).map(|(_, text)| text).collect()
    };
    assert_eq!(refusals(&good, None, &[]), Vec::<String>::new());
    let plan = "permission mode \"plan\" lets the agent change nothing: `ralph run --permission-mode acceptEdits`";
    assert_eq!(refusals(&good, Some("plan"), &[]), [plan]);
    settings(&project, false, &json!({"permissions": {"defaultMode": "plan"}}));
    assert_eq!(refusals(&good, None, &[]), [plan]);
    assert_eq!(refusals(&good, Some("acceptEdits"), &[]), Vec::<String>::new(), "what the runner asks for goes before");
    let is_root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let said = refusals(&good, Some("bypassPermissions"), &[]);
    assert_eq!(said.iter().any(|text| text.contains("as root") && text.contains("IS_SANDBOX=1")), is_root, "{said:?}");
    assert_eq!(refusals(&good, Some("bypassPermissions"), &[("IS_SANDBOX", "1")]), Vec::<String>::new());
    let old = client(&project, "2.1.20 (Claude Code)");
    assert!(refusals(&old, None, &[])[0].contains("Claude Code 2.1.20") && refusals(&old, None, &[])[0].contains("`claude update`"));
    let odd = client(&project, "\u{1b}[31mno");
    assert!(refusals(&odd, None, &[])[0].contains("said \"[31mno\": reinstall Claude Code"));
    assert!(refusals(Path::new("/nowhere/claude"), None, &[])[0].contains("did not answer"));
}

/// Rounds within a session are the work of its own stop hook.
#[test]
fn s4_6_inner_rounds_need_the_registered_hook() {
    let project = Project::without_git();
    let client = client(&project, "2.1.325 (Claude Code)");
    let of_hook = |inner: &str| {
        let all = remarks(&project, &client, Some("acceptEdits"), &[("TEST_INNER", inner)]);
        all.into_iter().filter(|(_, text)| text.contains("stop hook")).map(|(weight, _)| weight).collect::<Vec<_>>()
    };
    assert_eq!((of_hook("0"), of_hook("3")), (vec![], vec!["Warning".to_owned()]));
    let hook = json!({"type": "command", "command": "ralph", "args": ["hook", "claude"]});
    let settings = json!({"hooks": {"Stop": [{"hooks": [hook]}]}}).to_string();
    fs::create_dir_all(project.dir().join(".claude")).unwrap();
    fs::write(project.dir().join(".claude/settings.json"), settings).unwrap();
    assert_eq!(of_hook("3"), Vec::<String>::new());
}

#[test]
fn s4_6_the_rules_that_the_gates_need_are_named() {
    let project = Project::without_git();
    let client = client(&project, "2.1.325 (Claude Code)");
    project.write("ralph.toml", "[[gate]]\nname = \"t\"\ncommand = \"cargo test --workspace && ./lint.sh\"\n");
    // One remark says it, with the rules of this project's own gates.
    let hints = || -> Vec<String> {
        let all = remarks(&project, &client, Some("acceptEdits"), &[]);
        all.into_iter().map(|(_, text)| text).filter(|text| text.contains("permissions.allow")).collect()
    };
    let rules = "\"Bash(cargo test:*)\", \"Bash(./lint.sh)\" under permissions.allow in .claude/settings.local.json";
    assert!(matches!(&hints()[..], [one] if one.contains(rules)), "{:?}", hints());
    settings(&project, false, &json!({"permissions": {"allow": ["Bash(cargo test:*)", "Bash(./lint.sh)"]}}));
    assert_eq!(hints(), Vec::<String>::new());
}

/// A case: the mode that is asked for, the person's settings, the project's, whether the folder is trusted, and what is denied.
type Case<'a> = (Option<&'a str>, Value, Value, bool, &'a [&'a str]);

fn s4_6_the_client_denies_what_the_look_says(version: Version) {
    let client = or_skip!(Client::installed(version));
    let rule = json!({"permissions": {"allow": ["Bash(./check.sh:*)"]}});
    let edits = json!({"permissions": {"defaultMode": "acceptEdits", "allow": ["Bash(./check.sh:*)"]}});
    let cases: [Case<'_>; 7] = [
        (None, json!({}), json!({}), true, &["Write", "Bash"]),
        (Some("acceptEdits"), json!({}), json!({}), true, &["Bash"]),
        (None, edits.clone(), json!({}), true, &[]),
        (Some("acceptEdits"), json!({}), rule.clone(), true, &[]),
        (Some("acceptEdits"), json!({}), rule.clone(), false, &["Bash"]),
        (Some("dontAsk"), edits.clone(), json!({}), true, &["Write"]),
        (Some("bypassPermissions"), json!({}), json!({}), true, &[]),
    ];
    for (mode, of_user, of_project, trusted, expected) in cases {
        let project = Project::new();
        project.script("check.sh", "#!/bin/sh\necho checked\n");
        settings(&project, false, &of_user);
        settings(&project, true, &of_project);
        if !trusted {
            fs::write(project.home().join(".claude.json"), json!({"hasCompletedOnboarding": true}).to_string()).unwrap();
        }
        let write = json!({"file_path": project.path("made.txt"), "content": "x"});
        let server = ModelServer::scripted([Reply::tool("Write", write), Reply::bash("./check.sh"), Reply::text("done")]);
        let mut run = client.print(&project, &server, "go").stream_json();
        if let Some(mode) = mode {
            run = run.args(["--permission-mode", mode]);
        }
        let output = run.output();
        let denials = output.result().unwrap_or_else(|| panic!("{output:?}"))["permission_denials"].as_array().unwrap().clone();
        let denied: BTreeSet<&str> = denials.iter().map(|denial| denial["tool_name"].as_str().unwrap()).collect();
        assert_eq!(denied, expected.iter().copied().collect(), "{mode:?} {of_user} {of_project} {trusted}");
        let said = remarks(&project, &client.binary, mode, &[("IS_SANDBOX", "1")]);
        let warned: Vec<&str> = said.iter().filter(|(_, text)| text.contains("will be denied")).map(|(_, text)| text.as_str()).collect();
        for tool in ["Write", "Bash"] {
            let says = warned.iter().any(|text| text.split(" will be denied").next().unwrap().contains(tool));
            // A rule for one command says nothing about others: the look does not speak of commands then.
            let is_known = tool == "Write" || !of_user.to_string().contains("Bash(");
            assert!(!is_known || says == denied.contains(tool), "{mode:?} {of_user} {of_project} {trusted} {tool}: {said:?}");
        }
        assert_eq!(said.iter().any(|(_, text)| text.contains("has not been told to trust this folder")), !trusted, "{said:?}");
    }
}

newest!(s4_6_the_client_denies_what_the_look_says);
