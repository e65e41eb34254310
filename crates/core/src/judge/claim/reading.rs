//! Reading a message for its tags: where the last tag of each text block is, what hides it, and what is above it.
//!
//! One pass over the lines, so that a message of many megabytes costs no more than reading it.

use std::borrow::Cow;

use super::Refusal;
use crate::text::normalised;
use crate::text::{is_unseen, markdown::Fence};

/// Begins each text block of a message but the first.
pub(super) const BLOCK_END: char = '\u{c}';

/// A kind of tag.
pub(super) struct Kind {
    pub open: &'static str,
    pub close: &'static str,
    /// The close of the tag that must not be in the same message.
    other: &'static str,
}

pub(super) const PROMISE: Kind = Kind { open: "<promise>", close: "</promise>", other: "</blocked>" };
pub(super) const BLOCKED: Kind = Kind { open: "<blocked>", close: "</blocked>", other: "</promise>" };

/// Signs of success that may be around a tag.
const CHEERS: &str = "✅☑✔✓🎉🎊✨🚀🏁🥳💯🏆👍\u{fe0f}";
/// Ends of a sentence, besides the full stop.
const ENDS: &str = "!。！।۔";
/// Ends of a line that announces what follows.
const ANNOUNCES: &str = ":：?？؟👇—→";
/// Characters that may not follow a tag: they close quotes, code, cells and elements, or doubt.
const DOUBTS: &str = "\"'`~|<>()[]{}/\\?？؟:：;,“”„’»«」』❌✗✘❓🚫";
const QUOTES: &str = "\"'“”„‘’»«「」『』";

/// Elements that hold nothing.
const EMPTY_ELEMENTS: [&str; 6] = ["br", "hr", "img", "input", "link", "meta"];
/// Of elements that nothing closes so many are kept in mind; one is enough.
const MOST_ELEMENTS: usize = 16;
/// Of a prompt's tags so many are compared.
const MOST_TAGS: usize = 100;

/// The tags of one kind in a message.
#[derive(Default)]
pub(super) struct Page<'m> {
    /// The last tag of each block that has one.
    pub(crate) spots: Vec<Spot<'m>>,
    pub(crate) has_open_box: bool,
    /// A tag of the other kind is in it, outside of code.
    pub(crate) has_other: bool,
    /// The nearest line of words so far, and how many there were.
    above: &'m str,
    lines: usize,
}

/// Where a tag is.
pub(super) struct Spot<'m> {
    /// Its line before it, and all of its block after it.
    before: &'m str,
    after: &'m str,
    /// The words between the tags.
    pub words: &'m str,
    pub hidden: Option<Refusal>,
    above: &'m str,
    /// The line above is the message's first line of words.
    above_is_first: bool,
}

/// The code, comments, elements and quotes that are open at a line of a block.
#[derive(Default)]
struct Open<'m> {
    fence: Fence,
    comment: bool,
    elements: Vec<&'m str>,
    /// The line directly above is part of a block quote.
    quote: bool,
}

impl<'m> Page<'m> {
    pub(super) fn read(message: &'m str, kind: &Kind) -> Self {
        let mut page = Page::default();
        for block in message.split(BLOCK_END) {
            let mut open = Open::default();
            let tag = last_tag(block, kind);
            let mut at = 0;
            while at < block.len() {
                let end = block[at..].find('\n').map_or(block.len(), |n| at + n + 1);
                if let Some((from, to)) = tag.filter(|(from, _)| (at..end).contains(from)) {
                    let before = &block[at..from];
                    page.note(before, kind);
                    let hidden = open.hides(before);
                    page.spots.push(Spot {
                        before,
                        after: &block[to..],
                        words: &block[from + kind.open.len()..to - kind.close.len()],
                        hidden,
                        above: page.above,
                        above_is_first: page.lines <= 1,
                    });
                    at = to;
                } else {
                    page.take(&block[at..end], &mut open, kind);
                    at = end;
                }
            }
        }
        page
    }

