//! The agent's words as they come: in lines that fit, however they were cut.

use ralph_core::text::clean;

use crate::term::width::{columns, wrap};

/// A line that goes on for longer than this is shown in pieces.
const LONGEST: usize = 8_192;

/// Words that are not a whole line yet.
#[derive(Default)]
pub(super) struct Prose {
    begun: String,
    /// The last line that was whole had words: a blank one may follow. One in a row is enough.
    had_words: bool,
}

impl Prose {
    /// The lines that are whole with this piece, none wider than `width` unless a word is.
    pub(super) fn feed(&mut self, piece: &str, width: usize) -> Vec<String> {
        let mut whole = Vec::new();
        for part in piece.split_inclusive('\n') {
            self.begun.push_str(&clean(&part.replace('\t', "    ")));
            if part.ends_with('\n') {
                self.end_line(width, &mut whole);
            } else {
                self.break_off(width, &mut whole);
            }
        }
        whole
    }

    pub(super) fn rest(&mut self, width: usize) -> Vec<String> {
        let mut whole = Vec::new();
        if !self.begun.trim().is_empty() {
            self.end_line(width, &mut whole);
        }
        *self = Prose::default();
        whole
    }

    pub(super) fn begun(&self) -> &str {
        &self.begun
    }

    fn end_line(&mut self, width: usize, whole: &mut Vec<String>) {
        let line = std::mem::take(&mut self.begun);
        let is_blank = line.trim().is_empty();
        if is_blank && self.had_words {
            whole.push(String::new());
        } else if !is_blank {
            whole.extend(wrapped(line.trim_end(), width));
        }
        self.had_words = !is_blank;
    }

    /// A line that no longer fits is whole up to its last part.
    fn break_off(&mut self, width: usize, whole: &mut Vec<String>) {
        if self.begun.len() > LONGEST {
            return self.end_line(width, whole);
        }
        if columns(self.begun.trim_end()) <= width {
            return;
        }
        let mut lines = wrapped(&self.begun, width);
        self.begun = lines.pop().unwrap_or_default();
        self.had_words |= !lines.is_empty();
        whole.extend(lines);
    }
}

/// Lines that begin where the first one's words do.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let words = line.trim_start();
    let mark = if words.starts_with("- ") || words.starts_with("* ") { 2 } else { 0 };
    wrap(line, width, line.len() - words.len() + mark).split('\n').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same lines come out whether the text comes at once or letter by letter.
    #[test]
    fn s4_6_text_is_broken_between_words_however_it_comes() {
        let text = "\n\nOne two three four five.\n\n\n\n  - an item that is long\nthe end";
        let lines = ["One two", "three four", "five.", "", "  - an item", "    that is", "    long", "the end"];
        let mut letters = Prose::default();
        let mut out: Vec<String> = text.chars().flat_map(|c| letters.feed(&c.to_string(), 11)).collect();
        assert_eq!(letters.begun(), "the end");
        out.extend(letters.rest(11));
        assert_eq!(out, lines);
        let mut whole = Prose::default();
        let out: Vec<String> = [whole.feed(text, 11), whole.rest(11)].concat();
        assert_eq!(out, lines);
        assert!(whole.rest(11).is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let mut prose = Prose::default();
        assert_eq!(prose.feed(&"x".repeat(LONGEST + 1), 80).concat().len(), LONGEST + 1);
        assert_eq!(prose.begun(), "");
    }

    #[test]
    fn nothing_in_it_steers_a_terminal() {
        assert_eq!(Prose::default().feed("a\u{1b}[2Jb\r\u{7}\tc\n", 80), ["a[2Jb    c"]);
    }
}
