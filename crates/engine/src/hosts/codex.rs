//! Codex. Its hooks run in a process that all of its sessions share and that outlives its screen, so a process id says nothing about a session.

use std::path::Path;

use ralph_core::judge::session_outcome::Tokens;
use serde_json::{Value, json};

use super::{
    Kind,
    agent_stream::{AgentStream, Says, text, tokens},
    headless::Headless,
    host::{Advice, Answers, Clear, Context, Fields, Form, Host, Instead, Message, Off, Registration, Signature, Switch, Typed},
    session_files::{SessionFiles, Told, whole},
};

use crate::{hosts::claude::registration::CommandLine, sys::digest};

const HEADLESS: Headless = Headless {
    program: "codex",
    install: "npm install -g @openai/codex",
    before: &["exec", "--json", "--skip-git-repo-check"],
    after: &["-"],
    model: Some("-m"),
    modes: &[("acceptEdits", &["-s", "workspace-write"]), ("bypassPermissions", &["--dangerously-bypass-approvals-and-sandbox"])],
    // Its sandbox lets it read only.
    needs_mode: true,
    // A command that its sandbox refuses leaves no line at all.
    tells_denials: false,
    stream: |launch| Box::new(AgentStream::new(says, launch)),
    ..Headless::PLAIN
};

fn says(event: &Value, says: &mut Vec<Says>) {
    let item = &event["item"];
    match (event["type"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default()) {
        ("thread.started", _) => says.push(Says::Begins { session: Some(text(event, "thread_id")), model: None }),
        ("item.completed", "agent_message") => says.push(Says::Message(text(item, "text"))),
        // A message that has only begun; warnings, such as of a model that it does not know; thoughts and plans.
        (_, "agent_message" | "error" | "reasoning" | "todo_list") => {}
        // Some items are told only when they are done.
        (kind @ ("item.started" | "item.completed"), name) if !name.is_empty() => {
            let input = if item["changes"].is_array() { &item["changes"][0] } else { item };
            says.push(Says::Tool { id: text(item, "id"), name: name.to_owned(), input: input.clone() });
            if kind == "item.completed" {
                let failed = item["status"] == "failed" || item["exit_code"].as_i64().is_some_and(|code| code != 0);
                says.push(Says::ToolEnded { id: text(item, "id"), failed, denied: item["status"] == "declined" });
            }
        }
        ("error", _) => says.push(Says::Error { message: text(event, "message"), status: None }),
        ("turn.failed", _) => says.push(Says::failed(text(&event["error"], "message"))),
        ("turn.completed", _) => {
            says.extend([Says::Used { model: None, tokens: answered(&event["usage"]), usd: None, in_all: true }, Says::Ended]);
        }
        _ => {}
    }
}

pub(super) const HOST: Host = Host {
    name: "codex",
    title: "Codex",
    advice: Advice { allow: Advice::BY_MODE, sign_in: "sign in with `codex login`", resume: Some("codex resume") },
    headless: Some(HEADLESS),
    // The events that begin and end a session have no turn; their ids are of version 7, and those of Claude Code are not.
    signature: Signature {
        fields: &["turn_id"],
        else_by: |event| is_version_7(event.get("session_id").and_then(|id| id.as_str())),
        ..Signature::NONE
    },
    events: &[("Interrupt", Kind::Interrupted)],
    fields: Fields { turn: "turn_id", ..Fields::CLAUDE },
    message: Message::Event,
    // Measured with 0.166.0: of a longer text the middle is cut out, at a stop and as context.
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: true, longest: Some(10_000) },
    command_mark: '$',
    typed: Typed::Everywhere,
    expanded: None,
    clear: Clear::Untold,
    reports_typed: false,
    cap: None,
    session_files: Some(SessionFiles { folder: ".codex/sessions", named: whole, line: kept }),
    registration: Some(Registration {
        folder: ".codex",
        moved_by: Some(("CODEX_HOME", "")),
        file: "hooks.json",
        form: Form::Settings,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd", "Interrupt", "SubagentStop"],
        hasty_events: &["SessionEnd", "Interrupt"],
        // What a person types after `$ralph-loop` reaches the hook as it is, whether or not there is such a skill.
        commands: None,
        consent: Some("Codex runs new hooks only after you have reviewed them: it asks when it is started next"),
        review: Some(("config.toml", unreviewed)),
        switches: &[Switch { file: "config.toml", keys: &["features", "hooks"], off: Off::Is(false) }],
        ..Registration::PLAIN
    }),
};

/// A line in the file of a session: the model of a turn, a call of a tool, or what one answer used.
fn kept(line: &Value) -> Option<Told> {
    let data = &line["payload"];
    match line["type"].as_str()? {
        "turn_context" => Some(Told::Model(text(data, "model"))),
        "response_item" if data["type"].as_str().is_some_and(|kind| kind.ends_with("_call")) => Some(Told::ToolCall),
        "token_usage_record" => {
            Some(Told::Answer { id: text(data, "response_id"), model: None, tokens: answered(&data["usage"]), tool_calls: 0 })
        }
        _ => None,
    }
}

/// What came from the cache, or went into it, is part of the input.
fn answered(usage: &Value) -> Tokens {
    let used = tokens(usage, ["input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens"]);
    let input = used.input.saturating_sub(used.cache_read).saturating_sub(used.cache_written);
    Tokens { input, ..used }
}

/// Whether an id is a UUID of version 7, which begins with the time.
fn is_version_7(id: Option<&str>) -> bool {
    id.is_some_and(|id| id.len() == 36 && id.as_bytes()[14] == b'7')
}

/// The events of ralph's hooks that Codex does not run yet: it keeps a hash of each hook that its user has trusted, by its place in the file.
fn unreviewed(file: &Path, hooks: &Value, config: &Value) -> Vec<String> {
    let state = config.get("hooks").and_then(|hooks| hooks.get("state"));
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let trusted = |place: &str| {
        [file, &real].into_iter().find_map(|file| state?.get(format!("{}:{place}", file.display()))?.get("trusted_hash")?.as_str())
    };
    let mut events = Vec::new();
    for (event, groups) in hooks.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let entries = groups.as_array().into_iter().flatten().enumerate().flat_map(|(group, hooks)| {
            hooks.get("hooks").and_then(Value::as_array).into_iter().flatten().enumerate().map(move |(n, entry)| (group, n, entry))
        });
        let mut own = entries.filter(|(_, _, entry)| CommandLine::of(entry).is_some_and(|line| line.is_ralphs()));
        let name = snake(event);
        let is_open =
            |(group, n, entry): (usize, usize, &Value)| trusted(&format!("{name}:{group}:{n}")) != Some(hash(&name, entry).as_str());
        if own.any(is_open) {
            events.push(event.clone());
        }
    }
    events
}

/// Codex's own name for what was trusted (measured with 0.166.0): a hash of the entry with its defaults, its keys sorted.
fn hash(event: &str, entry: &Value) -> String {
    let hook = json!({"async": false, "command": entry["command"], "timeout": entry["timeout"], "type": "command"});
    format!("sha256:{}", digest::of(json!({"event_name": event, "hooks": [hook]}).to_string().as_bytes()))
}

/// `SessionStart` as `session_start`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
