//! The events that Claude Code sends on standard input.
//!
//! Every field is optional and read leniently: clients differ by version, and an event with one odd field is still an event.

use std::sync::OnceLock;

use ralph_core::{loops::fnv1a, text::json::parse_tolerant};
use serde_json::{Map, Value};

use crate::sys::{env, secrets};

/// A hook event as it arrived.
#[derive(Debug, Clone)]
pub struct Event {
    fields: Map<String, Value>,
    /// Made once: a message can have some megabytes.
    fingerprint: OnceLock<String>,
}

impl Event {
    pub fn parse(input: &[u8]) -> Result<Self, serde_json::Error> {
        parse_tolerant(input).map(|fields| Event::of(fields).at_home())
    }

    fn of(fields: Map<String, Value>) -> Self {
        Event { fields, fingerprint: OnceLock::new() }
    }

    /// Some clients, and the documentation, write `~` for the user's folder.
    fn at_home(mut self) -> Self {
        for name in ["transcript_path", "agent_transcript_path"] {
            if let Some(rest) = self.text(name).and_then(|path| path.strip_prefix("~/"))
                && let Some(path) = env::home().map(|home| home.join(rest).to_string_lossy().into_owned())
            {
                self.fields.insert(name.to_owned(), Value::from(path));
            }
        }
        self
    }

    pub fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    /// The event's name; empty if it has none.
    pub fn name(&self) -> &str {
        self.text("hook_event_name").unwrap_or_default()
    }

    pub fn session(&self) -> Option<&str> {
        self.text("session_id").filter(|s| !s.is_empty())
    }

    /// The last text block of the agent's last message; absent where that message has no text, and in clients before 2.1.47.
    pub fn last_message(&self) -> Option<&str> {
        self.text("last_assistant_message").filter(|t| !t.trim().is_empty())
    }

    /// What still runs in the background, in words.
    pub fn background(&self) -> Vec<String> {
        let tasks = self.fields.get("background_tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        tasks
            .iter()
            .filter(|t| t.get("status").and_then(Value::as_str).is_none_or(|s| s == "running" || s == "pending"))
            .map(in_words)
            .collect()
    }

    /// Whether the stop before this one was in the same turn, and the agent was sent back then; by whom is not told.
    pub fn is_after_a_block(&self) -> bool {
        self.fields.get("stop_hook_active").and_then(Value::as_bool).unwrap_or(false)
    }

    /// A fingerprint of this stop. The client gives a stop no id of its own, so two stops with the same words in the same turn look alike:
    /// only together with who reports it does this identify one.
    pub fn stop_fingerprint(&self) -> String {
        let made = || {
            let [session, turn, message] = [self.session(), self.text("prompt_id"), self.last_message()].map(Option::unwrap_or_default);
            fingerprint(self.is_after_a_block(), session, turn, message)
        };
        self.fingerprint.get_or_init(made).clone()
    }
}

/// A fingerprint of a stop of `session` in a turn of the person's.
pub fn fingerprint(after_a_block: bool, session: &str, turn: &str, message: &str) -> String {
    let parts = [session, turn, message].join("\0");
    format!("{:016x}", fnv1a(format!("{after_a_block}\0{parts}").as_bytes()))
}

fn in_words(task: &Value) -> String {
    let field = |name| task.get(name).and_then(Value::as_str);
    let what = field("description").or(field("command")).or(field("agent_type")).unwrap_or("task");
    secrets::excerpt(&format!("{}: {what}", field("type").unwrap_or("task")), 100)
}
