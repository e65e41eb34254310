//! YAML front matter in which one value can change while every other byte stays: the change is a splice of bytes.
//!
//! Nothing here knows the meaning of the keys: that is [`super::file`].

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use crate::text::{
    Problem, find_byte, line_of,
    yaml::{self, Document, Node},
};

/// More front matter than this was not written for a loop.
pub const MAX_BYTES: usize = 64 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A document split into front matter and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatter {
    yaml: Document,
    /// The bytes between the two `---` lines.
    at: Range<usize>,
    body: usize,
    crlf: bool,
}

impl FrontMatter {
    /// Splits `bytes` at its two `---` lines (LF or CRLF, with or without a byte order mark) and parses the lines between them.
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let (at, body) = split(bytes)?;
        let text = std::str::from_utf8(&bytes[at.clone()])
            .map_err(|e| Problem::new(line_of(bytes, at.start + e.valid_up_to()), "the front matter is not UTF-8"))?;
        let yaml = Document::parse(text, line_of(bytes, at.start))?;
        if let Some(root) = yaml.root().filter(|root| !matches!(root.value, yaml::Value::Map(_))) {
            return Err(root.problem("the front matter is not a list of `key: value` lines"));
        }
        let crlf = bytes[..at.start].ends_with(b"\r\n");
        Ok(FrontMatter { yaml, at, body, crlf })
    }

    pub(super) fn yaml(&self) -> &Document {
        &self.yaml
    }

    /// The keys at the top level.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Node> {
        self.yaml.pairs(self.yaml.root()).map(|(key, _)| key)
    }

    /// Everything after the closing `---` line, as it is in the file.
    pub fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.body..).unwrap_or_default()
    }

    /// The document with one value changed (or one line added before the closing `---`), every other byte as it was.
    pub fn with_value(&self, bytes: &[u8], key: &str, value: Value<'_>) -> Result<(Vec<u8>, FrontMatter), Problem> {
        let spelled = value.spelled();
        let (at, text) = match self.yaml.get(key)? {
            Some((key, scalar)) if scalar.text().is_some() && scalar.span.is_empty() => {
                let key_end = self.at.start + key.span.end;
                let colon = find_byte(b':', &bytes[key_end..self.at.end]).map_or(key_end, |colon| key_end + colon + 1);
                (colon..colon, Cow::Owned(format!(" {spelled}")))
            }
            Some((_, scalar)) if scalar.text().is_some() => {
                replacement(bytes, self.at.start + scalar.span.start..self.at.start + scalar.span.end, &spelled)
            }
            Some((entry, _)) => return Err(entry.problem(format!("`{key}` is not a single value"))),
            None => {
                let eol = if self.crlf { "\r\n" } else { "\n" };
                (self.at.end..self.at.end, Cow::Owned(format!("{key}: {spelled}{eol}")))
            }
        };
        let mut out = Vec::with_capacity(bytes.len() + text.len());
        out.extend_from_slice(&bytes[..at.start]);
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(&bytes[at.end..]);
        if is_number(&bytes[at.clone()]) && is_number(text.as_bytes()) && at.len() == text.len() {
            // The count of iterations, at almost every stop: a number in the place of one as long moves nothing and means nothing else.
            let mut parsed = self.clone();
            if parsed.yaml.replace(&(at.start - self.at.start..at.end - self.at.start), &text) {
                return Ok((out, parsed));
            }
        }
        // A splice that does not read back as intended (a flow mapping with no such key, say) must never reach the disk.
        let parsed = Self::parse(&out)?;
        let got = parsed.yaml.get(key)?.and_then(|(_, value)| value.text()).map(str::trim_end);
        if got == Some(value.text().trim_end()) {
            Ok((out, parsed))
        } else {
            Err(Problem::new(None, format!("`{key}` cannot be set in this front matter")))
        }
    }
}

