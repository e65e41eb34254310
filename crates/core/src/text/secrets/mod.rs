//! Secrets in what gates, agents and events print: found by their shape, masked before anything is written down or sent on.
//!
//! Four things are masked: tokens whose shape says whose they are (`shapes.rs`), values whose name says that they are secret (`names.rs`), private
//! keys (`keys.rs`), and, word for word, the values of the user's own secret variables. It works on bytes as they come, however they are cut into
//! parts, in time that grows with their number, and never breaks JSON. Decisions (tests, `contains`, claims) are made on the text as it was.

mod keys;
mod names;
mod shapes;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc};

use memchr::memmem;

use names::is_secret as is_secret_name;

/// The replacement of a secret. It is no secret itself, so that masking twice changes nothing.
const MASK: &str = "[masked]";

/// A shorter value of a variable is a word like any other.
const SHORTEST_OWN: usize = 8;

/// The possible beginning of a secret is held back until this much of it has come.
const LONGEST: usize = 8 << 10;

/// A long text is looked through in parts of this length.
const PART: usize = 64 << 10;

/// The secrets that are known word for word.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    own: Arc<[Vec<u8>]>,
}

impl Secrets {
    /// Those among the variables whose name says that their value is secret.
    pub fn of<N: AsRef<str>, V: AsRef<str>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let secret = variables.into_iter().filter(|(name, _)| is_secret_name(name.as_ref()));
        let mut own: Vec<Vec<u8>> = secret.flat_map(|(_, value)| pieces(value.as_ref())).collect();
        // A value that holds another one goes first.
        own.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        own.dedup();
        Secrets { own: own.into() }
    }

    /// The same and more.
    #[must_use]
    pub fn and<N: AsRef<str>, V: AsRef<str>>(&self, variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let more = Secrets::of(variables);
        if more.own.is_empty() { self.clone() } else { Secrets { own: self.own.iter().chain(more.own.iter()).cloned().collect() } }
    }

    /// A text without its secrets.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        let mut masking = Masking::new(self);
        // A long text without secrets is never copied as a whole.
        let (mut out, mut same) = (Vec::new(), 0);
        let mut parts = bytes.chunks(PART).peekable();
        while let Some(part) = parts.next() {
            let had_none = !masking.has_masked;
            masking.feed(part, &mut out);
            if parts.peek().is_none() {
                masking.finish(&mut out);
            }
            if !masking.has_masked {
                same += out.len();
                out.clear();
            } else if had_none {
                out.splice(..0, bytes[..same].iter().copied());
            }
        }
        // Only ASCII is cut, and only ASCII put in its place.
        if masking.has_masked { Cow::Owned(String::from_utf8_lossy(&out).into_owned()) } else { Cow::Borrowed(text) }
    }

    /// Bytes that need not be text, and lines of JSON, which stay lines of JSON.
    pub fn mask_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        self.mask_into(bytes, &mut out);
        out
    }

    fn mask_into(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut masking = Masking::new(self);
        masking.feed(bytes, out);
        masking.finish(out);
    }
}

/// The parts of a variable's value that are looked for: a line of its own is printed as one, and quotes are not printed everywhere.
fn pieces(value: &str) -> Vec<Vec<u8>> {
    let parts = value.split(|c: char| c.is_control() || matches!(c, '"' | '\\'));
    parts
        .map(str::trim)
        .filter(|part| part.len() >= SHORTEST_OWN && !names::is_placeholder(part.as_bytes()))
        .map(|part| part.as_bytes().to_vec())
        .collect()
}

/// Masks bytes that come in parts. The possible beginning of a secret is held back until it is clear.
#[derive(Debug, Default)]
pub struct Masking {
    own: Own,
    held: Vec<u8>,
    /// The next bytes belong to the last ones.
    goes_on: Option<GoesOn>,
    key: Option<keys::Key>,
    /// Something was not as it came.
    has_masked: bool,
}

/// A run of bytes that was longer than what is held back.
#[derive(Debug, Clone, Copy)]
enum GoesOn {
    Secret(fn(u8) -> bool),
    Word,
}

