//! What a transcript's end says about the round that just ended.
//!
//! The file is read backwards in blocks, never from the front: a transcript of 1 GB costs what one of 100 KB costs. Every line may be torn,
//! foreign or garbled, and the newest ones may be missing (the client writes them some milliseconds after it calls the hook), so nothing is
//! ever concluded from a line that is not there. Time stamps tell the rounds apart: a line that is newer than the previous ruling belongs to
//! this round, wherever it stands. What the person typed is told apart by its place instead: it carries the time when it was typed, and that may
//! well be before a ruling that could not see it yet. A line that names another session is none of this one's: a fork begins with a copy of what it
//! was forked from.
//!
//! How far it is read is bounded by bytes, by lines and by the caller's clock. Beyond that nothing is concluded either.

use std::{collections::VecDeque, fmt};

use ralph_core::{
    judge::{claim, limits::ToolUse},
    text::{
        json::parse_tolerant,
        messages::opening,
        time::{self, Millis},
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::hosts::stop_word;

/// Bytes read at a time; the first block is smaller, because it is mostly enough.
const BLOCK: usize = 64 * 1024;
const FIRST_BLOCK: usize = 16 * 1024;

/// How far back one round is followed. A round that is longer has long used a tool.
const REACH: u64 = 16 * 1024 * 1024;

/// A longer line is looked at by its head only: it is a tool's result.
const MAX_LINE: u64 = 1024 * 1024;

/// What looking at a line costs at least, in bytes of [`REACH`]: a round has fewer lines than that allows.
const LINE_COST: u64 = 64;

/// So many lines pass between two looks at the clock.
const LINES_A_LOOK: u32 = 256;

/// Bytes at a place of a file or a buffer.
pub trait Source {
    fn size(&self) -> u64;
    /// Fills `buf` from `offset` on; returns how many bytes there were.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize;
    /// The session that is asked about; `None`: whichever it is.
    fn session(&self) -> Option<&str> {
        None
    }
    /// Whether the time for reading is over.
    fn is_over(&self) -> bool {
        false
    }
}

impl Source for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        let from = usize::try_from(offset).map_or(self.len(), |o| o.min(self.len()));
        let n = buf.len().min(self.len() - from);
        buf[..n].copy_from_slice(&self[from..from + n]);
        n
    }
}

/// What one round left in the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Round {
    /// All text blocks of the last message (S0-7), as far as they were written. Where the event carries no text: the last message of the round that has any.
    pub text: Option<String>,
    pub tools: ToolUse,
    /// What waits in the client's queue, the oldest first: the person typed it, or a background task reported. May be stale for some 100 ms.
    pub queue: Vec<String>,
    /// The person interrupted the agent since the previous ruling.
    pub interrupted: bool,
    /// The last thing that the person typed since the previous ruling is "stop", or another word for it.
    pub told_to_stop: bool,
    /// The end of the last complete line: what is written later is new at the next ruling.
    pub upto: u64,
    /// The file has caught up: the message that the event carries stands in it, and with it everything that came before.
    pub caught_up: bool,
    /// The last line is not complete: the client is still writing.
    pub torn: bool,
}

/// What is known since the previous ruling.
#[derive(Debug, Clone, Copy, Default)]
pub struct Before<'a> {
    /// When it was; it ended the round before.
    pub at: Option<Millis>,
    /// Up to where this file had been read then. `None`: this is the first look at it.
    pub upto: Option<u64>,
    /// What waited in the queue then, the oldest first.
    pub queue: &'a [String],
    /// It was in the same turn of the person's.
    pub same_turn: bool,
    /// When the client was started, for the first look: what an earlier one left in its queue is gone.
    pub born: Option<Millis>,
    /// Since when the loop is armed: what the person typed before was about something else.
    pub armed: Option<Millis>,
}

impl Before<'_> {
    /// Whether the conversation of this round is over (that is: read) where that is all that can be known of the queue, too.
    fn ends_at(&self, line: &Line) -> bool {
        self.upto.is_none() && self.born.is_none() && line.is_talk()
    }
}

