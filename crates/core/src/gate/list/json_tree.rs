//! JSON in which every value knows its bytes, so that one value can change while every other byte stays.
//!
//! A real parser checks the syntax first and says where a mistake is; here a value is only taken apart as far as it is looked at.

use std::ops::Range;

use serde::de::IgnoredAny;

use crate::text::{Problem, json::parse_tolerant, line_of, without_bom};

/// A value of a valid document.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    /// The whole document.
    text: &'a str,
    pub(crate) span: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

/// One `"key": value` of an object.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    name: String,
    pub(crate) key: Node<'a>,
    pub(crate) value: Node<'a>,
}

/// Checks a document.
pub(crate) fn parse(text: &str) -> Result<Node<'_>, Problem> {
    let body = without_bom(text);
    if serde_json::from_str::<IgnoredAny>(body).is_err() {
        // Reading it in earnest says best what is wrong.
        return Err(broken(serde_json::from_str::<serde_json::Value>(body).err()));
    }
    Ok(Node { text, span: text.len() - body.trim_ascii_start().len()..text.trim_ascii_end().len() })
}

fn broken(e: Option<serde_json::Error>) -> Problem {
    let Some(e) = e else { return Problem::new(None, "this is not valid JSON") };
    let what = e.to_string();
    let what = what.split(" at line ").next().unwrap_or(&what);
    Problem::new((e.line() > 0).then_some(e.line()), format!("this is not valid JSON: {what} (column {})", e.column()))
}

impl<'a> Node<'a> {
    /// The value as it is written.
    pub(crate) fn raw(&self) -> &'a str {
        &self.text[self.span.clone()]
    }

    pub(crate) fn line(&self) -> usize {
        line_of(self.text.as_bytes(), self.span.start)
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.raw().as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'"') => Kind::Text,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The text of a string. Half a surrogate pair is no reason to refuse a list.
    pub(crate) fn string(&self) -> Option<String> {
        if self.kind() == Kind::Text { parse_tolerant(self.raw().as_bytes()).ok() } else { None }
    }

    /// The elements of a list, or the keys and values of an object in turn.
    fn children(&self) -> Vec<Node<'a>> {
        let mut children = Vec::new();
        let mut at = self.span.start + 1;
        loop {
            at += self.text[at..].bytes().take_while(|b| b.is_ascii_whitespace() || matches!(b, b',' | b':')).count();
            let mut values = serde_json::Deserializer::from_str(&self.text[at..self.span.end]).into_iter::<IgnoredAny>();
            let Some(Ok(_)) = values.next() else { return children };
            let end = at + values.byte_offset();
            children.push(Node { text: self.text, span: at..end });
            at = end;
        }
    }

    pub(crate) fn elements(&self) -> Vec<Node<'a>> {
        if self.kind() == Kind::List { self.children() } else { Vec::new() }
    }

    pub(crate) fn members(&self) -> Vec<Member<'a>> {
        if self.kind() != Kind::Object {
            return Vec::new();
        }
        let mut children = self.children().into_iter();
        let member = |key: Node<'a>, value| Member { name: key.string().unwrap_or_default(), key, value };
        std::iter::from_fn(|| Some(member(children.next()?, children.next()?))).collect()
    }
}

/// The value of a key. Of several with the same key the last one counts, as in every JSON reader.
pub(crate) fn get<'m, 'a>(members: &'m [Member<'a>], key: &str) -> Option<&'m Node<'a>> {
    members.iter().rev().find(|member| member.name == key).map(|member| &member.value)
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "true or false",
            Kind::Number => "a number",
            Kind::Text => "a text",
            Kind::List => "a list",
            Kind::Object => "an object",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spelled<'a>(text: &'a str, key: &str) -> &'a str {
        parse(text).ok().and_then(|root| get(&root.members(), key).map(Node::raw)).unwrap_or_default()
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
        let deep = format!("{}{}", "[".repeat(90_000), "]".repeat(90_000));
        assert_eq!(parse(&deep).map(|root| root.elements().len()).ok(), Some(1), "depth costs nothing");
    }

    /// Counts all values and keys, each of which must be valid by itself.
    fn walk(node: &Node<'_>) -> usize {
        assert!(serde_json::from_str::<IgnoredAny>(node.raw()).is_ok(), "{}", node.raw());
        let children = if matches!(node.kind(), Kind::List | Kind::Object) { node.children() } else { Vec::new() };
        let pairs = node.members().len() * 2;
        assert!(node.kind() != Kind::Object || children.len() == pairs, "{}", node.raw());
        1 + children.iter().map(walk).sum::<usize>()
    }

    proptest! {
        /// The walk agrees with the parser on any document, and spans spell their values.
        #[test]
        fn the_walk_agrees_with_the_parser(text in "[\\[\\]{}:,\"\\\\ \n0-9a-ftrulesn.é-]{0,40}") {
            let valid = serde_json::from_str::<serde_json::Value>(&text);
            match parse(&text) {
                Ok(node) => {
                    prop_assert_eq!(serde_json::from_str::<serde_json::Value>(node.raw()).ok(), valid.ok());
                    prop_assert!(walk(&node) > 0);
                }
                Err(_) => prop_assert!(valid.is_err()),
            }
        }

        #[test]
        fn any_value_is_walked(parts in proptest::collection::vec(".{0,12}", 0..6)) {
            let text = serde_json::to_string(&serde_json::json!({ "a": parts, "b": { "c": parts.first() } })).unwrap_or_default();
            let node = parse(&text);
            prop_assert!(node.is_ok(), "{text}");
            prop_assert_eq!(node.as_ref().map(|n| n.span.clone()), Ok(0..text.len()));
            prop_assert_eq!(node.map(|n| walk(&n)), Ok(7 + parts.len()));
        }
    }
}