/// The next thing to do.
enum Step {
    /// Nothing, up to there.
    To(usize),
    /// Nothing, up to the end of a word.
    Past(usize),
    /// These bytes are a secret; if they are the last ones, those that follow and are alike belong to it.
    Mask { from: usize, to: usize, alike: fn(u8) -> bool },
    /// A private key begins here.
    Key { at: usize },
    /// More has to be known.
    Wait,
}

impl Masking {
    pub fn new(secrets: &Secrets) -> Self {
        Masking { own: Own { values: secrets.own.clone(), held: Vec::new() }, ..Masking::default() }
    }

    /// Takes some bytes, and adds what is known to be without secrets to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.has_masked |= self.own.feed(bytes, false, &mut self.held);
        self.scan(false, out);
    }

    /// Nothing more comes for now.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.has_masked |= self.own.feed(&[], true, &mut self.held);
        self.scan(true, out);
        (self.goes_on, self.key) = (None, None);
    }

    fn scan(&mut self, is_end: bool, out: &mut Vec<u8>) {
        let mut held = std::mem::take(&mut self.held);
        let buf = held.as_slice();
        let (mut at, mut copied) = (0, 0);
        while at < buf.len() {
            if let Some(goes_on) = self.goes_on {
                let rest = &buf[at..];
                let (belongs, is_secret): (fn(u8) -> bool, bool) = match goes_on {
                    GoesOn::Secret(alike) => (alike, true),
                    GoesOn::Word => (is_word, false),
                };
                at += rest.iter().position(|b| !belongs(*b)).unwrap_or(rest.len());
                copied = if is_secret { at } else { copied };
                self.goes_on = self.goes_on.filter(|_| at == buf.len());
                continue;
            }
            let is_end = is_end || buf.len() - at > LONGEST;
            if let Some(key) = &mut self.key {
                out.extend_from_slice(&buf[copied..at]);
                self.has_masked = true;
                match key.take(&buf[at..], is_end, out) {
                    keys::Taken::Wait => {
                        copied = at;
                        break;
                    }
                    keys::Taken::Line(n) => at += n,
                    keys::Taken::Over => self.key = None,
                }
                copied = at;
                continue;
            }
            at = past_plain(buf, at);
            match step(buf, at, is_end) {
                Step::Wait => break,
                Step::To(next) => at = next,
                Step::Past(end) => {
                    self.goes_on = (end == buf.len()).then_some(GoesOn::Word);
                    at = end;
                }
                Step::Mask { from, to, alike } => {
                    out.extend_from_slice(&buf[copied..from]);
                    out.extend_from_slice(MASK.as_bytes());
                    self.has_masked = true;
                    self.goes_on = (to == buf.len()).then_some(GoesOn::Secret(alike));
                    (at, copied) = (to, to);
                }
                Step::Key { at: after } => {
                    self.key = Some(keys::Key::default());
                    at = after;
                }
            }
        }
        out.extend_from_slice(&buf[copied..at]);
        held.drain(..at);
        self.held = held;
    }
}

/// The bytes of words, names and the beginnings of tokens.
fn is_word(b: u8) -> bool {
    WORD[usize::from(b)]
}

static WORD: [bool; 256] = table(b"_-");

/// Bytes at which something may begin.
static MATTERS: [bool; 256] = table(b"_-:\\%\x1b");

/// Letters, digits and some more bytes.
const fn table(more: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 128 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 128")]
        let is_alphanumeric = (b as u8).is_ascii_alphanumeric();
        table[b] = is_alphanumeric;
        b += 1;
    }
    let mut n = 0;
    while n < more.len() {
        table[more[n] as usize] = true;
        n += 1;
    }
    table
}

/// Past what `step` would go over one by one: most words begin nothing, and their first two bytes, their last two and the one behind them tell.
fn past_plain(buf: &[u8], mut at: usize) -> usize {
    while at + 1 < buf.len() {
        let (first, second) = (buf[at], buf[at + 1]);
        if is_word(first) {
            let Some(len) = buf[at..].iter().position(|b| !is_word(*b)) else { break };
            let end = at + len;
            if shapes::may_begin(first, second) || buf[end] == b'~' || (len > 1 && names::may_end(buf[end - 2], buf[end - 1])) {
                break;
            }
            at = end;
        } else if MATTERS[usize::from(first)] && (first != b':' || second == b'/') {
            break;
        } else {
            at += 1;
        }
    }
    at
}

