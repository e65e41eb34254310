//! `ralph run --agent acp:NAME` with the real clients, against the scripted model: one client of the protocol for all of them (h6 of issue "any agent").

use std::{path::Path, time::Duration};

use crate::{
    hosts::in_every_agent,
    real::{LOOP, RALPH},
    run_agents::{bed, model, records},
};
use ralph_testkit::{Agent, Output, Project, Reply, Request, or_skip};
use serde_json::Value;

const TASK: &str = "Write the answer down and prove it.";

in_every_agent! { in [gemini copilot qwen droid grok goose hermes], nightly [opencode]:
    h6_a_run_over_acp_goes_on_until_its_claim_is_proven
}

in_every_agent! { in [gemini copilot goose], nightly [qwen droid grok opencode hermes]:
    h6_a_key_that_does_not_count_is_told_over_acp
}

// Hermes asks for dangerous commands only.
in_every_agent! { in [gemini copilot goose], nightly [qwen droid grok opencode]:
    h6_what_is_asked_for_is_answered_by_the_permission_mode
}

fn run(project: &Project, program: &Path, agent: &Agent, mode: &str, more: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let name = format!("acp:{}", agent.name);
    let args = ["run", TASK, "--promise", "DONE", "--agent", &name, "--model", model(agent), "--permission-mode", mode];
    let command = project.run(RALPH).args(args).args(more).env("PATH", path);
    let output = command.timeout(Duration::from_mins(4)).output();
    assert!(!output.timed_out, "{output:?}");
    output
}

/// Two sessions: the first works and claims nothing, the second claims and its gate holds.
fn h6_a_run_over_acp_goes_on_until_its_claim_is_proven(agent: &'static Agent) {
    let claim = || Reply::text("<promise>DONE</promise>");
    let work = [agent.runs_command("echo 42 > answer.txt"), Reply::text("I have begun.")];
    let (project, server, program) = or_skip!(bed(agent, work.into_iter().chain(std::iter::repeat_with(claim).take(4))));
    let output = run(&project, &program, agent, "bypassPermissions", &["--verify", "grep -q 42 answer.txt", "--max-iterations", "4"]);
    let told = server.main_requests().iter().map(Request::all_text).collect::<Vec<_>>();
    assert_eq!(output.code, Some(0), "{output:?}\n{told:?}");
    assert_eq!(project.read("answer.txt"), "42\n");
    assert!(!project.exists(LOOP));
    let began = records(&project, "began");
    assert!(began.len() == 2 && began.iter().all(|began| began["agent"] == format!("acp:{}", agent.name)), "{began:?}");
    let sessions = records(&project, "stop");
    let work: Vec<&Value> = sessions.iter().map(|session| &session["work"]).collect();
    assert_eq!(work[0]["tool_calls"], 1, "{sessions:?}");
    // The scripted model counts 100 tokens read and 10 written for each answer. Droid tells no tokens, opencode and goose those of the last answer.
    let sums: Vec<u64> = work.iter().map(|work| ["input", "output"].iter().filter_map(|kind| work[*kind].as_u64()).sum()).collect();
    assert_eq!(
        sums,
        if agent.name == "droid" {
            [0, 0]
        } else if ["opencode", "goose"].contains(&agent.name) {
            [110, 110]
        } else {
            [220, 110]
        },
        "{sessions:?}"
    );
    let ids: Vec<&str> = work.iter().filter_map(|work| work["agent_session"].as_str()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{sessions:?}");
}

/// A command in a mode that allows edits only.
fn h6_what_is_asked_for_is_answered_by_the_permission_mode(agent: &'static Agent) {
    let work = [agent.runs_command("echo 42 > answer.txt"), Reply::text("It was not allowed.")];
    let (project, _server, program) =
        or_skip!(bed(agent, work.into_iter().chain(std::iter::repeat_with(|| Reply::text("So be it.")).take(4))));
    // What its settings do not ask for, opencode does.
    project.write("opencode.json", r#"{"permission": {"bash": "ask"}}"#);
    let output = run(&project, &program, agent, "acceptEdits", &["--once"]);
    let sessions = records(&project, "stop");
    assert_eq!(sessions.len(), 1, "{output:?}");
    let denied = &sessions[0]["work"]["denied"];
    assert!(denied.as_array().is_some_and(|denied| denied.len() == 1), "{sessions:?}");
    assert!(denied[0]["what"].as_str().unwrap().contains("answer.txt"), "{denied}");
    assert!(!project.exists("answer.txt"));
}

fn h6_a_key_that_does_not_count_is_told_over_acp(agent: &'static Agent) {
    let refusal = || Reply::error(401, "invalid_request_error", "Incorrect API key provided");
    let (project, _server, program) = or_skip!(bed(agent, std::iter::repeat_with(refusal).take(12)));
    let output = run(&project, &program, agent, "bypassPermissions", &["--max-iterations", "4"]);
    assert_eq!(output.code, Some(12), "{output:?}");
    assert!(format!("{}{}", output.stdout, output.stderr).contains("not signed in"), "{output:?}");
    assert_eq!(records(&project, "broke").len(), 1, "it is not tried again");
}

/// The agent calls ralph's own stop hook at the end of each session: it keeps quiet, and the run counts.
#[test]
fn h6_a_registered_hook_keeps_quiet_in_a_run_over_acp() {
    let agent = Agent::by_name("qwen");
    // It asks once more beside the work.
    let claims = std::iter::repeat_with(|| Reply::text("<promise>DONE</promise>")).take(4);
    let (project, server, program) = or_skip!(bed(agent, std::iter::once(Reply::text("I have begun.")).chain(claims)));
    assert!(project.run(RALPH).args(["init", "--agent", agent.name]).output().success());
    let output = run(&project, &program, agent, "bypassPermissions", &["--max-iterations", "3"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!((records(&project, "began").len(), records(&project, "stop").len()), (2, 2), "{output:?}");
    // Beside the work it asks for what to remember. A hook that sent a session back would do it within the session, after the agent's words.
    let sent_back = |request: &Request| {
        let text = request.all_text();
        text.split_once("I have begun.").is_some_and(|(_, after)| after.contains("[ralph]"))
    };
    assert!(!server.main_requests().iter().any(sent_back), "a session was sent back by its hook");
    let log = project.read(".ralph/hook.log");
    assert!(log.lines().count() >= 2, "it was called: {log}");
}
