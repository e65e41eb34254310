//! Recorded outputs of the real clients, at work and in trouble. A line with `#` begins the next case.

use std::fs;

use super::*;
use crate::hosts::Host;

static PRICES: Prices = Prices(Vec::new());

fn launch() -> Launch<'static> {
    Launch { session: "s", model: Some("gpt-5.5"), ..Launch::of_log(&PRICES) }
}

/// A case of a recorded output: its name, how it ended, what was heard.
struct Case {
    name: String,
    stream: Box<dyn Decode>,
    exit: Exit,
    complaint: String,
    told: Vec<Heard>,
}

fn cases(agent: &str) -> Vec<Case> {
    let text = fs::read_to_string(format!("{}/tests/agents/{agent}.jsonl", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let headless = Host::by_name(agent).unwrap().headless.as_ref().unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if let Some(name) = event["#"].as_str() {
            let exit = Exit { code: event["exit"].as_i64().map(|code| i32::try_from(code).unwrap()), signal: None };
            let stream = (headless.stream)(&launch());
            cases.push(Case { name: name.to_owned(), stream, exit, complaint: String::new(), told: Vec::new() });
            continue;
        }
        let case = cases.last_mut().unwrap();
        match event["#stderr"].as_str() {
            Some(complaint) => complaint.clone_into(&mut case.complaint),
            None => assert_eq!(case.stream.line(line.as_bytes(), &mut case.told), Line::Event),
        }
    }
    cases
}

impl Case {
    fn outcome(&self) -> Outcome {
        self.stream.outcome(self.exit, &self.complaint)
    }
}

const AGENTS: [&str; 7] = ["codex", "gemini", "copilot", "qwen", "droid", "grok", "opencode"];

#[test]
fn h5_a_session_that_works_is_understood() {
    for agent in AGENTS {
        let case = cases(agent).swap_remove(0);
        assert_eq!((case.outcome(), case.stream.is_over(), case.stream.tools()), (Outcome::Stopped, true, ToolUse::Used), "{agent}");
        let work = case.stream.work();
        assert_eq!(work.tool_calls, 1, "{agent}");
        assert!(work.agent_session.is_some_and(|session| session.len() >= 30), "{agent}");
        let is_call = |heard: &Heard| matches!(heard, Heard::Tool { what, .. } if what.contains("echo hi; echo x > made.txt"));
        assert!(case.told.iter().any(is_call) && case.told.iter().any(|heard| matches!(heard, Heard::ToolEnded { failed: false, .. })));
        // Copilot's recording has not all of its messages, and its tokens are in a file; opencode is not sent back within its session.
        if agent == "opencode" {
            assert_eq!((case.stream.text().unwrap().as_str(), work.tokens.total(), work.usd_micros), ("one", 30, 40));
        } else if agent != "copilot" {
            let claim = "three <promise>DONE</promise>";
            assert!(case.stream.text().unwrap().ends_with(claim), "{agent}: {:?}", case.stream.text());
            assert_eq!((work.tokens.input, work.tokens.output), (40, 20), "{agent}");
            assert_eq!(work.estimated, !work.cost_unknown || work.tokens.total() > 0);
        }
        // Codex does not name its model: it is the one that was asked for, with a price that is known. opencode tells its cost.
        let knows_cost = matches!(agent, "codex" | "opencode");
        assert_eq!(!work.cost_unknown, knows_cost, "{agent}: {:?}", work.model);
        assert_eq!(work.usd_micros > 0, knows_cost, "{agent}");
    }
}

#[test]
fn h5_an_error_is_named() {
    let mut seen = 0;
    for (agent, case) in AGENTS.into_iter().flat_map(|agent| cases(agent).into_iter().map(move |case| (agent, case))) {
        if case.name == "denied" {
            continue;
        }
        let Outcome::Failed { trouble } = case.outcome() else {
            assert_eq!(case.name, "works", "{agent} {}", case.name);
            continue;
        };
        // Cut off by us in the middle of its own attempts: there is no event that tells.
        if case.exit.code.is_none() && case.name != "ctx" {
            assert!(matches!(trouble, Trouble::Crash { .. } | Trouble::Service { .. } | Trouble::Billing { .. }), "{agent} {}", case.name);
            continue;
        }
        seen += 1;
        let is_right = match case.name.as_str() {
            "e401" | "native-auth" => matches!(trouble, Trouble::SignIn { .. }),
            "e429" => matches!(trouble, Trouble::Service { status: Some(429) }),
            "quota" => matches!(trouble, Trouble::Billing { .. }),
            // Copilot names the quota, and no time.
            "native-limit" if agent == "copilot" => trouble.words() == "the weekly limit of the account is used up",
            "native-limit" => matches!(trouble, Trouble::Limit { until: Some(_), .. }),
            "native-daily" => matches!(trouble, Trouble::Limit { until: None, .. }),
            "native-overloaded" | "e500" => matches!(trouble, Trouble::Service { .. }),
            "ctx" => matches!(trouble, Trouble::Refused { too_long: true, .. }),
            _ => false,
        };
        assert!(is_right, "{agent} {}: {trouble:?}", case.name);
        assert!(case.stream.text().is_none_or(|text| !text.contains("<promise>")), "{agent} {}", case.name);
    }
    assert!(seen >= 25, "{seen}");
}

/// The recordings have only the result of the call; those of Grok and opencode have both.
#[test]
fn h5_what_was_denied_is_told() {
    for (agent, call) in [
        (
            "copilot",
            r#"{"type":"tool.execution_start","data":{"toolCallId":"call_1","toolName":"bash","arguments":{"command":"touch made.txt"}}}"#,
        ),
        (
            "gemini",
            r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"run_shell_command__call_1","parameters":{"command":"touch made.txt"}}"#,
        ),
        (
            "qwen",
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"call_1","name":"run_shell_command","input":{"command":"touch made.txt"}}]}}"#,
        ),
        ("grok", ""),
        ("opencode", ""),
    ] {
        let text = fs::read_to_string(format!("{}/tests/agents/{agent}.jsonl", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let lines = text
            .lines()
            .skip_while(|line| !line.starts_with(r##"{"#": "denied""##))
            .skip(1)
            .take_while(|line| !line.starts_with(r##"{"#""##));
        let mut stream = (Host::by_name(agent).unwrap().headless.as_ref().unwrap().stream)(&launch());
        let mut told = Vec::new();
        for line in std::iter::once(call).filter(|line| !line.is_empty()).chain(lines) {
            stream.line(line.as_bytes(), &mut told);
        }
        let denied = stream.work().denied;
        assert_eq!(denied.len(), 1, "{agent}: {told:?}");
        assert_eq!(denied[0].what, "touch made.txt", "{agent}");
        assert!(told.iter().any(|heard| matches!(heard, Heard::Denied { .. })), "{agent}");
    }
}

/// A secret in an agent's words is masked, also where it comes in pieces.
#[test]
fn h5_t9_secrets_are_masked_on_the_way() {
    let key = format!("sk-ant-api03-{}", "a1B2".repeat(20));
    let mut told = Vec::new();
    let mut gemini = (Host::by_name("gemini").unwrap().headless.as_ref().unwrap().stream)(&launch());
    for piece in [&key[..20], &key[20..], "\n"] {
        let line = serde_json::json!({"type": "message", "role": "assistant", "content": piece}).to_string();
        gemini.line(line.as_bytes(), &mut told);
    }
    gemini.line(br#"{"type":"result","status":"success","stats":{}}"#, &mut told);
    assert!(!told.is_empty() && !format!("{told:?}").contains("a1B2a1B2"), "{told:?}");
}

/// Copilot tells of each request that fails, and asks again. Its side errands ask, too.
#[test]
fn h5_a_request_that_fails_is_not_the_end_of_a_session() {
    let failure = |source: &str| {
        let data = serde_json::json!({"source": source, "statusCode": 500, "errorMessage": "{\"message\":\"The server had an error\"}"});
        serde_json::json!({"type": "model.call_failure", "data": data}).to_string()
    };
    let ends = |lines: &[&str]| {
        let mut copilot = (Host::by_name("copilot").unwrap().headless.as_ref().unwrap().stream)(&launch());
        for line in lines {
            copilot.line(line.as_bytes(), &mut Vec::new());
        }
        copilot.outcome(Exit { code: Some(0), signal: None }, "")
    };
    let (says, end) = (r#"{"type":"assistant.message","data":{"content":"Done."}}"#, r#"{"type":"result","sessionId":"s","exitCode":0}"#);
    assert_eq!(ends(&[&failure("top_level"), says, end]), Outcome::Stopped);
    assert_eq!(ends(&[says, &failure("top_level"), end]), Outcome::Stopped);
    let trouble = Trouble::Service { status: Some(500) };
    assert_eq!(ends(&[&failure("top_level")]), Outcome::Failed { trouble });
    assert_eq!(ends(&[&failure("title")]), Outcome::Failed { trouble: Trouble::Crash { code: Some(0), signal: None } });
}

/// An error that the agent gets over is not how its session ended.
#[test]
fn h5_an_error_that_passes_is_forgotten_and_one_that_does_not_is_an_end() {
    let error = br#"{"type":"error","message":"400 This model's maximum context length is 1000 tokens."}"#;
    let mut codex = (Host::by_name("codex").unwrap().headless.as_ref().unwrap().stream)(&launch());
    for _ in 0..STUCK {
        assert!(!codex.is_stuck());
        codex.line(error, &mut Vec::new());
    }
    assert!(codex.is_stuck());
    codex.line(br#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"fine"}}"#, &mut Vec::new());
    codex.line(br#"{"type":"turn.completed","usage":{}}"#, &mut Vec::new());
    assert!(!codex.is_stuck());
    assert_eq!(codex.outcome(Exit { code: Some(0), signal: None }, ""), Outcome::Stopped);
}
