//! The meter: tokens that a session used, and an estimate of the money, from its transcripts or its stream.
//!
//! A message is in a transcript with one line for each of its blocks, and each line repeats what the whole message used: it counts once. Of a compaction
//! only the size is known, so its price is a guess: as if nothing of the conversation had been in the cache.

mod sessions;
mod spending;

use std::{collections::VecDeque, sync::Arc};

use ralph_core::{
    judge::session_outcome::Tokens,
    money::Micros,
    text::{Lines, time::Millis},
};
use serde_json::Value;

use super::{
    prices,
    transcript::{Kind, Line, Source, has},
};

pub use sessions::Spent;
pub(crate) use spending::read_on;

/// A longer line is not a message of a model.
const MAX_LINE: usize = 4 << 20;

const BLOCK: usize = 256 << 10;

/// The tokens of a summary, generously.
const SUMMARY: u64 = 10_000;

/// Messages whose lines may be mixed with each other's: those of a session and of all its subagents.
const MOST_RECENT: usize = 64;

/// Tool calls that are remembered, because a message may be reported again.
const MOST_CALLED: usize = 32;

/// The usage of one answer of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub tokens: Tokens,
    /// The part of `tokens.cache_written` that is kept for an hour, which costs more.
    pub written_1h: u64,
    pub(crate) searches: u64,
    /// The mode that answers faster, and costs more.
    pub(crate) is_fast: bool,
    /// Computed in one country only, which costs a tenth more.
    pub(crate) is_local: bool,
}

impl Usage {
    /// From the words of the model's vendor.
    pub(super) fn of(reported: &Value) -> Self {
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let cache_written = count(&reported["cache_creation_input_tokens"]);
        Usage {
            tokens: Tokens {
                input: count(&reported["input_tokens"]),
                output: count(&reported["output_tokens"]),
                cache_read: count(&reported["cache_read_input_tokens"]),
                cache_written,
            },
            written_1h: count(&reported["cache_creation"]["ephemeral_1h_input_tokens"]).min(cache_written),
            searches: count(&reported["server_tool_use"]["web_search_requests"]),
            is_fast: reported["speed"] == "fast",
            is_local: reported["inference_geo"] == "us",
        }
    }

    /// How full the context was when the answer was asked for.
    pub(crate) fn prompt(&self) -> u64 {
        Tokens { output: 0, ..self.tokens }.total()
    }

    /// An aborted answer, or one that has only begun, is reported again when it has grown, and then not always with all its figures.
    fn or_more(self, other: Usage) -> Self {
        let (a, b) = (self.tokens, other.tokens);
        Usage {
            tokens: Tokens {
                input: a.input.max(b.input),
                output: a.output.max(b.output),
                cache_read: a.cache_read.max(b.cache_read),
                cache_written: a.cache_written.max(b.cache_written),
            },
            written_1h: self.written_1h.max(other.written_1h),
            searches: self.searches.max(other.searches),
            is_fast: self.is_fast || other.is_fast,
            is_local: self.is_local || other.is_local,
        }
    }
}

/// The usage that a line adds. A message that is reported again, with more than before, adds the difference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Amount {
    pub at: Millis,
    /// Of the message, or of the newest one where it is a compaction.
    pub model: Option<Arc<str>>,
    pub tokens: Tokens,
    /// An estimate.
    pub usd_micros: Micros,
    pub tool_calls: u64,
    /// How full the context was, in tokens, when the message was asked for; `None`: a compaction.
    pub context: Option<u64>,
    /// The first report of a message.
    pub is_new: bool,
}

/// A message, with the most that was reported of it and what was counted for it.
#[derive(Debug)]
struct Counted {
    id: String,
    usage: Usage,
    usd_micros: Micros,
}

/// Counts what messages used, each once, however often it is reported, and by the most that was ever reported of it.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub tokens: Tokens,
    /// An estimate.
    pub usd_micros: Micros,
    pub messages: u64,
    /// The model of the newest message.
    pub model: Option<Arc<str>>,
    recent: VecDeque<Counted>,
    called: VecDeque<String>,
    /// Lines that are not newer do not count.
    since: Millis,
    /// The newest time that was seen.
    at: Millis,
    /// The file was replaced: a line without a time may have been counted before.
    needs_times: bool,
    unnamed: u64,
}

impl Meter {
    pub(crate) fn since(since: Millis) -> Self {
        Meter { since, at: since, ..Meter::default() }
    }

