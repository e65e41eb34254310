//! Reads a hook's event in the words of the agent that sent it, and finds out which one that is.
//!
//! Every field is optional and read leniently: clients differ by version, and an event with one odd field is still an event.

use std::path::Path;

use ralph_core::text::{parse_tolerant, time};
use serde_json::{Map, Value};

use super::{
    Caller, Client, Event, Kind, claude,
    host::{Host, Message},
    signs, transcript_end,
};
use crate::sys::{env, files, secrets};

/// The first line of a transcript is no longer.
const LONGEST_HEAD: usize = 64 << 10;

/// The event, and whether it comes from the agent with that name, which is the one that this hook was registered with.
pub(super) fn read(input: &[u8], named: &str) -> Result<(Event, Caller), serde_json::Error> {
    let fields: Map<String, Value> = parse_tolerant(input)?;
    let named = Host::by_name(named);
    let sender = recognise(&fields, named);
    let mut reader = Reader { fields, host: sender.or(named).unwrap_or(&claude::HOST) };
    let event = reader.event();
    Ok(match sender {
        Some(host) if named == Some(host) && host.is_claude() => (event, Caller::Own(client(host))),
        // Only here: a transcript may have to be waited for, and a stranger gets no answer.
        Some(host) if named == Some(host) => (reader.of_another(event), Caller::Own(client(host))),
        Some(host) => (event, Caller::Foreign(host.name)),
        None => (event, Caller::Foreign("another agent")),
    })
}

fn client(host: &'static Host) -> Client {
    if host.is_claude() {
        return claude::version::of_ai_agent(claude::variables::ai_agent().as_deref().unwrap_or_default());
    }
    Client { host, sends_message: true, reports_typed: host.reports_typed, ..Client::default() }
}

