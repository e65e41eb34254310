//! JSON as clients really send it: a strict parse first, then one tolerant retry.
//!
//! Agents pass on whatever a model or a terminal produced: raw control characters inside strings, half a surrogate pair, bytes that are
//! not UTF-8. A strict parser rejects the whole document for one such byte, and a rejected hook event used to be how loops died.

use serde::de::DeserializeOwned;

use crate::text::find_either;

/// Parses `bytes`; where that fails, repairs what is repairable and tries once more. The error is that of the strict parse.
pub fn parse_tolerant<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    serde_json::from_slice(bytes).or_else(|strict| serde_json::from_str(&repair(bytes)).map_err(|_| strict))
}

/// Finds where the first JSON object of a growing text ends. Each byte is looked at once, however the text comes.
#[derive(Debug, Default)]
pub struct ObjectEnd {
    /// Everything before it has been looked at.
    at: usize,
    depth: usize,
    in_string: bool,
}

impl ObjectEnd {
    /// How long the text is with the object's end; `None`: that has not come yet, or the text begins with something else. `text` only ever grows.
    pub fn find(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(&byte) = text.get(self.at) {
            if self.in_string {
                if self.skip_string(text) {
                    continue;
                }
                return None;
            }
            match byte {
                b'{' => self.depth += 1,
                b'}' if self.depth == 1 => return Some(self.at + 1),
                b'}' => self.depth = self.depth.saturating_sub(1),
                b'"' if self.depth > 0 => self.in_string = true,
                _ if self.depth > 0 || byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(&byte) => {}
                _ => return None,
            }
            self.at += 1;
        }
        None
    }

    /// Goes to the end of the string. `false`: that has not come yet, nor has perhaps the second byte of an escape, which is then gone back to.
    fn skip_string(&mut self, text: &[u8]) -> bool {
        while let Some(found) = find_either(b'"', b'\\', &text[self.at..]) {
            self.at += found;
            match text[self.at] {
                b'"' => {
                    self.at += 1;
                    self.in_string = false;
                    return true;
                }
                _ if self.at + 1 < text.len() => self.at += 2,
                _ => return false,
            }
        }
        self.at = text.len();
        false
    }
}

/// Escapes raw control characters inside strings, and replaces lone surrogate escapes and invalid UTF-8 by U+FFFD.
fn repair(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len() + 16);
    let mut in_string = false;
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '"' => {
                in_string = !in_string;
                out.push(c);
            }
            '\\' if in_string => used = repair_escape(rest, &mut out),
            c if in_string && u32::from(c) < 0x20 => {
                out.push_str("\\u00");
                out.push(char::from_digit(u32::from(c) >> 4, 16).unwrap_or('0'));
                out.push(char::from_digit(u32::from(c) & 15, 16).unwrap_or('0'));
            }
            c => out.push(c),
        }
        rest = &rest[used..];
    }
    out
}

/// Copies one escape sequence from the start of `rest`; returns how many bytes of `rest` it took.
fn repair_escape(rest: &str, out: &mut String) -> usize {
    let Some(kind) = rest[1..].chars().next() else {
        return 1;
    };
    let plain = 1 + kind.len_utf8();
    if kind != 'u' {
        out.push_str(&rest[..plain]);
        return plain;
    }
    match (hex4(rest), rest.get(6..).and_then(hex4)) {
        (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) => {
            let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
            out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
            12
        }
        (Some(0xD800..=0xDFFF), _) => {
            out.push('\u{FFFD}');
            6
        }
        _ => {
            out.push_str(&rest[..plain]);
            plain
        }
    }
}

/// The value of a `\u` escape at the start of `text`.
fn hex4(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn text(json: &[u8]) -> Option<String> {
        parse_tolerant::<Value>(json).ok()?.as_str().map(str::to_owned)
    }

    #[test]
    fn repairs_what_clients_send() {
        assert_eq!(text(b"\"a\x01b\nc\"").as_deref(), Some("a\u{1}b\nc"));
        assert_eq!(text(br#""half \ud83d pair""#).as_deref(), Some("half \u{FFFD} pair"));
        assert_eq!(text(br#""\ud83d\ude00""#).as_deref(), Some("😀"));
        assert_eq!(text(b"\"\x01\\ud83d\\ude00\"").as_deref(), Some("\u{1}😀"));
        assert_eq!(text(b"\"bad \xFF byte\"").as_deref(), Some("bad \u{FFFD} byte"));
        assert_eq!(text(b"\xEF\xBB\xBF\"bom\"").as_deref(), Some("bom"));
        assert_eq!(text(b"\"torn"), None);
    }

    #[test]
    fn t14_the_end_of_an_object_is_found_wherever_the_text_is_cut() {
        let end = |text: &str| ObjectEnd::default().find(text.as_bytes());
        for whole in [r"{}", "\u{feff} \n{\"a\": [1, {\"b\": 2}], \"c\": \"}{\"}", r#"{"a": "\\", "b": "\"}"}"#, "{\"a\": \"\u{1}\u{e9}\"}"]
        {
            assert_eq!(end(&format!("{whole} {{\"more\": 1}}")), Some(whole.len()), "{whole}");
            for cut in 0..whole.len() {
                let mut finder = ObjectEnd::default();
                assert_eq!(finder.find(&whole.as_bytes()[..cut]), None, "{whole} {cut}");
                assert_eq!(finder.find(whole.as_bytes()), Some(whole.len()), "{whole} {cut}");
            }
        }
        for none in ["", "  ", "{", "[{}]", "\"{}\"", "null", "x {}", "{\"a\": \"}"] {
            assert_eq!(end(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn t14_an_object_ends_where_the_parser_says(map in proptest::collection::btree_map(".{0,8}", ".{0,20}", 0..5), cut in 0usize..200) {
            let text = serde_json::to_vec(&map).unwrap_or_default();
            let mut finder = ObjectEnd::default();
            let cut = cut.min(text.len() - 1);
            prop_assert_eq!(finder.find(&text[..cut]), None);
            prop_assert_eq!(finder.find(&text), Some(text.len()));
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_tolerant::<Value>(&bytes);
            let _ = ObjectEnd::default().find(&bytes);
        }

        #[test]
        fn valid_json_is_untouched(s in ".*") {
            let json = serde_json::to_vec(&s).unwrap_or_default();
            prop_assert_eq!(text(&json), Some(s));
        }
    }
}