    fn take(&mut self, line: &'m str, open: &mut Open<'m>, kind: &Kind) {
        let text = line.trim();
        let has_words = text.contains(char::is_alphanumeric);
        if open.fence.takes(text) {
            open.quote = false;
            // Code is no announcement, whatever it ends in.
            (self.above, self.lines) = if has_words { ("", self.lines + 1) } else { (self.above, self.lines) };
            return;
        }
        let plain = without_code(line);
        self.note(&plain, kind);
        open.takes(line, &plain);
        if has_words && !is_only_tags(text, kind) {
            (self.above, self.lines) = (text, self.lines + 1);
        }
    }

    fn note(&mut self, plain: &str, kind: &Kind) {
        self.has_open_box |= plain.contains("[ ]") || plain.contains('☐');
        self.has_other |= plain.contains(kind.other);
    }
}

impl<'m> Open<'m> {
    fn takes(&mut self, line: &'m str, plain: &str) {
        self.comment = match (plain.rfind("<!--"), plain.rfind("-->")) {
            (None, None) => self.comment,
            (opens, closes) => opens > closes,
        };
        // Only a line that begins with its tag opens an element: `Vec<T>` and <main> in a sentence are words.
        if let Some(name) = opening(line).filter(|_| self.elements.len() < MOST_ELEMENTS) {
            self.elements.push(name);
        }
        for rest in plain.split("</").skip(1) {
            let closed = rest.split(['>', ' ', '\t', '\r', '\n']).next().unwrap_or_default();
            if let Some(at) = self.elements.iter().rposition(|name| name.eq_ignore_ascii_case(closed)) {
                self.elements.remove(at);
            }
        }
        self.quote = line.trim_start().starts_with('>');
    }

    /// Why a tag with this text before it on its line is hidden, if it is.
    fn hides(&mut self, before: &'m str) -> Option<Refusal> {
        let is_below_a_quote = self.quote;
        self.takes(before, &without_code(before));
        let columns = before.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 4 } else { 1 }).sum::<usize>();
        let hides = [
            (self.fence.is_open() || self.comment || columns >= 4, Refusal::InCode),
            (!self.elements.is_empty(), Refusal::InElement),
            (self.quote || is_below_a_quote, Refusal::Quoted),
        ];
        hides.into_iter().find_map(|(applies, why)| applies.then_some(why))
    }
}

impl Spot<'_> {
    /// Whether no words follow, nor what would make it a question, a quote, code or a cell.
    pub(super) fn is_last(&self) -> Result<(), Refusal> {
        let Some((at, c)) = self.after.char_indices().find(|(_, c)| c.is_alphanumeric() || DOUBTS.contains(*c)) else { return Ok(()) };
        Err(match c {
            '`' => Refusal::InCode,
            c if QUOTES.contains(c) => Refusal::Quoted,
            '<' if self.after[at..].starts_with("</") => Refusal::InElement,
            _ if self.after[..at].contains('\n') => Refusal::NotLast,
            _ => Refusal::NotAlone,
        })
    }

    pub(super) fn is_bare(&self) -> bool {
        is_bare(self.before)
    }

    /// `All tests pass. TAG`, but not `e.g. TAG` nor a cell of a table.
    pub(super) fn is_after_a_sentence(&self) -> bool {
        let lead = self.before.trim_end_matches(|c| is_air(c) || matches!(c, '*' | '_') || CHEERS.contains(c));
        let lead = lead.trim_end_matches([')', ']', '"', '”', '»', '」', '）']);
        if self.before.trim_start().starts_with('|') || !lead.contains(char::is_alphabetic) {
            return false;
        }
        let Some(sentence) = lead.strip_suffix('.') else { return lead.ends_with(|c| ENDS.contains(c)) };
        let last = sentence.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_one_letter = last.chars().count() == 1 && last.contains(char::is_alphabetic);
        !sentence.ends_with('.') && !is_one_letter
    }

    /// Why what is before it on its line makes it a mention.
    pub(super) fn what_is_before(&self) -> Refusal {
        match self.before.trim_end_matches(['*', '_', ' ']).chars().next_back() {
            Some('`') => Refusal::InCode,
            Some(c) if QUOTES.contains(c) => Refusal::Quoted,
            Some('>') => Refusal::InElement,
            _ => Refusal::NotAlone,
        }
    }

    /// Whether the line of words above says that something follows, or asks.
    pub(super) fn is_announced(&self) -> bool {
        self.above.trim_end_matches(|c| is_air(c) || matches!(c, '*' | '_')).ends_with(|c| ANNOUNCES.contains(c))
    }

    /// Whether the tag follows the same words as in the prompt. A message that has nothing besides these words may be the answer that the prompt asked for.
    pub(super) fn is_echo(&self, prompt: &str) -> bool {
        let own = words_of(if self.is_bare() { self.above } else { self.before });
        let is_short = self.above_is_first && self.is_bare();
        !own.is_empty()
            && prompt.match_indices(PROMISE.open).take(MOST_TAGS).any(|(tag, _)| {
                let mut lines = prompt[..tag].rsplit('\n').enumerate().filter(|(n, line)| *n > 0 || !is_bare(line)).map(|(_, line)| line);
                let mut next = || lines.by_ref().map(words_of).find(|words| !words.is_empty());
                next().is_some_and(|words| words == own) && !(is_short && next().is_some())
            })
    }
}

