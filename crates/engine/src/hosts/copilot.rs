//! Copilot CLI. It calls its hook before the transcript has the message that the stop is about.

use ralph_core::text::time::Millis;
use serde_json::{Value, json};

use super::host::{Answers, Cap, Clear, Context, Fields, Form, Host, Instead, Line, Message, Registration, Signature, Typed, Unit};

pub(super) const HOST: Host = Host {
    name: "copilot",
    title: "Copilot CLI",
    signature: Signature { fields: &["stop_reason"], variable: Some("COPILOT_CLI"), ..Signature::NONE },
    events: &[],
    fields: Fields::CLAUDE,
    message: Message::Transcript { line, written, lags: true },
    answers: Answers { context: Context::Flat, instead: Instead::Block, shows_line: false, escapes: false },
    command_mark: '/',
    typed: Typed::WithoutScreen,
    clear: Clear::NotSeen,
    reports_typed: false,
    cap: Some(Cap { honours: 8, variable: None }),
    registration: Some(Registration {
        folder: ".copilot",
        moved_by: None,
        file: "hooks/ralph.json",
        form: Form::OwnFlat,
        unit: Unit::Seconds,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
        hasty_events: &[],
        commands: None,
        consent: None,
        review: None,
        switches: &[],
        status_line: Some(("settings.json", r#""statusLine": { "type": "command", "command": "ralph statusline" }"#)),
    }),
};

fn line(line: &Value) -> Line {
    let data = &line["data"];
    match line["type"].as_str() {
        Some("assistant.message") => Line::Agent(data["content"].as_str().unwrap_or_default().to_owned()),
        Some("user.message") => Line::Prompt,
        Some("hook.start") if data["hookType"] == "agentStop" => Line::StopHook(data["input"]["timestamp"].as_i64().unwrap_or(Millis::MIN)),
        _ => Line::Other,
    }
}

fn written(said: &str) -> Value {
    json!({"type": "assistant.message", "data": {"content": said}})
}
