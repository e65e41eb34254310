//! `ralph run --agent NAME` with the real clients of other agents, against the scripted model. The cases are the same for all of them: h5 of issue "any agent".

use std::{fs, path::Path, process::Stdio, time::Duration};

use crate::{
    hosts::{in_every_agent, wait_until},
    real::{LOOP, RALPH, files_in},
};
use ralph_testkit::{Agent, ModelServer, Output, Project, Reply, Request, Skip, or_skip};
use serde_json::Value;

const TASK: &str = "Write the answer down and prove it.";

in_every_agent! { in [codex gemini copilot qwen droid grok], nightly [opencode]:
    h5_a_run_goes_on_until_its_claim_is_proven
    h5_a_key_that_does_not_count_is_told_and_ends_the_run
}

in_every_agent! { in [gemini grok], nightly []:
    h5_nothing_of_a_session_that_is_interrupted_lives_on
}

/// The model's name in each agent's words.
pub(crate) fn model(agent: &Agent) -> &'static str {
    match agent.name {
        "droid" | "hermes" => "custom:fake-model",
        "opencode" => "fake/fake-model",
        _ => "fake-model",
    }
}

fn run(project: &Project, program: &Path, agent: &Agent, more: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let args = ["run", TASK, "--promise", "DONE", "--agent", agent.name, "--model", model(agent)];
    let command = project.run(RALPH).args(args).args(["--permission-mode", "bypassPermissions"]).args(more).env("PATH", path);
    // opencode alone needs ten seconds for a session, beside the other tests three times as many.
    let output = command.timeout(Duration::from_mins(4)).output();
    assert!(!output.timed_out, "{output:?}");
    output
}

pub(crate) fn records(project: &Project, kind: &str) -> Vec<Value> {
    let journals = files_in(project.path(".ralph/journal"));
    let text: String = journals.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    records.filter(|event| event["kind"] == kind).collect()
}

pub(crate) fn bed(
    agent: &'static Agent,
    replies: impl IntoIterator<Item = Reply>,
) -> Result<(Project, ModelServer, std::path::PathBuf), Skip> {
    let (client, project, server) = (agent.installed()?, Project::new(), ModelServer::scripted(replies));
    let program = client.as_program(&project, &server);
    Ok((project, server, program))
}

