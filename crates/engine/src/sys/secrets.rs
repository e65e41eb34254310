//! Masking with the secrets of this process's environment. Everything that gates, agents and events say goes through here before it is written or sent.

use std::sync::OnceLock;

use ralph_core::text::{self, Masking, Secrets};

use crate::sys::env;

/// How much of a text is masked around the part that is shown: a secret that is cut in the middle is not recognised.
const AROUND: usize = 16 << 10;

/// The values of variables whose names say that they are secret.
pub fn own() -> &'static Secrets {
    static OWN: OnceLock<Secrets> = OnceLock::new();
    OWN.get_or_init(|| Secrets::of(env::all()))
}

/// A text without its secrets.
pub fn mask(text: &str) -> String {
    own().mask(text).into_owned()
}

/// The same for lines of JSON, and for bytes that need not be text.
pub(crate) fn mask_bytes(bytes: &[u8]) -> Vec<u8> {
    own().mask_bytes(bytes)
}

/// For what comes in parts.
pub(crate) fn masking() -> Masking {
    Masking::new(own())
}

/// The first `max` characters, on one line.
pub(crate) fn opening(text: &str, max: usize) -> String {
    text::opening(&mask(&text[..text.floor_char_boundary(4 * max + AROUND)]), max)
}

/// The last `max` characters, on one line.
pub(crate) fn excerpt(text: &str, max: usize) -> String {
    let from = text.ceil_char_boundary(text.len().saturating_sub(4 * max + AROUND));
    text::excerpt(&mask(&text[from..]), max)
}