/// Reads the last round. `event_text` is the last message as the event carries it (only its last block, if it has several).
pub fn last_round(source: &(impl Source + ?Sized), before: &Before<'_>, event_text: Option<&str>) -> Round {
    // A file that became shorter is another one.
    let before = Before { upto: before.upto.filter(|upto| *upto <= source.size()), ..*before };
    let mut lines = LinesBack::new(source);
    let mut round = RoundReader { event_text, ..RoundReader::default() };
    let upto = lines.complete();
    // The conversation of this round has been read; what waits in the queue may have been typed before.
    let mut is_read = false;
    while let Some(place) = lines.next() {
        let is_new = before.upto.is_none_or(|upto| place.start >= upto);
        if is_read && !is_new {
            break;
        }
        // The first look goes far back, for the queue alone.
        if is_read && before.upto.is_none() && before.born.is_some() && !lines.has(place, b"\"queue-operation\"") {
            continue;
        }
        let Some(line) = lines.line(place).filter(|l| !l.is_sidechain) else { continue };
        if is_read && before.ends_at(&line) {
            break;
        }
        // A line that is still being written is new next time, and must not count twice.
        if is_new && place.end <= upto {
            round.typed(&line, &before, || lines.queued_command(place));
        }
        if is_read {
            continue;
        }
        if line.is_older(before.at) {
            // What was typed carries the time when it was.
            is_read = line.is_talk();
            continue;
        }
        round.take(line);
        // What came before this turn matters only as far as the previous ruling is known to be further up.
        is_read = round.begun && before.at.is_none();
    }
    let round = round.finish(lines.torn, &before);
    // The tools may be further up.
    let tools = if lines.cut && !is_read && round.tools == ToolUse::None { ToolUse::Unknown } else { round.tools };
    Round { tools, upto, ..round }
}

/// Whether any tool was used after `since`, in however many rounds.
pub fn used_tools_since(source: &(impl Source + ?Sized), since: Millis) -> bool {
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let Some(line) = lines.line(place).filter(|l| !l.is_sidechain) else { continue };
        if line.is_older(Some(since)) {
            return false;
        }
        if line.message.is_some_and(|m| m.content.tool_use || m.content.tool_result) {
            return true;
        }
    }
    false
}

/// Whether the agent named `what` in a tool call since the previous ruling: it may well have been the one who changed it.
pub fn named_in_tools(source: &(impl Source + ?Sized), since: Option<Millis>, what: &str) -> bool {
    let finder = memchr::memmem::Finder::new(what.as_bytes());
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let is_named = lines.bytes(place).is_some_and(|bytes| finder.find(bytes).is_some());
        let Some(line) = lines.line(place) else {
            // Too long to be read whole, or not to be read at all: it may be anything.
            if is_named {
                return true;
            }
            continue;
        };
        if line.is_older(since) {
            return false;
        }
        if is_named && line.message.is_some_and(|m| m.content.tool_use) {
            return true;
        }
    }
    // What was not read may hold anything.
    lines.cut
}

/// Whether the last thing that happened in the conversation is that the person interrupted the agent.
pub fn was_interrupted(source: &(impl Source + ?Sized), typed: &str) -> bool {
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let Some(line) = lines.line(place) else { continue };
        match (line.kind.as_deref(), &line.message) {
            _ if line.is_sidechain || line.is_meta => {}
            (Some("assistant"), _) => return false,
            (Some("user"), Some(m)) => match m.content.first_text() {
                Some(text) if text.starts_with(INTERRUPTED) => return true,
                // The message that is being submitted may already be written; a command that a hook answered stands there too.
                Some(text) if text.trim() == typed.trim() || text.starts_with("<command-") || text.starts_with(ANSWERED) => {}
                _ => return false,
            },
            _ => {}
        }
    }
    false
}

/// The error that a turn ended in, as the transcript has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The client's word for it.
    pub error: String,
    pub status: Option<u16>,
    /// When the account's quota is there again, and which one it is; newer clients say so.
    pub resets_at: Option<Millis>,
    pub quota: Option<String>,
}