/// The last tag of a block, from its opening to its end; of nested openings the innermost counts.
fn last_tag(block: &str, kind: &Kind) -> Option<(usize, usize)> {
    let open = block[..block.rfind(kind.close)?].rfind(kind.open)?;
    let close = open + block[open..].find(kind.close)?;
    Some((open, close + kind.close.len()))
}

/// Whether there is nothing before a tag on its line but a heading's mark, a bullet, a number, a tick, emphasis.
fn is_bare(before: &str) -> bool {
    let lead = before.trim_matches(is_unseen).trim_end_matches(['*', '_']);
    let is_number = |mark: &str| {
        let digits = mark.trim_end_matches(['.', ')']);
        mark.len() == digits.len() + 1 && (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let is_cheer = |mark: &str| mark.chars().all(|c| CHEERS.contains(c));
    let is_mark = |mark: &str| {
        matches!(mark, "-" | "*" | "+" | "•" | "[x]" | "[X]")
            || mark.trim_start_matches('#').is_empty()
            || is_number(mark)
            || is_cheer(mark)
    };
    let touches = |mark: &str| lead.ends_with(mark) && !is_cheer(mark);
    lead.split_whitespace().all(is_mark) && !lead.split_whitespace().next_back().is_some_and(touches)
}

/// White space, and the marks of writing from right to left.
fn is_air(c: char) -> bool {
    c.is_whitespace() || is_unseen(c)
}

/// A line of nothing but other tags of the same kind, which says nothing about the tag below it.
fn is_only_tags(text: &str, kind: &Kind) -> bool {
    let inner = text.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '<' | '>'));
    inner.starts_with(kind.open) && inner.ends_with(kind.close)
}

/// The words of a line, without what programs put before the lines that they repeat.
fn words_of(line: &str) -> String {
    normalised(line.trim_start_matches(|c: char| !c.is_alphanumeric()))
}

/// The name of the element that a line begins with and does not close at once.
fn opening(line: &str) -> Option<&str> {
    let tag = line.trim_start().strip_prefix('<').filter(|_| line.len() - line.trim_start().len() < 4)?;
    let end = tag.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))).unwrap_or(tag.len());
    let (name, rest) = tag.split_at(end);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.ends_with(':');
    let is_tag = rest.is_empty() || rest.starts_with(['>', ' ', '\t', '\r', '\n']);
    let is_closed = rest.split('>').next().is_some_and(|inner| inner.ends_with('/'));
    let holds_nothing = EMPTY_ELEMENTS.iter().any(|empty| name.eq_ignore_ascii_case(empty)) || matches!(name, "promise" | "blocked");
    (is_name && is_tag && !is_closed && !holds_nothing).then_some(name)
}

/// A line without its code spans.
fn without_code(line: &str) -> Cow<'_, str> {
    if line.contains('`') { Cow::Owned(line.split('`').step_by(2).collect()) } else { Cow::Borrowed(line) }
}
