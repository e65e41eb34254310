//! JSON that remembers where every value stands, so that one value can change and every other byte stays.
//!
//! The syntax is checked by a real parser first, which also says where a mistake is; the walk here only has to find its way.

use std::ops::Range;

use serde::de::IgnoredAny;

use crate::text::{Problem, json::parse_tolerant};

const BOM: &str = "\u{feff}";

/// Deeper than this nobody nests a list of tasks.
const DEEPEST: usize = 64;

/// A value and the bytes that spell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As it is spelled.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// One `"key": value` of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node,
}

impl Node {
    /// A member of an object. Of several with the same key the last one counts, as in every JSON reader.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().rev().find(|m| m.key == key).map(|m| &m.value)
    }

    pub(crate) fn members(&self) -> &[Member] {
        if let Value::Object(members) = &self.value { members } else { &[] }
    }

    /// What kind of value it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

/// Takes a document apart.
pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    let body = text.strip_prefix(BOM).unwrap_or(text);
    if serde_json::from_str::<IgnoredAny>(body).is_err() {
        // Reading it in earnest says best what is wrong.
        return Err(broken(serde_json::from_str::<serde_json::Value>(body).err()));
    }
    let mut walk = Walk { text, at: text.len() - body.len() };
    walk.value(0).ok_or_else(|| Problem::new(walk.line(), "it is nested too deeply"))
}

fn broken(e: Option<serde_json::Error>) -> Problem {
    let Some(e) = e else { return Problem::new(None, "this is not valid JSON") };
    let what = e.to_string();
    let what = what.split(" at line ").next().unwrap_or(&what);
    Problem::new((e.line() > 0).then_some(e.line()), format!("this is not valid JSON: {what} (column {})", e.column()))
}

/// The line of a byte of a text, from 1.
pub(crate) fn line_of(text: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text[..at.min(text.len())]).count()
}

/// The way through a document that is known to be valid.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl Walk<'_> {
    fn line(&self) -> usize {
        line_of(self.text.as_bytes(), self.at)
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            return None;
        }
        let first = self.peek()?;
        let start = self.at;
        let value = match first {
            b'{' => Value::Object(self.members(depth)?),
            b'[' => Value::List(self.elements(depth)?),
            b'"' => Value::Text(self.string()?),
            _ => self.word(),
        };
        Some(Node { span: start..self.at, value })
    }

    fn members(&mut self, depth: usize) -> Option<Vec<Member>> {
        let mut out = Vec::new();
        self.at += 1;
        while self.peek()? != b'}' {
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            // The colon.
            self.peek()?;
            self.at += 1;
            out.push(Member { key, key_span, value: self.value(depth + 1)? });
            self.skip_comma()?;
        }
        self.at += 1;
        Some(out)
    }

    fn elements(&mut self, depth: usize) -> Option<Vec<Node>> {
        let mut out = Vec::new();
        self.at += 1;
        while self.peek()? != b']' {
            out.push(self.value(depth + 1)?);
            self.skip_comma()?;
        }
        self.at += 1;
        Some(out)
    }

    fn skip_comma(&mut self) -> Option<()> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        while *bytes.get(self.at)? != b'"' {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        // Half a surrogate pair is no reason to refuse a list.
        parse_tolerant(bytes.get(start..self.at)?).ok()
    }

    fn word(&mut self) -> Value {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | ']' | '}')).unwrap_or(rest.len());
        self.at += end;
        match &rest[..end] {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => Value::Number(number.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spelled<'a>(text: &'a str, key: &str) -> &'a str {
        parse(text).ok().and_then(|root| root.get(key).map(|n| &text[n.span.clone()])).unwrap_or_default()
    }

    #[test]
    fn every_value_knows_its_bytes() {
        let text = "\u{feff}{ \"a\" : [1, {\"b\": null}] ,\r\n\t\"q\\\"\": \"x\\\\\", \"n\": -1.5e3,\"t\":true, \"t\": false}";
        assert_eq!(spelled(text, "a"), "[1, {\"b\": null}]");
        assert_eq!(spelled(text, "q\""), "\"x\\\\\"");
        assert_eq!(spelled(text, "n"), "-1.5e3");
        assert_eq!(spelled(text, "t"), "false", "the last one counts");
    }

    #[test]
    fn mistakes_have_a_line() {
        let problem = |text: &str| parse(text).err().map(|p| p.to_string()).unwrap_or_default();
        assert_eq!(problem("{\n\"a\": 1,\n}"), "line 3: this is not valid JSON: trailing comma (column 1)");
        assert!(problem("{\"a\": ").starts_with("line 1: this is not valid JSON: EOF"), "{}", problem("{\"a\": "));
        assert_eq!(problem(&"[".repeat(500)).split(':').next(), Some("line 1"));
        let deep = format!("{}{}", "[".repeat(90), "]".repeat(90));
        assert_eq!(problem(&deep), "line 1: it is nested too deeply");
    }

    proptest! {
        /// The walk agrees with the parser on any document, and spans spell their values.
        #[test]
        fn the_walk_agrees_with_the_parser(text in "[\\[\\]{}:,\"\\\\ \n0-9a-ftrulesn.é-]{0,40}") {
            let valid = serde_json::from_str::<serde_json::Value>(&text);
            match parse(&text) {
                Ok(node) => prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&text[node.span]).ok(), valid.ok()),
                Err(_) => prop_assert!(valid.is_err()),
            }
        }

        #[test]
        fn any_value_is_walked(parts in proptest::collection::vec(".{0,12}", 0..6)) {
            let text = serde_json::to_string(&serde_json::json!({ "a": parts, "b": { "c": parts.first() } })).unwrap_or_default();
            let node = parse(&text);
            prop_assert!(node.is_ok(), "{text}");
            prop_assert_eq!(node.map(|n| n.span), Ok(0..text.len()));
        }
    }
}
