//! One loop over several agents: begun in Claude Code, carried on by Codex in a run, finished in Gemini CLI. Every view says who did what.

use std::fs;

use ralph_testkit::pty::Pty;
use serde_json::{Value, json};

use super::{
    PATIENCE,
    agents::{Agents, WORKS, codex_is_used_up, gemini_says},
};
use crate::common::{Answer, ME, RALPH, now, run};

const GEMINI: &str = "5e551017-0000-4000-8000-00000000000e";

/// What Codex prints when it has said this. $5 for a million tokens of input, $30 for a million of output.
fn codex_says(text: &str) -> Vec<Value> {
    vec![
        json!({"type": "thread.started", "thread_id": "01a1e2ed-0c37-7510-bb73-dfe78fdd8113"}),
        json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": text}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 100_000, "cached_input_tokens": 0, "output_tokens": 10_000}}),
    ]
}

impl Agents {
    /// Claude Code's session uses 1,050 tokens, and stops.
    fn claude_stops(&self, said: &str) -> Answer {
        let usage = json!({"input_tokens": 1_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 50});
        let message = json!({"id": format!("msg_{said}"), "role": "assistant", "model": "claude-opus-5-5", "content": [{"type": "text", "text": said}], "usage": usage});
        let line = json!({"type": "assistant", "sessionId": ME, "timestamp": now(), "message": message});
        let folder = self.bed.home().join(".claude/projects/-p");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{ME}.jsonl"));
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, format!("{before}{line}\n")).unwrap();
        self.bed.stop(said).send()
    }

    /// Gemini CLI's session stops.
    fn gemini_stops(&self, said: &str) -> Answer {
        let folder = self.bed.home().join(".gemini/tmp/p/chats");
        fs::create_dir_all(&folder).unwrap();
        let transcript = folder.join(format!("session-2026-11-18T20-00-{}.jsonl", &GEMINI[..8]));
        let tokens = json!({"input": 1_000, "output": 100, "cached": 0, "thoughts": 0, "tool": 0, "total": 1_100});
        let answer =
            json!({"id": said, "timestamp": now(), "type": "gemini", "content": said, "model": "gemini-2.5-pro", "tokens": tokens});
        let lines = [json!({"type": "user", "content": [{"text": "go on"}]}), answer];
        let begins = || json!({"sessionId": GEMINI, "kind": "main"}).to_string() + "\n";
        let before = fs::read_to_string(&transcript).unwrap_or_else(|_| begins());
        fs::write(&transcript, format!("{before}{}\n{}\n", lines[0], lines[1])).unwrap();
        let event = json!({
            "session_id": GEMINI, "cwd": self.bed.dir(), "hook_event_name": "AfterAgent", "transcript_path": transcript, "timestamp": now(),
            "prompt": "do it", "prompt_response": said, "stop_hook_active": false,
        });
        let mut command = self.bed.command(RALPH);
        command.args(["hook", "gemini", "--timeout", "3600", "--via", "user"]).current_dir(self.bed.dir());
        command.envs([("GEMINI_SESSION_ID", GEMINI), ("GEMINI_PROJECT_DIR", "/project")]);
        Answer::of(&run(&mut command, event.to_string().as_bytes()))
    }

    /// Three iterations, one by each, and a fourth that Gemini CLI is at.
    fn three() -> Self {
        let agents = Agents::new();
        agents.bed.ralph_ok(&["start", "Do it", "--completion-promise", "DONE", "--session", ME]);
        assert!(agents.claude_stops("I have begun.").blocks());
        agents.program("codex", "echo x >> README.md", &codex_says("Half of it is done."), 0);
        agents.bed.ralph_ok(&["pause"]);
        agents.run(0, &["--continue", "--once", "--agent", "codex", "--model", "gpt-5.5", WORKS[0], WORKS[1]]);
        agents.bed.ralph_ok(&["resume", "--session"]);
        assert!(agents.gemini_stops("Nearly all of it is done.").blocks());
        agents
    }
}