/// The error that stands at the transcript's end, if one does.
pub fn last_error(source: &(impl Source + ?Sized)) -> Option<ApiError> {
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Failed {
        error: Option<String>,
        api_error_status: Option<u16>,
        quota_limits: Option<Quota>,
        api_error_params: Option<Params>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Params {
        rate_limit_info: Option<Quota>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Quota {
        resets_at: Option<Millis>,
        rate_limit_type: Option<String>,
    }
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let Some(line) = lines.line(place).filter(|line| !line.is_sidechain) else { continue };
        match line.kind.as_deref() {
            Some("assistant") if line.is_api_error => {
                let failed: Failed = parse_tolerant(lines.bytes(place)?).ok()?;
                let quota = failed.quota_limits.or(failed.api_error_params.and_then(|params| params.rate_limit_info)).unwrap_or_default();
                // Seconds since the epoch.
                let resets_at = quota.resets_at.filter(|at| *at > 0).and_then(|at| at.checked_mul(1_000));
                return Some(ApiError {
                    error: failed.error.unwrap_or_default(),
                    status: failed.api_error_status,
                    resets_at,
                    quota: quota.rate_limit_type,
                });
            }
            Some("assistant" | "user") => return None,
            _ => {}
        }
    }
    None
}

/// What the model's context held at its last answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    pub tokens: u64,
    pub model: String,
}

/// How full the conversation's context is; `None`: nothing tells, or it was made shorter since.
pub fn context(source: &(impl Source + ?Sized)) -> Option<Fill> {
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Answer {
        #[serde(rename = "type")]
        kind: Option<String>,
        subtype: Option<String>,
        is_sidechain: bool,
        message: Option<Used>,
        /// As it was asked for, with its suffix; newer clients say so.
        requested_model: Option<String>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Used {
        model: Option<String>,
        usage: Option<Usage>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Usage {
        #[serde(rename = "input_tokens")]
        input: Option<u64>,
        #[serde(rename = "cache_creation_input_tokens")]
        written: Option<u64>,
        #[serde(rename = "cache_read_input_tokens")]
        read: Option<u64>,
    }
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let bytes = lines.bytes(place)?;
        let has = |needle: &[u8]| memchr::memmem::find(bytes, needle).is_some();
        if !has(b"\"usage\"") && !has(b"\"compact_boundary\"") {
            continue;
        }
        let Ok(answer) = parse_tolerant::<Answer>(bytes) else { continue };
        if answer.kind.as_deref() == Some("system") && answer.subtype.as_deref() == Some("compact_boundary") {
            return None;
        }
        let Some(used) = answer.message.filter(|_| answer.kind.as_deref() == Some("assistant") && !answer.is_sidechain) else { continue };
        // What the client says itself is no model's.
        let Some(model) = used.model.filter(|model| !model.starts_with('<')) else { continue };
        let usage = used.usage.unwrap_or_default();
        let parts = [usage.input, usage.written, usage.read];
        let tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
        return Some(Fill { tokens, model: answer.requested_model.unwrap_or(model) });
    }
    None
}

/// Lines of any other kind are the client's own notes, some of them large.
const KINDS: [&[u8]; 4] = [b"\"assistant\"", b"\"user\"", b"\"queue-operation\"", b"\"attachment\""];

/// Enough of a queued text to know it again.
pub const QUEUED: usize = 200;

/// How the client records Esc and Ctrl-C.
const INTERRUPTED: &str = "[Request interrupted by user";

/// How it records a message that a hook answered.
const ANSWERED: &str = "Operation stopped by hook";

/// How the client frames what a stop hook sent back: a new round begins.
const HOOK_FEEDBACK: &str = "Stop hook ";

/// Collects a round, line by line, from its end.
#[derive(Default)]
struct RoundReader<'a> {
    event_text: Option<&'a str>,
    /// Text blocks of the last message, last one first.
    blocks: Vec<String>,
    message_id: Option<String>,
    text_done: bool,
    tools_used: bool,
    /// What was put into the queue and taken out of it, last one first.
    queue: Vec<Queued>,
    /// Whether the last thing that the person typed says stop.
    told_to_stop: Option<bool>,
    interrupted: bool,
    /// A line of this round was there at all.
    fresh: bool,
    /// The line that began the turn has been seen.
    begun: bool,
}

/// One line about the client's queue.
enum Queued {
    In(String),
    /// Every operation that is no `enqueue` takes one item out; some say which.
    Out(Option<String>),
}

