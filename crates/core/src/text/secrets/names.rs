//! Values whose name says that they are secret (`API_TOKEN=…`, `"password": "…"`, `--secret …`), and passwords in addresses.
//!
//! Source code has such names, too, and its values are calls and other names. So a value without quotes has to look like a secret.

use super::{Step, shapes};
use crate::text::{find_byte, rfind_byte};

/// The kind of value that a name announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Anything may be a password.
    Password,
    Key,
    /// Programs have tokens that are no secrets.
    Token,
    /// `Authorization`: a scheme and what goes with it.
    Header,
    /// The signature of an address that lets its holder in.
    Signature,
}

/// Names end like this, whatever is between their words.
const ENDINGS: &[(&str, Kind)] = &[
    ("token", Kind::Token),
    ("secret", Kind::Key),
    ("password", Kind::Password),
    ("passwd", Kind::Password),
    ("passphrase", Kind::Password),
    ("apikey", Kind::Key),
    ("accesskey", Kind::Key),
    ("secretkey", Kind::Key),
    ("privatekey", Kind::Key),
    ("accountkey", Kind::Key),
    ("sharedkey", Kind::Key),
    ("signingkey", Kind::Key),
    ("encryptionkey", Kind::Key),
    ("masterkey", Kind::Key),
    ("authkey", Kind::Key),
    ("secretkeybase", Kind::Key),
    ("authorization", Kind::Header),
];

/// Names of variables that end like this.
const ENDINGS_OF_VARIABLES: &[&str] = &["_PWD", "_PASS", "_PAT", "_AUTH"];

/// A longer name is none.
const LONGEST_NAME: usize = 80;

/// Between a name, its sign and its value there is no more room than this.
const MOST_BLANKS: usize = 8;

/// A longer value in quotes is a text.
const LONGEST_QUOTED: usize = 4 << 10;

/// So much of a value without quotes says whether it is one.
const LOOKED_AT: usize = 1 << 10;

/// Whether the value of a variable of this name is secret.
pub(super) fn is_secret(name: &str) -> bool {
    kind(name.as_bytes()).is_some_and(|kind| kind != Kind::Signature)
}

/// Whether a name that announces a secret may end with these two: nearly no word does.
pub(super) fn may_end(before: u8, last: u8) -> bool {
    matches!(
        [before | 0x20, last | 0x20],
        [b'e', b'n' | b't' | b'y'] | [b'o', b'n'] | [b'r' | b'w', b'd'] | [b's', b'e' | b's'] | [b'a', b't'] | [b't', b'h'] | [b'i', b'g']
    )
}

fn kind(name: &[u8]) -> Option<Kind> {
    let [.., before, last] = name else { return None };
    if !may_end(*before, *last) || name.len() > LONGEST_NAME {
        return None;
    }
    let ends = |ending: &str| {
        let mut letters = name.iter().rev().filter(|b| !matches!(b, b'_' | b'-'));
        ending.bytes().rev().all(|wanted| letters.next().is_some_and(|b| b.to_ascii_lowercase() == wanted))
    };
    if let Some((_, kind)) = ENDINGS.iter().find(|(ending, _)| ends(ending)) {
        return Some(*kind);
    }
    if name == b"sig" {
        return Some(Kind::Signature);
    }
    let is_variable =
        is_loud(name) && ENDINGS_OF_VARIABLES.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending.as_bytes()));
    is_variable.then_some(Kind::Password)
}

/// As the names of variables are written.
fn is_loud(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_uppercase) && !name.iter().any(u8::is_ascii_lowercase)
}

/// The sign between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `=`, with nothing around it.
    Tight,
    /// Anything else.
    Loose,
}

/// The quote around a value: which one, and how many backslashes, because the value may be in a text that is in JSON.
#[derive(Clone, Copy)]
struct Quote {
    slashes: usize,
    mark: u8,
}

impl Quote {
    fn at(rest: &[u8]) -> Option<Quote> {
        let slashes = rest.iter().take(9).take_while(|b| **b == b'\\').count();
        let mark = *rest.get(slashes)?;
        matches!(mark, b'"' | b'\'').then_some(Quote { slashes, mark })
    }

    /// Whether what follows the backslashes is not known yet.
    fn may_begin(rest: &[u8]) -> bool {
        rest.len() <= 9 && rest.iter().all(|b| *b == b'\\')
    }

    fn len(self) -> usize {
        self.slashes + 1
    }

