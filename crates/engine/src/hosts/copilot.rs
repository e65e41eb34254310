//! Copilot CLI. It calls its hook before the transcript has the message that the stop is about.

use ralph_core::{judge::session_outcome::Tokens, text::time::Millis};
use serde_json::{Value, json};

use super::{
    agent_stream::{AgentStream, Says, text, tokens},
    headless::Headless,
    host::{Advice, Answers, Cap, Clear, CommandForm, Context, Fields, Form, Host, Instead, Line, Message, Registration, Signature, Typed},
    session_files::{SessionFiles, Told, whole},
};

use crate::sys::{env, files};

/// So much of the end of a session's file is read for what it used.
const MOST_READ: u64 = 16 << 20;

const HEADLESS: Headless = Headless {
    program: "copilot",
    install: "npm install -g @github/copilot",
    before: &["--output-format", "json", "--no-auto-update", "--no-ask-user"],
    model: Some("--model"),
    session: Some("--session-id"),
    modes: &[("acceptEdits", &["--allow-tool", "write"]), ("bypassPermissions", &["--allow-all"])],
    needs_mode: true,
    stream: |launch| Box::new(AgentStream::new(says, launch).with_file(used)),
    ..Headless::PLAIN
};

fn says(event: &Value, says: &mut Vec<Says>) {
    let data = &event["data"];
    let id = || text(data, "toolCallId");
    match event["type"].as_str().unwrap_or_default() {
        "assistant.message" => {
            says.push(Says::Begins { session: None, model: Some(text(data, "model")) });
            says.extend(Some(text(data, "content")).filter(|text| !text.is_empty()).map(Says::Message));
        }
        "tool.execution_start" => says.push(Says::Tool { id: id(), name: text(data, "toolName"), input: data["arguments"].clone() }),
        "tool.execution_complete" => {
            let denied = data["error"]["code"] == "denied";
            says.push(Says::ToolEnded { id: id(), failed: data["success"] != true, denied });
        }
        "session.usage_record" => {
            let model = data["model"].as_str().map(str::to_owned);
            says.push(Says::Used { model, tokens: answered(&data["usage"]), usd: None, in_all: false });
        }
        // The only line that names a quota: the error of the session says no more than that there were too many requests.
        "model.call_failure" if data["source"] == "top_level" => {
            says.push(Says::Error { message: call_failure(data), status: status(data) });
        }
        "session.error" => says.push(Says::Failed { message: text(data, "message"), status: status(data) }),
        "result" => {
            says.push(Says::Begins { session: Some(text(event, "sessionId")), model: None });
            says.extend((event["exitCode"] == 0).then_some(Says::Ended));
        }
        _ => {}
    }
}

fn status(data: &Value) -> Option<u16> {
    data["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok())
}

/// What the service said, and its code: `rate limit exceeded (user_weekly_rate_limited)`.
fn call_failure(data: &Value) -> String {
    let said = text(data, "errorMessage");
    let message = serde_json::from_str::<Value>(&said).ok().and_then(|said| said["message"].as_str().map(str::to_owned)).unwrap_or(said);
    let code = text(data, "errorCode");
    if code.is_empty() { message } else { format!("{message} ({code})") }
}

/// What an answer used, in the file of a session.
fn kept(line: &Value) -> Option<Told> {
    let usage = &line["data"]["usage"];
    (line["type"] == "session.usage_record").then(|| Told::Answer {
        id: text(line, "id"),
        model: usage["model"].as_str().map(str::to_owned),
        tokens: answered(usage),
        tool_calls: usage["numToolCalls"].as_u64().unwrap_or(0),
    })
}

/// What came from the cache, or went into it, is part of the input.
fn answered(usage: &Value) -> Tokens {
    let used = tokens(usage, ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"]);
    let input = used.input.saturating_sub(used.cache_read).saturating_sub(used.cache_written);
    Tokens { input, ..used }
}

/// Its stream has no tokens; the file of the session has.
fn used(session: &str) -> Option<Vec<Says>> {
    let file = env::home()?.join(".copilot/session-state").join(session).join("events.jsonl");
    let mut all = Vec::new();
    for line in files::read_end(&file, MOST_READ).ok()?.split(|byte| *byte == b'\n') {
        if let Ok(event) = serde_json::from_slice::<Value>(line)
            && event["type"] == "session.usage_record"
        {
            says(&event, &mut all);
        }
    }
    Some(all)
}

pub(super) const HOST: Host = Host {
    name: "copilot",
    title: "Copilot CLI",
    advice: Advice { allow: Advice::BY_MODE, sign_in: "start `copilot` and sign in (`/login`)", resume: Some("copilot --resume") },
    headless: Some(HEADLESS),
    signature: Signature { fields: &["stop_reason"], variable: Some("COPILOT_CLI"), ..Signature::NONE },
    events: &[],
    fields: Fields::CLAUDE,
    message: Message::Transcript { line, written, lags: true },
    answers: Answers { context: Context::Flat, instead: Instead::Block, shows_line: false, escapes: false, longest: None },
    command_mark: '/',
    typed: Typed::Everywhere,
    expanded: Some(of_skill),
    clear: Clear::NotSeen,
    reports_typed: false,
    cap: Some(Cap { honours: 8, variable: None, setting: None }),
    session_files: Some(SessionFiles { folder: ".copilot/session-state", named: whole, line: kept }),
    registration: Some(Registration {
        folder: ".copilot",
        file: "hooks/ralph.json",
        form: Form::OwnFlat,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
        commands: Some(("skills", CommandForm::Skill)),
        status_line: Some(("settings.json", r#""statusLine": { "type": "command", "command": "ralph statusline" }"#)),
        ..Registration::PLAIN
    }),
};

/// On its screen a typed command is a skill, and the prompt says which one, with its text and what was typed after it.
fn of_skill(prompt: &str) -> Option<(&str, &str)> {
    let (name, rest) = prompt.strip_prefix("The user explicitly invoked the \"/")?.split_once('"')?;
    let body = rest.trim_end().strip_suffix("</skill-context>")?;
    let typed = body.split_once("\nARGUMENTS: ").map_or("", |(_, typed)| typed);
    Some((name, typed.strip_suffix('\n').unwrap_or(typed)))
}

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
