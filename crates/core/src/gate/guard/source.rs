//! The tests in a source file, and what keeps tests from running.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::OnceLock,
};

use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use super::languages::{LANGUAGES, Language, NOT_LOOKED_AT, Span};
use crate::text::opening;

/// The tests of a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The names of its tests, in order.
    pub tests: Vec<String>,
    /// Markers that skip tests or single some out: `#[ignore]`, `it.only`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<String>,
}

/// How much of a name is kept.
const LONGEST_NAME: usize = 200;

/// A match is no longer than this: the cases of a test stand between its attribute and its name.
const LONGEST_MATCH: usize = 10_000;

impl Source {
    /// Whether a file of this name may hold tests.
    pub fn may_hold_tests(path: &str) -> bool {
        language(path).is_some()
    }

    /// Reads a source file. `None`: it is none that may hold tests, or it holds none.
    pub fn read(path: &str, text: &str) -> Option<Self> {
        let (language, patterns) = language(path)?;
        if !text.contains(language.needs) {
            return None;
        }
        let (tests, markers) = patterns.get_or_init(|| (compiled(language.tests), compiled(language.markers)));
        let code = code_of(text, language);
        // Two attributes can be about one function.
        let names: BTreeSet<(usize, usize)> = found(tests, &code).values().map(|(_, name)| (name.start, name.end)).collect();
        let source = Source {
            tests: names.into_iter().map(|(start, end)| opening(text.get(start..end).unwrap_or_default(), LONGEST_NAME)).collect(),
            markers: found(markers, &code).into_values().map(|(all, _)| shown(&code[all])).collect(),
        };
        (source != Source::default()).then_some(source)
    }
}

type Patterns = OnceLock<(Vec<Pattern>, Vec<Pattern>)>;

fn language(path: &str) -> Option<(&'static Language, &'static Patterns)> {
    static PATTERNS: [Patterns; LANGUAGES.len()] = [const { OnceLock::new() }; LANGUAGES.len()];
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (_, extension) = name.rsplit_once('.')?;
    let (language, patterns) = LANGUAGES.iter().zip(&PATTERNS).find(|(language, _)| language.extensions.contains(&extension))?;
    let is_place = |place: &str| match place.strip_suffix('/') {
        Some(folder) => folders.split('/').any(|name| is_like(name, folder)),
        None => is_like(name, place),
    };
    let is_ours = !folders.split('/').any(|folder| NOT_LOOKED_AT.contains(&folder));
    (is_ours && language.places.iter().any(|place| is_place(place))).then_some((language, patterns))
}

/// Whether a name is like a pattern, in which `*` is anything.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((first, rest)) => {
            let Some(left) = name.strip_prefix(first) else { return false };
            left.char_indices().map(|(at, _)| &left[at..]).chain([""]).any(|left| is_like(left, rest))
        }
    }
}

/// A row of the table, ready to be matched.
pub(super) struct Pattern {
    beginnings: Vec<&'static str>,
    begins_line: bool,
    rest: Regex,
}

pub(super) fn compiled(patterns: &[(&'static str, &str)]) -> Vec<Pattern> {
    let of = |(beginnings, rest): &(&'static str, &str)| {
        let method = r"GAP(?:fun\s+TEXT|(?:[\w>\]]\s+|[>\]])(\w+))\s*\(";
        let rest = rest.replace("METHOD", method).replace("GAP", r"[\s\S]*?").replace("TEXT", r#""([^"]*)""#);
        let words = beginnings.trim_start_matches('^').split('|').collect();
        Some(Pattern { beginnings: words, begins_line: beginnings.starts_with('^'), rest: Regex::new(&format!("^{rest}")).ok()? })
    };
    patterns.iter().filter_map(of).collect()
}

/// Each place where a pattern matches, by where it begins: all of it, and the name in it.
fn found(patterns: &[Pattern], code: &str) -> BTreeMap<usize, (Range<usize>, Range<usize>)> {
    let mut all = BTreeMap::new();
    for pattern in patterns {
        for (at, word) in pattern.beginnings.iter().flat_map(|word| code.match_indices(word)) {
            let (before, after) = (&code[..at], &code[at + word.len()..]);
            let line = || before.rsplit('\n').next().unwrap_or_default();
            if !is_whole(before, word, after) || (pattern.begins_line && !line().trim().is_empty()) {
                continue;
            }
            let Some(rest) = pattern.rest.captures(&after[..after.len().min(LONGEST_MATCH)]) else { continue };
            let begin = at + word.len();
            let range = |found: regex_lite::Match<'_>| begin + found.start()..begin + found.end();
            let name = (1..rest.len()).filter_map(|n| rest.get(n)).next_back().map_or(begin..begin, range);
            all.entry(at).or_insert((at..rest.get(0).map_or(begin, |all| begin + all.end()), name));
        }
    }
    all
}

/// Whether a word is one of its own, and no member: `expression.test("…")` is no test.
fn is_whole(before: &str, word: &str, after: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    (!word.starts_with(is_of_word) || !before.ends_with(|c| is_of_word(c) || c == '.'))
        && (!word.ends_with(is_of_word) || !after.starts_with(is_of_word))
}

/// A marker as it is told, without spaces and strings.
fn shown(code: &str) -> String {
    let mut text = String::new();
    for part in code.split(|c: char| c.is_whitespace() || c == '"') {
        if text.ends_with(char::is_alphanumeric) && part.starts_with(char::is_alphanumeric) {
            text.push(' ');
        }
        text.push_str(part);
    }
    let text = text.trim_start_matches(',').trim_end_matches(['(', ']']);
    let open = text.matches('(').count().saturating_sub(text.matches(')').count());
    if text.contains('[') { format!("{text}{}]", ")".repeat(open)) } else { text.to_owned() }
}

/// The code without comments and the contents of strings, byte for byte in the same place. Every string is in double quotes, and every letter is ASCII.
fn code_of(text: &str, language: &Language) -> String {
    let bytes = text.as_bytes();
    let mut code: Vec<u8> = bytes.iter().map(|byte| if byte.is_ascii() { *byte } else { b'_' }).collect();
    let mut spans: Vec<&Span> = language.spans.iter().collect();
    let mut begins = [false; 256];
    spans.iter().filter_map(|span| span.open.bytes().next()).for_each(|byte| begins[usize::from(byte)] = true);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let is_open = |span: &&Span| rest.starts_with(span.open.as_bytes());
        let Some(n) = begins[usize::from(rest[0])].then(|| spans.iter().position(is_open)).flatten() else {
            at += 1;
            continue;
        };
        let span = spans[n];
        match span.length(rest) {
            Some(length) => {
                code[at..at + length].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                if !span.is_comment {
                    (code[at], code[at + length - 1]) = (b'"', b'"');
                }
                at += length;
            }
            None => {
                if span.spans_lines {
                    // None of its kind ends from here on.
                    spans.remove(n);
                }
                at += 1;
            }
        }
    }
    String::from_utf8(code).unwrap_or_default()
}

impl Span {
    /// How long it is, with both ends. A comment may be open to the end of the file; a string that is open is none.
    fn length(&self, text: &[u8]) -> Option<usize> {
        let mut escaped = false;
        for at in self.open.len()..text.len() {
            match text[at] {
                _ if escaped => escaped = false,
                b'\\' if self.escapes => escaped = true,
                _ if text[at..].starts_with(self.close.as_bytes()) => return Some(at + self.close.len()),
                b'\n' if !self.spans_lines => return None,
                _ => {}
            }
        }
        self.is_comment.then_some(text.len())
    }
}
