//! How test programs print their results: a row for each of them. `scan.rs` reads the rows; Go, libtest and TAP need more than a row and have
//! files of their own.
//!
//! Every row was made from the real program's output, which is kept in `tests/test_output`.

/// A test program.
pub(super) struct Framework {
    #[cfg_attr(not(test), expect(dead_code, reason = "it is there for people, and for the tests"))]
    pub(super) name: &'static str,
    /// A run begins with it. A run that begins has to end with a sum.
    pub(super) start: Option<Line>,
    pub(super) sums: &'static [Sum],
    /// The last line of a sum that has several. None: each line is one.
    pub(super) ends: &'static [Line],
    /// The words beside the numbers of a sum. Others count for nothing.
    pub(super) words: &'static [(&'static str, Count)],
    /// Lines after which failures are listed (or not, after all). None: they may be anywhere.
    pub(super) sections: &'static [(Line, bool)],
    /// The file whose failures follow, where they don't name it.
    pub(super) heading: &'static [Line],
    /// The first one that fits counts.
    pub(super) failures: &'static [Failure],
}

/// A line that begins with the first (and with no more blanks than that, if it is all blanks), and has the second after it.
#[derive(Clone, Copy)]
pub(super) struct Line(pub(super) &'static str, pub(super) &'static str);

/// The line above, blank ones left out.
pub(super) enum After {
    Any,
    Line(Line),
    /// Anything, once the sum has begun.
    Sum,
    /// Anything, once a run has begun.
    Start,
}

/// A line with numbers.
pub(super) struct Sum {
    pub(super) after: After,
    pub(super) line: Line,
    pub(super) shape: Shape,
}

