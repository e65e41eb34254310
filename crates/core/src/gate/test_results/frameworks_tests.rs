//! The table against what the real programs print: their outputs are kept in `tests/test_output`, one file for each stream.

use std::{collections::BTreeSet, path::PathBuf};

use proptest::prelude::*;

use super::{frameworks::FRAMEWORKS, *};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/test_output")
}

/// Both streams of a case.
fn streams(case: &str) -> [(Stream, Vec<u8>); 2] {
    [(Stream::Out, "out"), (Stream::Err, "err")]
        .map(|(stream, end)| (stream, std::fs::read(folder().join(format!("{case}.{end}"))).unwrap_or_default()))
}

fn read(case: &str) -> Option<TestResults> {
    let mut reader = Reader::default();
    for (stream, bytes) in streams(case) {
        reader.feed(stream, &bytes);
    }
    reader.finish()
}

fn read_text(text: &str) -> Option<TestResults> {
    let mut reader = Reader::default();
    reader.feed(Stream::Out, text.as_bytes());
    reader.finish()
}

/// Passed, skipped, ran, failures without a name, names.
type Expected = (u64, u64, u64, u64, &'static [&'static str]);

const PYTEST: &[&str] =
    &["(i=1) test_shop.py::TestCart::test_total", "test_shop.py::test_len[x::y-4]", "test_shop.py::test_setup", "test_shop.py::test_wrong"];
const XDIST: &[&str] = &[
    "(i='1') test_shop.py::TestCart::test_total",
    "test_shop.py::test_len[x::y-4]",
    "test_shop.py::test_setup",
    "test_shop.py::test_wrong",
];
const UNITTEST: &[&str] = &["test_b (test_x.T.test_b)", "test_d (test_x.T.test_d)", "test_f (test_x.T.test_f) (i=1)"];
const JEST: &[&str] = &[
    "jest1/shop.test.js > cart › 2 is less than 2",
    "jest1/shop.test.js > cart › when empty › has no items",
    "jest1/shop.test.js > wrong — ü",
];
const VITEST: &[&str] = &[
    "vit1/shop.test.mjs > cart > 2 is less than 2",
    "vit1/shop.test.mjs > cart > when empty > has no items",
    "vit1/shop.test.mjs > wrong — ü",
];
const MOCHA: &[&str] =
    &["cart > 2 is less than 2", "cart > when empty > has no items", "hooks > \"before all\" hook for \"x\"", "wrong — ü"];
const PLAYWRIGHT: &[&str] = &["p/shop.spec.js › cart › has no items", "p/shop.spec.js › wrong — ü"];
const NEXTEST: &[&str] = &["shop tests::prints", "shop tests::wrong"];
const EXUNIT: &[&str] = &["test basket empty (ExTest)", "test wrong — ü (so) (ExTest)"];
const EXUNIT_SETUP: &[&str] = &[
    "SetupTest: failure on setup_all callback, all tests have been invalidated",
    "test basket empty (ExTest)",
    "test wrong — ü (so) (ExTest)",
];
const RSPEC: &[&str] =
    &["Shop #cart 2 is less than 2", "Shop #cart is expected to eq 2", "Shop #cart when empty has no items", "Shop wrong — ü"];
const PHPUNIT: &[&str] = &["ShopTest::testBoom", "ShopTest::testLen with data set \"ü\" ('ü', 1)", "ShopTest::testWrong"];
const GO: &[&str] = &["example.com/shop/cart.TestTable", "example.com/shop/cart.TestTable/ü", "example.com/shop/cart.TestWrong"];

