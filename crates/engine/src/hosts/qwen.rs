//! Qwen Code: in its hooks Claude Code's twin, typed commands included.

use ralph_core::judge::session_outcome::Tokens;
use serde_json::Value;

use super::{
    agent_stream::{AgentStream, Says, text, tokens},
    headless::Headless,
    host::{
        Advice, Answers, Cap, Clear, CommandForm, Context, Fields, Form, Host, Instead, Message, Off, Registration, Signature, Switch,
        Typed, Unit,
    },
    session_files::{SessionFiles, Told, whole},
};

const HEADLESS: Headless = Headless {
    program: "qwen",
    install: "npm install -g @qwen-code/qwen-code",
    before: &["-o", "stream-json"],
    model: Some("-m"),
    session: Some("--session-id"),
    modes: &[("acceptEdits", &["--approval-mode", "auto-edit"]), ("bypassPermissions", &["--approval-mode", "yolo"])],
    needs_mode: true,
    stream: |launch| Box::new(AgentStream::new(says, launch)),
    ..Headless::PLAIN
};

fn says(event: &Value, says: &mut Vec<Says>) {
    let parts = || event["message"]["content"].as_array().into_iter().flatten();
    match (event["type"].as_str().unwrap_or_default(), event["subtype"].as_str().unwrap_or_default()) {
        ("system", "init") => says.push(Says::Begins { session: Some(text(event, "session_id")), model: Some(text(event, "model")) }),
        ("system", "retry") => {
            let (data, count) = (&event["data"], |key: &str| event["data"][key].as_u64().unwrap_or(0));
            says.extend(data["attempt"].is_u64().then(|| Says::Retry {
                attempt: count("attempt"),
                after_ms: count("delayMs"),
                status: None,
            }));
        }
        ("assistant", _) => says.extend(parts().filter_map(|part| match part["type"].as_str()? {
            "text" => Some(Says::Message(text(part, "text"))),
            "tool_use" => Some(Says::Tool { id: text(part, "id"), name: text(part, "name"), input: part["input"].clone() }),
            _ => None,
        })),
        ("user", _) => says.extend(parts().filter(|part| part["type"] == "tool_result").map(|part| {
            let failed = part["is_error"] == true;
            let denied = failed && part["content"].as_str().is_some_and(|text| text.contains("that permission was declined"));
            Says::ToolEnded { id: text(part, "tool_use_id"), failed, denied }
        })),
        ("result", _) => {
            // What came from the cache is part of the input.
            let used = tokens(&event["usage"], ["input_tokens", "output_tokens", "cache_read_input_tokens", ""]);
            let tokens = Tokens { input: used.input.saturating_sub(used.cache_read), ..used };
            says.push(Says::Used { model: None, tokens, usd: None, in_all: true });
            let failed = event["is_error"] == true;
            says.push(if failed { Says::failed(text(&event["error"], "message")) } else { Says::Ended });
        }
        _ => {}
    }
}

/// An answer in the file of a session. What came from the cache is part of the input.
fn kept(line: &Value) -> Option<Told> {
    let count = |key: &str| line["usageMetadata"][key].as_u64().unwrap_or(0);
    if line["type"] != "assistant" || !line["usageMetadata"].is_object() {
        return None;
    }
    let tokens = Tokens {
        input: count("promptTokenCount").saturating_sub(count("cachedContentTokenCount")),
        output: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
        cache_read: count("cachedContentTokenCount"),
        cache_written: 0,
    };
    let parts = line["message"]["parts"].as_array().into_iter().flatten();
    let tool_calls = parts.filter(|part| part["functionCall"].is_object()).count() as u64;
    Some(Told::Answer { id: text(line, "uuid"), model: line["model"].as_str().map(str::to_owned), tokens, tool_calls })
}

pub(super) const HOST: Host = Host {
    name: "qwen",
    title: "Qwen Code",
    advice: Advice { allow: Advice::BY_MODE, sign_in: "start `qwen` and sign in (`/auth`)", resume: Some("qwen -r") },
    headless: Some(HEADLESS),
    // It sets Gemini's variables, too, and not the one with the session.
    signature: Signature { fields: &["context_usage", "crons"], session_in: Some("QWEN_CODE_SESSION_ID"), ..Signature::NONE },
    events: &[],
    fields: Fields::CLAUDE,
    message: Message::Event,
    // Context arrives with `&lt;` for `<` (measured with 0.24.4), and the reason of a block as it is.
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: true, longest: None },
    command_mark: '/',
    typed: Typed::Everywhere,
    expanded: None,
    clear: Clear::Told,
    // `UserPromptExpansion` comes as well when its model calls a command as a skill, in every approval mode but the one that asks (measured with 0.24.4). A prompt
    // comes with the command's text only where the command was entered.
    reports_typed: false,
    cap: Some(Cap { honours: 7, variable: Some("QWEN_CODE_STOP_HOOK_BLOCK_CAP"), setting: Some("stopHookBlockingCap") }),
    session_files: Some(SessionFiles { folder: ".qwen/projects", named: whole, line: kept }),
    registration: Some(Registration {
        folder: ".qwen",
        file: "settings.json",
        form: Form::Settings,
        unit: Unit::MillisecondsFrom1000,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd", "StopFailure", "SubagentStop"],
        commands: Some(("commands", CommandForm::Markdown("{{args}}"))),
        switches: &[Switch { file: "settings.json", keys: &["disableAllHooks"], off: Off::Is(true) }],
        status_line: Some(("settings.json", r#""ui": { "statusLine": { "type": "command", "command": "ralph statusline" } }"#)),
        ..Registration::PLAIN
    }),
};
