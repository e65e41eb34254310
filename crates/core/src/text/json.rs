//! JSON as clients really send it: a strict parse first, then one tolerant retry.
//!
//! Agents pass on whatever a model or a terminal produced: raw control characters inside strings, half a surrogate pair, bytes that are
//! not UTF-8. A strict parser rejects the whole document for one such byte, and a rejected hook event used to be how loops died.

use serde::de::DeserializeOwned;

/// Parses `bytes`; where that fails, repairs what is repairable and tries once more. The error is that of the strict parse.
pub fn parse_tolerant<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    serde_json::from_slice(bytes).or_else(|strict| serde_json::from_str(&repair(bytes)).map_err(|_| strict))
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

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_tolerant::<Value>(&bytes);
        }

        #[test]
        fn valid_json_is_untouched(s in ".*") {
            let json = serde_json::to_vec(&s).unwrap_or_default();
            prop_assert_eq!(text(&json), Some(s));
        }
    }
}