#[rustfmt::skip]
const CASES: &[(&str, Option<Expected>)] = &[
    ("pytest-plain", Some((5, 3, 7, 0, PYTEST))),
    ("pytest-rA", Some((5, 3, 7, 0, PYTEST))),
    ("pytest-v", Some((5, 3, 7, 0, PYTEST))),
    ("pytest-q", Some((5, 3, 7, 0, PYTEST))),
    ("pytest-qq", None),
    ("pytest-color", Some((5, 3, 7, 0, PYTEST))),
    ("pytest-xdist", Some((5, 3, 7, 0, XDIST))),
    ("pytest-good", Some((2, 0, 2, 0, &[]))),
    ("pytest-good-q", Some((2, 0, 2, 0, &[]))),
    ("pytest-empty", Some((0, 0, 0, 0, &[]))),
    ("pytest-bad", Some((0, 0, 0, 0, &["bad/test_bad.py"]))),
    ("pytest-deselect", Some((3, 0, 4, 0, &["test_shop.py::test_len[x::y-4]"]))),
    ("pytest-coverage", Some((2, 0, 2, 0, &["FAIL Required test coverage of 99%"]))),
    ("pytest-x", Some((1, 0, 2, 0, &["test_shop.py::test_wrong"]))),
    ("unittest-plain", Some((1, 2, 4, 0, UNITTEST))),
    ("unittest-v", Some((1, 2, 4, 0, UNITTEST))),
    ("jest-plain", Some((4, 2, 7, 0, JEST))),
    ("jest-verbose", Some((4, 2, 7, 0, JEST))),
    ("jest-color", Some((4, 2, 7, 0, JEST))),
    ("jest-good", Some((2, 0, 2, 0, &[]))),
    ("jest-bad", Some((2, 0, 2, 0, &["jest-bad/a.test.js"]))),
    ("jest-empty-pass", Some((0, 0, 0, 0, &[]))),
    ("vitest-plain", Some((4, 2, 7, 0, VITEST))),
    ("vitest-verbose", Some((4, 2, 7, 0, VITEST))),
    ("vitest-dot", Some((4, 2, 7, 0, VITEST))),
    ("vitest-good", Some((2, 0, 2, 0, &[]))),
    ("vitest-bad", Some((2, 0, 2, 0, &["vit-bad/a.test.mjs"]))),
    ("vitest-empty-pass", Some((0, 0, 0, 0, &[]))),
    ("mocha-plain", Some((3, 2, 6, 0, MOCHA))),
    ("mocha-dot", Some((3, 2, 6, 0, MOCHA))),
    ("mocha-list", Some((3, 2, 6, 0, MOCHA))),
    ("mocha-color", Some((3, 2, 6, 0, MOCHA))),
    // A test of it prints `9 passing`.
    ("mocha-good", Some((11, 0, 11, 0, &[]))),
    ("mocha-bad", None),
    ("node-spec", Some((2, 2, 4, 0, &["inner", "wrong"]))),
    // This is TAP, which has an end of its own opinion about `# TODO`.
    ("node-plain", Some((3, 1, 5, 0, &["cart > inner", "wrong"]))),
    ("bun-plain", Some((3, 2, 5, 0, &["cart > when empty > has no items", "wrong — ü"]))),
    ("bun-good", Some((1, 0, 1, 0, &[]))),
    ("bun-empty", None),
    ("deno-plain", Some((2, 1, 4, 0, &["cart ... has no items", "wrong — ü"]))),
    ("deno-good", Some((1, 0, 1, 0, &[]))),
    ("playwright-plain", Some((2, 2, 4, 0, PLAYWRIGHT))),
    ("playwright-line", Some((2, 2, 4, 0, PLAYWRIGHT))),
    ("playwright-dot", Some((2, 2, 4, 0, PLAYWRIGHT))),
    ("playwright-good", Some((1, 0, 1, 0, &[]))),
    ("nextest-plain", Some((2, 1, 4, 0, NEXTEST))),
    ("nextest-failfast", Some((1, 1, 3, 0, NEXTEST))),
    ("nextest-color", Some((2, 1, 4, 0, NEXTEST))),
    ("nextest-retries", Some((2, 1, 4, 0, NEXTEST))),
    ("nextest-quiet", Some((2, 1, 4, 2, &[]))),
    ("nextest-good", Some((2, 3, 2, 0, &[]))),
    ("nextest-empty", Some((0, 5, 0, 0, &[]))),
    ("nextest-bad", None),
    ("rspec-plain", Some((3, 2, 7, 0, RSPEC))),
    ("rspec-doc", Some((3, 2, 7, 0, RSPEC))),
    ("rspec-color", Some((3, 2, 7, 0, RSPEC))),
    ("rspec-good", Some((2, 0, 2, 0, &[]))),
    ("rspec-bad", Some((0, 0, 0, 1, &[]))),
    ("rspec-empty", Some((0, 0, 0, 0, &[]))),
    ("exunit-plain", Some((3, 1, 5, 0, EXUNIT))),
    ("exunit-color", Some((3, 1, 5, 0, EXUNIT))),
    ("exunit-trace", Some((3, 1, 5, 0, EXUNIT))),
    // Two tests have no result, because what they share failed.
    ("exunit-setup", Some((3, 1, 7, 1, EXUNIT_SETUP))),
    ("exunit-good", Some((1, 5, 1, 0, &[]))),
    ("exunit-empty", Some((0, 0, 0, 0, &[]))),
    ("exunit-bad", None),
    ("phpunit-plain", Some((4, 2, 7, 0, PHPUNIT))),
    ("phpunit-dox", Some((4, 2, 7, 3, &[]))),
    ("phpunit-color", Some((4, 2, 7, 0, PHPUNIT))),
    ("phpunit-good", Some((2, 0, 2, 0, &[]))),
    ("phpunit-empty", Some((0, 0, 0, 0, &[]))),
    ("maven-plain", Some((3, 1, 5, 0, &["boom(ShopTest)", "wrong(ShopTest)"]))),
    ("maven-good", Some((2, 0, 2, 0, &[]))),
    ("maven-bad", None),
    // Packages are counted: those of the tests that failed and of those that passed.
    ("go-plain", Some((0, 0, 2, 0, GO))),
    ("go-v", Some((6, 1, 9, 0, GO))),
    ("go-json", Some((6, 1, 9, 0, GO))),
    ("go-good", Some((0, 0, 1, 0, &[]))),
    ("go-good-v", Some((2, 0, 2, 0, &[]))),
    ("go-cover", Some((0, 0, 1, 0, &[]))),
    ("go-norun", Some((0, 0, 0, 0, &[]))),
    ("go-empty", Some((0, 0, 0, 0, &[]))),
    ("go-bad", Some((0, 0, 2, 0, &["example.com/shop/bad"]))),
    ("go-bad-v", Some((2, 0, 3, 0, &["example.com/shop/bad"]))),
    ("go-panic", Some((0, 0, 1, 0, &["example.com/shop/p", "example.com/shop/p.TestP"]))),
    ("go-panic-v", Some((1, 0, 2, 0, &["example.com/shop/p", "example.com/shop/p.TestP"]))),
];

