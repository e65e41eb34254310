//! Fields of the client's lines, which may be missing or of another kind.

use serde_json::Value;

/// So much of the end of a message is kept; no model writes longer ones.
const MOST_TEXT: usize = 1 << 20;

/// The end of a text, as much as is kept.
pub(super) fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MOST_TEXT))..]
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

pub(super) fn status(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|status| u16::try_from(status).ok())
}

/// A number that may be written with a fraction.
pub(super) fn whole(value: &Value) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let number = value.as_f64().unwrap_or(0.0) as u64;
    number
}
