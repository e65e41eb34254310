//! The tests in a source file, and what keeps tests from being run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    languages::{LANGUAGES, Language, NOT_LOOKED_AT},
    tokens::{self, Token},
};
use crate::words::opening;

/// What a source file says about tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The names of its tests, in order.
    pub tests: Vec<String>,
    /// What skips tests or singles some out: `#[ignore]`, `it.only`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<String>,
}

/// How much of a name is kept.
const LONGEST_NAME: usize = 200;

/// Between a test's attribute and its name there are no more tokens than this.
const LONGEST_GAP: usize = 200;

/// Whether a file of this name may hold tests.
pub fn may_hold_tests(path: &str) -> bool {
    language(path).is_some()
}

/// Reads a source file. `None`: it is none that may hold tests, or nothing in it is one.
pub fn look(path: &str, text: &str) -> Option<Source> {
    let language = language(path)?;
    if !text.contains(language.needs) {
        return None;
    }
    let tokens = tokens::read(text, &language.syntax);
    let source = Source { tests: tests(language, &tokens), markers: markers(language, &tokens) };
    (source != Source::default()).then_some(source)
}

fn language(path: &str) -> Option<&'static Language> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (_, extension) = name.rsplit_once('.')?;
    let language = LANGUAGES.iter().find(|language| language.extensions.contains(&extension))?;
    let is_place = |place: &str| match place.strip_suffix('/') {
        Some(folder) => folders.split('/').any(|name| is_like(name, folder)),
        None => is_like(name, place),
    };
    let is_ours = !folders.split('/').any(|folder| NOT_LOOKED_AT.contains(&folder));
    (is_ours && language.places.iter().any(|place| is_place(place))).then_some(language)
}

/// Whether a name is like a pattern, in which `*` stands for anything.
fn is_like(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

type Tokens<'a> = [(Token<'a>, bool)];

fn tests(language: &Language, tokens: &Tokens<'_>) -> Vec<String> {
    // Two attributes can be about one function.
    let names: BTreeSet<usize> = found(language.tests, tokens).filter_map(|found| found.name).collect();
    let name = |at: usize| match tokens.get(at) {
        Some((Token::Word(name) | Token::Text(name), _)) => opening(name, LONGEST_NAME),
        _ => String::new(),
    };
    names.into_iter().map(name).collect()
}

fn markers(language: &Language, tokens: &Tokens<'_>) -> Vec<String> {
    let shown = |found: Found| {
        let mut text = String::new();
        for (token, _) in &tokens[found.begin..found.end] {
            match token {
                Token::Word(word) if text.ends_with(char::is_alphanumeric) => text.extend([" ", word]),
                Token::Word(word) => text.push_str(word),
                Token::Sign(sign) => text.push(*sign),
                Token::Text(_) => {}
            }
        }
        let text = text.trim_start_matches(',').trim_end_matches('(');
        let open = text.matches('(').count().saturating_sub(text.matches(')').count());
        if text.contains('[') { format!("{text}{}]", ")".repeat(open)) } else { text.to_owned() }
    };
    found(language.markers, tokens).map(shown).collect()
}

/// Where a pattern was found.
#[derive(Clone, Copy)]
struct Found {
    begin: usize,
    end: usize,
    /// The token that is the test's name.
    name: Option<usize>,
}

fn found<'a>(patterns: &[&'static str], tokens: &'a Tokens<'a>) -> impl Iterator<Item = Found> + use<'a> {
    let patterns: Vec<Vec<Element>> = patterns.iter().map(|pattern| pattern.split(' ').map(Element::read).collect()).collect();
    (0..tokens.len()).filter_map(move |at| patterns.iter().find_map(|pattern| find(pattern, tokens, at)))
}