fn told(results: &TestResults) -> (u64, u64, u64, u64, Vec<&str>) {
    (results.passed, results.ignored, results.ran(), results.unnamed, results.failed.iter().map(String::as_str).collect())
}

#[test]
fn u3_real_outputs_are_read() {
    let mut wrong = Vec::new();
    for (case, expected) in CASES {
        let expected = expected.map(|(passed, skipped, ran, unnamed, names)| (passed, skipped, ran, unnamed, names.to_vec()));
        let got = read(case);
        if got.as_ref().map(told) != expected {
            wrong.push(format!("{case}: {got:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn u3_every_kept_output_is_a_case_and_every_row_has_one() {
    let files: BTreeSet<String> =
        std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let outputs = files.iter().filter_map(|file| file.strip_suffix(".out").or_else(|| file.strip_suffix(".err")));
    let cases: BTreeSet<&str> = CASES.iter().map(|(case, _)| *case).collect();
    assert_eq!(outputs.collect::<BTreeSet<&str>>(), cases);
    for framework in FRAMEWORKS {
        let name = match framework.name {
            "Surefire" => "maven".to_owned(),
            name => name.to_lowercase(),
        };
        assert!(cases.iter().any(|case| case.starts_with(&name)), "{name}");
    }
}

/// The rows are bits of a number.
#[test]
fn u3_there_is_room_for_every_row() {
    assert!(FRAMEWORKS.len() <= 32);
}

#[test]
fn u3_several_programs_in_one_command_add_up() {
    let mut reader = Reader::default();
    for case in ["jest-plain", "pytest-plain", "go-v", "nextest-good"] {
        for (stream, bytes) in streams(case) {
            reader.feed(stream, &bytes);
        }
    }
    let all = reader.finish().unwrap();
    assert_eq!((all.passed, all.ignored, all.unnamed, all.ran()), (4 + 5 + 6 + 2, 2 + 3 + 1 + 3, 0, 7 + 7 + 9 + 2));
    let names: BTreeSet<String> = [JEST, PYTEST, GO].concat().into_iter().map(str::to_owned).collect();
    assert_eq!(all.failed, names);
    let twice = format!("{0}{0}", String::from_utf8(streams("pytest-plain")[0].1.clone()).unwrap());
    let twice = read_text(&twice).unwrap();
    assert_eq!((twice.passed, twice.failed.len(), twice.unnamed), (10, 8, 0), "the second time a name has a number");
}

/// Names that are not all there are names that tell nothing apart.
#[test]
fn u3_a_list_of_names_that_is_not_complete_is_known_to_be_so() {
    let without = |case: &str, words: &str| {
        let mut reader = Reader::default();
        for (stream, bytes) in streams(case) {
            let text = String::from_utf8(bytes).unwrap();
            let kept: Vec<&str> = text.lines().filter(|line| !line.contains(words)).collect();
            reader.feed(stream, kept.join("\n").as_bytes());
        }
        reader.finish().unwrap()
    };
    for (case, words) in [
        ("pytest-plain", "FAILED test_shop.py::test_wrong"),
        ("jest-plain", "  ● wrong"),
        ("vitest-plain", "wrong"),
        ("mocha-plain", "1) wrong"),
        ("nextest-plain", "(2/4)"),
        ("rspec-plain", "# Shop wrong"),
        ("exunit-plain", "1) test wrong"),
        ("phpunit-plain", "1) ShopTest::testWrong"),
        ("unittest-plain", "FAIL: test_b"),
        ("maven-plain", "wrong(ShopTest)"),
        ("playwright-plain", "wrong — ü ─"),
        ("bun-plain", "(fail) wrong"),
        ("deno-plain", "wrong — ü"),
    ] {
        let (whole, less) = (read(case).unwrap(), without(case, words));
        assert_eq!((less.failures(), less.ran(), less.passed), (whole.failures(), whole.ran(), whole.passed), "{case}");
        assert!(!less.are_all_named(), "{case}: {less:?}");
        assert_eq!(less.counts(Some(&whole.failed)).unwrap().old, None, "{case}");
    }
}

/// One run with failures of each program, and the names in it.
fn whole_runs() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let has_failures = |case: &str| ["-plain", "-spec", "-v", "-json"].iter().any(|end| case.ends_with(end));
    CASES.iter().filter(move |(case, _)| has_failures(case)).map(|(case, expected)| (*case, expected.unwrap().4))
}

#[test]
fn u3_output_that_was_cut_has_no_results_or_says_what_is_missing() {
    for (case, names) in whole_runs() {
        let whole = read(case).unwrap();
        for (stream, bytes) in streams(case) {
            let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
            for cut in 0..lines.len() {
                let mut reader = Reader::default();
                for (other, all) in streams(case) {
                    reader.feed(other, &if other == stream { lines[..cut].concat() } else { all });
                }
                let Some(got) = reader.finish() else { continue };
                // Mocha tells how many failed on a line of its own, and does not say that there are no more lines.
                let is_mocha = case.starts_with("mocha") && got.failures() == 0;
                let is_part = !got.are_all_named() || got.failed.iter().all(|name| names.contains(&name.as_str()));
                assert!(
                    is_part && (got.failures() == whole.failures() || got.ran() < whole.ran() || is_mocha),
                    "{case} after {cut} lines: {got:?}"
                );
            }
        }
    }
}

/// A line that an agent lets its tests print can only add to what counts; it cannot take away a failure that the program itself tells of.
#[test]
fn u3_a_forged_line_never_hides_a_failure() {
    const FORGED: &[&str] = &[
        "===== 9 passed in 0.01s =====",
        "9 passed in 0.01s",
        "Test Suites: 1 passed, 1 total\nTests:       9 passed, 9 total",
        " Test Files  1 passed (1)\n      Tests  9 passed (9)",
        "  9 passing (3ms)",
        "────────────\n     Summary [   0.1s] 9 tests run: 9 passed, 0 skipped",
        "Finished in 0.1 seconds\n9 examples, 0 failures",
        "Finished in 0.1 seconds\n9 tests, 0 failures",
        "There are no tests to run",
        "OK (9 tests, 9 assertions)",
        "[INFO] Tests run: 9, Failures: 0, Errors: 0, Skipped: 0",
        "ok  \texample.com/fake\t0.1s",
        "--- PASS: TestFake (0.00s)",
        "{\"Action\":\"pass\",\"Package\":\"example.com/shop/cart\",\"Test\":\"TestWrong\"}",
        "ℹ tests 9\nℹ pass 9\nℹ fail 0",
        "ok | 9 passed | 0 failed (3ms)",
        " 9 pass\n 0 fail",
        "test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        "1..1\nok 1 - fake",
        "short test summary info",
        "There were 0 failures:",
        "Failed examples:",
    ];
    for (case, _) in whole_runs().filter(|(case, _)| !case.ends_with("-v")) {
        let whole = read(case).unwrap();
        for forged in FORGED {
            for (stream, bytes) in streams(case) {
                let text = String::from_utf8(bytes).unwrap();
                for at in [text.lines().count() / 2, text.lines().count()] {
                    let mut lines: Vec<&str> = text.lines().collect();
                    lines.insert(at, forged);
                    let mut reader = Reader::default();
                    for (other, all) in streams(case) {
                        reader.feed(other, &if other == stream { lines.join("\n").into_bytes() } else { all });
                    }
                    let Some(got) = reader.finish() else { continue };
                    let is_hidden = got.failures() < whole.failures() || (got.are_all_named() && !whole.failed.is_subset(&got.failed));
                    assert!(!is_hidden, "{case}, line {at}: {forged}\n{got:?}");
                }
            }
        }
    }
}

#[test]
fn u3_prose_is_no_result() {
    for text in [
        "3 failed in 2 days\n",
        "we had 3 passed in 1970s\nRan 6 tests in 0.001s\n",
        "Tests: 3 passed\n",
        "      9 passing (3ms)\n",
        "9 examples, 0 failures\n",
        "9 tests, 0 failures\n",
        "  2 failed\n  1 passed (3s)\n",
        "FAIL src/a.test.js\n  ● a test\n",
        "--- FAIL: TestX (0.00s)\n",
        "FAIL the build\n",
        "{\"Action\":\"pass\"}\n{\"Action\":\"pass\",\"Test\":\"x\"}\n",
        "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.4 s - in GoodTest\n",
    ] {
        assert_eq!(read_text(text), None, "{text}");
    }
    assert_eq!(read_text("=== test session starts ===\nok\n"), None, "it began and never ended");
    let huge = u64::MAX;
    assert_eq!(read_text(&format!("{huge} passed in 1s\n{huge} failed in 1s\n1 passed in 1s\n")), None, "no such numbers");
}

#[test]
fn u3_junit_files_of_the_big_tools_are_read() {
    let file = |name: &str| TestResults::of_junit(&std::fs::read(folder().join(format!("{name}.xml"))).unwrap()).unwrap();
    #[rustfmt::skip]
    let expected: &[(&str, u64, u64, &[&str])] = &[
        ("surefire", 1, 1, &["ShopTest::boom", "ShopTest::wrong"]),
        ("nextest", 2, 0, &["shop::tests::prints", "shop::tests::wrong"]),
        ("vitest", 4, 2, &["vit1/shop.test.mjs::cart > 2 is less than 2", "vit1/shop.test.mjs::cart > when empty > has no items", "vit1/shop.test.mjs::wrong — ü"]),
        ("ctest", 1, 1, &["wrong one::wrong one"]),
        ("gradle", 1, 1, &["shop.BasketTest::breaks", "shop.BasketTest::isWrong"]),
    ];
    for (name, passed, skipped, names) in expected {
        let got = file(name);
        assert_eq!(
            (got.passed, got.ignored, got.failed.iter().map(String::as_str).collect::<Vec<_>>()),
            (*passed, *skipped, names.to_vec()),
            "{name}"
        );
    }
    for (name, passed, skipped, failed) in [("pytest", 4, 3, 4), ("jest", 5, 1, 3), ("mocha", 3, 2, 4), ("phpunit", 3, 2, 4)] {
        let got = file(name);
        assert_eq!((got.passed, got.ignored, got.failed.len()), (passed, skipped, failed), "{name}: {got:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn u3_it_does_not_matter_how_the_streams_are_mixed(case in 0..CASES.len(), size in 1_usize..200) {
        let (case, _) = CASES[case];
        let mut reader = Reader::default();
        let [(out, left), (err, right)] = streams(case);
        let (mut left, mut right) = (left.chunks(size), right.chunks(size));
        loop {
            let (some, more) = (left.next(), right.next());
            reader.feed(out, some.unwrap_or_default());
            reader.feed(err, more.unwrap_or_default());
            if some.is_none() && more.is_none() {
                break;
            }
        }
        prop_assert_eq!(reader.finish(), read(case));
    }
}
