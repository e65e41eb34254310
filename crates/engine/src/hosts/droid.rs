//! Droid. Its event names the message that the stop is about, and the transcript has its words.

use serde_json::{Value, json};

use super::host::{
    Answers, Clear, CommandForm, Context, Fields, Form, Host, Instead, Line, Message, Off, Registration, Signature, Switch, Typed, Unit,
};

pub(super) const HOST: Host = Host {
    name: "droid",
    title: "Droid",
    signature: Signature { fields: &["tool_execution_count", "message_id"], variable: Some("FACTORY_PROJECT_DIR"), ..Signature::NONE },
    events: &[],
    fields: Fields { turn: "", ..Fields::CLAUDE },
    message: Message::Transcript { line, written, lags: false },
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: false },
    command_mark: '/',
    typed: Typed::NotTried,
    clear: Clear::NotSeen,
    reports_typed: false,
    cap: None,
    registration: Some(Registration {
        folder: ".factory",
        moved_by: None,
        file: "settings.json",
        form: Form::Settings,
        unit: Unit::Seconds,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
        hasty_events: &[],
        commands: Some(("commands", CommandForm::Markdown("$ARGUMENTS"))),
        consent: None,
        review: None,
        switches: &[Switch { file: "settings.json", keys: &["hooks", "hooksDisabled"], off: Off::Is(true) }],
        status_line: None,
    }),
};

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