/// A value to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// As it is: a number, `true`, `null`.
    Plain(&'a str),
    /// Any text, put in quotes.
    Text(&'a str),
}

impl<'a> Value<'a> {
    fn text(self) -> &'a str {
        match self {
            Value::Plain(text) | Value::Text(text) => text,
        }
    }

    fn spelled(self) -> Cow<'a, str> {
        match self {
            Value::Plain(text) => Cow::Borrowed(text),
            Value::Text(text) => Cow::Owned(quoted(text)),
        }
    }
}

/// A string as a YAML scalar that means exactly that string: double quotes, and an escape for whatever YAML does not print.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn is_number(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

/// The bytes to replace and the text to put there. Quotes around an old value are kept where the new one needs none; `null` in quotes would be a word.
fn replacement<'v>(bytes: &[u8], span: Range<usize>, value: &'v str) -> (Range<usize>, Cow<'v, str>) {
    let old = &bytes[span.clone()];
    if let [quote @ (b'"' | b'\''), .., _] = old
        && value != "null"
        && value.bytes().all(|b| b.is_ascii_alphanumeric())
    {
        return (span, Cow::Owned(format!("{0}{value}{0}", char::from(*quote))));
    }
    // A block scalar's bytes include its indentation and line break, which stay.
    let start = span.start + (old.len() - old.trim_ascii_start().len());
    (start..start + old.trim_ascii().len(), Cow::Borrowed(value))
}

/// The bytes of the YAML, and where the body begins.
fn split(bytes: &[u8]) -> Result<(Range<usize>, usize), Problem> {
    let mut at = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
    let mut lines = bytes[at..].split_inclusive(|b| *b == b'\n');
    match lines.next() {
        Some(first) if is_delimiter(first) => at += first.len(),
        _ => return Err(Problem::new(1, "the file does not begin with a `---` line")),
    }
    let start = at;
    for line in lines {
        if is_delimiter(line) {
            return Ok((start..at, at + line.len()));
        }
        at += line.len();
        if at - start > MAX_BYTES {
            return Err(Problem::new(
                None,
                format!("the front matter is longer than {MAX_BYTES} bytes, or its closing `---` line is missing"),
            ));
        }
    }
    Err(Problem::new(None, "the closing `---` line of the front matter is missing"))
}

