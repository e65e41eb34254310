//! Tests of the useful part of an output: six tools that fail, noise of every kind, and any bytes at all.

use proptest::prelude::*;

use super::*;

fn useful(limit: usize, out: &str, err: &str) -> String {
    let mut useful = Useful::new(limit);
    useful.feed(Stream::Out, out.as_bytes());
    useful.feed(Stream::Err, err.as_bytes());
    let text = useful.finish();
    assert!(text.chars().count() <= limit, "{} > {limit}:\n{text}", text.chars().count());
    text
}

/// In the default limit of S3-3 these words survive.
fn survive(out: &str, err: &str, words: &[&str]) {
    let text = useful(500, out, err);
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
}

fn many(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|i| line(i) + "\n").collect()
}

#[test]
fn s3_3_what_fits_is_shown_whole() {
    assert_eq!(useful(500, "", ""), "");
    assert_eq!(useful(500, "\n\n  a\n\nb\n\n\n", " \n"), "  a\n\nb");
    assert_eq!(useful(500, "", "e\n"), "e");
    assert_eq!(useful(500, "o", "error: e"), "standard output:\no\nstandard error:\nerror: e");
    let exact = "x".repeat(20);
    assert_eq!(useful(20, &exact, ""), exact);
    assert_eq!(useful(20, &format!("{exact}\n\n\n"), ""), exact);
    assert_eq!(useful(19, &exact, ""), format!("{}…", "x".repeat(18)));
}

