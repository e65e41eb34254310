//! What the messages of a transcript used, one by one, with the time of each: whoever asks puts them into rounds.

use ralph_core::{
    judge::session_outcome,
    money::Micros,
    text::{
        json::parse_tolerant,
        time::{self, Millis},
    },
};
use serde::Deserialize;

use super::{Line, Tally};

/// What a line adds to what was used. A message that is reported again, with more than before, adds the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    pub at: Millis,
    pub tokens: session_outcome::Tokens,
    /// An estimate.
    pub usd_micros: Micros,
    pub tool_calls: u64,
    /// How full the context was, in tokens, when a message was asked for; `None`: it is a compaction.
    pub context: Option<u64>,
    /// It is the first that is told of a message.
    pub is_new: bool,
}

/// So many calls are remembered.
const MOST_CALLED: usize = 32;

/// What a message's line says about tools.
#[derive(Deserialize)]
struct Called {
    message: Content,
}

#[derive(Deserialize)]
struct Content {
    content: Vec<Block>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

/// Reads a transcript forwards, line by line.
#[derive(Debug, Default)]
pub struct Messages {
    tally: Tally,
    /// What is older does not count.
    since: Millis,
    /// The newest time that was seen.
    at: Millis,
    /// The file was replaced: what has no time may have been counted before.
    needs_times: bool,
    unnamed: u64,
    /// The tools that were called last: a message may be told again.
    called: Vec<String>,
}

impl Messages {
    pub fn since(since: Millis) -> Self {
        Messages { since, at: since, ..Messages::default() }
    }

    /// Another file has its place: what is not newer than what was seen was counted before.
    pub fn begin_anew(&mut self) {
        *self = Messages { needs_times: true, ..Messages::since(self.at) };
    }

    /// What a line adds, if anything. `is_known` is asked whether the message of this id was counted elsewhere.
    pub fn line(&mut self, line: &[u8], is_known: impl FnOnce(&str) -> bool) -> Option<Amount> {
        let whole = line;
        let line = Line::parse(whole)?;
        let at = line.timestamp.as_deref().and_then(time::parse);
        if at.is_some_and(|at| at <= self.since) || (at.is_none() && self.needs_times) {
            return None;
        }
        let at = at.unwrap_or(self.at);
        self.at = self.at.max(at);
        let before = (self.tally.tokens, self.tally.usd_micros, self.tally.messages);
        let mut tool_calls = 0;
        let context = match (line.kind.as_deref(), line.message, line.compact_metadata) {
            (Some("assistant"), Some(message), _) => {
                let model = message.model.unwrap_or_default();
                // What the client says itself is no model's.
                if model.starts_with('<') || message.id.as_deref().is_some_and(is_known) {
                    return None;
                }
                let id = message.id.unwrap_or_else(|| {
                    self.unnamed += 1;
                    format!("#{}", self.unnamed)
                });
                self.tally.count(&id, &model, &message.usage);
                tool_calls = self.calls(whole);
                let tokens = message.usage.tokens();
                Some([tokens.input, tokens.written_5m, tokens.written_1h, tokens.read].into_iter().fold(0, u64::saturating_add))
            }
            (Some("system"), _, Some(compacted)) => {
                self.tally.count_compaction(&compacted);
                None
            }
            _ => return None,
        };
        let (tokens, usd_micros) = (self.tally.tokens.minus(before.0), self.tally.usd_micros.saturating_sub(before.1));
        let is_new = self.tally.messages > before.2;
        let adds = is_new || tokens.total() > 0 || tool_calls > 0;
        adds.then_some(Amount { at, tokens, usd_micros, tool_calls, context, is_new })
    }

    /// The tools that a message's line calls, and that no line before did.
    fn calls(&mut self, line: &[u8]) -> u64 {
        if memchr::memmem::find(line, b"\"tool_use\"").is_none() {
            return 0;
        }
        let blocks = parse_tolerant::<Called>(line).map(|called| called.message.content).unwrap_or_default();
        let mut count = 0;
        for block in blocks.into_iter().filter(|block| block.kind == "tool_use") {
            if !block.id.is_empty() && self.called.contains(&block.id) {
                continue;
            }
            if self.called.len() >= MOST_CALLED {
                self.called.remove(0);
            }
            self.called.push(block.id);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, at: Millis, output: u64) -> String {
        let at = time::format(at);
        format!(
            r#"{{"type":"assistant","timestamp":"{at}","message":{{"id":"{id}","model":"claude-opus-5","usage":{{"input_tokens":7,"cache_read_input_tokens":100,"output_tokens":{output}}}}}}}"#
        )
    }

    #[test]
    fn eyes_2_each_call_of_a_tool_counts_once() {
        let mut messages = Messages::default();
        let mut add = |block: &str| {
            let line = line("a", 2_000, 1).replace("\"usage\"", &format!("\"content\":[{block}],\"usage\""));
            messages.line(line.as_bytes(), |_| false).map_or(0, |amount| amount.tool_calls)
        };
        let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"ls"}}}}"#);
        assert_eq!(add(r#"{"type":"text","text":"a \"tool_use\""}"#), 0);
        assert_eq!(add(&call("t1")), 1);
        assert_eq!(add(&call("t1")), 0, "told again");
        assert_eq!(add(&format!("{},{}", call("t2"), call("t3"))), 2);
        assert_eq!(add("7"), 0);
    }

    #[test]
    fn eyes_2_each_message_adds_once_and_what_grows_adds_the_rest() {
        let mut messages = Messages::since(1_000);
        let mut add = |line: &str| messages.line(line.as_bytes(), |id| id == "elsewhere");
        assert_eq!(add(&line("old", 1_000, 5)), None, "before the loop");
        let first = add(&line("a", 2_000, 1)).unwrap();
        assert_eq!((first.at, first.tokens.total(), first.context, first.is_new), (2_000, 108, Some(107), true));
        assert_eq!(add(&line("a", 2_001, 1)), None);
        let more = add(&line("a", 2_002, 1_001)).unwrap();
        assert_eq!((more.tokens.total(), more.usd_micros, more.is_new), (1_000, 25_000, false));
        assert_eq!(add(&line("elsewhere", 2_003, 1)), None);
        assert_eq!(add("garbled \"usage\""), None);
        let compacted = r#"{"type":"system","timestamp":"1970-01-01T00:00:09Z","compactMetadata":{"preTokens":50000}}"#;
        let compacted = add(compacted).unwrap();
        assert_eq!((compacted.at, compacted.tokens.input, compacted.context), (9_000, 50_000, None));
        messages.begin_anew();
        assert_eq!(messages.line(line("a", 2_000, 1).as_bytes(), |_| false), None, "counted before");
        assert!(messages.line(line("b", 9_001, 1).as_bytes(), |_| false).is_some());
    }
}