impl RoundReader<'_> {
    fn take(&mut self, line: Line) {
        self.fresh = true;
        match (line.kind.as_deref(), line.message) {
            (Some("assistant"), Some(message)) if !line.is_api_error && !self.begun => self.assistant(message),
            (Some("user"), Some(message)) => self.user(&message.content, line.is_meta),
            _ => {}
        }
    }

    /// A line that the previous ruling did not see, as far as it tells what the person typed. `delivered` is the text that was delivered within a turn.
    fn typed(&mut self, line: &Line, before: &Before<'_>, delivered: impl FnOnce() -> Option<String>) {
        match (line.kind.as_deref(), &line.message) {
            (Some("queue-operation"), _) if before.upto.is_some() || !line.is_older(before.born) => {
                self.queue(line.operation.as_deref(), line.content.as_ref());
            }
            _ if self.told_to_stop.is_some() || line.is_older(before.armed) || (before.upto.is_none() && line.is_older(before.at)) => {}
            (Some("user"), Some(message)) if line.is_persons() && !message.content.tool_result => {
                // The client's own notes on a turn stand there as the person's.
                let words = |text: &&str| !text.starts_with('[') && !text.starts_with(ANSWERED);
                self.told_to_stop = message.content.first_text().filter(words).map(stop_word::is_said);
            }
            (Some("attachment"), _) => self.told_to_stop = delivered().map(|text| stop_word::is_said(&text)),
            _ => {}
        }
    }

    fn queue(&mut self, operation: Option<&str>, content: Option<&serde_json::Value>) {
        let text = content.and_then(serde_json::Value::as_str).map(|text| opening(text, QUEUED));
        match operation {
            Some("enqueue") => self.queue.push(Queued::In(text.unwrap_or_default())),
            Some(_) => self.queue.push(Queued::Out(text)),
            None => {}
        }
    }

    fn assistant(&mut self, message: Message) {
        self.tools_used |= message.content.tool_use;
        if self.text_done {
            return;
        }
        if message.id != self.message_id {
            // Another message: the one before it is complete, unless it had no text and the event has none either.
            if self.message_id.is_some() && (!self.blocks.is_empty() || self.event_text.is_some()) {
                self.text_done = true;
                return;
            }
            self.message_id = message.id;
        }
        self.blocks.extend(message.content.texts.into_iter().rev());
    }

    fn user(&mut self, content: &Content, is_meta: bool) {
        let text = content.first_text().unwrap_or_default();
        self.interrupted |= text.starts_with(INTERRUPTED);
        if self.begun {
            return;
        }
        if content.tool_result {
            self.tools_used = true;
            // Text above a tool's result is not part of the message that ended the turn.
            self.text_done |= self.event_text.is_some() || !self.blocks.is_empty();
            return;
        }
        self.begun = !is_meta || text.starts_with(HOOK_FEEDBACK);
    }

    fn finish(mut self, torn: bool, before: &Before<'_>) -> Round {
        self.blocks.reverse();
        let caught_up = self.event_text.is_some_and(|event| self.blocks.join("\n").contains(event.trim()));
        // The block that the event carries is often the one that is not written yet.
        let text = claim::joined(self.blocks.iter().map(String::as_str).chain(self.event_text.filter(|_| !caught_up)));
        let tools = match (self.tools_used, self.fresh) {
            (true, _) => ToolUse::Used,
            (false, true) => ToolUse::None,
            (false, false) => ToolUse::Unknown,
        };
        let text = (!text.trim().is_empty()).then_some(text);
        let queue = replayed(before, self.queue);
        let told_to_stop = self.told_to_stop == Some(true);
        Round { text, tools, queue, interrupted: self.interrupted, told_to_stop, upto: 0, caught_up, torn }
    }
}

/// What was put into the queue and not taken out: first in, first out. A turn that begins without anything taken out of the queue shows that nothing was in it:
/// the client takes from there before it waits for the person.
fn replayed(before: &Before<'_>, backwards: Vec<Queued>) -> Vec<String> {
    let still_waits = before.same_turn || backwards.iter().any(|operation| matches!(operation, Queued::Out(_)));
    let mut queue: VecDeque<String> = if still_waits { before.queue.iter().cloned().collect() } else { VecDeque::new() };
    for operation in backwards.into_iter().rev() {
        match operation {
            Queued::In(text) => queue.push_back(text),
            Queued::Out(text) => {
                let named = text.and_then(|text| queue.iter().position(|waiting| *waiting == text));
                queue.remove(named.unwrap_or(0));
            }
        }
    }
    queue.into()
}

/// One transcript line, as far as it matters.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: Option<String>,
    is_sidechain: bool,
    is_meta: bool,
    #[serde(rename = "isApiErrorMessage")]
    is_api_error: bool,
    timestamp: Option<String>,
    session_id: Option<String>,
    operation: Option<String>,
    /// What was put into the queue: a text, or more than that.
    content: Option<serde_json::Value>,
    message: Option<Message>,
    /// Where a message comes from, in the words of several versions.
    prompt_source: serde_json::Value,
    origin: serde_json::Value,
    turn_origin: serde_json::Value,
}

