//! What went wrong, in a sentence that says what to do.

use std::fmt;

use crate::store;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(pub String);

pub type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    pub fn new(told: impl Into<String>) -> Self {
        Problem(told.into())
    }

    /// For `map_err`: what could not be done, and why.
    pub fn when<E: fmt::Display>(doing: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |e| Problem(format!("{doing}: {e}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl From<store::Error> for Problem {
    fn from(e: store::Error) -> Self {
        Problem(e.to_string())
    }
}
