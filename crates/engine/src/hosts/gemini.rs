//! Gemini CLI. Its event holds all that the agent said in the turn, so the last message comes from its transcript.

use serde_json::{Value, json};

use super::{
    Kind,
    host::{
        Answers, Clear, CommandForm, Context, Fields, Form, Host, Instead, Line, Message, Off, Registration, Signature, Switch, Typed, Unit,
    },
};

pub(super) const HOST: Host = Host {
    name: "gemini",
    title: "Gemini CLI",
    signature: Signature { fields: &["prompt_response"], session_in: Some("GEMINI_SESSION_ID"), ..Signature::NONE },
    events: &[("AfterAgent", Kind::Stop), ("BeforeAgent", Kind::Prompt)],
    fields: Fields::CLAUDE,
    message: Message::Transcript { line, written, lags: false },
    // Context arrives with `&lt;` for `<` (measured with 0.61.0), and the reason of a block as it is.
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: true },
    command_mark: '/',
    typed: Typed::Everywhere,
    clear: Clear::Told,
    reports_typed: false,
    cap: None,
    registration: Some(Registration {
        folder: ".gemini",
        moved_by: None,
        file: "settings.json",
        form: Form::NamedSettings,
        unit: Unit::Milliseconds,
        events: &["AfterAgent", "BeforeAgent", "SessionStart", "SessionEnd"],
        hasty_events: &[],
        commands: Some(("commands", CommandForm::Toml("{{args}}"))),
        consent: None,
        review: None,
        switches: &[
            Switch { file: "settings.json", keys: &["hooksConfig", "enabled"], off: Off::Is(false) },
            Switch { file: "settings.json", keys: &["hooksConfig", "disabled"], off: Off::Lists("ralph") },
        ],
        status_line: None,
    }),
};

/// A message is written again when its tools have run: the later line counts. Results of tools come as the user's.
fn line(line: &Value) -> Line {
    let text = || line["content"].as_str().unwrap_or_default().to_owned();
    let is_prompt = || line["content"].as_array().is_some_and(|parts| parts.iter().any(|part| part["text"].is_string()));
    match line["type"].as_str() {
        Some("gemini") => Line::Agent(text()),
        Some("user") if is_prompt() => Line::Prompt,
        _ => Line::Other,
    }
}

fn written(said: &str) -> Value {
    json!({"type": "gemini", "content": said})
}