/// Agent, model, iterations, tokens, money.
fn rows(report: &Value) -> Vec<Value> {
    let total = |used: &Value| used["tokens"].as_object().map_or(0, |tokens| tokens.values().filter_map(Value::as_u64).sum());
    let row = |one: &Value| json!([one["agent"], one["model"], one["iterations"], total(&one["used"]), one["used"]["usd_micros"]]);
    report["agents"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn h8_the_report_says_who_did_what_with_tokens_and_cost() {
    let agents = Agents::three();
    let report = agents.bed.ralph_json(&["report", "--json"]);
    let expected = [
        json!(["claude", "claude-opus-5-5", 1, 1_050, 5_000]),
        json!(["codex", "gpt-5.5", 1, 110_000, 800_000]),
        json!(["gemini", "gemini-2.5-pro", 1, 1_100, 2_250]),
    ];
    assert_eq!(rows(&report), expected, "{report}");
    let by: Vec<&Value> = report["rounds"].as_array().unwrap().iter().map(|round| &round["agent"]).collect();
    assert_eq!(by, ["claude", "codex", "gemini"]);
    assert_eq!(report["figures"]["used"]["usd_micros"], 807_250);
    let page = agents.bed.ralph_ok(&["report", "--markdown"]);
    for part in ["| Agent | Model | Iterations | Tokens | Cost |", "| Codex | gpt-5.5 | 1 | 110k |", "Codex with gpt-5.5", "Gemini CLI"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(agents.bed.ralph_ok(&["report", "--html=-"]).contains("<td>Codex</td><td>gpt-5.5</td><td>1</td>"));
}

#[test]
fn h8_log_explain_and_status_name_the_agent() {
    let agents = Agents::three();
    let log = agents.bed.ralph_ok(&["log"]);
    assert!(log.contains("taken by session 5e551017 of Gemini CLI") && log.contains("(Codex with gpt-5.5, "), "{log}");
    let explained = |stop: &str| agents.bed.ralph_ok(&["explain", stop]);
    assert!(explained("1").contains("Claude Code") && explained("2").contains("Codex with gpt-5.5"), "{}", explained("2"));
    assert!(explained("3").contains("Gemini CLI"), "{}", explained("3"));
    let status = agents.bed.status();
    assert_eq!(json!([status["agent"], status["model"]]), json!(["gemini", null]), "{status}");
    assert!(agents.bed.ralph_ok(&["status"]).contains("Gemini CLI"));
}

#[test]
fn h8_watch_names_the_agent_of_each_decision_and_the_one_at_work() {
    let agents = Agents::three();
    let mut command = agents.bed.command(RALPH);
    command.arg("watch").env("TERM", "xterm-256color");
    let pty = Pty::spawn(command, 45, 120);
    let all = ["iteration 4", "Gemini CLI", "Codex with gpt-5.5: "];
    pty.wait_for(|screen| all.iter().all(|part| screen.contains(part)), PATIENCE).unwrap_or_else(|screen| panic!("{screen}"));
    pty.send("q");
    assert_eq!(pty.wait_exit(PATIENCE), Some(0), "{}", pty.screen());
}

/// Nothing is said of agents where there is one.
#[test]
fn h8_a_loop_of_one_agent_is_shown_as_ever() {
    let agents = Agents::new();
    agents.bed.ralph_ok(&["start", "Do it", "--completion-promise", "DONE", "--session", ME]);
    assert!(agents.claude_stops("I have begun.").blocks());
    // What a session used in the very millisecond of a stop belongs to either iteration.
    crate::common::tick();
    assert!(agents.claude_stops("I went on.").blocks());
    let [log, page, status] = [["log", "main"], ["report", "--markdown"], ["status", "main"]].map(|args| agents.bed.ralph_ok(&args));
    assert!(![&log, &page, &status].iter().any(|text| text.contains("Claude Code")), "{log}{page}{status}");
    let report = agents.bed.ralph_json(&["report", "--json"]);
    assert_eq!(rows(&report), [json!(["claude", "claude-opus-5-5", 2, 2_100, 10_000])], "{report}");
}

/// Codex's quota was used up in the middle of it.
#[test]
fn h8_an_iteration_of_two_agents_names_both() {
    let agents = Agents::new();
    agents.program("codex", "", &codex_is_used_up(), 1);
    agents.program("gemini", "", &gemini_says("Done.\n\n<promise>DONE</promise>"), 0);
    let args = ["Do it", "--promise", "DONE", "--agent", "codex", "--model", "gpt-5.5", "--fallback", "gemini=gemini-2.5-pro"];
    agents.run(0, &[&args[..], &WORKS].concat());
    let report = agents.bed.ralph_json(&["report", "--json"]);
    let round = &report["rounds"][0];
    assert_eq!(json!([round["agent"], round["earlier"]]), json!(["gemini", [{"agent": "codex", "model": "gpt-5.5"}]]), "{report}");
    assert_eq!(report["agents"][0]["agent"], "codex");
    assert!(agents.bed.ralph_ok(&["report", "--markdown"]).contains("Codex with gpt-5.5, Gemini CLI with gemini-2.5-pro"));
}

/// opencode has no option for a budget, and says what each step cost.
#[test]
fn h5_money_ends_a_session_that_tells_what_it_spends() {
    let agents = Agents::new();
    let step = |cost: f64| {
        let part = json!({"type": "step-finish", "reason": "tool-calls", "tokens": {"input": 10, "output": 10}, "cost": cost});
        json!({"type": "step_finish", "sessionID": "ses_e117c28b0ffeTcOJUwuQgRdrbH", "part": part})
    };
    let goes_on =
        format!("[ \"$1\" = --version ] || {{ echo x >> README.md; echo '{}'; echo '{}'; tail -f /dev/null; }}", step(0.4), step(0.8));
    agents.program("opencode", &goes_on, &[], 0);
    let out = agents.run(10, &["Do it", "--promise", "DONE", "--agent", "opencode", "--usd", "1", WORKS[0], WORKS[1]]);
    assert!(format!("{}{}", out.stdout, out.stderr).contains("$1.20"), "{out:?}");
    let stop = agents.bed.journal().into_iter().find(|r| r["event"]["kind"] == "stop").unwrap();
    assert_eq!(stop["event"]["ruling"]["code"], "limit.cost", "{stop}");
}

/// Nobody is told of Claude Code's ways who works with another agent.
#[test]
fn h5_advice_is_in_the_words_of_the_agent() {
    let agents = Agents::new();
    let refused = "unexpected status 401 Unauthorized: Incorrect API key provided";
    let says = [
        json!({"type": "thread.started", "thread_id": "01a1e2ed-0c37-7510-bb73-dfe78fdd8113"}),
        json!({"type": "turn.failed", "error": {"message": refused}}),
    ];
    agents.program("codex", "", &says, 1);
    let out = agents.run(12, &["Do it", "--promise", "DONE", "--agent", "codex", WORKS[0], WORKS[1]]);
    let told = format!("{}{}", out.stdout, out.stderr);
    assert!(told.contains("codex login") && !told.contains("/login"), "{told}");
}