    /// Counts one line of a transcript. `is_known` is asked whether the message of this id was counted elsewhere.
    pub(crate) fn line(&mut self, bytes: &[u8], is_known: impl FnOnce(&str) -> bool) -> Option<Amount> {
        if !has(bytes, b"\"usage\"") && !has(bytes, b"\"compactMetadata\"") {
            return None;
        }
        let line = Line::parse(bytes)?;
        let at = line.at();
        if at.is_some_and(|at| at <= self.since) || (at.is_none() && self.needs_times) {
            return None;
        }
        let at = at.unwrap_or(self.at);
        self.at = self.at.max(at);
        let (tokens, usd_micros, messages) = (self.tokens, self.usd_micros, self.messages);
        let (mut tool_calls, mut model) = (0, self.model.clone());
        let context = match (line.kind, line.message) {
            (Kind::Assistant, Some(message)) => {
                if message.is_clients() || message.id.as_deref().is_some_and(is_known) {
                    return None;
                }
                let usage = message.usage();
                let id = message.id.unwrap_or_else(|| {
                    self.unnamed += 1;
                    format!("#{}", self.unnamed)
                });
                self.count(&id, message.model.as_deref().unwrap_or_default(), usage);
                model = message.model.as_deref().map(|named| self.shared(named));
                tool_calls = message.content.calls.into_iter().filter(|call| self.is_new_call(call)).count() as u64;
                Some(usage.prompt())
            }
            (Kind::System, _) if line.compact_metadata.is_object() => {
                self.count_compaction(line.compact_metadata["preTokens"].as_u64().unwrap_or(0));
                None
            }
            _ => return None,
        };
        let (tokens, usd_micros) = (self.tokens.minus(tokens), self.usd_micros.saturating_sub(usd_micros));
        let is_new = self.messages > messages;
        let adds = is_new || tokens.total() > 0 || tool_calls > 0;
        adds.then_some(Amount { at, model, tokens, usd_micros, tool_calls, context, is_new })
    }

    /// Counts what is new about a message; returns the tokens of that message.
    pub(crate) fn count(&mut self, id: &str, model: &str, usage: Usage) -> u64 {
        let before = self.recent.iter().position(|known| known.id == id).and_then(|at| self.recent.remove(at));
        if before.is_none() {
            self.messages += 1;
            self.model = Some(self.shared(model));
        }
        let before = before.unwrap_or(Counted { id: id.to_owned(), usage: Usage::default(), usd_micros: 0 });
        let usage = before.usage.or_more(usage);
        let usd_micros = prices::cost(model, &usage).max(before.usd_micros);
        self.tokens = self.tokens.plus(usage.tokens.minus(before.usage.tokens));
        self.usd_micros = self.usd_micros.saturating_add(usd_micros - before.usd_micros);
        if self.recent.len() >= MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Counted { usage, usd_micros, ..before });
        usage.tokens.total()
    }

    /// The name of a model; that of the newest message is not copied.
    fn shared(&self, model: &str) -> Arc<str> {
        self.model.clone().filter(|known| **known == *model).unwrap_or_else(|| model.into())
    }

    fn count_compaction(&mut self, tokens_before: u64) {
        let usage = Usage { tokens: Tokens { input: tokens_before, output: SUMMARY, ..Tokens::default() }, ..Usage::default() };
        self.tokens = self.tokens.plus(usage.tokens);
        self.usd_micros = self.usd_micros.saturating_add(prices::cost(self.model.as_deref().unwrap_or_default(), &usage));
    }

    fn is_new_call(&mut self, call: &str) -> bool {
        if !call.is_empty() && self.called.iter().any(|known| known == call) {
            return false;
        }
        if self.called.len() >= MOST_CALLED {
            self.called.pop_front();
        }
        self.called.push_back(call.to_owned());
        true
    }
}

/// Hands on the lines of a file from `at` on, and returns where the last whole one ends. What was read is taken from `budget`.
fn read_lines(source: &(impl Source + ?Sized), at: u64, mut lines: Lines, budget: &mut u64, mut each: impl FnMut(&[u8])) -> u64 {
    let (mut at, mut whole) = (at, at);
    let mut block = vec![0; BLOCK];
    while *budget > 0 {
        let n = source.read_at(at, &mut block);
        if n == 0 {
            break;
        }
        lines.feed(&block[..n], &mut each);
        if let Some(end) = memchr::memrchr(b'\n', &block[..n]) {
            whole = at + end as u64 + 1;
        }
        at += n as u64;
        *budget = budget.saturating_sub(n as u64);
    }
    whole
}

#[cfg(test)]
mod tests;
