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

use serde::{Deserialize, Serialize};

use crate::{
    prices::{self, Micros, Tokens},
    text::{
        json::parse_tolerant,
        time::{self, Millis},
    },
    transcript::Source,
};

/// So much is read of transcripts for one stop; what is left has its turn at the next. In a file that is seen for the first time nothing lies further back.
pub const REACH: u64 = 64 << 20;

/// A longer line is no message of a model's.
pub const MAX_LINE: usize = 4 << 20;

/// A summary has about so many tokens, generously.
const SUMMARY: u64 = 10_000;

const BLOCK: usize = 256 << 10;

/// So many files are remembered: the session's own, and those of the subagents that wrote last.
const MOST_FILES: usize = 16;

/// Messages whose lines may stand among each other's.
const MOST_RECENT: usize = 3;

/// What was spent since a moment, and how far the transcripts were read for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Spending {
    pub usd_micros: Micros,
    /// What is older than this does not count.
    pub since: Millis,
    /// The session's own comes last, before it the one that was written last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Known>,
    /// Files that were last changed before this moment and are not listed were read to their ends.
    #[serde(skip_serializing_if = "crate::gate::is_zero")]
    pub settled: u64,
}

/// How far a transcript was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Known {
    /// A fingerprint of its path.
    pub file: String,
    pub bytes: u64,
    /// When it was last changed.
    pub changed: u64,
    /// The time of its newest message.
    pub at: Millis,
    /// The session's own, which goes on growing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
    /// It was replaced by another file: what is older than this was counted before.
    #[serde(skip_serializing_if = "is_none")]
    pub after: Millis,
    /// The model of its newest message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The messages that were read last, with what was counted for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<(String, Micros)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_none(at: &Millis) -> bool {
    *at == 0
}

/// A transcript that may have grown.
pub struct Seen<'s, S: ?Sized> {
    pub file: String,
    /// It is the session's own, and no subagent's.
    pub is_own: bool,
    pub changed: u64,
    pub source: &'s S,
}

impl Spending {
    pub fn since(since: Millis) -> Self {
        Spending { since, ..Spending::default() }
    }

    /// Whether a file has nothing new, as far as that can be told without opening it.
    pub fn has_read(&self, file: &str, size: u64, changed: u64) -> bool {
        match self.files.iter().find(|known| known.file == file) {
            Some(known) => known.bytes == size && known.changed == changed,
            // What was last changed before the loop began has nothing in it that counts.
            None => changed <= self.settled.max(u64::try_from(self.since).unwrap_or(0)),
        }
    }

    /// Reads on in a file, and adds what it tells. Of `budget` is taken what was read.
    pub fn read(&mut self, seen: &Seen<'_, impl Source + ?Sized>, budget: &mut u64) {
        let at = self.files.iter().position(|known| known.file == seen.file);
        let mut known = at.map_or_else(|| Known { file: seen.file.clone(), ..Known::default() }, |at| self.files.remove(at));
        known.changed = seen.changed;
        if seen.is_own {
            self.files.iter_mut().for_each(|other| other.is_own = false);
            known.is_own = true;
        }
        let spent = known.read_on(seen.source, self.since, budget);
        self.usd_micros = self.usd_micros.saturating_add(spent);
        self.files.push(known);
        self.forget_the_oldest();
    }

    /// A journal's line has no room for hundreds of subagents. Those that went quiet first are known by the time at which they did.
    fn forget_the_oldest(&mut self) {
        self.files.sort_by_key(|known| (known.is_own, known.changed));
        while self.files.len() > MOST_FILES {
            let oldest = self.files.remove(0);
            self.settled = self.settled.max(oldest.changed);
        }
    }
}

impl Known {
    /// What the lines tell that were not read yet.
    fn read_on(&mut self, source: &(impl Source + ?Sized), since: Millis, budget: &mut u64) -> Micros {
        let size = source.size();
        if size < self.bytes || !begins_a_line(source, self.bytes) {
            self.bytes = 0;
            self.after = self.at;
            self.recent.clear();
        }
        let since = since.max(self.after);
        // The first line after a jump is part of one.
        let skips = self.bytes == 0 && size > REACH;
        let mut spent: Micros = 0;
        let start = Start { at: if skips { size - REACH } else { self.bytes }, skips };
        each_line(source, start, budget, |line, end| {
            spent = spent.saturating_add(line.map_or(0, |line| self.count(line, since)));
            self.bytes = end;
        });
        spent
    }

    /// What one line adds.
    fn count(&mut self, line: &[u8], since: Millis) -> Micros {
        let Some(line) = Line::parse(line) else { return 0 };
        let at = line.timestamp.as_deref().and_then(time::parse);
        if at.is_some_and(|at| at <= since) || (at.is_none() && self.after > 0) {
            return 0;
        }
        self.at = self.at.max(at.unwrap_or(0));
        match (line.kind.as_deref(), line.message, line.compact_metadata) {
            (Some("assistant"), Some(message), _) => self.count_message(message),
            (Some("system"), _, Some(compacted)) => {
                let tokens = Tokens { input: compacted.pre_tokens.unwrap_or(0), output: SUMMARY, ..Tokens::default() };
                prices::cost(self.model.as_deref().unwrap_or_default(), &tokens)
            }
            _ => 0,
        }
    }

    fn count_message(&mut self, message: Message) -> Micros {
        let cost = prices::cost(message.model.as_deref().unwrap_or_default(), &message.usage.tokens());
        // What the client says itself is no model's.
        self.model = message.model.filter(|model| !model.starts_with('<') && model.len() < 100).or(self.model.take());
        let Some(id) = message.id else { return cost };
        // What an aborted answer is said to have used can still grow.
        if let Some((_, counted)) = self.recent.iter_mut().find(|(known, _)| *known == id) {
            let more = cost.saturating_sub(*counted);
            *counted += more;
            return more;
        }
        if self.recent.len() >= MOST_RECENT {
            self.recent.remove(0);
        }
        self.recent.push((id, cost));
        cost
    }
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