fn step(buf: &[u8], at: usize, is_end: bool) -> Step {
    let rest = &buf[at..];
    match rest[0] {
        b':' => names::in_url(buf, at, is_end),
        // An escape of JSON is a byte of its own, and no part of the word behind it; so are escapes in an address, and colours.
        b'\\' => jump(at, rest, is_end, |rest| match rest.get(1)? {
            b'u' => Some(if rest.get(2..6)?.iter().all(u8::is_ascii_hexdigit) { 6 } else { 1 }),
            b'n' | b'r' | b't' | b'b' | b'f' | b'"' | b'\\' | b'/' => Some(2),
            _ => Some(1),
        }),
        b'%' => jump(at, rest, is_end, |rest| {
            let is_code = rest.get(1..3)?.iter().all(u8::is_ascii_hexdigit);
            Some(if is_code { 3 } else { 1 })
        }),
        0x1b => jump(at, rest, is_end, |rest| {
            if *rest.get(1)? != b'[' {
                return Some(1);
            }
            let codes = &rest[2..rest.len().min(40)];
            let end = codes.iter().position(|b| !matches!(b, b'0'..=b'?'));
            end.map_or((rest.len() >= 40).then_some(1), |end| Some(end + 3))
        }),
        b if is_word(b) => word(buf, at, is_end),
        _ => Step::To(at + 1 + rest[1..].iter().position(|b| MATTERS[usize::from(*b)]).unwrap_or(rest.len() - 1)),
    }
}

/// Over so many bytes, as soon as it is known how many.
fn jump(at: usize, rest: &[u8], is_end: bool, len: impl FnOnce(&[u8]) -> Option<usize>) -> Step {
    match len(rest) {
        Some(n) => Step::To(at + n.min(rest.len())),
        None if is_end => Step::To(at + 1),
        None => Step::Wait,
    }
}

/// A word: the beginning of a token, the name of a value, or neither.
fn word(buf: &[u8], at: usize, is_end: bool) -> Step {
    let end = at + buf[at..].iter().position(|b| !is_word(*b)).unwrap_or(buf.len() - at);
    if end == buf.len() && !is_end {
        // A token of which enough is there need not be waited for.
        return shapes::at(buf, at, end, false).unwrap_or(Step::Wait);
    }
    shapes::at(buf, at, end, is_end)
        .or_else(|| keys::begins(buf, at, is_end))
        .or_else(|| names::at(buf, at, end, is_end))
        .unwrap_or(Step::Past(end))
}

/// Masks values that are known word for word.
#[derive(Debug, Default)]
struct Own {
    values: Arc<[Vec<u8>]>,
    held: Vec<u8>,
}

impl Own {
    /// Returns whether there was any.
    fn feed(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<u8>) -> bool {
        if self.values.is_empty() {
            out.extend_from_slice(bytes);
            return false;
        }
        self.held.extend_from_slice(bytes);
        let mut found: Vec<(usize, usize)> =
            self.values.iter().flat_map(|value| memmem::find_iter(&self.held, value).map(|at| (at, at + value.len()))).collect();
        found.sort_unstable();
        let open = if is_end { self.held.len() } else { self.held.len() - self.begun() };
        let (mut copied, mut has_masked) = (0, false);
        for (from, to) in found {
            // One that overlaps another one goes with it; one that begins where a longer one may begin waits.
            if from >= copied && from < open {
                out.extend_from_slice(&self.held[copied..from]);
                out.extend_from_slice(MASK.as_bytes());
                has_masked = true;
            }
            copied = if from < open { copied.max(to) } else { copied };
        }
        let until = open.max(copied);
        out.extend_from_slice(&self.held[copied..until]);
        self.held.drain(..until);
        has_masked
    }

    /// How many of the last bytes may be the beginning of a value.
    fn begun(&self) -> usize {
        let of = |value: &Vec<u8>| {
            let most = (value.len() - 1).min(self.held.len());
            (1..=most).rev().find(|n| value.starts_with(&self.held[self.held.len() - n..])).unwrap_or(0)
        };
        self.values.iter().map(of).max().unwrap_or(0)
    }
}