fn is_delimiter(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| rest.iter().all(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(doc: &str, key: &str) -> Option<String> {
        let parsed = FrontMatter::parse(doc.as_bytes()).ok()?;
        Some(parsed.yaml.get(key).ok()??.1.text()?.to_owned())
    }

    fn set(doc: &str, key: &str, new: &str) -> Result<String, Problem> {
        let parsed = FrontMatter::parse(doc.as_bytes())?;
        parsed.with_value(doc.as_bytes(), key, Value::Plain(new)).map(|(b, _)| String::from_utf8_lossy(&b).into_owned())
    }

    #[test]
    fn reads_scalars_of_every_style() {
        let doc = "---\n# a comment\nplain: 4 # trailing\nsingle: 'it''s'\ndouble: \"a\\tb: \\u00e9\"\nliteral: |\n  two\n  lines\nfolded: >-\n  one\n  line\n\
                   empty:\nflow: [iteration, 9]\nnested:\n  iteration: 7\n\"quoted key\": yes\n---\nbody\n";
        assert_eq!(value(doc, "plain").as_deref(), Some("4"));
        assert_eq!(value(doc, "single").as_deref(), Some("it's"));
        assert_eq!(value(doc, "double").as_deref(), Some("a\tb: é"));
        assert_eq!(value(doc, "literal").as_deref(), Some("two\nlines\n"));
        assert_eq!(value(doc, "folded").as_deref(), Some("one line"));
        assert_eq!(value(doc, "quoted key").as_deref(), Some("yes"));
        assert_eq!(value(doc, "iteration"), None, "a nested key is not a top-level one");
        assert_eq!(value(doc, "flow"), None);
        assert!(FrontMatter::parse(doc.as_bytes()).is_ok_and(|d| d.body(doc.as_bytes()) == b"body\n"));
    }

    #[test]
    fn changes_one_value_and_nothing_else() {
        let cases = [
            ("---\niteration: 9 # rounds\nx: 1\n---\np", "---\niteration: 10 # rounds\nx: 1\n---\np"),
            ("---\r\niteration: 9\r\nx: 1\r\n---\r\np", "---\r\niteration: 10\r\nx: 1\r\n---\r\np"),
            ("---\niteration:   \"9\"\n---\np", "---\niteration:   \"10\"\n---\np"),
            ("---\niteration: '9'\n---\np", "---\niteration: '10'\n---\np"),
            ("---\n{iteration: 9, b: [1, 2]}\n---\np", "---\n{iteration: 10, b: [1, 2]}\n---\np"),
            ("---\niteration: &n 9\n---\np", "---\niteration: &n 10\n---\np"),
            ("---\niteration: |\n  9\nx: 1\n---\np", "---\niteration: |\n  10\nx: 1\n---\np"),
            ("---\niteration:\nx: 1\n---\np", "---\niteration: 10\nx: 1\n---\np"),
            ("---\nx: 1\n---\niteration: 9", "---\nx: 1\niteration: 10\n---\niteration: 9"),
            ("\u{feff}---\n\"iteration\": 9\n---\np", "\u{feff}---\n\"iteration\": 10\n---\np"),
        ];
        for (before, after) in cases {
            assert_eq!(set(before, "iteration", "10").as_deref(), Ok(after), "{before:?}");
        }
    }

    #[test]
    fn no_value_is_not_a_word_in_quotes() {
        for before in ["---\na: \"s1\"\nb: 2\n---\np", "---\na: 's1'\nb: 2\n---\np", "---\na: s1\nb: 2\n---\np"] {
            assert_eq!(set(before, "a", "null").as_deref(), Ok("---\na: null\nb: 2\n---\np"), "{before:?}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let problem = |doc: &str| match FrontMatter::parse(doc.as_bytes()) {
            Ok(parsed) => parsed.yaml.get("a").err().map(|p| p.to_string()).unwrap_or_default(),
            Err(p) => p.to_string(),
        };
        assert_eq!(problem("no front matter"), "line 1: the file does not begin with a `---` line");
        assert_eq!(problem("---\na: 1\n"), "the closing `---` line of the front matter is missing");
        assert_eq!(problem("---\na: 1\na: 2\n---\n"), "line 3: `a` is given twice");
        assert_eq!(problem("---\njust words\n---\n"), "line 2: the front matter is not a list of `key: value` lines");
        assert!(problem("---\nok: 1\na: b: c\n---\n").starts_with("line 3: "), "{}", problem("---\nok: 1\na: b: c\n---\n"));
        assert!(set("---\n{a: 1}\n---\n", "iteration", "2").is_err(), "a line cannot be added to a flow mapping");
    }

    proptest! {
        /// Any bytes in: an answer or a problem, never a panic, and a change keeps every byte outside the value.
        #[test]
        fn any_bytes(head in "[ -~\n\r\u{e9}]{0,60}", tail in proptest::collection::vec(any::<u8>(), 0..60), n in prop_oneof![0u64..10, 0u64..100_000]) {
            let mut doc = format!("---\n{head}\niteration: 7\n---\n").into_bytes();
            doc.extend_from_slice(&tail);
            if let Ok(parsed) = FrontMatter::parse(&doc)
                && let Ok((changed, reads_as)) = parsed.with_value(&doc, "iteration", Value::Plain(&n.to_string()))
            {
                prop_assert_eq!(FrontMatter::parse(&changed), Ok(reads_as));
                let same_head = doc.iter().zip(&changed).take_while(|(a, b)| a == b).count();
                let same_tail = doc.iter().rev().zip(changed.iter().rev()).take_while(|(a, b)| a == b).count();
                prop_assert!(same_head + same_tail + 1 >= doc.len(), "{:?} -> {:?}", doc, changed);
                let body = FrontMatter::parse(&changed).map(|p| p.body(&changed).to_vec());
                prop_assert_eq!(body, Ok(parsed.body(&doc).to_vec()));
            }
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = FrontMatter::parse(&bytes);
            let framed = [b"---\n".as_slice(), &bytes, b"\n---\nbody"].concat();
            let _ = FrontMatter::parse(&framed);
        }
    }
}
