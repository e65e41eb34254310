//! What a transcript's end says about the round that just ended.
//!
//! The file is read backwards in blocks, never from the front: a transcript of 1 GB costs what one of 100 KB costs. Every line may be torn,
//! foreign or garbled, and the newest ones may be missing (the client writes them some milliseconds after it calls the hook), so nothing is
//! ever concluded from a line that is not there. Time stamps tell the rounds apart: a line that is newer than the previous ruling belongs to
//! this round, wherever it stands.

use std::{collections::VecDeque, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::{json::parse_tolerant, limits::ToolUse, promise, time, time::Millis, words::opening};

/// Bytes read at a time; the first block is smaller, because it is mostly enough.
const BLOCK: usize = 64 * 1024;
const FIRST_BLOCK: usize = 16 * 1024;

/// How far back one round is followed. A round that is longer has long used a tool.
const REACH: u64 = 16 * 1024 * 1024;

/// A longer line is looked at by its head only: it is a tool's result.
const MAX_LINE: u64 = 1024 * 1024;

/// Bytes at a place of a file or a buffer.
pub trait Source {
    fn size(&self) -> u64;
    /// Fills `buf` from `offset` on; returns how many bytes there were.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize;
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
    /// The file has caught up: the message that the event carries stands in it, and with it everything that came before.
    pub caught_up: bool,
    /// The last line is not complete: the client is still writing.
    pub torn: bool,
}

/// Reads the last round. `since` is the time of the previous ruling, which ended the round before; `event_text` is the last message as the
/// event carries it (only its last block, if it has several); `queue` is what waited at that ruling.
pub fn last_round(source: &(impl Source + ?Sized), since: Option<Millis>, event_text: Option<&str>, queue: &[String]) -> Round {
    let mut lines = LinesBack::new(source);
    let mut round = RoundReader { event_text, ..RoundReader::default() };
    while let Some(place) = lines.next() {
        let Some(line) = lines.line(place).filter(|l| !l.is_sidechain) else { continue };
        if line.is_older(since) {
            break;
        }
        round.take(line);
        // What came before this turn matters only as far as the previous ruling is known to be further up.
        if round.begun && since.is_none() {
            break;
        }
    }
    round.finish(lines.torn, queue)
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
    /// What was put into the queue (a text) and taken out of it (none), last one first.
    queue: Vec<Option<String>>,
    interrupted: bool,
    /// A line of this round was there at all.
    fresh: bool,
    /// The line that began the turn has been seen.
    begun: bool,
}

impl RoundReader<'_> {
    fn take(&mut self, line: Line) {
        self.fresh = true;
        match (line.kind.as_deref(), line.message) {
            (Some("queue-operation"), _) => self.queue(line.operation.as_deref(), line.content.as_ref()),
            (Some("assistant"), Some(message)) if !line.is_api_error && !self.begun => self.assistant(message),
            (Some("user"), Some(message)) => self.user(&message.content, line.is_meta),
            _ => {}
        }
    }

    /// Every line that is no `enqueue` takes one item out.
    fn queue(&mut self, operation: Option<&str>, content: Option<&serde_json::Value>) {
        match operation {
            Some("enqueue") => self.queue.push(Some(opening(content.and_then(serde_json::Value::as_str).unwrap_or_default(), QUEUED))),
            Some(_) => self.queue.push(None),
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

    fn finish(mut self, torn: bool, waited: &[String]) -> Round {
        self.blocks.reverse();
        let caught_up = self.event_text.is_some_and(|event| self.blocks.join("\n").contains(event.trim()));
        // The block that the event carries is often the one that is not written yet.
        let text = promise::joined(self.blocks.iter().map(String::as_str).chain(self.event_text.filter(|_| !caught_up)));
        let tools = match (self.tools_used, self.fresh) {
            (true, _) => ToolUse::Used,
            (false, true) => ToolUse::None,
            (false, false) => ToolUse::Unknown,
        };
        let text = (!text.trim().is_empty()).then_some(text);
        let queue = replayed(waited, &self.queue);
        Round { text, tools, queue, interrupted: self.interrupted, caught_up, torn }
    }
}

/// The queue after this round: first in, first out. What waited before counts on only if something was taken out since; it may have been taken out by a line
/// that was written too late to be seen.
fn replayed(waited: &[String], backwards: &[Option<String>]) -> Vec<String> {
    let mut queue: VecDeque<String> = if backwards.contains(&None) { waited.iter().cloned().collect() } else { VecDeque::new() };
    for operation in backwards.iter().rev() {
        match operation {
            Some(text) => queue.push_back(text.clone()),
            None => {
                queue.pop_front();
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
    operation: Option<String>,
    /// What was put into the queue: a text, or more than that.
    content: Option<serde_json::Value>,
    message: Option<Message>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    id: Option<String>,
    content: Content,
}

impl Line {
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
    torn: bool,
    scratch: Vec<u8>,
}

impl<'s, S: Source + ?Sized> LinesBack<'s, S> {
    fn new(source: &'s S) -> Self {
        let size = source.size();
        let mut last = [b'\n'];
        let torn = size > 0 && source.read_at(size - 1, &mut last) == 1 && last[0] != b'\n';
        LinesBack { source, block: Vec::new(), block_start: size, end: size, floor: size.saturating_sub(REACH), torn, scratch: Vec::new() }
    }

    fn next(&mut self) -> Option<Place> {
        while self.end > self.floor {
            let end = self.end;
            let start = self.line_start(end);
            // The line break before this line belongs to no line.
            self.end = start.saturating_sub(1);
            if start == 0 {
                self.end = 0;
            }
            if end > start {
                return Some(Place { start, end });
            }
            if start == 0 {
                break;
            }
        }
        None
    }

    /// The line at `place`, as far as it matters.
    fn line(&mut self, place: Place) -> Option<Line> {
        let long = place.end - place.start > MAX_LINE;
        Line::parse(self.bytes(place)?, long)
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