#[test]
fn s3_3_head_and_tail_of_both_streams() {
    let out = many(1000, |i| format!("out line {i}"));
    let err = many(1000, |i| format!("err line {i}"));
    let text = useful(500, &out, &err);
    for line in [
        "standard output, start and end:\nout line 0\n",
        "out line 999",
        "standard error, start and end:\nerr line 0\n",
        "err line 999",
        "\n…\n",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    assert!(text.chars().count() > 400, "the room is used:\n{text}");
}

#[test]
fn errors_come_first_then_the_end_then_the_start() {
    let out = many(300, |i| format!("line {i}")) + "error: the cause\n  at x.rs:1\n" + &many(300, |i| format!("more {i}"));
    let text = useful(200, &out, "");
    assert!(text.starts_with("first errors:\nerror: the cause\n  at x.rs:1\nstandard output, end:\n…\n"), "{text}");
    assert!(text.ends_with("more 299") && !text.contains("line 0"), "{text}");
    let roomy = useful(2000, &out, "");
    assert!(roomy.contains("standard output, start and end:\nline 0\n"), "{roomy}");
}

#[test]
fn nothing_is_shown_twice() {
    let out = many(100, |i| format!("line {i}")) + "error: the cause\nerror: the cause\nlast line\n";
    let text = useful(300, &out, "");
    assert_eq!(text.matches("error: the cause").count(), 1, "{text}");
    assert_eq!(text.matches("last line").count(), 1, "{text}");
    let text = useful(300, &out, &out);
    assert_eq!(text.matches("error: the cause").count(), 1, "{text}");
}

#[test]
fn a_small_limit_still_says_something() {
    let out = many(100, |i| format!("line {i}"));
    assert_eq!(useful(10, &(out.clone() + "  error: x is wrong\nlast"), ""), "error: x…");
    assert_eq!(useful(10, &out, ""), "line 99");
    assert_eq!(useful(1, &out, ""), "…");
    assert_eq!(useful(0, &out, ""), "");
}

#[test]
fn escape_sequences_and_redrawn_lines_are_gone() {
    assert_eq!(useful(500, "\u{1b}[31mred\u{1b}[0m\0\n 10%\r 99%\r100%\n", ""), "red\n100%");
}

#[test]
fn much_output_costs_little_memory() {
    let mut useful = Useful::new(500);
    let block =
        many(1000, |i| format!("error: number {i} of a great many lines\n\n  12:3  error  x\nFAILED y{i}")) + &"long".repeat(20_000);
    for _ in 0..20 {
        useful.feed(Stream::Out, block.as_bytes());
        useful.feed(Stream::Err, block.as_bytes());
    }
    for Side { lines: _, kept } in [&useful.out, &useful.err] {
        let groups = [&kept.why, &kept.which].into_iter().flat_map(|groups| &groups.list).flat_map(|group| &group.lines);
        let bytes: usize = kept.head.iter().chain(&kept.tail).chain(groups).map(|line| line.text.len() + size_of::<Line>()).sum();
        assert!(bytes < 20_000, "{bytes}");
    }
    assert!(useful.finish().chars().count() <= 500);
}

#[test]
fn cargo_test_says_which_assertion_where() {
    let passed = many(60, |i| format!("test module::tests::case_number_{i} ... ok"));
    let out = format!(
        "\nrunning 63 tests\n{passed}test tests::adds ... FAILED\ntest tests::subtracts ... FAILED\n\nfailures:\n\n---- tests::adds stdout ----\n\n\
         thread 'tests::adds' (41233) panicked at src/lib.rs:12:9:\nassertion `left == right` failed\n  left: 5\n right: 4\n\
         note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n---- tests::subtracts stdout ----\n\n\
         thread 'tests::subtracts' (41234) panicked at src/lib.rs:18:9:\nassertion failed: sub(2, 2) == 0\n\n\nfailures:\n    tests::adds\n    \
         tests::subtracts\n\ntest result: FAILED. 61 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n"
    );
    let err = "   Compiling calc v0.1.0 (/home/u/calc)\n    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.42s\n     \
               Running unittests src/lib.rs (target/debug/deps/calc-0f719576ec60fe31)\nerror: test failed, to rerun pass `--lib`\n";
    survive(&out, err, &["panicked at src/lib.rs:12:9:\nassertion `left == right` failed\n  left: 5\n right: 4", "src/lib.rs:18:9"]);
}

#[test]
fn cargo_build_says_what_and_where() {
    let err = many(80, |i| format!("   Compiling dependency-{i} v1.0.{i}"))
        + "warning: unused variable: `x`\n --> src/lib.rs:1:9\n\nerror[E0308]: mismatched types\n  --> src/lib.rs:21:5\n   |\n20 | fn f() -> u32 {\n   |           \
           --- expected `u32` because of return type\n21 |     \"a\"\n   |     ^^^ expected `u32`, found `&str`\n\nFor more information about this error, \
           try `rustc --explain E0308`.\nerror: could not compile `calc` (lib) due to 1 previous error\n";
    survive("", &err, &["error[E0308]: mismatched types\n  --> src/lib.rs:21:5"]);
}

#[test]
fn pytest_says_the_comparison_and_the_test() {
    let out = "============================= test session starts ==============================\nplatform linux -- Python 3.12.3, pytest-8.3.4\n\
               rootdir: /home/u/calc\ncollected 40 items\n\ntests/test_calc.py .......F................................               [100%]\n\n\
               =================================== FAILURES ===================================\n\
               ___________________________________ test_add ___________________________________\n\n    def test_add():\n>       assert add(2, 2) == 4\n\
               E       assert 5 == 4\nE        +  where 5 = add(2, 2)\n\ntests/test_calc.py:6: AssertionError\n\
               ----------------------------- Captured stdout call -----------------------------\nadding things\nadding more things\n\
               =========================== short test summary info ============================\n\
               FAILED tests/test_calc.py::test_add - assert 5 == 4\n\
               ========================= 1 failed, 39 passed in 0.05s =========================\n";
    survive(
        out,
        "",
        &["E       assert 5 == 4", "tests/test_calc.py:6: AssertionError", "FAILED tests/test_calc.py::test_add", "1 failed, 39 passed"],
    );
}

#[test]
fn tsc_says_file_line_and_type() {
    let out = "src/shop/cart.ts(41,7): error TS2322: Type 'string' is not assignable to type 'number'.\n".to_owned()
        + &many(40, |i| format!("src/generated/api-{i}.ts({i},1): error TS2304: Cannot find name 'Missing{i}'."));
    survive(&out, "", &["src/shop/cart.ts(41,7): error TS2322: Type 'string' is not assignable to type 'number'."]);
    let pretty = "\u{1b}[96msrc/shop/cart.ts\u{1b}[0m:\u{1b}[93m41\u{1b}[0m:\u{1b}[93m7\u{1b}[0m - \u{1b}[91merror\u{1b}[0m\u{1b}[90m TS2322: \u{1b}[0mType 'string' is not assignable to type 'number'.\n\n\u{1b}[7m41\u{1b}[0m   total = '';\n";
    survive(&(many(60, |i| format!("> step {i}")) + pretty), "", &["src/shop/cart.ts:41:7 - error TS2322: Type 'string' is not"]);
}

#[test]
fn eslint_says_the_rule_with_its_file() {
    let warnings = many(30, |i| format!("  {i}:3   warning  Unexpected console statement  no-console"));
    let out = format!(
        "\n/home/u/app/src/clean.js\n{warnings}\n/home/u/app/src/index.js\n   3:7   error    'unused' is assigned a value but never used  no-unused-vars\n  \
         14:1   error    'module' is not defined                     no-undef\n\n✖ 32 problems (2 errors, 30 warnings)\n"
    );
    let file_and_rule = "/home/u/app/src/index.js\n   3:7   error    'unused' is assigned a value but never used  no-unused-vars";
    survive(&out, "", &[file_and_rule, "no-undef", "✖ 32 problems (2 errors, 30 warnings)"]);
}

#[test]
fn go_test_says_what_was_wanted() {
    let out = many(50, |i| format!("=== RUN   TestNumber{i}\n--- PASS: TestNumber{i} (0.00s)"))
        + "=== RUN   TestAdd\n    calc_test.go:8: Add(2, 2) = 5; want 4\n--- FAIL: TestAdd (0.00s)\nFAIL\nFAIL\texample.com/calc\t0.003s\n";
    survive(&out, "", &["calc_test.go:8: Add(2, 2) = 5; want 4", "--- FAIL: TestAdd"]);
    let short = many(50, |i| format!("ok  \texample.com/pkg{i}\t(cached)"))
        + "--- FAIL: TestAdd (0.00s)\n    calc_test.go:8: Add(2, 2) = 5; want 4\nFAIL\nFAIL\texample.com/calc\t0.003s\n"
        + &many(50, |i| format!("ok  \texample.com/rest{i}\t(cached)"))
        + "FAIL\n";
    survive(&short, "", &["--- FAIL: TestAdd (0.00s)\n    calc_test.go:8: Add(2, 2) = 5; want 4"]);
    survive(
        &many(100, |i| format!("ok  \tp{i}\t0.1s")),
        "# example.com/calc\n./calc.go:5:9: undefined: foo\n",
        &["./calc.go:5:9: undefined: foo"],
    );
}

#[test]
fn jest_says_expected_and_received() {
    let passed = many(40, |i| format!("PASS src/module-{i}.test.js"));
    let err = format!(
        "{passed}FAIL src/sum.test.js\n  ✓ adds 1 + 2 to equal 3 (2 ms)\n  ✕ adds 2 + 2 to equal 4 (3 ms)\n\n  ● adds 2 + 2 to equal 4\n\n    \
         expect(received).toBe(expected) // Object.is equality\n\n    Expected: 4\n    Received: 5\n\n      5 | test('adds 2 + 2 to equal 4', () => {{\n    \
         > 6 |   expect(sum(2, 2)).toBe(4);\n        |                     ^\n      7 | }});\n\n      at Object.toBe (src/sum.test.js:6:21)\n\n\
         Test Suites: 1 failed, 40 passed, 41 total\nTests:       1 failed, 81 passed, 82 total\nSnapshots:   0 total\nTime:        0.512 s\n\
         Ran all test suites.\n"
    );
    survive("", &err, &["● adds 2 + 2 to equal 4", "Expected: 4\n    Received: 5", "FAIL src/sum.test.js", "Test Suites: 1 failed"]);
}

/// The failing test's name, both sides of the comparison, and the place, of outputs that were captured from the programs themselves.
#[test]
fn u3_captured_outputs_keep_the_name_the_comparison_and_the_place() {
    let captured: [(&str, &[&str]); 7] = [
        ("node-plain.out", &["not ok 2 - wrong", "expected: 2", "actual: 1", "n.test.mjs:2:25"]),
        ("node-spec.out", &["wrong", "actual: 1", "expected: 2", "n.test.mjs:2:54"]),
        ("jest-plain.err", &["● wrong — ü", "-   3,", "+   2,", "shop.test.js:2:42"]),
        ("mocha-plain.out", &["wrong — ü", "-  2", "+  3", "shop.js:3:32"]),
        ("vitest-plain.err", &["wrong — ü", "-   3,", "+   2,", "shop.test.mjs:3:42"]),
        ("pytest-plain.out", &["test_wrong", "E       assert [1, 2] == [1, 3]", "test_shop.py:7"]),
        ("pytest-q.out", &["test_wrong", "E       assert [1, 2] == [1, 3]", "test_shop.py:7"]),
    ];
    for (name, words) in captured {
        let path = format!("{}/tests/test_output/{name}", env!("CARGO_MANIFEST_DIR"));
        let output = std::fs::read_to_string(&path).unwrap();
        let (out, err) =
            if name.rsplit_once('.').is_some_and(|(_, kind)| kind == "err") { ("", output.as_str()) } else { (output.as_str(), "") };
        survive(out, err, words);
    }
}

#[test]
fn u3_npm_says_nothing_and_node_says_what_differs() {
    let passed = many(20, |i| format!("✔ case {i} (0.1ms)"));
    let out = format!(
        "\n> slug@1.0.0 test\n> node --test\n\n{passed}✖ slugs (1.2ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  + actual - \
         expected\n\n  + 'hello,-world!'\n  - 'hello-world'\n\n      at TestContext.<anonymous> (file:///project/slug.test.js:6:10)\n      at Test.run \
         (node:internal/test_runner/test:796:25) {{\n    generatedMessage: true,\n    code: 'ERR_ASSERTION',\n    actual: 'hello,-world!',\n    \
         expected: 'hello-world',\n    operator: 'strictEqual'\n  }}\n"
    );
    let err = many(4, |i| format!("npm notice New minor version of npm available! 10.{i}"));
    survive(&out, &err, &["✖ slugs", "+ 'hello,-world!'", "- 'hello-world'", "slug.test.js:6:10"]);
    assert!(!useful(500, &out, &err).contains("npm notice"));
}

/// Output that is likely to hit something.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..4),
        proptest::sample::select(vec![
            "\n",
            "\n",
            "\n",
            "\r",
            "\u{1b}[31m",
            "error: x",
            "error[E1]: y",
            "  --> z",
            "panicked at a",
            "  12:3  error  b",
            "/c.js",
            "● d",
            "FAILED e",
            "0 errors",
            "ä€🦀",
            "a long line that goes on and on and on",
            " ",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn s3_3_any_bytes_in_any_pieces_give_the_same_bounded_text(out in output(), err in output(), limit in 0_usize..400, pieces in 1_usize..9) {
        let mut at_once = Useful::new(limit);
        at_once.feed(Stream::Out, &out);
        at_once.feed(Stream::Err, &err);
        let mut in_pieces = Useful::new(limit);
        for piece in err.chunks(pieces) {
            in_pieces.feed(Stream::Err, piece);
        }
        for piece in out.chunks(pieces) {
            in_pieces.feed(Stream::Out, piece);
        }
        let text = at_once.finish();
        prop_assert!(text.chars().count() <= limit, "{} > {}", text.chars().count(), limit);
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert_eq!(text, in_pieces.finish());
    }
}
