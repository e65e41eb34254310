//! Which tests failed, told by the test program itself, so that failures from before the loop can be told apart from new ones.
//!
//! What a command prints is read by libtest (`cargo test`), TAP (`node --test`, `bats`, `prove`), Go and the table of `frameworks.rs` (pytest, jest and
//! the like), each for itself, and the results add up; a `JUnit` file counts instead. Each of them carries a sum, and names count only if they
//! agree with it: half a list of failures would make new failures look old. In doubt there is no result at all.
//! (Tests that never ran are in no sum: `cargo test` stops after the first test program that fails, unless it gets `--no-fail-fast`.)

mod frameworks;
#[cfg(test)]
mod frameworks_tests;
mod go;
mod junit;
mod libtest;
mod scan;
mod tap;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use self::{
    go::Go,
    libtest::Libtest,
    scan::{Place, Scan},
    tap::Tap,
};
use crate::{
    gate::{TestCounts, output::Stream},
    text::PlainLines,
};

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
    /// Failures that were counted and not named.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub unnamed: u64,
    /// How many of the failures are not tests that ran: parts of a test, files that cannot be loaded, packages that don't build.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub outside: u64,
    /// Packages that ran and whose tests were not counted.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub packages: u64,
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

    /// Whether every failure has a name.
    pub fn are_all_named(&self) -> bool {
        self.unnamed == 0
    }

    pub fn failures(&self) -> u64 {
        self.unnamed.saturating_add(self.failed.len() as u64)
    }

    /// How many tests ran, or packages where those were counted: the same number whether they pass or fail.
    pub fn ran(&self) -> u64 {
        self.passed.saturating_add(self.packages).saturating_add(self.failures()).saturating_sub(self.outside)
    }

    /// In numbers, compared with what failed at the start, where that is known. `None`: the tests were not counted.
    pub fn counts(&self, at_start: Option<&BTreeSet<String>>) -> Option<TestCounts> {
        let failed = self.failures();
        let old = at_start.filter(|_| self.are_all_named()).map(|names| self.split(names).old.len() as u64);
        let counts = TestCounts { total: self.passed.saturating_add(failed), failed, old: old.or((failed == 0).then_some(0)) };
        (self.packages == 0).then_some(counts)
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

    /// Adds the results of another program; `None` if there are too many failures to tell them apart.
    pub fn add(&mut self, other: &TestResults) -> Option<()> {
        self.passed = self.passed.checked_add(other.passed)?;
        self.ignored = self.ignored.checked_add(other.ignored)?;
        self.unnamed = self.unnamed.checked_add(other.unnamed)?;
        self.outside = self.outside.checked_add(other.outside)?;
        self.packages = self.packages.checked_add(other.packages)?;
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

/// Reads results out of a command's output, in any pieces.
#[derive(Default)]
pub struct Reader {
    out: Side,
    err: Side,
    libtest: Libtest,
    tap: Tap,
    go: Go,
    scan: Scan,
}

/// One stream.
struct Side {
    lines: PlainLines,
    place: Place,
}

impl Default for Side {
    fn default() -> Self {
        Side { lines: PlainLines::new(LONGEST_LINE), place: Place::default() }
    }
}

impl Reader {
    pub fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        let Reader { out, err, libtest, tap, go, scan } = self;
        match stream {
            Stream::Out => out.lines.feed(bytes, &mut |line| {
                libtest.take(line);
                tap.take(line);
                go.take(line);
                scan.take(line, &mut out.place);
            }),
            Stream::Err => err.lines.feed(bytes, &mut |line| scan.take(line, &mut err.place)),
        }
    }

    /// `None`: the output has no results, or they cannot be trusted to be complete.
    pub fn finish(mut self) -> Option<TestResults> {
        // The end of the last line, where there is none.
        self.feed(Stream::Out, b"\n");
        self.feed(Stream::Err, b"\n");
        let Reader { libtest, tap, go, scan, .. } = self;
        let mut total: Option<TestResults> = None;
        for heard in [libtest.finish(), tap.finish(), go.finish()].into_iter().chain(scan.finish()) {
            match heard {
                Heard::Nothing => {}
                Heard::Confused => return None,
                Heard::Results(results) => total.get_or_insert_default().add(&results)?,
            }
        }
        total
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