/// Two sessions: the first works and claims nothing, the second claims and its gate holds.
fn h5_a_run_goes_on_until_its_claim_is_proven(agent: &'static Agent) {
    let claim = || Reply::text("<promise>DONE</promise>");
    let work = [agent.runs_command("echo 42 > answer.txt"), Reply::text("I have begun.")];
    // Some agents ask once more beside the work: for a title, or for what to remember.
    let (project, server, program) = or_skip!(bed(agent, work.into_iter().chain(std::iter::repeat_with(claim).take(4))));
    let output = run(&project, &program, agent, &["--verify", "grep -q 42 answer.txt", "--max-iterations", "4"]);
    let told = server.main_requests().iter().map(Request::all_text).collect::<Vec<_>>();
    assert_eq!(output.code, Some(0), "{output:?}\n{told:?}");
    assert_eq!(project.read("answer.txt"), "42\n");
    assert!(!project.exists(LOOP));
    let began = records(&project, "began");
    assert!(began.len() == 2 && began.iter().all(|began| began["agent"] == agent.name), "{began:?}");
    let sessions = records(&project, "stop");
    let work: Vec<&Value> = sessions.iter().map(|session| &session["work"]).collect();
    assert_eq!(work[0]["tool_calls"], 1, "{sessions:?}");
    for work in &work {
        // The scripted model counts 100 tokens read and 10 written for each answer.
        let sum: u64 = ["input", "output", "cache_read", "cache_written"].iter().filter_map(|kind| work[*kind].as_u64()).sum();
        assert!(sum >= 110 && sum.is_multiple_of(110), "{sessions:?}");
        // A price that nobody knows is not guessed.
        assert_eq!((&work["cost_unknown"], &work["usd_micros"]), (&true.into(), &0.into()), "{sessions:?}");
    }
    let ids: Vec<&str> = work.iter().filter_map(|work| work["agent_session"].as_str()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{sessions:?}");
}

/// Too many requests: the same iteration is tried again, and its claim counts.
#[test]
fn h5_too_many_requests_are_waited_for_in_codex() {
    let agent = Agent::by_name("codex");
    let replies = [Reply::error(429, "requests", "Rate limit reached for requests"), Reply::text("<promise>DONE</promise>")];
    let (project, _server, program) = or_skip!(bed(agent, replies));
    let output = run(&project, &program, agent, &["--max-iterations", "4"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let (began, broke) = (records(&project, "began"), records(&project, "broke"));
    assert_eq!(began.iter().map(|began| began["iteration"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(1)], "{began:?}");
    assert!(broke.len() == 1 && broke[0]["outcome"]["trouble"]["status"] == 429, "{broke:?}");
}

/// What does not fit is not sent again, and is named.
#[test]
fn h5_a_context_that_is_too_long_is_told_and_ends_the_run() {
    for agent in ["codex", "grok"].map(Agent::by_name) {
        let words = "This model's maximum context length is 1000 tokens. However, your messages resulted in 5000 tokens.";
        let refusal = || Reply::error(400, "invalid_request_error", words);
        let (project, server, program) = or_skip!(bed(agent, std::iter::repeat_with(refusal).take(12)));
        let output = run(&project, &program, agent, &["--max-iterations", "4"]);
        assert_eq!(output.code, Some(12), "{output:?}");
        let told = format!("{}{}", output.stdout, output.stderr);
        assert!(told.contains("context is too long for the model") && told.contains("--model M"), "{told}");
        let sessions = records(&project, "broke");
        assert_eq!(sessions.len(), 1, "it is not tried again: {sessions:?} {:?}", server.main_requests().len());
    }
}

fn h5_a_key_that_does_not_count_is_told_and_ends_the_run(agent: &'static Agent) {
    let refusal = || Reply::error(401, "invalid_request_error", "Incorrect API key provided");
    let (project, _server, program) = or_skip!(bed(agent, std::iter::repeat_with(refusal).take(12)));
    let output = run(&project, &program, agent, &["--max-iterations", "4"]);
    assert_eq!(output.code, Some(12), "{output:?}");
    assert!(format!("{}{}", output.stdout, output.stderr).contains("not signed in"), "{output:?}");
    let sessions = records(&project, "broke");
    assert_eq!(sessions.len(), 1, "it is not tried again: {sessions:?}");
}

/// Alone, these two would leave what their tools run behind when they are interrupted: Gemini CLI five processes and itself, Grok two.
fn h5_nothing_of_a_session_that_is_interrupted_lives_on(agent: &'static Agent) {
    let work = agent.runs_command("tail -f /dev/null & touch started; tail -f /dev/null");
    let (project, _server, program) = or_skip!(bed(agent, [work]));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let mut run = project.command(RALPH);
    run.args(["run", TASK, "--promise", "DONE", "--agent", agent.name, "--model", model(agent), "--permission-mode", "bypassPermissions"]);
    let mut run = run.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("its command runs", || project.exists("started"));
    assert!(living(&project).len() >= 3, "the run, its agent and the command: {:?}", living(&project));
    // The first one asks the agent to end, the second one waits no longer.
    for _ in 0..2 {
        assert!(project.run("kill").args(["-INT", &run.id().to_string()]).output().success());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(run.wait().unwrap().code(), Some(130));
    wait_until("the end of all processes", || living(&project).is_empty());
}

/// The processes that have the project's home: the run, the agent, and what its tools started.
fn living(project: &Project) -> Vec<String> {
    let home = format!("HOME={}", project.home().display());
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has_home = |path: &std::path::PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    processes.filter(has_home).map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " ")).collect()
}