/// A part of a pattern.
enum Element {
    /// One of these, at the beginning of a line if so.
    Words(Vec<&'static str>, bool),
    Prefix(&'static str),
    Sign(char),
    Word,
    Text,
    Name,
    Method,
    Path,
    Gap,
    Within,
}

impl Element {
    fn read(text: &'static str) -> Self {
        let mut characters = text.chars();
        match (text, characters.next(), characters.next()) {
            ("WORD", ..) => Element::Word,
            ("TEXT", ..) => Element::Text,
            ("NAME", ..) => Element::Name,
            ("METHOD", ..) => Element::Method,
            ("PATH", ..) => Element::Path,
            ("..", ..) => Element::Gap,
            ("WITHIN", ..) => Element::Within,
            (_, Some(sign), None) if !sign.is_alphanumeric() => Element::Sign(sign),
            _ => match (text.strip_suffix('*'), text.strip_prefix('^')) {
                (Some(prefix), _) => Element::Prefix(prefix),
                (None, Some(words)) => Element::Words(words.split('|').collect(), true),
                (None, None) => Element::Words(text.split('|').collect(), false),
            },
        }
    }

    fn is_name(&self) -> bool {
        matches!(self, Element::Prefix(_) | Element::Word | Element::Text | Element::Name | Element::Method)
    }

    fn is_at(&self, tokens: &Tokens<'_>, at: usize) -> bool {
        let Some((token, first_in_line)) = tokens.get(at) else { return false };
        match (self, token) {
            (Element::Words(words, at_line), Token::Word(word)) => words.contains(word) && (*first_in_line || !at_line),
            (Element::Prefix(prefix), Token::Word(word)) => word.starts_with(prefix),
            (Element::Sign(wanted), Token::Sign(sign)) => wanted == sign,
            (Element::Word | Element::Name, Token::Word(_)) | (Element::Text | Element::Name, Token::Text(_)) => true,
            (Element::Method, token) => is_method(token, tokens, at),
            _ => false,
        }
    }
}

/// A name before a bracket and after a type. After `@` or `[` it would be another attribute.
fn is_method(token: &Token<'_>, tokens: &Tokens<'_>, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before)).map(|(token, _)| token);
    let is_declared = match (token, before) {
        (Token::Word(_), Some(Token::Word(before))) => !matches!(*before, "new" | "return" | "throw"),
        (Token::Word(_), Some(Token::Sign(before))) => matches!(before, '>' | ']'),
        (Token::Text(_), Some(Token::Word(before))) => *before == "fun",
        _ => false,
    };
    is_declared && matches!(tokens.get(at + 1), Some((Token::Sign('('), _)))
}

fn find(pattern: &[Element], tokens: &Tokens<'_>, at: usize) -> Option<Found> {
    let is_member = || at.checked_sub(1).is_some_and(|before| tokens[before].0 == Token::Sign('.'));
    // `expression.test("…")` is no test.
    if matches!(pattern.first(), Some(Element::Words(..))) && is_member() {
        return None;
    }
    let (end, name) = go_on(pattern, tokens, at, None)?;
    Some(Found { begin: at, end, name })
}

fn go_on(pattern: &[Element], tokens: &Tokens<'_>, mut at: usize, name: Option<usize>) -> Option<(usize, Option<usize>)> {
    let Some((element, rest)) = pattern.split_first() else { return Some((at, name)) };
    match element {
        Element::Gap => (at..tokens.len().min(at + LONGEST_GAP)).find_map(|next| go_on(rest, tokens, next, name)),
        Element::Within => {
            let is_bracket = |at: usize| matches!(tokens.get(at), Some((Token::Sign('[' | ']'), _)));
            let reach = (at..tokens.len().min(at + LONGEST_GAP)).take_while(|at| !is_bracket(*at));
            reach.into_iter().find_map(|next| go_on(rest, tokens, next, name))
        }
        Element::Path => {
            let colon = |at: usize| matches!(tokens.get(at), Some((Token::Sign(':'), _)));
            while matches!(tokens.get(at), Some((Token::Word(_), _))) && colon(at + 1) && colon(at + 2) {
                at += 3;
            }
            go_on(rest, tokens, at, name)
        }
        _ if element.is_at(tokens, at) => go_on(rest, tokens, at + 1, if element.is_name() { Some(at) } else { name }),
        _ => None,
    }
}
