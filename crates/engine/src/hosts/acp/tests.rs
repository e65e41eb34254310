//! Sessions of the real agents over ACP, recorded with this client: at work, with a call that was denied, and with a key that does not count. Texts and lists are
//! shortened. A line with `#` begins the next case; lines behind `> ` are ralph's.

use std::{fs, path::Path};

use ralph_core::judge::{
    ToolUse,
    session_outcome::{Cut, Outcome, Trouble},
};
use serde_json::{Value, json};

use super::*;
use crate::hosts::{Decode, Exit, Heard, Launch, Line, prices::Prices};

const AGENTS_RECORDED: [&str; 5] = ["gemini", "copilot", "qwen", "grok", "opencode"];

fn lines(case: &str) -> Vec<String> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/acp.jsonl")).unwrap();
    let head = json!({"#": case});
    let is_head = |line: &&str| line.starts_with("{\"#\"");
    let own = text.lines().skip_while(|line| serde_json::from_str::<Value>(line).ok().is_none_or(|line| line != head)).skip(1);
    own.take_while(|line| !is_head(line)).map(str::to_owned).collect()
}

/// As in a run: the agent's lines only. What ralph sends is given back.
fn live(case: &str, mode: &str) -> (AcpClient, Vec<Heard>, Vec<String>) {
    let prices = Prices::default();
    let launch = Launch { permission_mode: Some(mode), folder: Path::new("/project"), prompt: "Do it", ..Launch::of_log(&prices) };
    let (mut client, mut told) = (AcpClient::new(&launch, false), Vec::new());
    let mut sent = vec![String::from_utf8(client.first_words().unwrap()).unwrap()];
    for line in lines(case).iter().filter(|line| !line.starts_with("> ")) {
        assert_eq!(client.line(line.as_bytes(), &mut told), Line::Event, "{line}");
        sent.extend(client.words_to_send().into_iter().map(|line| String::from_utf8(line).unwrap()));
    }
    (client, told, sent)
}

/// As `ralph watch` reads it.
fn of_log(case: &str) -> (AcpClient, Vec<Heard>) {
    let (mut client, mut told) = (AcpClient::of_log(), Vec::new());
    for line in lines(case) {
        assert_eq!(client.line(line.as_bytes(), &mut told), Line::Event, "{line}");
    }
    (client, told)
}

#[test]
fn h6_a_session_that_works_is_understood() {
    for agent in AGENTS_RECORDED {
        let (client, told, sent) = live(&format!("{agent} works"), "bypassPermissions");
        assert_eq!(
            (client.outcome(Exit::default(), ""), client.is_over(), client.tools()),
            (Outcome::Stopped, true, ToolUse::Used),
            "{agent}"
        );
        assert_eq!(client.text().as_deref(), Some("I have begun."), "{agent}");
        let work = client.work();
        assert_eq!((work.tool_calls, work.denied.len()), (1, 0), "{agent}");
        assert_eq!(work.tokens.total(), if agent == "opencode" { 110 } else { 220 }, "{agent}");
        assert!(work.agent_session.is_some_and(|session| session.len() >= 30), "{agent}");
        let is_call = |heard: &Heard| matches!(heard, Heard::Tool { what, .. } if what.contains("echo 42 > answer.txt"));
        assert_eq!(told.iter().filter(|heard| is_call(heard)).count(), 1, "{agent}: {told:?}");
        assert_eq!(told.iter().filter(|heard| matches!(heard, Heard::ToolEnded { failed: false, .. })).count(), 1, "{agent}: {told:?}");
        assert!(sent.iter().any(|line| line.contains("\"session/prompt\"") && line.contains("Do it")), "{agent}: {sent:?}");
        assert!(sent.iter().all(|line| !line.contains("always")), "{agent}: {sent:?}");
    }
}

#[test]
fn h6_a_denied_call_is_told_live_and_from_the_log() {
    for agent in AGENTS_RECORDED {
        let case = format!("{agent} denied");
        let (client, told, sent) = live(&case, "acceptEdits");
        let (read, read_told) = of_log(&case);
        for (client, told) in [(&client, &told), (&read, &read_told)] {
            let work = client.work();
            assert!(work.denied.len() == 1 && work.denied[0].what.contains("echo 42 > answer.txt"), "{agent}: {work:?}");
            assert_eq!(client.outcome(Exit::default(), ""), Outcome::Stopped, "{agent}");
            assert_eq!(told.iter().filter(|heard| matches!(heard, Heard::Denied { .. })).count(), 1, "{agent}: {told:?}");
        }
        assert_eq!(told, read_told, "{agent}");
        assert_eq!(sent.iter().filter(|line| line.contains("\"selected\"")).count(), 1, "{agent}: {sent:?}");
    }
}

