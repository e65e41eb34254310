//! Private keys: everything between `-----BEGIN … PRIVATE KEY-----` and its end, over as many lines as it takes. In JSON a line ends with `\n`,
//! and in source code each may have its own quotes, so only what the key itself is made of goes.

use memchr::memmem;

use super::{LONGEST, MASK, Step};

/// A line of a key is at least so long; the last one may be shorter.
const SHORTEST_LINE: usize = 16;

/// So much may be before a line of a key, and behind it: a time, the mark of a difference, quotes.
const MOST_BEFORE: usize = 36;
const MOST_BEHIND: usize = 8;

/// A label is shorter: `ENCRYPTED PRIVATE KEY`.
const LONGEST_LABEL: usize = 48;

/// Whether a key begins with the word at `at`.
pub(super) fn begins(buf: &[u8], at: usize, is_end: bool) -> Option<Step> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    // Nearly no word begins like this, and one byte tells.
    if buf[at] != b'-' {
        return None;
    }
    let rest = buf[at..].strip_prefix(BEGIN)?;
    let label = &rest[..rest.len().min(LONGEST_LABEL + 5)];
    match memmem::find(label, b"-----") {
        Some(end) => memmem::find(&label[..end], b"PRIVATE KEY").map(|_| Step::Key { at: at + BEGIN.len() + end + 5 }),
        None => (rest.len() < LONGEST_LABEL + 5 && !is_end).then_some(Step::Wait),
    }
}

/// A key that has begun.
#[derive(Debug, Default)]
pub(super) struct Key {
    /// Some of it was masked.
    has_begun: bool,
    /// The line before was one of its own.
    is_within: bool,
}

pub(super) enum Taken {
    /// The end of the line has to be known.
    Wait,
    /// So many bytes were taken.
    Line(usize),
    /// The key is over.
    Over,
}

impl Key {
    /// Takes one line, and adds what is left of it to `out`.
    pub(super) fn take(&mut self, rest: &[u8], is_end: bool, out: &mut Vec<u8>) -> Taken {
        let Some((len, with_end)) = line(rest, is_end) else { return Taken::Wait };
        let text = &rest[..len];
        let is_quoted = rest.get(len) == Some(&b'"');
        match self.body(text, is_quoted) {
            Some((from, to)) => {
                let is_first = !std::mem::replace(&mut self.has_begun, true);
                out.extend_from_slice(&text[..from]);
                out.extend_from_slice(if is_first { MASK.as_bytes() } else { b"" });
                // A line of nothing else goes with its end.
                if is_first || is_quoted || !is_blank(&text[..from]) || !is_blank(&text[to..]) {
                    out.extend_from_slice(&rest[to..with_end]);
                }
                self.is_within = true;
            }
            None if with_end > 0 && text.iter().all(|b| !b.is_ascii_alphanumeric()) => out.extend_from_slice(&rest[..with_end]),
            None if is_header(text) => {}
            None => return Taken::Over,
        }
        Taken::Line(with_end)
    }

    /// The part of a line that belongs to the key.
    fn body(&self, text: &[u8], is_quoted: bool) -> Option<(usize, usize)> {
        // It was masked before.
        if memmem::find(text, MASK.as_bytes()).is_some() {
            return None;
        }
        let (from, to) = longest_run(text);
        let run = &text[from..to];
        let is_all = is_blank(&text[..from]) && is_blank(&text[to..]);
        let is_last = self.is_within && is_all && !is_quoted && !run.is_empty();
        let is_mixed = run.iter().any(u8::is_ascii_uppercase) && run.iter().any(u8::is_ascii_lowercase);
        let seen = text.iter().filter(|b| !b.is_ascii_whitespace()).count();
        // The text around it is not masked.
        let is_alone = from <= MOST_BEFORE && text.len() - to <= MOST_BEHIND;
        let is_line = run.len() >= SHORTEST_LINE && is_mixed && is_alone && if is_quoted { is_all } else { run.len() * 5 >= seen * 3 };
        (is_last || is_line).then_some((from, to))
    }
}

/// How long the first line is, and how long with its end: a line break, one that is written as in JSON, a quote, or the dashes of the key's end.
fn line(rest: &[u8], is_end: bool) -> Option<(usize, usize)> {
    let mut at = 0;
    while at < rest.len() {
        if at >= LONGEST {
            return Some((at, at));
        }
        let run = |b: u8| rest[at..].iter().take_while(|other| **other == b).count();
        match rest[at] {
            b'\n' | b'\r' | b'"' => return Some((at, at + 1)),
            b'\\' => {
                let slashes = run(b'\\');
                match rest.get(at + slashes) {
                    Some(b'n' | b'r') => return Some((at, at + slashes + 1)),
                    Some(b'"') => return Some((at, at + slashes)),
                    Some(_) => at += slashes,
                    None if is_end => return Some((rest.len(), rest.len())),
                    None => return None,
                }
            }
            b'-' => match run(b'-') {
                5.. => return Some((at, at)),
                dashes if at + dashes == rest.len() && !is_end => return None,
                dashes => at += dashes,
            },
            _ => at += 1,
        }
    }
    is_end.then_some((rest.len(), rest.len()))
}

/// The longest part that may be of a key. A key on one line may have blanks for line breaks.
fn longest_run(text: &[u8]) -> (usize, usize) {
    let is = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    let (mut best, mut from) = ((0, 0), None);
    for (at, b) in text.iter().chain(b"\0").enumerate() {
        match from {
            None if is(*b) => from = Some(at),
            Some(start) if !is(*b) => {
                if at - start > best.1 - best.0 {
                    best = (start, at);
                }
                from = None;
            }
            _ => {}
        }
    }
    joined(text, best, is)
}

/// With the runs before and behind that only a blank divides from it, and that are as long as a line is.
fn joined(text: &[u8], (mut from, mut to): (usize, usize), is: impl Fn(u8) -> bool) -> (usize, usize) {
    if to - from < SHORTEST_LINE {
        return (from, to);
    }
    while to + 1 < text.len() && text[to] == b' ' && is(text[to + 1]) {
        to += 1;
        to += text[to..].iter().position(|b| !is(*b)).unwrap_or(text.len() - to);
    }
    while from >= 2 && text[from - 1] == b' ' && is(text[from - 2]) {
        let start = text[..from - 1].iter().rposition(|b| !is(*b)).map_or(0, |at| at + 1);
        if from - 1 - start < SHORTEST_LINE {
            break;
        }
        from = start;
    }
    (from, to)
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// `Proc-Type: 4,ENCRYPTED`
fn is_header(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    [b"Proc-Type:".as_slice(), b"DEK-Info:", b"Version:", b"Comment:", b"Charset:"].iter().any(|name| text.starts_with(name))
}