    /// Where what it encloses ends.
    fn end(self, rest: &[u8]) -> Ends {
        let mut at = 0;
        let mut slashes = 0;
        while let Some(b) = rest.get(at).filter(|_| at < LONGEST_QUOTED) {
            match b {
                b'\\' => slashes += 1,
                b'\n' | b'\r' => return Ends::Never,
                _ if *b == self.mark => {
                    let is_escaped = if self.slashes == 0 { slashes % 2 == 1 } else { slashes > self.slashes };
                    if !is_escaped {
                        return if slashes == self.slashes || self.slashes == 0 { Ends::At(at - slashes) } else { Ends::Never };
                    }
                    slashes = 0;
                }
                // A quote of another kind may end the text around all of this.
                b'"' if slashes <= self.slashes => return Ends::Never,
                _ => slashes = 0,
            }
            at += 1;
        }
        if at == rest.len() { Ends::NotYet } else { Ends::Never }
    }
}

enum Ends {
    At(usize),
    NotYet,
    Never,
}

/// A value behind the name at `at`, which ends at `end`.
pub(super) fn at(buf: &[u8], at: usize, end: usize, is_end: bool) -> Option<Step> {
    let word = &buf[at..end];
    let name = word.iter().position(|b| *b != b'-').map_or(&[][..], |first| &word[first..]);
    let wait = || (!is_end).then_some(Step::Wait);
    let kind = match buf.get(end) {
        Some(b'=' | b':' | b' ' | b'\t' | b'"' | b'\'' | b'\\') => kind(name)?,
        Some(_) => return None,
        None => return kind(name).and_then(|_| wait()),
    };
    if Quote::may_begin(&buf[end..]) && !is_end {
        return wait();
    }
    let mut from = end + Quote::at(&buf[end..]).map_or(0, Quote::len);
    let before = blanks(&buf[from..]);
    from += before;
    let next = |n: usize| buf.get(from + n).copied();
    let sign = match (next(0), next(1)) {
        (None, _) | (Some(b'=' | b':'), None) => return wait(),
        (Some(b'='), Some(b'=')) | (Some(b':'), Some(b':')) => return None,
        (Some(b'='), Some(b'>')) | (Some(b':'), Some(b'=')) => {
            from += 2;
            Sign::Loose
        }
        (Some(b'='), _) => {
            from += 1;
            if before == 0 { Sign::Tight } else { Sign::Loose }
        }
        (Some(b':'), _) => {
            from += 1;
            Sign::Loose
        }
        // `--password VALUE`
        _ if word.starts_with(b"--") && before > 0 => Sign::Loose,
        _ => return None,
    };
    let after = blanks(&buf[from..]);
    from += after;
    if from == buf.len() {
        return wait();
    }
    let value = Value { kind, is_loud: is_loud(name), sign: if after > 0 { Sign::Loose } else { sign } };
    value.at(buf, from, is_end)
}