#[test]
fn h6_a_key_that_does_not_count_is_told_by_each() {
    for agent in AGENTS_RECORDED {
        let (client, ..) = live(&format!("{agent} 401"), "bypassPermissions");
        let outcome = client.outcome(Exit::default(), "");
        assert!(matches!(outcome, Outcome::Failed { trouble: Trouble::SignIn { .. } }), "{agent}: {outcome:?}");
    }
}

/// A session up to its prompt, then these lines.
fn after_prompt(lines: &[Value]) -> (AcpClient, Vec<Heard>, Vec<String>) {
    let prices = Prices::default();
    let launch = Launch { folder: Path::new("/project"), prompt: "Do it", ..Launch::of_log(&prices) };
    let (mut client, mut told, mut sent) = (AcpClient::new(&launch, true), Vec::new(), Vec::new());
    client.first_words();
    let begin = [
        json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}),
    ];
    for line in begin.iter().chain(lines) {
        client.line(line.to_string().as_bytes(), &mut told);
        sent.extend(client.words_to_send().into_iter().map(|line| String::from_utf8(line).unwrap()));
    }
    (client, told, sent)
}

fn update(session: &str, update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}})
}

fn words(text: &str) -> Value {
    update("s", &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}))
}

#[test]
fn h6_stop_reasons_and_errors_have_their_outcome() {
    let ends = |answer: Value| {
        let mut answer = answer;
        (answer["jsonrpc"], answer["id"]) = (json!("2.0"), json!(5));
        after_prompt(&[words("Hi"), answer]).0.outcome(Exit::default(), "")
    };
    let failed = |trouble| Outcome::Failed { trouble };
    for (answer, wanted) in [
        (json!({"result": {"stopReason": "end_turn"}}), Outcome::Stopped),
        (json!({"result": {"stopReason": "max_turn_requests"}}), Outcome::Cut { by: Cut::Turns }),
        (json!({"result": {"stopReason": "max_tokens"}}), failed(Trouble::Refused { status: None, too_long: false })),
        (json!({"result": {"stopReason": "refusal"}}), failed(Trouble::Refused { status: None, too_long: false })),
        (json!({"result": {"stopReason": "cancelled"}}), failed(Trouble::Crash { code: None, signal: None })),
        (
            json!({"error": {"code": -32603, "message": "Internal error", "data": {"status": 429}}}),
            failed(Trouble::Service { status: Some(429) }),
        ),
        (json!({"error": {"code": 503, "message": "x"}}), failed(Trouble::Service { status: Some(503) })),
        (
            json!({"error": {"code": -32603, "message": "maximum context length is 10"}}),
            failed(Trouble::Refused { status: None, too_long: true }),
        ),
        (json!({"error": {"code": -32603, "message": "Internal error"}}), failed(Trouble::Refused { status: None, too_long: false })),
        (json!({"error": {"code": -32000, "message": "no"}}), failed(Trouble::SignIn { status: None })),
    ] {
        assert_eq!(ends(answer.clone()), wanted, "{answer}");
    }
}

#[test]
fn h6_the_last_message_is_the_last_message() {
    let meter = update("s", &json!({"sessionUpdate": "usage_update", "used": 15, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}}));
    let end = json!({"jsonrpc": "2.0", "id": 5, "result": {"stopReason": "end_turn"}});
    let (client, ..) = after_prompt(&[words("A warning."), meter.clone(), words("<promise>"), words("X</promise>"), meter, end]);
    assert_eq!(client.text().as_deref(), Some("<promise>X</promise>"), "Codex's warnings are no part of its answer");
    assert_eq!((client.context(), client.work().usd_micros), (Some((15, 100)), 500_000), "the sum is told each time");
    let other = update("another", &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "no"}}));
    assert_eq!(after_prompt(&[words("yes"), other]).0.text().as_deref(), Some("yes"));
}

#[test]
fn h6_what_ralph_cannot_do_is_said_and_answers_count_once() {
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}});
    let again = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "t"}});
    let (client, _, sent) = after_prompt(&[ask, again]);
    assert!(sent.iter().any(|line| line.contains("-32601") && line.contains("\"id\":7")), "{sent:?}");
    assert_eq!(sent.iter().filter(|line| line.contains("session/prompt")).count(), 1, "{sent:?}");
    assert_eq!(client.work().agent_session.as_deref(), Some("s"));
}

#[test]
fn h6_every_agent_has_its_own_name() {
    for agent in &AGENTS {
        assert!(agent.name.starts_with("acp:") && AcpAgent::by_name(agent.name) == Some(agent), "{agent:?}");
        assert!(!agent.headless.program.is_empty() && !agent.headless.install.is_empty(), "{agent:?}");
    }
    let prices = Prices::default();
    let line = |name: &str| {
        let launch = Launch { model: Some("m"), ..Launch::of_log(&prices) };
        AcpAgent::by_name(name)
            .unwrap()
            .headless
            .args(&launch)
            .iter()
            .map(|arg| arg.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!((line("acp:grok").as_str(), line("acp:opencode").as_str()), ("agent -m m stdio", "acp"));
}
