//! The events that Claude Code sends on standard input, and how to tell that it really is Claude Code.
//!
//! Every field is optional and read leniently: clients differ by version, and an event with one odd field is still an event.

use ralph_core::text::json::parse_tolerant;
use serde_json::{Map, Value};

use super::version::of_ai_agent;
use crate::{
    hosts::{Caller, Event, Kind},
    sys::{env, secrets},
};

/// Fields that Claude Code never sends, and who does: several agents read its settings and run the hooks that they find there.
const FOREIGN_FIELDS: [(&str, &str); 11] = [
    ("turn_id", "codex"),
    ("hookEventName", "grok"),
    ("sessionId", "copilot"),
    ("stop_reason", "copilot"),
    ("prompt_response", "gemini"),
    ("context_usage", "qwen"),
    ("crons", "qwen"),
    ("message_id", "droid"),
    ("tool_execution_count", "droid"),
    ("client_type", "kimi"),
    ("timestamp", "another agent"),
];

pub(in crate::hosts) fn read(input: &[u8]) -> Result<(Event, Caller), serde_json::Error> {
    let mut fields = Fields(parse_tolerant(input)?);
    let event = fields.event();
    // The one sign that no other agent gives, not even one that was started from Claude Code's own shell: its session is in the environment, too.
    let is_certain = event.session.is_some() && event.session == env::claude_session();
    let by_field = || FOREIGN_FIELDS.iter().find(|(field, _)| fields.0.contains_key(*field)).map(|(_, agent)| *agent);
    let foreign = if is_certain { None } else { by_field().or_else(env::foreign_agent) };
    let own = || Caller::Own(of_ai_agent(env::ai_agent().as_deref().unwrap_or_default()));
    Ok((event, foreign.map_or_else(own, Caller::Foreign)))
}

struct Fields(Map<String, Value>);

impl Fields {
    fn event(&mut self) -> Event {
        let name = self.take("hook_event_name").unwrap_or_default();
        let (kind, about) = match name.as_str() {
            "Stop" => (Kind::Stop, None),
            "SubagentStop" => (Kind::SubagentStop, Some("agent_type")),
            "StopFailure" => (Kind::TurnFailed, Some("error")),
            "UserPromptSubmit" => (Kind::Prompt, None),
            "UserPromptExpansion" => (Kind::TypedCommand, None),
            "SessionStart" => (Kind::SessionStart, Some("source")),
            "SessionEnd" => (Kind::SessionEnd, Some("reason")),
            "PreCompact" => (Kind::Other, Some("trigger")),
            _ => (Kind::Other, None),
        };
        let command = self.take("command_name");
        Event {
            kind,
            name,
            session: self.take("session_id").filter(|session| !session.is_empty()),
            turn: self.take("prompt_id"),
            cwd: self.take("cwd"),
            transcript: self.take("transcript_path").map(at_home).unwrap_or_default(),
            // Absent where that message has no text, and in clients before 2.1.47.
            message: self.take("last_assistant_message").filter(|text| !text.trim().is_empty()),
            after_a_block: self.0.get("stop_hook_active").and_then(Value::as_bool).unwrap_or(false),
            background: self.background(),
            prompt: self.take("prompt").unwrap_or_default(),
            command: command.map(|name| (name, self.take("command_args").unwrap_or_default())),
            agent_id: self.take("agent_id"),
            about: about.and_then(|field| self.take(field)),
            ..Event::default()
        }
    }

    /// A text; messages can be long, so it is not copied.
    fn take(&mut self, field: &str) -> Option<String> {
        match self.0.get_mut(field).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn background(&self) -> Vec<String> {
        let tasks = self.0.get("background_tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let runs = |task: &&Value| task.get("status").and_then(Value::as_str).is_none_or(|s| s == "running" || s == "pending");
        tasks.iter().filter(runs).map(in_words).collect()
    }
}

/// Some clients, and the documentation, write `~` for the user's folder.
fn at_home(path: String) -> String {
    let at_home = || path.strip_prefix("~/").and_then(|rest| Some(env::home()?.join(rest).to_string_lossy().into_owned()));
    at_home().unwrap_or(path)
}

fn in_words(task: &Value) -> String {
    let field = |name| task.get(name).and_then(Value::as_str);
    let what = field("description").or(field("command")).or(field("agent_type")).unwrap_or("task");
    secrets::excerpt(&format!("{}: {what}", field("type").unwrap_or("task")), 100)
}
