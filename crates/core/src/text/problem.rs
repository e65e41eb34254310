//! Why a file cannot be used.

use std::fmt;

use super::find::count_byte;

/// A mistake in a file, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1, where a line can be named.
    pub line: Option<usize>,
    pub what: String,
}

impl Problem {
    pub fn new(line: impl Into<Option<usize>>, what: impl Into<String>) -> Self {
        Problem { line: line.into(), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Problem {}

/// The line of a byte, from 1.
pub(crate) fn line_of(text: &[u8], at: usize) -> usize {
    1 + count_byte(b'\n', &text[..at.min(text.len())])
}

/// A whole file as text.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|e| Problem::new(line_of(bytes, e.valid_up_to()), "not UTF-8 text"))
}

/// The text of a file after its byte order mark, if it has one.
pub(crate) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