pub(super) enum Shape {
    /// `3 failed, 4 passed`: number and word, between separators.
    Numbers(&'static str),
    /// The same, and ` in 0.12s`.
    Timed(&'static str),
    /// `Failures: 3, Errors: 1`: word, sign and number, between commas.
    Named(&'static str),
    /// It says that there are no tests.
    Zero,
}

pub(super) enum Count {
    /// All tests, those that passed among them.
    Total,
    Passed,
    Failed,
    Skipped,
    /// A failure that is not one of a test.
    Outside,
}

/// A line that names a failure.
pub(super) struct Failure {
    pub(super) after: After,
    pub(super) line: Line,
    pub(super) name: Name,
    pub(super) is: Is,
}

pub(super) enum Name {
    /// The line, after what it begins with, up to the first of these that is not within brackets.
    Until(&'static [&'static str]),
    /// The same, without the line's number after the file.
    Test(&'static [&'static str]),
    /// What comes after this.
    Behind(&'static str),
    /// The same, below the heading.
    UnderHeading,
    /// The heading: the file as a whole.
    Heading,
    /// `2) outer`, and the inner parts on the next lines, the last one with a colon.
    Path,
    /// `2) name`
    Numbered,
    /// All of the line up to this.
    Line(&'static str),
    /// It looks like a failure, and is none.
    None,
}

/// What a failure is to the sum.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Is {
    /// A test that it counts.
    Test,
    /// It counts it beside the test that it belongs to.
    Part,
    /// It does not count it: a file that cannot be loaded, too little coverage.
    Outside,
}

use Count::{Failed, Outside, Passed, Skipped, Total};

const fn failure(start: &'static str, within: &'static str, name: Name, is: Is) -> Failure {
    Failure { after: After::Any, line: Line(start, within), name, is }
}

const fn sum(start: &'static str, within: &'static str, shape: Shape) -> Sum {
    Sum { after: After::Any, line: Line(start, within), shape }
}

const fn sum_below(above: &'static str, start: &'static str, shape: Shape) -> Sum {
    Sum { after: After::Line(Line(above, "")), line: Line(start, ""), shape }
}

const fn more(start: &'static str, shape: Shape) -> Sum {
    Sum { after: After::Sum, line: Line(start, ""), shape }
}

/// A row to start from.
const NEW: Framework = Framework { name: "", start: None, sums: &[], ends: &[], words: &[], sections: &[], heading: &[], failures: &[] };

const LISTED: Name = Name::Until(&[]);

#[rustfmt::skip]
pub(super) const FRAMEWORKS: &[Framework] = &[
    Framework {
        name: "pytest",
        start: Some(Line("=", " test session starts ")),
        sums: &[sum("=", " in ", Shape::Timed(", ")), sum("", " in ", Shape::Timed(", "))],
        words: &[
            ("passed", Passed), ("xpassed", Passed), ("failed", Failed), ("error", Outside), ("errors", Outside),
            ("skipped", Skipped), ("xfailed", Skipped),
        ],
        sections: &[(Line("=", " short test summary info "), true)],
        failures: &[
            failure("FAILED ", "", Name::Until(&[" - "]), Is::Test),
            failure("ERROR ", "", Name::Until(&[" - "]), Is::Test),
            failure("SUBFAILED", " ", Name::Until(&[" - "]), Is::Part),
            failure("SUBFAIL ", "", Name::Until(&[" - "]), Is::Part),
            failure("FAIL Required test coverage", "", Name::Line(" not reached"), Is::Outside),
        ],
        ..NEW
    },
    Framework {
        name: "unittest",
        sums: &[
            Sum { after: After::Line(Line("-----", "")), line: Line("Ran ", " in "), shape: Shape::Timed(", ") },
            more("FAILED (", Shape::Named("=")),
            more("OK (", Shape::Named("=")),
            more("NO TESTS RAN (", Shape::Named("=")),
        ],
        ends: &[Line("FAILED (", ""), Line("OK", ""), Line("NO TESTS RAN", "")],
        words: &[
            ("test", Total), ("tests", Total), ("failures", Failed), ("errors", Failed), ("unexpected successes", Failed),
            ("skipped", Skipped), ("expected failures", Skipped),
        ],
        failures: &[
            Failure { after: After::Line(Line("=====", "")), ..failure("FAIL: ", "", LISTED, Is::Test) },
            Failure { after: After::Line(Line("=====", "")), ..failure("ERROR: ", "", LISTED, Is::Test) },
            Failure { after: After::Line(Line("=====", "")), ..failure("UNEXPECTED SUCCESS: ", "", LISTED, Is::Test) },
        ],
        ..NEW
    },
    Framework {
        name: "jest",
        sums: &[sum_below("Test Suites: ", "Tests: ", Shape::Numbers(", ")), sum("No tests found, exiting with code ", "", Shape::Zero)],
        words: &[("passed", Passed), ("failed", Failed), ("skipped", Skipped), ("todo", Skipped)],
        // In colours there is a blank before it.
        heading: &[Line("FAIL ", ""), Line(" FAIL  ", "")],
        failures: &[
            failure("  ● Console", "", Name::None, Is::Test),
            failure("  ● Test suite failed to run", "", Name::Heading, Is::Outside),
            failure("  ● ", "", Name::UnderHeading, Is::Test),
            failure("Jest: ", " threshold ", Name::Line(" ("), Is::Outside),
        ],
        ..NEW
    },
    Framework {
        name: "vitest",
        start: Some(Line(" RUN ", " v")),
        sums: &[
            sum_below(" Test Files  ", "      Tests  ", Shape::Numbers(" | ")),
            more("     Errors  ", Shape::Numbers(" | ")),
            sum("No test files found, exiting with code ", "", Shape::Zero),
        ],
        words: &[
            ("passed", Passed), ("failed", Failed), ("expected fail", Skipped), ("skipped", Skipped), ("todo", Skipped),
            ("error", Outside), ("errors", Outside),
        ],
        failures: &[
            failure(" FAIL  ", " > ", LISTED, Is::Test),
            failure(" FAIL  ", "", Name::Until(&[" [ "]), Is::Outside),
            failure("ERROR: Coverage for ", "", Name::Line(" ("), Is::Outside),
        ],
        ..NEW
    },
    Framework {
        name: "mocha",
        sums: &[
            sum("  ", " passing (", Shape::Numbers(", ")),
            more("  ", Shape::Numbers(", ")),
        ],
        words: &[("passing", Passed), ("failing", Failed), ("pending", Skipped)],
        sections: &[(Line("  ", " failing"), true)],
        failures: &[failure("  ", ") ", Name::Path, Is::Test)],
        ..NEW
    },
    Framework {
        name: "node",
        sums: &[sum("ℹ tests ", "", Shape::Zero), more("ℹ ", Shape::Named(" "))],
        ends: &[Line("ℹ duration_ms ", "")],
        words: &[("pass", Passed), ("fail", Failed), ("cancelled", Failed), ("skipped", Skipped), ("todo", Skipped)],
        sections: &[(Line("✖ failing tests:", ""), true)],
        failures: &[failure("✖ ", "", Name::Until(&[" ("]), Is::Test)],
        ..NEW
    },
    Framework {
        name: "bun",
        start: Some(Line("bun test v", "")),
        sums: &[sum(" ", " pass", Shape::Numbers(", ")), more(" ", Shape::Numbers(", "))],
        ends: &[Line("Ran ", " across ")],
        words: &[("pass", Passed), ("fail", Failed), ("skip", Skipped), ("todo", Skipped), ("error", Outside), ("errors", Outside)],
        failures: &[failure("(fail) ", "", Name::Until(&[" ["]), Is::Test)],
        ..NEW
    },
    Framework {
        name: "deno",
        sums: &[sum("ok | ", " passed", Shape::Numbers(" | ")), sum("FAILED | ", "", Shape::Numbers(" | "))],
        words: &[("passed", Passed), ("failed", Failed), ("ignored", Skipped)],
        sections: &[(Line(" FAILURES", ""), true)],
        failures: &[failure("", " => ./", Name::Until(&[" => "]), Is::Test)],
        ..NEW
    },
    Framework {
        name: "Playwright",
        start: Some(Line("Running ", " using ")),
        sums: &[
            Sum { after: After::Start, ..sum("  ", " failed", Shape::Numbers(", ")) },
            Sum { after: After::Start, ..sum("  ", " flaky", Shape::Numbers(", ")) },
            Sum { after: After::Start, ..sum("  ", " skipped", Shape::Numbers(", ")) },
            Sum { after: After::Start, ..sum("  ", " did not run", Shape::Numbers(", ")) },
            Sum { after: After::Start, ..sum("  ", " passed (", Shape::Numbers(", ")) },
        ],
        words: &[("passed", Passed), ("flaky", Passed), ("failed", Failed), ("skipped", Skipped), ("did not run", Skipped)],
        sections: &[(Line("  ", " failed"), true), (Line("  ", " flaky"), false), (Line("  ", " skipped"), false)],
        failures: &[failure("    ", " › ", Name::Test(&[" ──"]), Is::Test)],
        ..NEW
    },
    Framework {
        name: "nextest",
        start: Some(Line("    Starting ", " across ")),
        sums: &[sum_below("────", "     Summary [", Shape::Numbers(", "))],
        words: &[
            ("passed", Passed), ("failed", Failed), ("exec failed", Failed), ("timed out", Failed), ("skipped", Skipped),
        ],
        sections: &[(Line("     Summary [", ""), true)],
        failures: &[
            failure("        FAIL [", "] ", Name::Behind("] "), Is::Test),
            failure("  TRY ", " FAIL [", Name::Behind("] "), Is::Test),
            failure("     TIMEOUT [", "] ", Name::Behind("] "), Is::Test),
            failure("  TRY ", " TMT [", Name::Behind("] "), Is::Test),
            failure("     SIG", " [", Name::Behind("] "), Is::Test),
            failure("  TRY ", " SIG", Name::Behind("] "), Is::Test),
        ],
        ..NEW
    },
    Framework {
        name: "RSpec",
        sums: &[Sum { after: After::Line(Line("Finished in ", "")), ..sum("", " example", Shape::Numbers(", ")) }],
        words: &[
            ("example", Total), ("examples", Total), ("failure", Failed), ("failures", Failed), ("pending", Skipped),
            ("error occurred outside of examples", Outside), ("errors occurred outside of examples", Outside),
        ],
        sections: &[(Line("Failed examples:", ""), true)],
        failures: &[failure("rspec ", " # ", Name::Behind(" # "), Is::Test)],
        ..NEW
    },
    Framework {
        name: "ExUnit",
        sums: &[
            Sum { after: After::Line(Line("Finished in ", "")), ..sum("", "test", Shape::Numbers(", ")) },
            Sum { after: After::Line(Line("Finished in ", "")), ..sum("", " propert", Shape::Numbers(", ")) },
            sum("There are no tests to run", "", Shape::Zero),
        ],
        words: &[
            ("test", Total), ("tests", Total), ("doctest", Total), ("doctests", Total), ("property", Total), ("properties", Total),
            ("failure", Failed), ("failures", Failed), ("invalid", Failed), ("skipped", Skipped), ("excluded", Skipped),
        ],
        failures: &[
            failure("  ", ") test ", Name::Numbered, Is::Test),
            failure("  ", ") doctest ", Name::Numbered, Is::Test),
            failure("  ", ") property ", Name::Numbered, Is::Test),
            failure("  ", ": failure on setup_all ", Name::Numbered, Is::Test),
        ],
        ..NEW
    },
    Framework {
        name: "PHPUnit",
        start: Some(Line("PHPUnit ", " by Sebastian Bergmann")),
        sums: &[
            sum("OK (", " assertion", Shape::Numbers(", ")),
            sum("", ", Assertions: ", Shape::Named(": ")),
            sum("No tests executed!", "", Shape::Zero),
        ],
        words: &[
            ("test", Total), ("tests", Total), ("Tests", Total), ("Failures", Failed), ("Errors", Failed), ("Warnings", Outside),
            ("Skipped", Skipped), ("Incomplete", Skipped),
        ],
        sections: &[
            (Line("There was", " failure"), true), (Line("There were", " failures"), true), (Line("There was", " error"), true),
            (Line("There was", " warning"), true), (Line("There ", ":"), false),
        ],
        failures: &[failure("", ") ", Name::Numbered, Is::Test)],
        ..NEW
    },
    Framework {
        name: "Surefire",
        start: Some(Line("[INFO]  T E S T S", "")),
        sums: &[
            sum("[INFO] ", ", Skipped: ", Shape::Named(": ")),
            sum("[WARNING] ", ", Skipped: ", Shape::Named(": ")),
            sum("[ERROR] ", ", Skipped: ", Shape::Named(": ")),
        ],
        words: &[("Tests run", Total), ("Failures", Failed), ("Errors", Failed), ("Skipped", Skipped)],
        failures: &[
            failure("[ERROR] Tests run:", "", Name::None, Is::Test),
            failure("[ERROR] ", " <<< ", Name::Until(&[" -- Time elapsed", "  Time elapsed"]), Is::Test),
        ],
        ..NEW
    },
];
