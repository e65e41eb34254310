//! What a loop has spent, as far as the transcripts of its session tell.
//!
//! Transcripts only grow, so each stop reads on where the one before left off. A message stands there in one line for each of its blocks, and every one of
//! them repeats what the whole message used: it counts once. What is older than the loop does not count; lines without a time do.
//!
//! Of a compaction only its size is written down, so its price is guessed: as if nothing of the conversation had been in the cache.

mod messages;
mod tally;

pub use messages::{Amount, Messages};
pub use tally::Tally;

use ralph_core::{
    journal::{Known, Spending},
    money::Micros,
    text::{
        json::parse_tolerant,
        time::{self, Millis},
    },
};
use serde::Deserialize;

use crate::hosts::claude::{
    prices::{self, Tokens},
    transcript::Source,
};

/// So much is read of transcripts for one stop; what is left has its turn at the next. In a file that is seen for the first time nothing lies further back.
pub const REACH: u64 = 64 << 20;

/// A longer line is no message of a model's.
pub const MAX_LINE: usize = 4 << 20;

/// A summary has about so many tokens, generously.
const SUMMARY: u64 = 10_000;

const BLOCK: usize = 256 << 10;

/// Messages whose lines may stand among each other's.
const MOST_RECENT: usize = 3;

/// A transcript that may have grown.
pub struct Seen<'s, S: ?Sized> {
    pub file: String,
    /// It is the session's own, and no subagent's.
    pub is_own: bool,
    pub changed: u64,
    pub source: &'s S,
}

/// Reads on in a file, and adds what it tells. Of `budget` is taken what was read.
pub fn read(spending: &mut Spending, seen: &Seen<'_, impl Source + ?Sized>, budget: &mut u64) {
    let at = spending.files.iter().position(|known| known.file == seen.file);
    let mut known = at.map_or_else(|| Known { file: seen.file.clone(), ..Known::default() }, |at| spending.files.remove(at));
    known.changed = seen.changed;
    if seen.is_own {
        spending.files.iter_mut().for_each(|other| other.is_own = false);
        known.is_own = true;
    }
    let spent = read_on(&mut known, seen.source, spending.since, budget);
    spending.usd_micros = spending.usd_micros.saturating_add(spent);
    spending.files.push(known);
    spending.forget_the_oldest();
}

/// What the lines tell that were not read yet.
fn read_on(known: &mut Known, source: &(impl Source + ?Sized), since: Millis, budget: &mut u64) -> Micros {
    let size = source.size();
    if size < known.bytes || !begins_a_line(source, known.bytes) {
        known.bytes = 0;
        known.after = known.at;
        known.recent.clear();
    }
    let since = since.max(known.after);
    // The first line after a jump is part of one.
    let skips = known.bytes == 0 && size > REACH;
    let mut spent: Micros = 0;
    let start = Start { at: if skips { size - REACH } else { known.bytes }, skips };
    each_line(source, start, budget, |line, end| {
        spent = spent.saturating_add(line.map_or(0, |line| count(known, line, since)));
        known.bytes = end;
    });
    spent
}

/// What one line adds.
fn count(known: &mut Known, line: &[u8], since: Millis) -> Micros {
    let Some(line) = Line::parse(line) else { return 0 };
    let at = line.timestamp.as_deref().and_then(time::parse);
    if at.is_some_and(|at| at <= since) || (at.is_none() && known.after > 0) {
        return 0;
    }
    known.at = known.at.max(at.unwrap_or(0));
    match (line.kind.as_deref(), line.message, line.compact_metadata) {
        (Some("assistant"), Some(message), _) => count_message(known, message),
        (Some("system"), _, Some(compacted)) => {
            let tokens = Tokens { input: compacted.pre_tokens.unwrap_or(0), output: SUMMARY, ..Tokens::default() };
            prices::cost(known.model.as_deref().unwrap_or_default(), &tokens)
        }
        _ => 0,
    }
}

