//! The iteration that just ended, as the end of the transcript has it.
//!
//! Every line may be torn, foreign or garbled, and the newest ones may be missing (the client writes them some milliseconds after it calls the hook), so
//! nothing is concluded from a line that is missing. Time stamps tell iterations apart: a line that is newer than the previous ruling belongs to this one,
//! wherever it is. What the person typed is told apart by its place instead: its time is that of the typing, which may be before a ruling that could not
//! see it yet. Lines that name another session do not count: a fork begins with a copy of its origin.
//!
//! Reading is bounded by bytes, by lines and by the caller's clock. Nothing is concluded about what lies beyond.

use std::collections::VecDeque;

use ralph_core::{
    judge::{ToolUse, join_blocks},
    text::{opening, time::Millis},
};
use serde_json::Value;

use super::{
    ANSWERED, INTERRUPTED,
    backwards::{LinesBack, Source},
    line::{Content, Kind, Line, Message},
};
use crate::hosts::stop_word;

/// One iteration, as far as the transcript has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Iteration {
    /// All text blocks of the last message (S0-7), as far as they were written. Where the event carries no text: the last message of the iteration that has any.
    pub text: Option<String>,
    pub tools: ToolUse,
    /// The client's queue, the oldest first: the person typed it, or a background task reported. May be stale for some 100 ms.
    pub queue: Vec<String>,
    /// The person interrupted the agent since the previous ruling.
    pub interrupted: bool,
    /// The last thing that the person typed since the previous ruling is "stop", or another word for it.
    pub told_to_stop: bool,
    /// The end of the last complete line: what is written later is new at the next ruling.
    pub upto: u64,
    /// The file has caught up: it has the message that the event carries, and so everything that came before.
    pub caught_up: bool,
    /// The last line is not complete: the client is still writing.
    pub torn: bool,
}

/// Known since the previous ruling.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before<'a> {
    /// When it was; it ended the iteration before.
    pub at: Option<Millis>,
    /// Up to where this file had been read then. `None`: this is the first look at it.
    pub upto: Option<u64>,
    /// The queue at that time, the oldest first.
    pub queue: &'a [String],
    /// It was in the same turn of the person's.
    pub same_turn: bool,
    /// When the client was started, for the first look: what an earlier one left in its queue is gone.
    pub born: Option<Millis>,
    /// Since when the loop is armed: what the person typed before was about something else.
    pub armed: Option<Millis>,
}

impl Before<'_> {
    /// Whether the queue needs no look further back than the conversation of this iteration.
    fn ends_at(&self, line: &Line) -> bool {
        self.upto.is_none() && self.born.is_none() && line.is_talk()
    }
}

/// Reads the last iteration. `event_text` is the last message as the event carries it (only its last block, if it has several).
pub(crate) fn last_iteration(source: &(impl Source + ?Sized), before: &Before<'_>, event_text: Option<&str>) -> Iteration {
    // A file that became shorter is another one.
    let before = Before { upto: before.upto.filter(|upto| *upto <= source.size()), ..*before };
    let mut lines = LinesBack::new(source);
    let mut iteration = IterationReader { event_text, ..IterationReader::default() };
    let upto = lines.complete();
    // The conversation of this iteration has been read; the queue may hold what was typed before.
    let mut is_read = false;
    // What is left then was there at the ruling before, and is not even looked for.
    while !(is_read && before.upto.is_some_and(|upto| lines.end <= upto))
        && let Some(place) = lines.next()
    {
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
            iteration.typed(&line, &before);
        }
        if is_read {
            continue;
        }
        if line.is_older(before.at) {
            // Typed text has the time of the typing, and decides nothing here.
            is_read = line.is_talk();
            continue;
        }
        iteration.take(line);
        // Lines before this turn matter only if the previous ruling is known to be further up.
        is_read = iteration.begun && before.at.is_none();
    }
    let iteration = iteration.finish(lines.torn, &before);
    // The tools may be further up.
    let tools = if lines.cut && !is_read && iteration.tools == ToolUse::None { ToolUse::Unknown } else { iteration.tools };
    Iteration { tools, upto, ..iteration }
}

/// Enough of a queued text to know it again.
pub(crate) const QUEUED: usize = 200;

/// How the client frames the text of a stop hook, with which a new iteration begins.
const HOOK_FEEDBACK: &str = "Stop hook ";

/// Collects an iteration, line by line, from its end.
#[derive(Default)]
struct IterationReader<'a> {
    event_text: Option<&'a str>,
    /// Text blocks of the last message, last one first.
    blocks: Vec<String>,
    message_id: Option<String>,
    text_done: bool,
    tools_used: bool,
    /// Changes of the queue, the last one first.
    queue: Vec<Queued>,
    /// Whether the last thing that the person typed says stop.
    told_to_stop: Option<bool>,
    interrupted: bool,
    /// Any line of this iteration was found.
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

impl IterationReader<'_> {
    fn take(&mut self, line: Line) {
        self.fresh = true;
        match (line.kind, line.message) {
            (Kind::Assistant, Some(message)) if !line.is_api_error && !self.begun => self.assistant(message),
            (Kind::User, Some(message)) => self.user(&message.content, line.is_meta),
            _ => {}
        }
    }

    /// A line that the previous ruling did not see, as far as it tells what the person typed.
    fn typed(&mut self, line: &Line, before: &Before<'_>) {
        match (line.kind, &line.message) {
            (Kind::QueueOperation, _) if before.upto.is_some() || !line.is_older(before.born) => {
                self.queue(line.operation.as_deref(), &line.content);
            }
            _ if self.told_to_stop.is_some() || line.is_older(before.armed) || (before.upto.is_none() && line.is_older(before.at)) => {}
            (Kind::User, Some(message)) if line.is_persons() && !message.content.tool_result => {
                // The client writes its own notes on a turn as if the person had typed them.
                let words = |text: &&str| !text.starts_with('[') && !text.starts_with(ANSWERED);
                self.told_to_stop = message.content.first_text().filter(words).map(stop_word::is_said);
            }
            (Kind::Attachment, _) => self.told_to_stop = line.delivered().map(|text| stop_word::is_said(&text)),
            _ => {}
        }
    }

    fn queue(&mut self, operation: Option<&str>, content: &Value) {
        let text = content.as_str().map(|text| opening(text, QUEUED));
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

    fn finish(mut self, torn: bool, before: &Before<'_>) -> Iteration {
        self.blocks.reverse();
        let caught_up = self.event_text.is_some_and(|event| self.blocks.join("\n").contains(event.trim()));
        // The block that the event carries is often the one that is not written yet.
        let text = join_blocks(self.blocks.iter().map(String::as_str).chain(self.event_text.filter(|_| !caught_up)));
        let tools = match (self.tools_used, self.fresh) {
            (true, _) => ToolUse::Used,
            (false, true) => ToolUse::None,
            (false, false) => ToolUse::Unknown,
        };
        let text = (!text.trim().is_empty()).then_some(text);
        let queue = replayed(before, self.queue);
        let told_to_stop = self.told_to_stop == Some(true);
        Iteration { text, tools, queue, interrupted: self.interrupted, told_to_stop, upto: 0, caught_up, torn }
    }
}

/// The queue after these changes: first in, first out. A turn that begins without anything taken out of the queue shows that nothing was in it:
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
