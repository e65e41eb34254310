//! Tests of the readers of test results: what the programs print, what only looks like it, and any bytes at all.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Option<TestResults> {
    let mut reader = Reader::default();
    reader.feed(Stream::Out, text.as_bytes());
    reader.finish()
}

fn results(passed: u64, ignored: u64, failed: &[&str]) -> TestResults {
    TestResults { passed, ignored, failed: failed.iter().map(|name| (*name).to_owned()).collect(), ..TestResults::default() }
}

const LIBTEST: &str = "
running 4 tests
test tests::subtracts ... ok
test tests::slow ... ignored, only at night
test tests::adds ... FAILED
test tests::panics - should panic ... FAILED

failures:

---- tests::adds stdout ----

thread 'tests::adds' (41233) panicked at src/lib.rs:12:9:
assertion `left == right` failed
  left: 5
 right: 4
    an indented line
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- tests::panics stdout ----
note: test did not panic as expected at src/lib.rs:20:8

failures:
    tests::adds
    tests::panics

test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

";

const DOC_TESTS: &str = "
running 2 tests
test src/lib.rs - foo (line 3) ... ok
test src/lib.rs - Bar::baz (line 9) - compile fail ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.31s
";

#[test]
fn libtest_names_its_failures() {
    assert_eq!(read(LIBTEST), Some(results(1, 1, &["tests::adds", "tests::panics"])));
    assert_eq!(read(DOC_TESTS), Some(results(2, 0, &[])));
    assert_eq!(read(&LIBTEST.replace('\n', "\r\n")), read(LIBTEST));
    assert_eq!(read(&LIBTEST.replace("FAILED", "\u{1b}[31mFAILED\u{1b}[m")), read(LIBTEST), "in colours, too");
}

#[test]
fn several_test_programs_add_up() {
    let both = format!("     Running unittests src/lib.rs\n{LIBTEST}   Doc-tests calc\n{DOC_TESTS}");
    assert_eq!(read(&both), Some(results(3, 1, &["tests::adds", "tests::panics"])));
    let twice = format!("{LIBTEST}{LIBTEST}");
    let names = ["tests::adds", "tests::adds (2)", "tests::panics", "tests::panics (2)"];
    assert_eq!(read(&twice), Some(results(2, 2, &names)), "the same name in another program is another failure");
}

#[test]
fn libtest_may_be_quiet_or_mixed_with_output() {
    let quiet = "\nrunning 3 tests\n.F.\nfailures:\n\n---- a stdout ----\nx\n\nfailures:\n    a\n\n\
                 test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    assert_eq!(read(quiet), Some(results(2, 0, &["a"])));
    let mixed = quiet.replace(".F.", "test a ... printed by the test\nFAILED\ntest b ... ok\ntest c ... hello ok");
    assert_eq!(read(&mixed), Some(results(2, 0, &["a"])));
}

#[test]
fn half_a_libtest_run_is_no_result() {
    assert_eq!(read(LIBTEST.split("test result").next().unwrap()), None, "it crashed before its sum");
    assert_eq!(read(&format!("{DOC_TESTS}\nrunning 1 test\n")), None, "the second program crashed");
    assert_eq!(read(&LIBTEST.replace("2 failed", "3 failed")), None);
    assert_eq!(read(&LIBTEST.replace("running 4", "running 5")), None);
    assert_eq!(read(&DOC_TESTS.replace("ok. 2", "FAILED. 2")), None);
    assert_eq!(read(&DOC_TESTS.replace("running 2 tests\n", "")), None, "a sum without a start");
    assert_eq!(read(&DOC_TESTS.replace("(line 3) ... ok", "(line 3) ... ok\ntest more ... ok")), None, "more than the sum has");
    assert_eq!(read(&LIBTEST.replace("    an indented line", "running 1 test")), None, "a test that shows the output of tests");
}

