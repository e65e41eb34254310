//! What went wrong, in a sentence that says what to do.

use std::fmt;

use ralph_engine::sys::secrets;

use crate::store;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(pub String, Kind);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Lasting,
    /// The store or the repository cannot be asked now, or the disk is full.
    Passing,
}

pub type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    pub fn new(told: impl Into<String>) -> Self {
        // A program's last words may be in it, and it is shown and written down.
        let told = secrets::mask(&told.into());
        let kind = if tells_of_a_full_disk(&told) { Kind::Passing } else { Kind::Lasting };
        Problem(told, kind)
    }

    /// What waiting may help against.
    pub fn passing(told: impl Into<String>) -> Self {
        Problem(told.into(), Kind::Passing)
    }

    /// Whether waiting may help.
    pub fn is_passing(&self) -> bool {
        self.1 == Kind::Passing
    }

    /// For `map_err`: what could not be done, and why.
    pub fn when<E: fmt::Display>(doing: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |e| Problem::new(format!("{doing}: {e}"))
    }
}

/// Whether a program's words say that there is no space left. The system has the same words for all programs.
pub(crate) fn tells_of_a_full_disk(words: &str) -> bool {
    ["No space left on device", "Disk quota exceeded", "not enough space on the disk"].iter().any(|told| words.contains(told))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl From<store::Error> for Problem {
    fn from(e: store::Error) -> Self {
        let passes = matches!(e, store::Error::Unreachable(_) | store::Error::Full(_));
        Problem(e.to_string(), if passes { Kind::Passing } else { Kind::Lasting })
    }
}