fn count_message(known: &mut Known, message: Message) -> Micros {
    let cost = prices::cost(message.model.as_deref().unwrap_or_default(), &message.usage.tokens());
    // What the client says itself is no model's.
    known.model = message.model.filter(|model| !model.starts_with('<') && model.len() < 100).or(known.model.take());
    let Some(id) = message.id else { return cost };
    // What an aborted answer is said to have used can still grow.
    if let Some((_, counted)) = known.recent.iter_mut().find(|(of, _)| *of == id) {
        let more = cost.saturating_sub(*counted);
        *counted += more;
        return more;
    }
    if known.recent.len() >= MOST_RECENT {
        known.recent.remove(0);
    }
    known.recent.push((id, cost));
    cost
}

/// Where reading begins, and whether in the middle of a line.
#[derive(Clone, Copy)]
struct Start {
    at: u64,
    skips: bool,
}

/// Hands on every whole line from a place of a file to its end, with the place where the next one begins; of one that is no message's, only that place.
/// Of `budget` is taken what was read.
fn each_line(source: &(impl Source + ?Sized), start: Start, budget: &mut u64, mut hand_on: impl FnMut(Option<&[u8]>, u64)) {
    let Start { mut at, mut skips } = start;
    let size = source.size();
    let mut line: Vec<u8> = Vec::new();
    let mut block = vec![0; BLOCK];
    while at < size && *budget > 0 {
        let n = source.read_at(at, &mut block);
        if n == 0 {
            break;
        }
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', &block[..n]) {
            if !skips {
                line.extend_from_slice(&block[from..end]);
            }
            hand_on(Some(line.as_slice()).filter(|_| !skips), at + end as u64 + 1);
            (skips, from) = (false, end + 1);
            line.clear();
        }
        skips |= line.len() + n - from > MAX_LINE;
        if skips {
            line.clear();
        } else {
            line.extend_from_slice(&block[from..n]);
        }
        at += n as u64;
        *budget = budget.saturating_sub(n as u64);
    }
}

/// Whether a line begins at this place of a file; if not, it is another file than the one that was read.
fn begins_a_line(source: &(impl Source + ?Sized), at: u64) -> bool {
    let mut before = [0];
    at == 0 || (source.read_at(at - 1, &mut before) == 1 && before[0] == b'\n')
}

/// One line of a transcript, as far as it matters.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: Option<String>,
    timestamp: Option<String>,
    message: Option<Message>,
    compact_metadata: Option<Compacted>,
}

impl Line {
    /// `None` for a line that cannot matter or cannot be read.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let has = |needle: &[u8]| memchr::memmem::find(bytes, needle).is_some();
        if has(b"\"usage\"") || has(b"\"compactMetadata\"") { parse_tolerant(bytes).ok() } else { None }
    }
}

/// A conversation that was made shorter.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Compacted {
    pre_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    id: Option<String>,
    model: Option<String>,
    usage: Usage,
}

/// What the model's vendor says that it used.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<Written>,
    server_tool_use: Option<Served>,
    speed: Option<String>,
    inference_geo: Option<String>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Written {
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Served {
    web_search_requests: Option<u64>,
}

impl Usage {
    fn tokens(&self) -> Tokens {
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let for_an_hour = self.cache_creation.as_ref().and_then(|w| w.ephemeral_1h_input_tokens).unwrap_or(0).min(written);
        Tokens {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            written_5m: written - for_an_hour,
            written_1h: for_an_hour,
            read: self.cache_read_input_tokens.unwrap_or(0),
            searches: self.server_tool_use.as_ref().and_then(|served| served.web_search_requests).unwrap_or(0),
            is_fast: self.speed.as_deref() == Some("fast"),
            is_local: self.inference_geo.as_deref() == Some("us"),
        }
    }
}

#[cfg(test)]
mod tests;