/// A text that was delivered within a turn, with a tool's result.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Delivered {
    attachment: Attachment,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Attachment {
    #[serde(rename = "type")]
    kind: serde_json::Value,
    command_mode: serde_json::Value,
    origin: serde_json::Value,
    prompt: serde_json::Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    id: Option<String>,
    content: Content,
}

impl Line {
    /// Part of the conversation, written when it happened.
    fn is_talk(&self) -> bool {
        matches!(self.kind.as_deref(), Some("assistant" | "user"))
    }

    /// Whether the person typed it. Clients before 2.1.197 do not say where a message comes from.
    fn is_persons(&self) -> bool {
        let by =
            |field: &serde_json::Value, persons: &[&str]| field.is_null() || field.as_str().is_some_and(|text| persons.contains(&text));
        let origin = self.origin.get("kind").unwrap_or(&self.origin);
        !self.is_meta
            && by(&self.prompt_source, &["typed", "queued", "sdk"])
            && by(&self.turn_origin, &["human", "sdk"])
            && by(origin, &["human"])
    }

    fn is_older(&self, since: Option<Millis>) -> bool {
        let at = self.timestamp.as_deref().and_then(time::parse);
        matches!((at, since), (Some(at), Some(since)) if at <= since)
    }

    /// Reads a line; `None` for one that cannot matter or cannot be read. Of a `long` one there is only the head.
    fn parse(bytes: &[u8], long: bool) -> Option<Line> {
        let has = |needle: &[u8]| memchr::memmem::find(bytes, needle).is_some();
        if long {
            // Too long to be anything but a tool's result; say so without parsing it.
            let content = Content { tool_result: true, ..Content::default() };
            let message = Some(Message { id: None, content });
            return has(b"\"tool_result\"").then(|| Line { kind: Some("user".to_owned()), message, ..Line::default() });
        }
        if KINDS.into_iter().any(has) { parse_tolerant(bytes).ok() } else { None }
    }
}

/// A message's content: a string, or a list of blocks.
#[derive(Default)]
struct Content {
    texts: Vec<String>,
    tool_use: bool,
    tool_result: bool,
}

impl Content {
    fn first_text(&self) -> Option<&str> {
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
        #[derive(Deserialize)]
        struct Block {
            #[serde(rename = "type", default)]
            kind: String,
            #[serde(default)]
            text: Option<String>,
        }
        let mut content = Content::default();
        while let Some(block) = seq.next_element::<Block>()? {
            match block.kind.as_str() {
                "text" => content.texts.extend(block.text),
                "tool_use" | "server_tool_use" => content.tool_use = true,
                "tool_result" => content.tool_result = true,
                _ => {}
            }
        }
        Ok(content)
    }
}

/// Where a line stands in the file, without its line break.
#[derive(Clone, Copy)]
struct Place {
    start: u64,
    end: u64,
}

/// The lines of a source from its end, one block in memory at a time.
struct LinesBack<'s, S: ?Sized> {
    source: &'s S,
    block: Vec<u8>,
    /// Where the block stands in the source.
    block_start: u64,
    /// Everything from here on has been handed out.
    end: u64,
    /// How far back to go.
    floor: u64,
    /// What may still be spent on lines.
    budget: u64,
    looks: u32,
    /// There is more, and it was not read.
    cut: bool,
    torn: bool,
    scratch: Vec<u8>,
}

impl<'s, S: Source + ?Sized> LinesBack<'s, S> {
    fn new(source: &'s S) -> Self {
        let size = source.size();
        let mut last = [b'\n'];
        let torn = size > 0 && source.read_at(size - 1, &mut last) == 1 && last[0] != b'\n';
        LinesBack {
            source,
            block: Vec::new(),
            block_start: size,
            end: size,
            floor: size.saturating_sub(REACH),
            budget: REACH,
            looks: 0,
            cut: false,
            torn,
            scratch: Vec::new(),
        }
    }

