//! Grok.

use serde_json::Value;

use super::{
    agent_stream::{AgentStream, Says, text, tokens},
    headless::Headless,
    host::{Advice, Answers, Cap, Clear, CommandForm, Context, Fields, Form, Host, Instead, Message, Registration, Signature, Typed},
    session_files::{SessionFiles, Told, whole},
};
use ralph_core::judge::session_outcome::Tokens;

const HEADLESS: Headless = Headless {
    program: "grok",
    install: "npm install -g @xai-official/grok",
    before: &["--prompt-file", "/dev/stdin", "--output-format", "streaming-json"],
    model: Some("-m"),
    session: Some("-s"),
    modes: &[("acceptEdits", &["--permission-mode", "acceptEdits"]), ("bypassPermissions", &["--always-approve"])],
    // Of a longer file with a prompt it reads the beginning.
    longest: Some(99_000),
    stream: |launch| Box::new(AgentStream::new(says, launch)),
    ..Headless::PLAIN
};

fn says(event: &Value, says: &mut Vec<Says>) {
    let id = || text(event, "toolCallId");
    match event["type"].as_str().unwrap_or_default() {
        "text" => says.push(Says::Piece(text(event, "data"))),
        "tool_call" => says.push(Says::Tool { id: id(), name: text(event, "toolName"), input: event["rawInput"].clone() }),
        "tool_call_update" if event["status"] == "completed" || event["status"] == "failed" => {
            let failed = event["status"] == "failed";
            // No person is there to cancel a call: it was not allowed (measured with 1.0.41).
            let cancelled = |text: &str| text.starts_with("User cancelled the execution for tool");
            let denied = failed && event["content"][0]["content"]["text"].as_str().is_some_and(cancelled);
            says.push(Says::ToolEnded { id: id(), failed, denied });
        }
        "error" => says.push(Says::failed(text(event, "message"))),
        "end" => {
            says.push(Says::Begins { session: Some(text(event, "sessionId")), model: None });
            let names = ["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"];
            let models = event["modelUsage"].as_object().into_iter().flatten();
            says.extend(models.map(|(model, usage)| Says::Used {
                model: Some(model.clone()),
                tokens: tokens(usage, names),
                usd: None,
                in_all: true,
            }));
            let reason = text(event, "stopReason");
            says.push(if reason == "end_turn" { Says::Ended } else { Says::failed(format!("the turn ended: {reason}")) });
        }
        _ => {}
    }
}

/// A turn in the file of a session. What came from the cache is part of the input. Of two models it does not tell whose tokens cost what.
fn kept(line: &Value) -> Option<Told> {
    let update = &line["params"]["update"];
    match update["sessionUpdate"].as_str()? {
        "tool_call" => Some(Told::ToolCall),
        "turn_completed" => {
            let usage = &update["usage"];
            let used = tokens(usage, ["inputTokens", "outputTokens", "cachedReadTokens", "cacheCreationTokens"]);
            let input = used.input.saturating_sub(used.cache_read).saturating_sub(used.cache_written);
            let model = usage["modelUsage"].as_object().filter(|models| models.len() == 1).and_then(|models| models.keys().next().cloned());
            Some(Told::Turn { model, tokens: Tokens { input, ..used }, took: update["elapsed_ms"].as_i64().unwrap_or(0) })
        }
        _ => None,
    }
}

pub(super) const HOST: Host = Host {
    name: "grok",
    title: "Grok",
    advice: Advice { allow: Advice::BY_MODE, sign_in: "start `grok` and sign in", resume: Some("grok -r") },
    headless: Some(HEADLESS),
    signature: Signature { fields: &["hookEventName"], session_in: Some("GROK_SESSION_ID"), ..Signature::NONE },
    events: &[],
    fields: Fields {
        turn: "promptId",
        message: "lastAssistantMessage",
        after_a_block: "stopHookActive",
        background: "backgroundTasks",
        error: "errorDetails",
        ..Fields::CLAUDE
    },
    message: Message::Event,
    answers: Answers { context: Context::Ignored, instead: Instead::Block, shows_line: true, escapes: false, longest: None },
    command_mark: '/',
    typed: Typed::Everywhere,
    expanded: None,
    clear: Clear::NotSeen,
    reports_typed: false,
    cap: Some(Cap { honours: 8, variable: None, setting: None }),
    session_files: Some(SessionFiles { folder: ".grok/sessions", named: whole, line: kept }),
    registration: Some(Registration {
        folder: ".grok",
        file: "hooks/ralph.json",
        form: Form::Own,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd", "StopFailure"],
        commands: Some(("commands", CommandForm::Markdown("$ARGUMENTS"))),
        status_line: Some(("config.toml", "[ui.status_line]\ntype = \"command\"\ncommand = \"ralph statusline\"")),
        ..Registration::PLAIN
    }),
};