fn blanks(rest: &[u8]) -> usize {
    rest.iter().take(MOST_BLANKS).take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// All that is known about a value before its bytes.
struct Value {
    kind: Kind,
    is_loud: bool,
    sign: Sign,
}

impl Value {
    fn at(&self, buf: &[u8], mut from: usize, is_end: bool) -> Option<Step> {
        if Quote::may_begin(&buf[from..]) && !is_end {
            return Some(Step::Wait);
        }
        let quote = Quote::at(&buf[from..]);
        if let Some(quote) = quote {
            from += quote.len();
            match quote.end(&buf[from..]) {
                Ends::At(len) => {
                    let scheme = self.scheme(&buf[from..from + len]);
                    return self.quoted(&buf[from + scheme..from + len]).then_some(Step::Mask {
                        from: from + scheme,
                        to: from + len,
                        alike: |_| false,
                    });
                }
                Ends::NotYet if !is_end => return Some(Step::Wait),
                _ => {}
            }
        }
        let scheme = self.scheme(&buf[from..]);
        from += scheme;
        let alike: fn(u8) -> bool = if self.is_loud && self.sign == Sign::Tight { in_variable } else { in_plain };
        let mut to = from + shapes::run(&buf[from..], alike);
        if to - from <= LONGEST_QUOTED {
            to += buf[to..].iter().take(2).take_while(|b| **b == b'=').count();
        }
        if to == buf.len() && !is_end {
            return Some(Step::Wait);
        }
        let value = &buf[from..to.min(from + LOOKED_AT)];
        let is_call = value.len() < LOOKED_AT && matches!(buf.get(to), Some(b'(' | b'['));
        let is_secret = self.looks_secret(value) || (scheme > 0 && value.len() >= 8);
        (is_secret && !is_call && !is_placeholder(value)).then_some(Step::Mask { from, to, alike })
    }

    /// Whether a value in quotes is a secret, rather than a sentence.
    fn quoted(&self, value: &[u8]) -> bool {
        let has_blank = value.iter().any(u8::is_ascii_whitespace);
        let is_secret = match self.kind {
            Kind::Header => value.len() >= 6,
            Kind::Token => value.len() >= 6 && !has_blank && (value.len() >= 20 || has_digit(value)) && !is_number(value),
            Kind::Password | Kind::Key => value.len() >= 4 && !has_blank,
            Kind::Signature => value.len() >= 40 && !has_blank,
        };
        is_secret && !is_placeholder(value)
    }

    /// How long the scheme in front of a header's value is.
    fn scheme(&self, value: &[u8]) -> usize {
        if self.kind != Kind::Header {
            return 0;
        }
        let word = shapes::run(value, |b| b.is_ascii_alphabetic());
        let is_scheme = ["bearer", "basic", "token", "digest", "apikey"].iter().any(|s| value[..word].eq_ignore_ascii_case(s.as_bytes()));
        if is_scheme && value.get(word) == Some(&b' ') { word + 1 } else { 0 }
    }

    /// Whether a value without quotes is one, rather than code.
    fn looks_secret(&self, value: &[u8]) -> bool {
        let is_mixed = has_digit(value) && value.iter().any(u8::is_ascii_alphabetic);
        match (self.kind, self.sign) {
            (Kind::Signature, sign) => sign == Sign::Tight && value.len() >= 40,
            (Kind::Header, _) => value.len() >= 8 && has_digit(value),
            (Kind::Token, Sign::Tight) if self.is_loud => value.len() >= 4 && !is_number(value),
            (_, Sign::Tight) if self.is_loud => value.len() >= 4,
            (Kind::Token, Sign::Tight) | (Kind::Password, Sign::Loose) => value.len() >= 6 && is_mixed,
            (_, Sign::Tight) => value.len() >= 4 && (has_digit(value) || !value.iter().all(|b| is_of_name(*b))),
            (_, Sign::Loose) => value.len() >= 8 && is_mixed,
        }
    }
}

fn is_of_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

fn is_number(value: &[u8]) -> bool {
    value.iter().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b','))
}

/// The bytes of a variable's value: everything up to a blank, a quote or an escape.
fn in_variable(b: u8) -> bool {
    !(b <= b' ' || matches!(b, b'"' | b'\'' | b'`' | b'\\' | 0x7f))
}

/// The bytes of any other value without quotes.
fn in_plain(b: u8) -> bool {
    in_variable(b) && !matches!(b, b',' | b';' | b'&' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b'|' | b'=' | b':')
}

/// Not a value yet: nothing, a variable, a hole to be filled, stars.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let Some(first) = value.first() else { return true };
    let words: [&[u8]; 13] = [
        b"null",
        b"none",
        b"nil",
        b"true",
        b"false",
        b"undefined",
        b"string",
        b"required",
        b"optional",
        b"redacted",
        b"hidden",
        b"masked",
        b"unset",
    ];
    matches!(first, b'$' | b'<' | b'{' | b'[' | b'*' | b'%')
        || value.iter().all(|b| b == first)
        || words.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// `://user:password@host`: the colon at `at` may begin it.
pub(super) fn in_url(buf: &[u8], at: usize, is_end: bool) -> Step {
    const LONGEST_USER: usize = 1 << 10;
    let rest = &buf[at..];
    let begins = &b"://"[..rest.len().min(3)];
    if !rest.starts_with(begins) {
        return Step::To(at + 1);
    }
    let from = at + 3;
    if rest.len() <= 3 {
        return if is_end { Step::To(buf.len()) } else { Step::Wait };
    }
    let of_user = |b: u8| b > b' ' && !matches!(b, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | 0x7f);
    let user = buf[from..].iter().take(LONGEST_USER).position(|b| !of_user(*b));
    let Some(len) = user.or((is_end || buf.len() - from >= LONGEST_USER).then_some((buf.len() - from).min(LONGEST_USER))) else {
        return Step::Wait;
    };
    let authority = &buf[from..from + len];
    let Some(host) = rfind_byte(b'@', authority) else { return Step::To(from) };
    let user = &authority[..host];
    let none: fn(u8) -> bool = |_| false;
    match find_byte(b':', user) {
        Some(colon) if !is_placeholder(&user[colon + 1..]) => Step::Mask { from: from + colon + 1, to: from + host, alike: none },
        None if user.len() >= 20 && has_digit(user) => Step::Mask { from, to: from + host, alike: none },
        _ => Step::To(from),
    }
}
