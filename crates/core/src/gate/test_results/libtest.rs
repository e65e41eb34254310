//! The output of Rust's test programs.
//!
//! The sum at the end of each program counts; the names come from the lines of failed tests or from the list of failures before the sum
//! (with `--quiet` there is only that). Several programs may run one after the other.

use super::{Heard, TestResults};

#[derive(Default)]
pub(super) struct Libtest {
    total: TestResults,
    programs: u64,
    is_confused: bool,
    now: Option<Program>,
}

/// One test program that has not told its sum yet.
#[derive(Default)]
struct Program {
    announced: u64,
    passed: u64,
    ignored: u64,
    /// From the lines of the tests.
    failed: TestResults,
    /// From the list after the last `failures:`.
    listed: TestResults,
    is_in_list: bool,
}

impl Libtest {
    pub(super) fn take(&mut self, line: &str) {
        if let Some(announced) = running(line) {
            // One within another: the output of a test that runs tests.
            self.is_confused |= self.now.is_some();
            self.now = Some(Program { announced, ..Program::default() });
        } else if let Some(sum) = line.strip_prefix("test result: ") {
            self.end(sum);
        } else if let Some(program) = &mut self.now {
            self.is_confused |= program.take(line).is_none();
        }
    }

    fn end(&mut self, sum: &str) {
        let Some(sum) = Sum::parse(sum) else { return };
        let results = self.now.take().and_then(|program| program.agreed(&sum));
        let added = results.and_then(|results| self.total.add(&results));
        self.is_confused |= added.is_none();
        self.programs += 1;
    }

    pub(super) fn finish(self) -> Heard {
        if self.is_confused || self.now.is_some() {
            Heard::Confused
        } else if self.programs == 0 {
            Heard::Nothing
        } else {
            Heard::Results(self.total)
        }
    }
}

impl Program {
    fn take(&mut self, line: &str) -> Option<()> {
        if line == "failures:" {
            self.listed = TestResults::default();
            self.is_in_list = true;
        } else if let Some(name) = line.strip_prefix("    ").filter(|_| self.is_in_list) {
            self.listed.fail(name)?;
        } else if !line.is_empty() {
            self.is_in_list = false;
            self.test(line)?;
        }
        Some(())
    }

    /// `test NAME ... ok`, and perhaps ` <0.1s>` or a reason.
    fn test(&mut self, line: &str) -> Option<()> {
        let Some((name, outcome)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) else { return Some(()) };
        match outcome.split([' ', ',']).next() {
            Some("ok") => self.passed += 1,
            Some("ignored") => self.ignored += 1,
            Some("FAILED") => return self.failed.fail(without_mode(name)),
            _ => {}
        }
        Some(())
    }

    /// The results, if what was seen can be what the sum counts. Lines of tests may be missing, because tests print in between.
    fn agreed(self, sum: &Sum) -> Option<TestResults> {
        let is_complete = |failed: &TestResults| u64::try_from(failed.failed.len()) == Ok(sum.failed);
        let failed = [self.listed, self.failed].into_iter().find(is_complete)?;
        let all = sum.passed.checked_add(sum.failed)?.checked_add(sum.ignored)?.checked_add(sum.measured)?;
        let agrees = all == self.announced && self.passed <= sum.passed && self.ignored <= sum.ignored;
        agrees.then_some(TestResults { passed: sum.passed, ignored: sum.ignored, ..failed })
    }
}

/// `running 3 tests`.
fn running(line: &str) -> Option<u64> {
    let (number, word) = line.strip_prefix("running ")?.split_once(' ')?;
    let number = number.parse().ok()?;
    (word == if number == 1 { "test" } else { "tests" }).then_some(number)
}

/// How a test runs is said after its name there, and not in the list of failures.
fn without_mode(name: &str) -> &str {
    [" - should panic", " - compile fail", " - compile"].into_iter().find_map(|mode| name.strip_suffix(mode)).unwrap_or(name)
}

/// `FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
#[derive(Default)]
struct Sum {
    passed: u64,
    failed: u64,
    ignored: u64,
    measured: u64,
}

impl Sum {
    fn parse(text: &str) -> Option<Sum> {
        let (verdict, counts) = text.split_once(". ")?;
        let mut counts = counts.split("; ");
        let mut next = |word: &str| counts.next()?.strip_suffix(word)?.strip_suffix(' ')?.parse().ok();
        let sum = Sum { passed: next("passed")?, failed: next("failed")?, ignored: next("ignored")?, measured: next("measured")? };
        (verdict == if sum.failed == 0 { "ok" } else { "FAILED" }).then_some(sum)
    }
}
