//! Which lines of a command's output say what is wrong: the habits of common compilers, linters and test programs in one table.

/// How much a line that looks like an error tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The error itself, mostly with its place.
    Why,
    /// Only that something failed.
    Which,
}

/// One habit.
#[derive(Debug, PartialEq)]
pub(super) struct Habit {
    seen: Seen,
    pub(super) rank: Rank,
    /// How many of the lines below belong to it: the place, the two sides of a comparison.
    pub(super) below: usize,
    /// The last line that was not indented belongs to it: the file's name.
    pub(super) has_heading: bool,
}

/// How a line is recognised. Blanks at its start don't matter, except for `Margin`.
#[derive(Debug, PartialEq)]
enum Seen {
    Start(&'static str),
    Within(&'static str),
    End(&'static str),
    /// At the very start of the line.
    Margin(&'static str),
    /// `src/main.go:12:3: …`
    Place,
    /// `12:3  error  …`
    PlaceAndError,
    /// `  1) adds`, indented.
    Numbered,
}

use Seen::{End, Margin, Numbered, Place, PlaceAndError, Start, Within};

const fn why(seen: Seen, below: usize) -> Habit {
    Habit { seen, rank: Rank::Why, below, has_heading: false }
}

const fn which(seen: Seen) -> Habit {
    Habit { seen, rank: Rank::Which, below: 0, has_heading: false }
}

const HABITS: &[Habit] = &[
    why(Start("error["), 1),                                                     // rustc
    why(Start("error:"), 1),                                                     // cargo and many more
    why(Within("error TS"), 0),                                                  // tsc
    why(Within(": error:"), 0),                                                  // C, mypy
    why(Within("): error "), 0),                                                 // MSBuild
    why(Within("fatal error"), 0),                                               // C
    why(Start("fatal:"), 0),                                                     // git
    why(Start("[ERROR]"), 0),                                                    // Maven
    why(Within("panicked at"), 3),                                               // Rust
    why(Start("panic:"), 0),                                                     // Go
    why(Start("--- FAIL"), 2),                                                   // go test
    why(Margin("E   "), 0),                                                      // pytest
    why(Within("AssertionError"), 0),                                            // Python, Node
    why(Within("Error:"), 1),                                                    // Python, JavaScript
    why(Start("● "), 3),                                                         // jest
    Habit { seen: PlaceAndError, rank: Rank::Why, below: 0, has_heading: true }, // eslint
    why(Place, 0),                                                               // go build, go vet, ruff
    which(Start("Traceback")),                                                   // Python
    which(End("FAILED")),                                                        // libtest
    which(Start("FAILED")),                                                      // pytest
    which(Start("FAIL ")),                                                       // go test, jest, vitest, nextest
    which(Start("FAIL: ")),                                                      // unittest
    which(Start("(fail) ")),                                                     // bun
    which(Start("rspec ./")),                                                    // RSpec
    why(Start("Failed asserting"), 0),                                           // PHPUnit
    which(Numbered),                                                             // mocha
    which(Start("not ok ")),                                                     // TAP
    which(Start("✗")),
    which(Start("✕")),
    which(Start("×")),
    which(Start("✖")),
    which(Within(": *** ")), // make
];

/// Words of lines that only warn, or that repeat what another line says better.
const NO_ERRORS: &[&str] = &[
    ": warning:",
    ": note:",
    "no error",
    "No error",
    "error: test failed, to rerun",
    "error: could not compile",
    "error: aborting due to",
    "● Console",
    "# TODO",
    "name: 'AssertionError'",
];

/// Starts of lines that say nothing about the work: a package manager's news.
const NOISE_STARTS: &[&str] =
    &["npm notice", "node:internal/", "at node:internal/", "at new Promise (<anonymous>)", "at async Promise.all"];

/// Parts of such lines: the inside of a test program.
const NOISE: &[&str] = &["(node:internal/", "(node:async_hooks", "(node:events"];

/// Starts of lines that tell what was expected, what came instead, and where.
const TELLING: &[&str] = &["+", "-", "expected:", "actual:", "Expected", "Received", "location:", "error: '"];

/// Starts of lines that warn, or that tell of something that passed.
const NO_ERROR_STARTS: &[&str] = &["warning", "Warning", "ok ", "✓", "--- PASS"];

/// The words before and after a number of errors: a 0 there is good news.
const COUNTS: &[(&str, &str)] = &[("", " error"), ("error: ", ""), ("errors: ", ""), ("Error: ", ""), ("Errors: ", "")];

/// Whether a line says nothing about the work.
pub(super) fn is_noise(line: &str) -> bool {
    let trimmed = line.trim_start();
    // `> slug@1.0.0 test`, which npm puts above what it runs.
    let is_banner = line.strip_prefix("> ").is_some_and(|rest| rest.split(' ').next().is_some_and(|name| name.contains('@')));
    is_banner || NOISE_STARTS.iter().any(|words| trimmed.starts_with(words)) || NOISE.iter().any(|words| line.contains(words))
}

/// Whether a line some way below an error tells more about it: a side of the comparison.
pub(super) fn is_telling(line: &str) -> bool {
    let trimmed = line.trim_start();
    TELLING.iter().any(|words| trimmed.starts_with(words)) && !trimmed.starts_with("---") && !trimmed.starts_with("+++")
}

/// Whether it is the place of an error in a list of calls: `at add (shop.js:3:32)`, `❯ shop.js:3:42`.
pub(super) fn is_place_below(line: &str) -> bool {
    let trimmed = line.trim_start();
    let is_call = trimmed.starts_with("at ") || trimmed.starts_with("❯ ");
    is_call && trimmed.trim_end_matches(')').rsplit(':').next().is_some_and(|column| numbers(column, 1))
}

/// The habit that a line follows, if it is an error.
pub(super) fn habit(line: &str) -> Option<&'static Habit> {
    let trimmed = line.trim_start();
    let habit = HABITS.iter().find(|habit| habit.seen.is_in(line, trimmed))?;
    let is_nothing = trimmed.ends_with("... ok")
        || NO_ERROR_STARTS.iter().any(|words| trimmed.starts_with(words))
        || NO_ERRORS.iter().any(|words| line.contains(words))
        || COUNTS.iter().any(|(before, after)| counts_none(line, before, after));
    (!is_nothing).then_some(habit)
}

impl Seen {
    fn is_in(&self, line: &str, trimmed: &str) -> bool {
        match self {
            Start(words) => trimmed.starts_with(words),
            Within(words) => trimmed.contains(words),
            End(words) => trimmed.ends_with(words),
            Margin(words) => line.starts_with(words),
            Place => trimmed.split_once(": ").is_some_and(|(place, _)| is_place(place)),
            Numbered => line.starts_with("  ") && trimmed.split_once(") ").is_some_and(|(number, _)| numbers(number, 1)),
            PlaceAndError => {
                let mut words = trimmed.split_ascii_whitespace();
                words.next().is_some_and(|place| numbers(place, 2)) && words.next() == Some("error")
            }
        }
    }
}

/// `name:12:3`, and the name has a dot.
fn is_place(text: &str) -> bool {
    let mut parts = text.rsplitn(3, ':');
    let (column, line, name) = (parts.next(), parts.next(), parts.next());
    let is_number = |part: Option<&str>| part.is_some_and(|part| numbers(part, 1));
    is_number(column) && is_number(line) && name.is_some_and(|name| name.contains('.') && !name.contains(char::is_whitespace))
}

/// `12:3` for two.
fn numbers(text: &str, how_many: usize) -> bool {
    text.split(':').count() == how_many && text.split(':').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// The number 0 between these two, and no digit more: `10 errors` are some.
fn counts_none(line: &str, before: &str, after: &str) -> bool {
    line.match_indices('0').any(|(at, _)| {
        let (left, right) = (&line[..at], &line[at + 1..]);
        let stands_alone =
            !left.ends_with(|c: char| c.is_alphanumeric() || c == '.') && !right.starts_with(|c: char| c.is_alphanumeric() || c == '.');
        stands_alone && left.ends_with(before) && right.starts_with(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_3_errors_of_common_tools_are_seen() {
        for line in [
            "error[E0308]: mismatched types",
            "error: expected `;`, found `}`",
            "error: aborting, 10 errors",
            "error: unused variable, because warnings are denied",
            "test tests::adds ... FAILED",
            "FAILED tests/test_calc.py::test_add - assert 5 == 4",
            "FAIL ./sum.test.js",
            "thread 'tests::adds' (4711) panicked at src/lib.rs:12:9:",
            "tests/test_calc.py:6: AssertionError",
            "E       assert 5 == 4",
            "TypeError: x is not a function",
            "Traceback (most recent call last):",
            "  ✗ adds",
            "  ✕ adds 2 + 2 (3 ms)",
            " × adds",
            "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
            "src/a.ts:3:5 - error TS2322: Type 'string' is not assignable to type 'number'.",
            "  12:3  error  'x' is not defined  no-undef",
            "--- FAIL: TestAdd (0.00s)",
            " FAIL  vit1/shop.test.mjs > adds",
            "        FAIL [   0.450s] (2/4) shop tests::prints",
            "FAIL: test_b (test_x.T.test_b)",
            "(fail) cart > adds [0.08ms]",
            "rspec ./shop_spec.rb:3 # Shop adds",
            "Failed asserting that 2 is identical to 1.",
            "not ok 2 - subtracts",
            "make: *** [Makefile:3: all] Error 1",
            "main.c:3:5: error: expected ';'",
            "Program.cs(3,5): error CS1002: ; expected",
            "./calc.go:5:9: undefined: foo",
        ] {
            assert!(habit(line).is_some(), "{line}");
        }
    }

    #[test]
    fn good_news_warnings_and_prose_are_no_errors() {
        for line in [
            "Found 0 errors.",
            "error: 0, warning: 2",
            "ERROR summary: 0 errors from 0 contexts",
            "lint: no errors found",
            "src/a.ts: 0 errors",
            "test parse::error_FAILED ... ok",
            "test errors::FAILED ... ok",
            "  3:7  warning  Unexpected console statement  no-console",
            "x.c:3:5: warning: unused variable",
            "test result: FAILED. 1 passed; 1 failed",
            "error: test failed, to rerun pass `--lib`",
            "Changed: error handling",
            "it failed to fail",
            "not ok 4 - divides # TODO by zero",
            "********************",
            "at 12:30 an error was mended",
            "",
        ] {
            assert_eq!(habit(line), None, "{line}");
        }
    }
}
