//! The real client, both pinned versions, in print mode.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::time::Duration;

use ralph_testkit::{Client, Hook, ModelServer, Project, Reply, Settings, Version, or_skip, write_plugin};
use serde_json::Value;

/// A hook that keeps what it is given, one line per call, and answers nothing.
fn recording_hook(project: &Project) -> Hook {
    let script = "#!/bin/sh\ncat >> \"$CLAUDE_PROJECT_DIR/calls\"; echo >> \"$CLAUDE_PROJECT_DIR/calls\"\n";
    Hook::new(project.script("hook.sh", script))
}

fn calls(project: &Project) -> Vec<Value> {
    let text = project.read("calls");
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn events_of(calls: &[Value]) -> Vec<&str> {
    calls.iter().filter_map(|call| call["hook_event_name"].as_str()).collect()
}

fn plain_prompt(version: Version) {
    let client = or_skip!(Client::installed(version));
    let project = Project::new();
    let server = ModelServer::scripted([Reply::text("The scripted answer.")]);
    let output = client.print(&project, &server, "say something").output();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stdout, "The scripted answer.\n");
    let requests = server.main_requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].last_user_text().contains("say something"));
}

#[test]
fn older_answers_a_plain_prompt() {
    plain_prompt(Version::Older);
}

#[test]
fn newest_answers_a_plain_prompt() {
    plain_prompt(Version::Newest);
}

fn hooks_are_called(version: Version) {
    let client = or_skip!(Client::installed(version));
    let project = Project::new();
    Settings::new().hook(recording_hook(&project)).env("FROM_SETTINGS", "1").write(&project);
    let server = ModelServer::scripted([Reply::text("done")]);
    let output = client.print(&project, &server, "go").output();
    assert!(output.success(), "{output:?}");
    let calls = calls(&project);
    assert_eq!(events_of(&calls), ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]);
    assert_eq!(calls[2]["last_assistant_message"], "done");
    assert_eq!(project.transcripts().len(), 1);
}

#[test]
fn older_calls_a_registered_hook() {
    hooks_are_called(Version::Older);
}

#[test]
fn newest_calls_a_registered_hook() {
    hooks_are_called(Version::Newest);
}

fn hook_registered_twice(version: Version) {
    let client = or_skip!(Client::installed(version));
    let project = Project::new();
    let hook = recording_hook(&project).events(["Stop"]);
    Settings::new().hook(hook.clone()).write(&project);
    let plugin = write_plugin(&project, "twice", &[hook]);
    let server = ModelServer::scripted([Reply::text("done")]);
    let run = client.print(&project, &server, "go").arg("--plugin-dir").arg(plugin);
    assert!(run.output().success());
    assert_eq!(events_of(&calls(&project)), ["Stop", "Stop"]);
}

#[test]
fn older_calls_a_hook_twice_that_a_plugin_registers_again() {
    hook_registered_twice(Version::Older);
}

#[test]
fn newest_calls_a_hook_twice_that_a_plugin_registers_again() {
    hook_registered_twice(Version::Newest);
}

fn tool_round_trip(version: Version) {
    let client = or_skip!(Client::installed(version));
    let project = Project::new();
    let server = ModelServer::scripted([Reply::bash("echo made > made.txt; echo visible"), Reply::text("end")]);
    let run = client.print(&project, &server, "go").skip_permissions().stream_json();
    let output = run.output();
    assert!(output.success(), "{output:?}");
    assert_eq!(project.read("made.txt"), "made\n");
    let requests = server.main_requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].last_user_text().contains("visible"));
    assert_eq!(output.result().unwrap()["result"], "end");
}

#[test]
fn older_runs_a_tool() {
    tool_round_trip(Version::Older);
}

#[test]
fn newest_runs_a_tool() {
    tool_round_trip(Version::Newest);
}

fn api_error(version: Version) {
    let client = or_skip!(Client::installed(version));
    let project = Project::new();
    let server = ModelServer::with(|_| Reply::error(401, "authentication_error", "no such key"));
    let output = client.print(&project, &server, "go").stream_json().output();
    assert_eq!(output.code, Some(1), "{output:?}");
    let result = output.result().unwrap();
    assert_eq!(result["is_error"], true);
    assert!(result["result"].as_str().unwrap().contains("401"));
}

#[test]
fn older_reports_an_api_error() {
    api_error(Version::Older);
}

#[test]
fn newest_reports_an_api_error() {
    api_error(Version::Newest);
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_takes_too_long_is_killed_with_all_it_started() {
    let client = or_skip!(Client::installed(Version::Newest));
    let project = Project::new();
    // On a busy machine the client may need longer than that to get to its first command.
    for seconds in [4, 16, 64] {
        let server = ModelServer::scripted([Reply::bash("echo $$ > pid; tail -f /dev/null")]);
        let output = client.print(&project, &server, "go").skip_permissions().timeout(Duration::from_secs(seconds)).output();
        assert!(output.timed_out, "{output:?}");
        if project.path("pid").exists() {
            break;
        }
    }
    let pid: i32 = project.read("pid").trim().parse().unwrap();
    // A zombie (whoever inherited it may not have reaped it yet) has no command line any more.
    let gone = || std::fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty());
    for _ in 0..50 {
        if gone() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("process {pid} is still there");
}
