//! Which tests failed, told by the test program itself, so that failures from before the loop can be told apart from new ones.
//!
//! Three sources: what libtest prints (`cargo test`), TAP (`node --test`, `bats`, `prove`), and a `JUnit` file. Each of them carries a sum, and
//! names count only if they agree with it: half a list of failures would make new failures look old. In doubt there is no result at all.
//! (Tests that never ran are in no sum: `cargo test` stops after the first test program that fails, unless it gets `--no-fail-fast`.)

mod junit;
mod libtest;
mod tap;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::junit::of_junit;
use self::{libtest::Libtest, tap::Tap};
use crate::{gate::TestCounts, text::PlainLines};

/// With more failures than this nothing is told apart.
const MOST_FAILED: usize = 10_000;

/// A name that fails more often than this is no name.
const MOST_ALIKE: usize = 100;

/// Of a longer name only the start counts.
const LONGEST_NAME: usize = 300;

/// No line that counts is longer.
const LONGEST_LINE: usize = 4000;

/// The results that a test program reports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestResults {
    pub passed: u64,
    pub ignored: u64,
    /// A name that fails more than once, in two test programs for instance, comes again as `name (2)`.
    pub failed: BTreeSet<String>,
}

/// The failures of a run, compared with those of the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split<'a> {
    pub new: Vec<&'a str>,
    pub old: Vec<&'a str>,
}

impl TestResults {
    /// Which of the failures were not there at the start, and which were.
    pub fn split(&self, at_start: &BTreeSet<String>) -> Split<'_> {
        let (old, new) = self.failed.iter().map(String::as_str).partition(|name| at_start.contains(*name));
        Split { new, old }
    }

    /// In numbers, compared with what failed at the start, where that is known.
    pub fn counts(&self, at_start: Option<&BTreeSet<String>>) -> TestCounts {
        let failed = self.failed.len() as u64;
        let old = at_start.map(|names| self.split(names).old.len() as u64);
        TestCounts { total: self.passed.saturating_add(failed), failed, old: old.or((failed == 0).then_some(0)) }
    }

    /// Notes a failure; `None` if there are too many to tell them apart.
    fn fail(&mut self, name: &str) -> Option<()> {
        if self.failed.len() >= MOST_FAILED {
            return None;
        }
        let first = bounded(name, "");
        if self.failed.insert(first) {
            return Some(());
        }
        let again = (2..=MOST_ALIKE).map(|n| bounded(name, &format!(" ({n})"))).find(|again| !self.failed.contains(again))?;
        self.failed.insert(again);
        Some(())
    }

    fn add(&mut self, other: &TestResults) -> Option<()> {
        self.passed = self.passed.checked_add(other.passed)?;
        self.ignored = self.ignored.checked_add(other.ignored)?;
        other.failed.iter().try_for_each(|name| self.fail(name))
    }
}

/// The name without control characters, at most as long as names may be.
fn bounded(name: &str, suffix: &str) -> String {
    let clean = || name.chars().map(|c| if c.is_control() { ' ' } else { c });
    let room = LONGEST_NAME - suffix.len();
    let mut out: String = if clean().nth(room).is_none() { clean().collect() } else { clean().take(room - 1).chain(['…']).collect() };
    out.push_str(suffix);
    out
}

/// Reads results out of a test program's output, in any pieces. Give it one stream, or both one after the other.
pub struct Reader {
    lines: PlainLines,
    libtest: Libtest,
    tap: Tap,
}

impl Default for Reader {
    fn default() -> Self {
        Reader { lines: PlainLines::new(LONGEST_LINE), libtest: Libtest::default(), tap: Tap::default() }
    }
}

impl Reader {
    pub fn feed(&mut self, bytes: &[u8]) {
        let Reader { lines, libtest, tap } = self;
        lines.feed(bytes, &mut |line| {
            libtest.take(line);
            tap.take(line);
        });
    }

    /// `None`: the output has no results, or they cannot be trusted to be complete.
    pub fn finish(self) -> Option<TestResults> {
        let Reader { mut lines, mut libtest, mut tap } = self;
        lines.finish(&mut |line| {
            libtest.take(line);
            tap.take(line);
        });
        match (libtest.finish(), tap.finish()) {
            (Heard::Nothing, Heard::Nothing) | (Heard::Confused, _) | (_, Heard::Confused) => None,
            (Heard::Results(results), Heard::Nothing) | (Heard::Nothing, Heard::Results(results)) => Some(results),
            (Heard::Results(mut results), Heard::Results(more)) => results.add(&more).map(|()| results),
        }
    }
}

/// The results of one format.
#[derive(Debug, PartialEq)]
enum Heard {
    Nothing,
    /// It was there, and is not complete, or contradicts itself.
    Confused,
    Results(TestResults),
}