#[test]
fn prose_is_no_result() {
    for text in [
        "",
        "the test result: ok, all good\ntest it yourself ... ok\n",
        "running tests\nok\nnot ok\nok then\n",
        "1..5\nlines 1..3 were changed\n",
        "1..2\n1..2\n",
        "ok  example.com/calc 0.003s\n",
        "ok  \texample.com/calc\tin 3 seconds\n",
        "everything is ok 100 %\n",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(read(&format!("1..5\n{DOC_TESTS}")), Some(results(2, 0, &[])), "prose does not spoil results");
}

#[test]
fn tap_names_its_failures() {
    let tap = "TAP version 13\n1..6\nok 1 - adds\nnot ok 2 - subtracts\n  ---\n  message: 'x'\n  not ok 3 - within details\n  ...\nok 3 # SKIP no network\n\
               not ok 4 - divides # TODO by zero\nok 5\nnot ok 6 - issue \\#7 # time=3.1ms\n# tests 6\n";
    assert_eq!(read(tap), Some(results(2, 2, &["issue #7", "subtracts"])));
    assert_eq!(read("ok 1 a\nnot ok 2\n1..2\n"), Some(results(1, 0, &["test 2"])), "bats; and a plan at the end");
    assert_eq!(read("1..0 # SKIP not here\n"), None, "a plan alone may be anything");
    assert_eq!(read("TAP version 14\n1..0 # SKIP not here\n"), Some(results(0, 0, &[])));
    assert_eq!(read("1..1\nok 1 - a\n1..1\nnot ok 1 - a\nok 1 - b\n1..1\n"), Some(results(2, 0, &["a"])), "three documents");
    assert_eq!(read(&format!("{DOC_TESTS}1..1\nnot ok 1 - a\n")), Some(results(2, 0, &["a"])), "after another program");
}

#[test]
fn tap_sub_tests_count_instead_of_their_sum() {
    let tap = "TAP version 13\n# Subtest: maths\n    # Subtest: adds\n    ok 1 - adds\n      ---\n      duration_ms: 0.4\n      ...\n    # Subtest: divides\n        \
               not ok 1 - by zero\n        ok 2 - by one\n        1..2\n    not ok 2 - divides\n      ---\n      error: |-\n        ok 9 - not here\n      ...\n    \
               1..2\nnot ok 1 - maths\n  ---\n  duration_ms: 1.2\n  ...\n# Subtest: words\nok 2 - words\n1..2\n# tests 5\n# fail 2\n";
    assert_eq!(read(tap), Some(results(3, 0, &["maths > divides > by zero"])));
    assert_eq!(read("    ok 1 - a\n    1..1\nnot ok 1 - teardown\n1..1\n"), Some(results(1, 0, &["teardown"])));
    assert_eq!(read("    not ok 1 - a\n    1..1\nnot ok 1 - b # TODO\n1..1\n"), Some(results(0, 1, &[])));
}

#[test]
fn half_a_tap_document_is_no_result() {
    for text in [
        "TAP version 13\n",
        "1..3\nok 1 - a\nnot ok 2 - b\n",
        "ok 1 - a\nnot ok 2 - b\n",
        "1..2\nok 1 - a\nok 3 - c\n",
        "1..1\nok 1 - a\nok 2 - b\n",
        "1..2\nok 1 - a\nBail out! no database\n",
        "1..1\nok 1 - a\nTAP version 13\n",
        "    not ok 1 - a\n    1..1\nok 1 - b\n1..1\n",
        "    not ok 1 - a\nnot ok 1 - b\n1..1\n",
        "1..1\nnot ok 1 - a {\n    not ok 1 - b\n    1..1\n}\n",
        "1..1\nnot ok 1 - a\n  ---\n  cut: here\n",
    ] {
        assert_eq!(read(text), None, "{text}");
        assert_eq!(read(&format!("{DOC_TESTS}{text}")), None, "other results don't make it complete: {text}");
    }
}

#[test]
fn names_are_bounded() {
    let long = "x".repeat(1000);
    let got = read(&format!("not ok 1 - {long}\nnot ok 2 - {long}y\n1..2\n")).unwrap();
    assert_eq!((got.failed.len(), got.failed.iter().all(|name| name.chars().count() == LONGEST_NAME)), (2, true));
    let many = |n: usize| (1..=n).map(|i| format!("not ok {i} - t{i}\n")).chain([format!("1..{n}")]).collect::<Vec<_>>().concat();
    assert_eq!(read(&many(MOST_FAILED)).map(|got| got.failed.len()), Some(MOST_FAILED));
    assert_eq!(read(&many(MOST_FAILED + 1)), None);
    assert_eq!(read(&many(1000).replace(" - t", " - t#").replace("t#", "same # time=")), None, "one name cannot fail a thousand times");
}

#[test]
fn junit_names_its_failures() {
    let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="7">
  <testsuite name="outer">
    <properties><property name="p" value="v"/></properties>
    <testsuite name="inner">
      <testcase classname="calc.Test" name="adds" time="0.1"/>
      <testcase classname="calc.Test" name="a &lt; b &amp; &quot;c&quot; &#233;"><failure message="m">text &amp; more</failure></testcase>
      <testcase classname="calc.Test" name="breaks"><error><![CDATA[</testcase> <failure/> ]]></error><system-out>x</system-out></testcase>
    </testsuite>
    <testcase name="alone"><skipped/></testcase>
    <testcase name="was flaky"><flakyFailure/><system-out><failure/></system-out></testcase>
    <testcase name="adds" classname=""><failure/><failure/></testcase>
  </testsuite>
  <testsuite name="did not start"><error message="no such module"/></testsuite>
</testsuites>"#;
    let names = ["calc.Test::a < b & \"c\" é", "calc.Test::breaks", "adds", "did not start"];
    assert_eq!(TestResults::of_junit(xml.as_bytes()), Ok(results(2, 1, &names)));
    assert_eq!(TestResults::of_junit(format!("\u{feff}{xml}").as_bytes()), Ok(results(2, 1, &names)));
    assert_eq!(TestResults::of_junit(b"<testsuite/>"), Ok(TestResults::default()));
    let twice = "<testsuite><testcase name='a'><error/></testcase><testcase name='a'><error/></testcase></testsuite>";
    assert_eq!(TestResults::of_junit(twice.as_bytes()), Ok(results(0, 0, &["a", "a (2)"])));
}

#[test]
fn what_is_no_whole_junit_file_is_an_error() {
    let deep = "<testsuite>".repeat(1000);
    for (xml, says) in [
        ("", "empty"),
        ("no tests here", "empty"),
        ("<html><body/></html>", "<html> is not a suite"),
        ("<testcase name='a'/>", "<testcase> is not a suite"),
        ("<testsuites><testsuite><testcase name='a'/>", "ends in the middle"),
        ("<testsuites><testcase name='a'", "not XML"),
        ("<testsuites></testsuite>", "not XML"),
        ("<testsuites/><testsuites/>", "not a suite"),
        ("<testsuites/></testsuites>", "not XML"),
        ("<testsuites><testcase/></testsuites>", "no name"),
        ("<testsuites><testcase name='&boom;'/></testsuites>", "not XML"),
        ("<!DOCTYPE x [<!ENTITY boom 'boom'>]><testsuites/>", "DTD"),
        (deep.as_str(), "too deeply"),
    ] {
        let error = TestResults::of_junit(xml.as_bytes()).expect_err(xml);
        assert!(error.contains(says), "{xml}: {error}");
    }
    assert_eq!(TestResults::of_junit(b"<testsuite name='\xff'/>"), Err("not UTF-8".to_owned()));
    let many: Vec<String> = (0..=MOST_FAILED).map(|i| format!("<testcase name='{i}'><error/></testcase>")).collect();
    let many = many.concat();
    assert!(TestResults::of_junit(format!("<testsuite>{many}</testsuite>").as_bytes()).is_err_and(|e| e.contains("too many")));
}

#[test]
fn new_failures_are_told_apart_from_old_ones() {
    let now = results(3, 0, &["a", "b", "c"]);
    let at_start = ["b".to_owned(), "z".to_owned()].into();
    assert_eq!(now.split(&at_start), Split { new: vec!["a", "c"], old: vec!["b"] });
}

/// Text that is likely to hit something.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        1 => proptest::collection::vec(any::<u8>(), 0..3),
        9 => proptest::sample::select(vec![
            "running 1 test\n", "test a ... ok\n", "test a ... FAILED\n", "failures:\n", "    a\n", "1..1\n", "ok 1 - a\n", "not ok 1 - b\n", "    ",
            "TAP version 13\n", "  ---\n", "  ...\n", "\u{1b}[31m", "\r\n", "ä",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_the_same_results(all in output(), size in 1_usize..7) {
        let mut at_once = Reader::default();
        at_once.feed(Stream::Out, &all);
        let mut in_pieces = Reader::default();
        for piece in all.chunks(size) {
            in_pieces.feed(Stream::Out, piece);
        }
        prop_assert_eq!(at_once.finish(), in_pieces.finish());
    }

    #[test]
    fn a_cut_output_never_has_fewer_failures_than_it_should(cut in 0_usize..LIBTEST.len()) {
        let got = read(&LIBTEST[..cut]);
        prop_assert!(got.is_none() || got == read(LIBTEST), "{got:?}");
    }

    #[test]
    fn any_xml_is_read_or_refused(pieces in proptest::collection::vec(proptest::sample::select(vec![
        "<testsuite>", "</testsuite>", "<testcase name='a'>", "</testcase>", "<failure/>", "<![CDATA[", "]]>", "&amp;", "&x;", "<!--", "-->", "<?xml", "?>", "'", "<", "é",
    ]), 0..20), noise in proptest::collection::vec(any::<u8>(), 0..4)) {
        let mut xml = pieces.concat().into_bytes();
        xml.extend(noise);
        let _ = TestResults::of_junit(&xml);
    }
}
