//! Why a file cannot be used.

use std::fmt;

/// What is wrong with a file, and on which line.
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