    fn next(&mut self) -> Option<Place> {
        self.looks = self.looks.wrapping_add(1);
        let is_late = !self.skip_breaks() || (self.looks.is_multiple_of(LINES_A_LOOK) && self.source.is_over());
        if self.end <= self.floor || self.budget == 0 || is_late {
            self.cut |= self.end > 0;
            return None;
        }
        let end = self.end;
        let start = self.line_start(end);
        // The line break before this line belongs to no line.
        self.end = start.saturating_sub(1);
        self.budget = self.budget.saturating_sub((end - start).max(LINE_COST));
        Some(Place { start, end })
    }

    /// The end of the last complete line.
    fn complete(&mut self) -> u64 {
        if self.torn { self.line_start(self.end) } else { self.end }
    }

    /// Whether the line at `place` has these bytes in it.
    fn has(&mut self, place: Place, needle: &[u8]) -> bool {
        self.bytes(place).is_some_and(|bytes| memchr::memmem::find(bytes, needle).is_some())
    }

    /// The text that the line at `place` says was delivered within a turn, if the person typed it.
    fn queued_command(&mut self, place: Place) -> Option<String> {
        if !self.has(place, b"\"queued_command\"") {
            return None;
        }
        let Attachment { kind, command_mode, origin, prompt } = parse_tolerant::<Delivered>(self.bytes(place)?).ok()?.attachment;
        let is_persons = kind == "queued_command" && (command_mode.is_null() || command_mode == "prompt") && origin["kind"] == "human";
        prompt.as_str().filter(|_| is_persons).map(str::to_owned)
    }

    /// Passes over line breaks, however many stand there; `false`: the time was over first.
    fn skip_breaks(&mut self) -> bool {
        while self.end > self.floor {
            if self.end <= self.block_start || self.block.is_empty() {
                if self.source.is_over() {
                    return false;
                }
                self.load(self.end);
            }
            let within = usize::try_from(self.end - self.block_start).map_or(0, |n| n.min(self.block.len()));
            match self.block[..within].iter().rposition(|byte| *byte != b'\n') {
                Some(at) => {
                    self.end = self.block_start + at as u64 + 1;
                    return true;
                }
                None => self.end = self.block_start,
            }
        }
        true
    }

    /// The line at `place`, as far as it matters to the session that is asked about.
    fn line(&mut self, place: Place) -> Option<Line> {
        let long = place.end - place.start > MAX_LINE;
        let line = Line::parse(self.bytes(place)?, long)?;
        let is_anothers = |line: &Line| matches!((&line.session_id, self.source.session()), (Some(its), Some(session)) if its != session);
        (!is_anothers(&line)).then_some(line)
    }

    /// Reads the line at `place`, from the block in memory if all of it is there; of a long one only the head.
    fn bytes(&mut self, place: Place) -> Option<&[u8]> {
        let long = place.end - place.start > MAX_LINE;
        let len = usize::try_from(if long { BLOCK as u64 } else { place.end - place.start }).ok()?;
        if let Some(start) = place.start.checked_sub(self.block_start).and_then(|n| usize::try_from(n).ok())
            && let Some(bytes) = self.block.get(start..start + len)
        {
            return Some(bytes);
        }
        self.scratch.resize(len, 0);
        let n = self.source.read_at(place.start, &mut self.scratch);
        Some(&self.scratch[..n])
    }

    /// The place after the last line break before `end`.
    fn line_start(&mut self, end: u64) -> u64 {
        let mut upto = end;
        loop {
            if upto <= self.block_start || self.block.is_empty() {
                if upto <= self.floor {
                    return self.floor;
                }
                self.load(upto);
            }
            let within = usize::try_from(upto - self.block_start).map_or(0, |n| n.min(self.block.len()));
            match memchr::memrchr(b'\n', &self.block[..within]) {
                Some(at) => return self.block_start + at as u64 + 1,
                None if self.block_start <= self.floor => return self.floor,
                None => upto = self.block_start,
            }
        }
    }

    /// Loads the block that ends at `end`.
    fn load(&mut self, end: u64) {
        let wanted = if self.block.is_empty() { FIRST_BLOCK } else { BLOCK };
        let start = end.saturating_sub(wanted as u64).max(self.floor);
        let len = usize::try_from(end - start).unwrap_or(wanted);
        self.block.resize(len, 0);
        let n = self.source.read_at(start, &mut self.block);
        // A file that shrank under us: what is missing reads as line breaks.
        self.block[n..].fill(b'\n');
        self.block_start = start;
    }
}

#[cfg(test)]
mod tests;
