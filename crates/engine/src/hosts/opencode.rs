//! opencode. It runs no command as a hook, so that a plugin of ralph's own (`opencode.js`) sends the events, in Claude Code's words, and does what is answered.

use serde_json::Value;

use super::{
    Kind,
    agent_stream::{AgentStream, Says, text},
    headless::Headless,
    host::{Advice, Answers, Clear, CommandForm, Context, Fields, Form, Host, Instead, Message, Registration, Signature, Typed},
};
use ralph_core::judge::session_outcome::Tokens;

const HEADLESS: Headless = Headless {
    program: "opencode",
    install: "npm install -g opencode-ai",
    before: &["run", "--format", "json"],
    model: Some("-m"),
    // What its settings do not ask for, it may do.
    modes: &[("acceptEdits", &[]), ("bypassPermissions", &["--auto"])],
    stream: |launch| Box::new(AgentStream::new(says, launch)),
    ..Headless::PLAIN
};

fn says(event: &Value, says: &mut Vec<Says>) {
    let part = &event["part"];
    says.push(Says::Begins { session: Some(text(event, "sessionID")), model: None });
    match event["type"].as_str().unwrap_or_default() {
        "text" => says.push(Says::Message(text(part, "text"))),
        // It is told when it is done.
        "tool_use" => {
            let (state, id) = (&part["state"], text(part, "callID"));
            says.push(Says::Tool { id: id.clone(), name: text(part, "tool"), input: state["input"].clone() });
            let failed = state["status"] == "error";
            let denied = failed && state["error"].as_str().is_some_and(|error| error.contains("rejected permission"));
            says.push(Says::ToolEnded { id, failed, denied });
        }
        "step_finish" => {
            let (used, count) = (&part["tokens"], |value: &Value| value.as_u64().unwrap_or(0));
            let tokens = Tokens {
                input: count(&used["input"]),
                output: count(&used["output"]).saturating_add(count(&used["reasoning"])),
                cache_read: count(&used["cache"]["read"]),
                cache_written: count(&used["cache"]["write"]),
            };
            // For a model whose price it does not know it says 0.
            let usd = part["cost"].as_f64().filter(|usd| *usd > 0.0);
            says.push(Says::Used { model: None, tokens, usd, in_all: false });
            says.extend((part["reason"] == "stop").then_some(Says::Ended));
        }
        // It tries again by itself, also where that cannot help.
        "error" => {
            let (error, data) = (&event["error"], &event["error"]["data"]);
            let status = data["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
            says.push(Says::Error { message: format!("{}: {}", text(error, "name"), text(data, "message")), status });
        }
        _ => {}
    }
}

pub(super) const HOST: Host = Host {
    name: "opencode",
    title: "opencode",
    advice: Advice { allow: Advice::BY_MODE, sign_in: "sign in with `opencode auth login`", resume: Some("opencode -s") },
    headless: Some(HEADLESS),
    signature: Signature { fields: &["opencode"], ..Signature::NONE },
    events: &[("Interrupt", Kind::Interrupted)],
    fields: Fields::CLAUDE,
    message: Message::Event,
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: false, longest: None },
    command_mark: '/',
    typed: Typed::Everywhere,
    expanded: None,
    clear: Clear::NotSeen,
    reports_typed: true,
    cap: None,
    session_files: None,
    registration: Some(Registration {
        folder: ".config/opencode",
        moved_by: Some(("XDG_CONFIG_HOME", "opencode")),
        file: "plugin/ralph.js",
        form: Form::Plugin(include_str!("opencode.js")),
        events: &["Stop", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "Interrupt"],
        commands: Some(("command", CommandForm::Markdown("$ARGUMENTS"))),
        ..Registration::PLAIN
    }),
};
