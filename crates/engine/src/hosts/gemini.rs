//! Gemini CLI. Its event holds all that the agent said in the turn, so the last message comes from its transcript.

use ralph_core::judge::session_outcome::Tokens;
use serde_json::{Value, json};

use super::{
    Kind,
    agent_stream::{AgentStream, Says, text, tokens},
    headless::Headless,
    host::{
        Advice, Answers, Clear, CommandForm, Context, Fields, Form, Host, Instead, Line, Message, Off, Registration, Signature, Switch,
        Typed, Unit,
    },
    session_files::{SessionFiles, Told},
};

const HEADLESS: Headless = Headless {
    program: "gemini",
    install: "npm install -g @google/gemini-cli",
    before: &["-o", "stream-json", "--skip-trust"],
    model: Some("-m"),
    session: Some("--session-id"),
    modes: &[("acceptEdits", &["--approval-mode", "auto_edit"]), ("bypassPermissions", &["--approval-mode", "yolo"])],
    // Tools that change something are not even offered.
    needs_mode: true,
    // Behind its relauncher it hears no request to end.
    variables: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
    stream: |launch| Box::new(AgentStream::new(says, launch)),
    ..Headless::PLAIN
};

fn says(event: &Value, says: &mut Vec<Says>) {
    let id = || text(event, "tool_id");
    match event["type"].as_str().unwrap_or_default() {
        "init" => says.push(Says::Begins { session: Some(text(event, "session_id")), model: Some(text(event, "model")) }),
        // The prompt comes back as the user's.
        "message" if event["role"] == "assistant" => says.push(Says::Piece(text(event, "content"))),
        "tool_use" => says.push(Says::Tool { id: id(), name: text(event, "tool_name"), input: event["parameters"].clone() }),
        "tool_result" => {
            let denied = event["error"]["type"] == "tool_not_registered";
            says.push(Says::ToolEnded { id: id(), failed: event["status"] == "error", denied });
        }
        "error" if event["severity"] == "error" => says.push(Says::Error { message: text(event, "message"), status: None }),
        "result" => {
            let used = |usage: &Value| {
                let used = tokens(usage, ["input_tokens", "output_tokens", "cached", ""]);
                Tokens { input: used.input.saturating_sub(used.cache_read), ..used }
            };
            let models = event["stats"]["models"].as_object().into_iter().flatten();
            says.extend(models.map(|(model, usage)| Says::Used {
                model: Some(model.clone()),
                tokens: used(usage),
                usd: None,
                in_all: true,
            }));
            let failed = event["status"] == "error";
            says.push(if failed { Says::failed(text(&event["error"], "message")) } else { Says::Ended });
        }
        _ => {}
    }
}

pub(super) const HOST: Host = Host {
    name: "gemini",
    title: "Gemini CLI",
    advice: Advice { allow: Advice::BY_MODE, sign_in: "start `gemini` and sign in (`/auth`)", resume: Some("gemini -r") },
    headless: Some(HEADLESS),
    signature: Signature { fields: &["prompt_response"], session_in: Some("GEMINI_SESSION_ID"), ..Signature::NONE },
    events: &[("AfterAgent", Kind::Stop), ("BeforeAgent", Kind::Prompt)],
    fields: Fields::CLAUDE,
    message: Message::Transcript { line, written, lags: false },
    // Context arrives with `&lt;` for `<` (measured with 0.61.0), and the reason of a block as it is.
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: true, longest: None },
    command_mark: '/',
    typed: Typed::Everywhere,
    expanded: None,
    clear: Clear::Told,
    reports_typed: false,
    cap: None,
    session_files: Some(SessionFiles { folder: ".gemini/tmp", named: |id| id.get(..8).unwrap_or(id), line: kept }),
    registration: Some(Registration {
        folder: ".gemini",
        file: "settings.json",
        form: Form::NamedSettings,
        unit: Unit::Milliseconds,
        events: &["AfterAgent", "BeforeAgent", "SessionStart", "SessionEnd"],
        commands: Some(("commands", CommandForm::Toml("{{args}}"))),
        switches: &[
            Switch { file: "settings.json", keys: &["hooksConfig", "enabled"], off: Off::Is(false) },
            Switch { file: "settings.json", keys: &["hooksConfig", "disabled"], off: Off::Lists("ralph") },
        ],
        ..Registration::PLAIN
    }),
};

/// An answer in the file of a session, which is written again when its tools have run. What came from the cache is part of the input.
fn kept(line: &Value) -> Option<Told> {
    let (used, count) = (&line["tokens"], |key: &str| line["tokens"][key].as_u64().unwrap_or(0));
    if line["type"] != "gemini" || !used.is_object() {
        return None;
    }
    let tokens = Tokens {
        input: count("input").saturating_sub(count("cached")),
        output: count("output").saturating_add(count("thoughts")),
        cache_read: count("cached"),
        cache_written: 0,
    };
    let tool_calls = line["toolCalls"].as_array().map_or(0, Vec::len) as u64;
    Some(Told::Answer { id: text(line, "id"), model: line["model"].as_str().map(str::to_owned), tokens, tool_calls })
}

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
