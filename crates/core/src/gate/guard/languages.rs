//! Which files hold tests, what their tests are called, and what keeps a test from running: one table.
//!
//! A pattern is the words or signs that it begins with (`a|b`; `^` only at the beginning of a line) and an expression for what follows. It is matched with
//! code from which comments and the contents of strings are taken away. In the expression, `TEXT` is a string, `GAP` is anything, as short as possible, and
//! `METHOD` is the first name after that which is declared as a method. The last group that matches is the name of a test.

pub(super) struct Language {
    pub(super) extensions: &'static [&'static str],
    /// Names of files, or of folders where a slash follows, in which tests are looked for.
    pub(super) places: &'static [&'static str],
    /// The code holds no test without this.
    pub(super) needs: &'static str,
    /// Comments and strings, longer beginnings first.
    pub(super) spans: &'static [Span],
    pub(super) tests: &'static [(&'static str, &'static str)],
    pub(super) markers: &'static [(&'static str, &'static str)],
}

/// A comment or a string: how it begins and ends.
pub(super) struct Span {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) is_comment: bool,
    /// Whether it may go on in the next line. Where it may not, a quote that is misread costs one line and no more.
    pub(super) spans_lines: bool,
    /// Whether a backslash takes away the next character's meaning.
    pub(super) escapes: bool,
}

/// These folders hold what others wrote, or what tests work on.
pub(super) const NOT_LOOKED_AT: [&str; 9] =
    ["vendor", "third_party", "node_modules", "testdata", "test-data", "fixtures", "__fixtures__", "snapshots", "__snapshots__"];

const fn comment(open: &'static str, close: &'static str) -> Span {
    Span { open, close, is_comment: true, spans_lines: true, escapes: false }
}

const fn line(mark: &'static str) -> Span {
    Span { open: mark, close: mark, is_comment: false, spans_lines: false, escapes: true }
}

const fn lines(mark: &'static str) -> Span {
    Span { spans_lines: true, ..line(mark) }
}

const fn raw(open: &'static str, close: &'static str) -> Span {
    Span { open, close, is_comment: false, spans_lines: true, escapes: false }
}

/// Comments as in C, strings in double quotes, characters in single ones.
const LIKE_C: Language = Language {
    extensions: &[],
    places: &[],
    needs: "",
    spans: &[comment("//", "\n"), comment("/*", "*/"), raw("\"\"\"", "\"\"\""), line("\""), line("'"), raw("`", "`")],
    tests: &[],
    markers: &[],
};

