//! One line of a transcript, as far as ralph reads it. Every reader of transcripts uses this one model.
//!
//! Fields that only some readers need, and whose shape changes between versions, are kept as they are: an odd one costs that field, not the line.

use std::fmt;

use ralph_core::text::{
    parse_tolerant,
    time::{self, Millis},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::hosts::claude::usage::Usage;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Assistant,
    User,
    System,
    QueueOperation,
    Attachment,
    #[default]
    #[serde(other)]
    Other,
}

/// One line.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Line {
    #[serde(rename = "type")]
    pub kind: Kind,
    pub subtype: Value,
    /// A subagent's.
    pub(crate) is_sidechain: bool,
    pub is_meta: bool,
    #[serde(rename = "isApiErrorMessage")]
    pub(crate) is_api_error: bool,
    timestamp: Option<String>,
    pub session_id: Option<String>,
    pub message: Option<Message>,
    /// The model as it was asked for, with its suffix; newer clients say so.
    pub(crate) requested_model: Value,
    pub(crate) compact_metadata: Value,
    /// A change of the client's queue, and the text that it is about.
    pub operation: Option<String>,
    pub content: Value,
    attachment: Option<Box<RawValue>>,
    /// Where a message comes from, in the words of several versions.
    prompt_source: Value,
    origin: Value,
    turn_origin: Value,
    /// An error of the service: the client's word for it, its status, and the account's quota in the words of two versions.
    pub error: Value,
    pub(crate) api_error_status: Value,
    pub(crate) quota_limits: Value,
    pub(crate) api_error_params: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Message {
    pub id: Option<String>,
    pub model: Option<String>,
    usage: Option<Box<RawValue>>,
    pub content: Content,
}

impl Message {
    /// The client says something itself, in the place of a model.
    pub(crate) fn is_clients(&self) -> bool {
        self.model.as_deref().is_some_and(|model| model.starts_with('<'))
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage::of(&self.usage.as_ref().and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default())
    }
}

/// Other kinds are the client's own notes, some of them large.
const TALK_AND_QUEUE: [&[u8]; 4] = [b"\"assistant\"", b"\"user\"", b"\"queue-operation\"", b"\"attachment\""];

impl Line {
    /// `None`: it cannot be read.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        parse_tolerant(bytes).ok()
    }

    /// The same for a line of the conversation or the queue; `None` also for any other. Only the head of a `long` one was read.
    pub(super) fn of_talk(bytes: &[u8], long: bool) -> Option<Self> {
        if long {
            // Too long to be anything but a tool's result.
            let content = Content { tool_result: true, ..Content::default() };
            let message = Some(Message { content, ..Message::default() });
            return has(bytes, b"\"tool_result\"").then(|| Line { kind: Kind::User, message, ..Line::default() });
        }
        if TALK_AND_QUEUE.into_iter().any(|kind| has(bytes, kind)) { Line::parse(bytes) } else { None }
    }

    /// Part of the conversation, written when it happened.
    pub(super) fn is_talk(&self) -> bool {
        matches!(self.kind, Kind::Assistant | Kind::User)
    }

    /// Whether the person typed it. Clients before 2.1.197 do not say where a message comes from.
    pub(super) fn is_persons(&self) -> bool {
        let by = |field: &Value, persons: &[&str]| field.is_null() || field.as_str().is_some_and(|text| persons.contains(&text));
        let origin = self.origin.get("kind").unwrap_or(&self.origin);
        !self.is_meta
            && by(&self.prompt_source, &["typed", "queued", "sdk"])
            && by(&self.turn_origin, &["human", "sdk"])
            && by(origin, &["human"])
    }

    pub(crate) fn at(&self) -> Option<Millis> {
        self.timestamp.as_deref().and_then(time::parse)
    }

    pub(super) fn is_older(&self, since: Option<Millis>) -> bool {
        since.is_some_and(|since| self.at().is_some_and(|at| at <= since))
    }

    /// The text that was delivered within a turn, with a tool's result, if the person typed it.
    pub(super) fn delivered(&self) -> Option<String> {
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Attachment {
            #[serde(rename = "type")]
            kind: Value,
            command_mode: Value,
            origin: Value,
            prompt: Value,
        }
        let text = self.attachment.as_ref()?.get();
        if !has(text.as_bytes(), b"\"queued_command\"") {
            return None;
        }
        let Attachment { kind, command_mode, origin, prompt } = serde_json::from_str(text).ok()?;
        let is_persons = kind == "queued_command" && (command_mode.is_null() || command_mode == "prompt") && origin["kind"] == "human";
        prompt.as_str().filter(|_| is_persons).map(str::to_owned)
    }
}

pub(crate) fn has(line: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(line, needle).is_some()
}

/// A message's content: a string, or a list of blocks.
#[derive(Default)]
pub(crate) struct Content {
    pub texts: Vec<String>,
    /// A tool of the client's or of the service was called.
    pub tool_use: bool,
    /// The ids of the calls of the client's tools.
    pub calls: Vec<String>,
    pub tool_result: bool,
}

impl Content {
    pub(super) fn first_text(&self) -> Option<&str> {
        self.texts.first().map(String::as_str)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of content blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content { texts: vec![text.to_owned()], ..Content::default() })
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Block {
            #[serde(rename = "type")]
            kind: String,
            text: Option<String>,
            id: Option<String>,
        }
        let mut content = Content::default();
        while let Some(block) = seq.next_element::<Block>()? {
            match block.kind.as_str() {
                "text" => content.texts.extend(block.text),
                kind @ ("tool_use" | "server_tool_use") => {
                    content.tool_use = true;
                    content.calls.extend((kind == "tool_use").then(|| block.id.unwrap_or_default()));
                }
                "tool_result" => content.tool_result = true,
                _ => {}
            }
        }
        Ok(content)
    }
}
