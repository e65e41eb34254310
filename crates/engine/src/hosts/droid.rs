//! Droid. Its event names the message that the stop is about, and the transcript has its words.

use serde_json::{Value, json};

use super::{
    agent_stream::{AgentStream, Says, text, tokens},
    headless::Headless,
    host::{
        Advice, Answers, Clear, CommandForm, Context, Fields, Form, Host, Instead, Line, Message, Off, Registration, Signature, Switch,
        Typed,
    },
    slash,
};

const HEADLESS: Headless = Headless {
    program: "droid",
    install: "npm install -g droid",
    before: &["exec", "-o", "stream-json"],
    model: Some("-m"),
    modes: &[("acceptEdits", &["--auto", "low"]), ("auto", &["--auto", "medium"]), ("bypassPermissions", &["--skip-permissions-unsafe"])],
    // A call that it refuses looks like one that failed (0.225.2: `tool_error`, with a sentence of its own for each reason).
    tells_denials: false,
    stream: |launch| Box::new(AgentStream::new(says, launch)),
    ..Headless::PLAIN
};

fn says(event: &Value, says: &mut Vec<Says>) {
    let id = || text(event, "id");
    match event["type"].as_str().unwrap_or_default() {
        "system" => says.push(Says::Begins { session: Some(text(event, "session_id")), model: Some(text(event, "model")) }),
        // The prompt comes back as the user's.
        "message" if event["role"] == "assistant" => says.push(Says::Message(text(event, "text"))),
        "tool_call" => says.push(Says::Tool { id: id(), name: text(event, "toolName"), input: event["parameters"].clone() }),
        "tool_result" => says.push(Says::ToolEnded { id: id(), failed: event["isError"] == true, denied: false }),
        "error" => says.push(Says::failed(text(event, "message"))),
        "completion" => {
            let names = ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
            says.extend([Says::Used { model: None, tokens: tokens(&event["usage"], names), usd: None, in_all: true }, Says::Ended]);
        }
        _ => {}
    }
}

pub(super) const HOST: Host = Host {
    name: "droid",
    title: "Droid",
    advice: Advice { allow: Advice::BY_MODE, sign_in: "start `droid` and sign in", resume: None },
    headless: Some(HEADLESS),
    signature: Signature { fields: &["tool_execution_count", "message_id"], variable: Some("FACTORY_PROJECT_DIR"), ..Signature::NONE },
    events: &[],
    fields: Fields { turn: "", ..Fields::CLAUDE },
    message: Message::Transcript { line, written, lags: false },
    answers: Answers { context: Context::Nested, instead: Instead::Stop, shows_line: true, escapes: false, longest: None },
    command_mark: '/',
    typed: Typed::OnScreen,
    expanded: Some(in_a_notification),
    clear: Clear::ToldAtEnd,
    reports_typed: false,
    cap: None,
    session_files: None,
    registration: Some(Registration {
        folder: ".factory",
        file: "settings.json",
        form: Form::Settings,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
        commands: Some(("commands", CommandForm::Markdown("$ARGUMENTS"))),
        switches: &[Switch { file: "settings.json", keys: &["hooks", "hooksDisabled"], off: Off::Is(true) }],
        ..Registration::PLAIN
    }),
};

/// The text of a command comes as a notice of the system's, and that text is the command as it was typed.
fn in_a_notification(prompt: &str) -> Option<(&str, &str)> {
    let text = prompt.trim().strip_prefix("<system-notification>")?.strip_suffix("</system-notification>")?;
    slash::split_at('/', text.trim())
}

/// After an error the hook is called as if the agent had stopped; then nothing of the agent's stands below the last prompt. Notes about hooks and
/// results of tools come as the user's, too.
fn line(line: &Value) -> Line {
    let message = &line["message"];
    let parts = || message["content"].as_array().into_iter().flatten();
    let text = || parts().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
    match message["role"].as_str() {
        Some("assistant") => Line::Agent(text()),
        Some("user") if parts().any(|part| part["type"] == "text") => Line::Prompt,
        _ => Line::Other,
    }
}

fn written(said: &str) -> Value {
    json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": said}]}})
}
