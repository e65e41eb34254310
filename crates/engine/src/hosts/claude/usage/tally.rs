//! What a session used: its messages one by one, or its transcripts from beginning to end.

use std::collections::VecDeque;

use ralph_core::{judge::session_outcome, money::Micros};

use super::{Compacted, Line, REACH, SUMMARY, Start, Usage, each_line};
use crate::hosts::claude::{
    prices::{self, Tokens},
    transcript::Source,
};

/// Messages whose lines may stand among each other's: those of a session and of all its subagents.
const MOST_RECENT: usize = 64;

/// A sum that grows. A message counts once, however often it is reported, and by the most that was ever reported of it.
#[derive(Debug, Default)]
pub struct Tally {
    pub tokens: session_outcome::Tokens,
    /// An estimate.
    pub usd_micros: Micros,
    pub messages: u64,
    /// The model of the newest message.
    pub model: Option<String>,
    recent: VecDeque<(String, Tokens)>,
}

impl Tally {
    /// Adds what is new about a message; returns the tokens of that message.
    pub fn count(&mut self, id: &str, model: &str, usage: &Usage) -> u64 {
        let now = usage.tokens();
        let before = self.recent.iter().position(|(known, _)| known == id).and_then(|at| self.recent.remove(at));
        if before.is_none() {
            self.messages += 1;
            self.model = Some(model.to_owned());
        }
        let before = before.map(|(_, tokens)| tokens).unwrap_or_default();
        let after = most_of(before, now);
        self.tokens = self.tokens.plus(difference(after, before));
        self.usd_micros = self.usd_micros.saturating_add(prices::cost(model, &after).saturating_sub(prices::cost(model, &before)));
        if self.recent.len() >= MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((id.to_owned(), after));
        difference(after, Tokens::default()).total()
    }

    /// Adds what a transcript tells.
    pub fn read(&mut self, source: &(impl Source + ?Sized)) {
        let size = source.size();
        let start = Start { at: size.saturating_sub(REACH), skips: size > REACH };
        each_line(source, start, &mut REACH.clone(), |line, _| {
            if let Some(line) = line.and_then(Line::parse) {
                self.count_line(line);
            }
        });
    }

    fn count_line(&mut self, line: Line) {
        match (line.kind.as_deref(), line.message, line.compact_metadata) {
            (Some("assistant"), Some(message), _) => {
                let model = message.model.unwrap_or_default();
                // What the client says itself is no model's.
                if let Some(id) = message.id.filter(|_| !model.starts_with('<')) {
                    self.count(&id, &model, &message.usage);
                }
            }
            (Some("system"), _, Some(compacted)) => self.count_compaction(&compacted),
            _ => {}
        }
    }

    pub(super) fn count_compaction(&mut self, compacted: &Compacted) {
        let tokens = Tokens { input: compacted.pre_tokens.unwrap_or(0), output: SUMMARY, ..Tokens::default() };
        self.tokens = self.tokens.plus(difference(tokens, Tokens::default()));
        self.usd_micros = self.usd_micros.saturating_add(prices::cost(self.model.as_deref().unwrap_or_default(), &tokens));
    }
}

/// An aborted answer, or one that has only begun, is reported again when it has grown, and then not always with all its figures.
fn most_of(a: Tokens, b: Tokens) -> Tokens {
    Tokens {
        input: a.input.max(b.input),
        output: a.output.max(b.output),
        written_5m: a.written_5m.max(b.written_5m),
        written_1h: a.written_1h.max(b.written_1h),
        read: a.read.max(b.read),
        searches: a.searches.max(b.searches),
        is_fast: a.is_fast || b.is_fast,
        is_local: a.is_local || b.is_local,
    }
}

fn difference(after: Tokens, before: Tokens) -> session_outcome::Tokens {
    session_outcome::Tokens {
        input: after.input - before.input,
        output: after.output - before.output,
        cache_read: after.read - before.read,
        cache_written: after.written_5m - before.written_5m + after.written_1h - before.written_1h,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(json: &str) -> Usage {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn s4_6_a_message_counts_once_and_by_the_most_that_was_reported() {
        let mut tally = Tally::default();
        tally.count("a", "claude-opus-5", &usage(r#"{"input_tokens":100,"output_tokens":1,"cache_read_input_tokens":7}"#));
        assert_eq!(tally.count("a", "claude-opus-5", &usage(r#"{"output_tokens":1000}"#)), 1_107);
        tally.count("b", "claude-opus-5", &usage(r#"{"input_tokens":5,"cache_creation_input_tokens":3}"#));
        tally.count("a", "claude-opus-5", &usage(r#"{"output_tokens":1}"#));
        assert_eq!(tally.tokens, session_outcome::Tokens { input: 105, output: 1_000, cache_read: 7, cache_written: 3 });
        assert_eq!((tally.messages, tally.model.as_deref()), (2, Some("claude-opus-5")));
        assert!((25_500..25_600).contains(&tally.usd_micros), "{}", tally.usd_micros);
    }

    #[test]
    fn s4_6_a_transcript_is_counted_from_beginning_to_end() {
        let of = |id: &str, output: u64| {
            format!(r#"{{"type":"assistant","message":{{"id":"{id}","model":"claude-opus-5","usage":{{"output_tokens":{output}}}}}}}"#)
                + "\n"
        };
        let synthetic = r#"{"type":"assistant","message":{"id":"x","model":"<synthetic>","usage":{"output_tokens":9}}}"#.to_owned() + "\n";
        let text = of("a", 10) + &of("a", 10) + &synthetic + "torn {\n" + &of("b", 5) + &of("c", 1)[..40];
        let mut tally = Tally::default();
        tally.read(text.as_bytes());
        assert_eq!((tally.tokens.output, tally.messages), (15, 2));
    }
}