pub(super) static LANGUAGES: [Language; 10] = [
    Language {
        extensions: &["rs"],
        places: &["*"],
        needs: "test",
        // A single quote may be a lifetime: only that of a quote as a character counts.
        spans: &[
            comment("//", "\n"),
            comment("/*", "*/"),
            raw("r##\"", "\"##"),
            raw("r#\"", "\"#"),
            raw("r\"", "\""),
            raw("'\\\"", "'"),
            raw("'\"", "'"),
            lines("\""),
        ],
        tests: &[("#[", r"\s*(?:\w+\s*::\s*)*(?:test|rstest|test_case|wasm_bindgen_test|quickcheck|proptest)\bGAP\bfn\s+(?:r#)?(\$?\w+)")],
        markers: &[("#[", r"\s*ignore\b"), ("#[", r"\s*cfg_attr[^\[\]]*?,\s*ignore\b")],
    },
    Language {
        extensions: &["py"],
        places: &["test*", "*_test.py", "conftest.py", "tests/", "test/"],
        needs: "test",
        spans: &[comment("#", "\n"), lines("\"\"\""), lines("'''"), line("\""), line("'")],
        tests: &[("def", r"\s+(test\w*)")],
        markers: &[
            ("pytest", r"\s*\.\s*(?:mark\s*\.\s*(?:skip|skipif|xfail)\b|(?:skip|xfail)\s*\()"),
            ("@", r"\s*(?:mark\s*\.\s*(?:skip|skipif|xfail)|skip|skipIf|skipUnless|expectedFailure)\b"),
            ("unittest", r"\s*\.\s*(?:skip|skipIf|skipUnless|expectedFailure|SkipTest)\b"),
            ("raise", r"\s+SkipTest\b"),
            ("__test__", r"\s*=\s*False\b"),
            ("self", r"\s*\.\s*skipTest\s*\("),
        ],
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"],
        places: &["*.test.*", "*.spec.*", "*.cy.*", "*.e2e.*", "*-test.*", "*_test.*", "__tests__/", "test/", "tests/", "spec/", "e2e/"],
        needs: "(",
        spans: &[comment("//", "\n"), comment("/*", "*/"), line("\""), line("'"), lines("`")],
        tests: &[
            ("xit|xtest|fit|ftest|xspecify", r"\s*\(\s*TEXT"),
            (
                "it|test|specify",
                r"(?:\s*\.\s*(?:skip|only|todo|fixme|fails|failing|concurrent|sequential))*(?:\s*\.\s*each\s*(?:\(GAP\)|TEXT))?\s*\(\s*TEXT",
            ),
        ],
        markers: &[
            (
                "it|test|describe|context|suite|specify",
                r"(?:\s*\.\s*(?:concurrent|sequential))?\s*\.\s*(?:skip|only|todo|fixme|failing|fails)\b",
            ),
            ("xit|xtest|xdescribe|xcontext|xspecify|fit|ftest|fdescribe|fcontext", r"\s*\("),
        ],
    },
    Language {
        extensions: &["go"],
        places: &["*_test.go"],
        needs: "func",
        tests: &[("func", r"\s+((?:Test|Benchmark|Fuzz|Example)\w*)")],
        markers: &[("t|b|f|tb", r"\s*\.\s*Skip(?:f|Now)?\s*\(")],
        ..LIKE_C
    },
    Language {
        extensions: &["java", "kt", "kts"],
        places: &["*Test.*", "*Tests.*", "*TestCase.*", "*IT.*", "*Spec.*", "Test*", "test/", "androidTest/", "*Test/"],
        needs: "@",
        tests: &[("@", r"\s*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate)\bMETHOD")],
        markers: &[("@", r"\s*(?:Disabled|Ignored?)\b")],
        ..LIKE_C
    },
    Language {
        extensions: &["cs"],
        places: &["*Test*", "*Spec*", "*Test*/", "*test*/"],
        needs: "[",
        tests: &[("[", r"\s*(?:Test|TestCase|TestCaseSource|Fact|Theory|TestMethod|DataTestMethod)\bMETHOD")],
        markers: &[
            ("[", r"\s*Ignore\b"),
            (",", r"\s*Ignore\s*(?:\(\s*TEXT|\])"),
            ("Fact|Theory", r"\s*\(\s*Skip\s*="),
            ("DisplayName", r"\s*=\s*TEXT\s*,\s*Skip\s*="),
            ("Assert", r"\s*\.\s*(?:Ignore|Inconclusive)\s*\("),
        ],
        ..LIKE_C
    },
    Language {
        extensions: &["rb"],
        places: &["*_spec.rb", "*_test.rb", "test_*", "spec/", "test/"],
        spans: &[comment("#", "\n"), comment("=begin", "=end"), line("\""), line("'")],
        tests: &[("^it|specify|scenario|example|test|xit|fit|xspecify|xscenario", r"\s*\(?\s*TEXT"), ("def", r"\s+(test_\w*)")],
        markers: &[
            ("^xit|xdescribe|xcontext|xspecify|xscenario|fit|fdescribe|fcontext|fspecify", ""),
            ("^skip|pending", r"\s*\(?\s*TEXT"),
            (":skip|:focus", ""),
            ("skip|focus", r"\s*:\s*true\b"),
        ],
        ..LIKE_C
    },
    Language {
        extensions: &["php"],
        places: &["*Test.php", "*Cest.php", "tests/", "test/"],
        spans: &[comment("//", "\n"), comment("# ", "\n"), comment("/*", "*/"), line("\""), line("'")],
        tests: &[("function", r"\s+(test\w*)"), ("#[", r"\s*Test\bGAP\bfunction\s+(\w+)"), ("^it|test", r"\s*\(\s*TEXT")],
        markers: &[("markTestSkipped|markTestIncomplete", r"\s*\("), ("}", r"\s*\)\s*->\s*(?:skip|only|todo)\s*\(")],
        ..LIKE_C
    },
    Language {
        extensions: &["exs"],
        places: &["*_test.exs"],
        spans: &[comment("#", "\n"), lines("\"\"\""), line("\"")],
        tests: &[("^test|property", r"\s*TEXT")],
        markers: &[("@", r"\s*(?:tag|moduletag|describetag)\s*(?::\s*skip\b|skip\s*:)")],
        ..LIKE_C
    },
    Language {
        extensions: &["swift"],
        places: &["*Test.swift", "*Tests.swift", "*Tests/"],
        tests: &[("func", r"\s+(test\w*)"), ("@", r"\s*Test\bGAP\bfunc\s+(?:TEXT|(\w+))")],
        markers: &[("XCTSkip|XCTSkipIf|XCTSkipUnless", r"\s*\("), (".disabled", r"\s*\(")],
        ..LIKE_C
    },
];