/// The agent that sent an event, by what it is: several agents read Claude Code's settings and run the hooks that they find there. `None`: one that ralph does not know.
fn recognise(fields: &Map<String, Value>, named: Option<&'static Host>) -> Option<&'static Host> {
    let session = fields.get("session_id").and_then(Value::as_str);
    let is_in = |variable: Option<&str>| session.is_some() && variable.and_then(env::text).as_deref() == session;
    // The one sign that no other agent gives, not even one that was started from Claude Code's own shell.
    if is_in(claude::HOST.signature.session_in) {
        return Some(&claude::HOST);
    }
    let others = || Host::ALL.into_iter().filter(|host| !host.is_claude());
    let by_field = |host: &&Host| host.signature.fields.iter().any(|field| fields.contains_key(*field));
    let by_session = |host: &&Host| is_in(host.signature.session_in);
    let by_shape = |host: &&Host| (host.signature.else_by)(fields);
    // An agent inherits the variables of the one that started it, so that these tell least.
    let by_variable = |host: &&Host| host.signature.variable.is_some_and(|name| env::os(name).is_some());
    let certain = others().find(by_field).or_else(|| others().find(by_session));
    let other = certain.or_else(|| others().find(by_shape)).or_else(|| others().find(by_variable));
    // Older versions of Claude Code give no sign of their own; no version sends these, or runs in the shell of another agent without its own sign.
    let is_unknown = || ["timestamp", "client_type", "sessionId"].iter().any(|field| fields.contains_key(*field)) || signs::of_others();
    other.or_else(|| named.filter(|host| host.is_claude() && !is_unknown()))
}

struct Reader {
    fields: Map<String, Value>,
    host: &'static Host,
}

impl Reader {
    fn event(&mut self) -> Event {
        let names = self.host.fields;
        let name = self.take("hook_event_name").unwrap_or_default();
        let (kind, about) = self.kind(&name);
        let command = self.take("command_name");
        Event {
            kind,
            name,
            session: self.take(names.session).filter(|session| !session.is_empty()),
            turn: self.take(names.turn),
            cwd: self.take("cwd"),
            transcript: self.take(names.transcript).map(at_home).unwrap_or_default(),
            // Claude Code leaves it out where that message has no text, and before 2.1.47.
            message: self.take(names.message).filter(|text| !text.trim().is_empty()),
            after_a_block: self.fields.get(names.after_a_block).and_then(Value::as_bool).unwrap_or(false),
            background: self.background(names.background),
            prompt: self.take("prompt").unwrap_or_default(),
            command: command.map(|name| (name, self.take("command_args").unwrap_or_default())),
            agent_id: self.take("agent_id"),
            about: about.and_then(|field| self.take(field)),
            error: self.take(names.error).unwrap_or_default(),
            ..Event::default()
        }
    }

    fn kind(&self, name: &str) -> (Kind, Option<&'static str>) {
        if let Some((_, kind)) = self.host.events.iter().find(|(event, _)| *event == name) {
            return (*kind, None);
        }
        match name {
            "Stop" => (Kind::Stop, None),
            "SubagentStop" => (Kind::SubagentStop, Some("agent_type")),
            "StopFailure" => (Kind::TurnFailed, Some("error")),
            "UserPromptSubmit" => (Kind::Prompt, None),
            "UserPromptExpansion" => (Kind::TypedCommand, None),
            "SessionStart" => (Kind::SessionStart, Some("source")),
            "SessionEnd" => (Kind::SessionEnd, Some("reason")),
            "Notification" => (Kind::Notification, Some("notification_type")),
            "PreCompact" => (Kind::Other, Some("trigger")),
            _ => (Kind::Other, None),
        }
    }

    /// The message from where this agent has it. Its transcript is no one's that ralph can read, and a stop without new words is none: agents report one after an
    /// error, at their own end, or when they believe that they run in circles.
    fn of_another(&self, mut event: Event) -> Event {
        let is_of_a_subagent = event.agent_id.is_some() || self.is_of_a_subagent(&event.transcript);
        let (message, is_late) = match self.host.message {
            Message::Transcript { line, lags, .. } if event.kind == Kind::Stop => {
                let at = self.fields.get("timestamp").and_then(Value::as_str).and_then(time::parse);
                transcript_end::last_message(&event.transcript, line, at.filter(|_| lags))
            }
            _ => (event.message.take(), false),
        };
        let message = message.map(|text| if self.host.answers.escapes { with_tags(&text) } else { text });
        let kind = match event.kind {
            Kind::Stop if message.is_none() => Kind::Other,
            Kind::Prompt | Kind::TypedCommand | Kind::Stop | Kind::SessionStart if is_of_a_subagent => Kind::Other,
            // Its model can cause this event, too: the prompt that follows counts.
            Kind::TypedCommand if !self.host.reports_typed => Kind::Other,
            kind => kind,
        };
        Event { kind, message, is_late, transcript: String::new(), ..event }
    }

    /// The model wrote what a subagent is prompted with, and a subagent's stop is none of the session's. Codex tells such prompts under the session's own id (measured
    /// with 0.166.0), Copilot (1.0.102), Grok (1.0.41) and Droid (0.225.2) under another one; of Droid's stops only the first line of the transcript tells.
    fn is_of_a_subagent(&self, transcript: &str) -> bool {
        const FIELDS: [&str; 3] = ["parent_agent_id", "subagentType", "calling_session_id"];
        let is_called = |first: Value| first.get("callingSessionId").is_some_and(Value::is_string);
        let head = || {
            matches!(self.host.message, Message::Transcript { .. })
                .then(|| files::read_head(Path::new(transcript), LONGEST_HEAD).ok())
                .flatten()
        };
        let first = || serde_json::from_slice(head()?.split(|byte| *byte == b'\n').next()?).ok();
        FIELDS.iter().any(|field| self.fields.get(*field).is_some_and(Value::is_string)) || first().is_some_and(is_called)
    }

    /// A text; messages can be long, so it is not copied.
    fn take(&mut self, field: &str) -> Option<String> {
        match self.fields.get_mut(field).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn background(&self, field: &str) -> Vec<String> {
        let tasks = self.fields.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let runs = |task: &&Value| task.get("status").and_then(Value::as_str).is_none_or(|s| s == "running" || s == "pending");
        tasks.iter().filter(runs).map(in_words).collect()
    }
}

/// An agent that is told of tags in an escaped form may use that form itself.
fn with_tags(text: &str) -> String {
    ["promise", "blocked"].iter().fold(text.to_owned(), |text, tag| {
        text.replace(&format!("&lt;{tag}&gt;"), &format!("<{tag}>")).replace(&format!("&lt;/{tag}&gt;"), &format!("</{tag}>"))
    })
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
