//! Which files hold tests, what their tests are called, and what keeps one from being run: one table.
//!
//! A pattern is a row of tokens. `a|b` is either word, `test*` any word that begins so, `^word` one that begins its line, `WORD` any word, `TEXT` any string,
//! `NAME` either, `METHOD` a name that is declared there. `PATH` is any number of `word::` before the next one, `..` anything up to what comes
//! next, and `WITHIN` the same, but nothing beyond a square bracket.
//! What a test is called is what the last of `test*`, `WORD`, `TEXT`, `NAME` and `METHOD` stands for.

use super::tokens::{Oddity, Quote, Syntax};

#[derive(Debug)]
pub(super) struct Language {
    pub(super) extensions: &'static [&'static str],
    /// Names of files, or of folders where a slash follows, in which tests are looked for.
    pub(super) places: &'static [&'static str],
    /// No test is written without this.
    pub(super) needs: &'static str,
    pub(super) syntax: Syntax,
    pub(super) tests: &'static [&'static str],
    pub(super) markers: &'static [&'static str],
}

/// What lies in these was written by others, or is no test but the subject of one.
pub(super) const NOT_LOOKED_AT: [&str; 9] =
    ["vendor", "third_party", "node_modules", "testdata", "test-data", "fixtures", "__fixtures__", "snapshots", "__snapshots__"];

const fn line(mark: &'static str) -> Quote {
    Quote { mark, spans_lines: false, escapes: true }
}

const fn lines(mark: &'static str) -> Quote {
    Quote { mark, spans_lines: true, escapes: true }
}

const fn raw(mark: &'static str) -> Quote {
    Quote { mark, spans_lines: true, escapes: false }
}

/// Comments as in C, strings in double quotes, characters in single ones.
const LIKE_C: Syntax = Syntax {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &[raw("\"\"\""), line("\""), line("'"), raw("`")],
    oddity: Oddity::None,
};

pub(super) const LANGUAGES: [Language; 10] = [
    Language {
        extensions: &["rs"],
        places: &["*"],
        needs: "test",
        syntax: Syntax { quotes: &[lines("\"")], oddity: Oddity::Rust, ..LIKE_C },
        tests: &["# [ PATH test|rstest|test_case|wasm_bindgen_test|quickcheck|proptest .. fn WORD"],
        markers: &["# [ ignore", "# [ cfg_attr WITHIN , ignore"],
    },
    Language {
        extensions: &["py"],
        places: &["test*", "*_test.py", "conftest.py", "tests/", "test/"],
        needs: "test",
        syntax: Syntax {
            line_comments: &["#"],
            block_comment: None,
            quotes: &[lines("\"\"\""), lines("'''"), line("\""), line("'")],
            oddity: Oddity::None,
        },
        tests: &["def test*"],
        markers: &[
            "pytest . mark . skip|skipif|xfail",
            "@ mark . skip|skipif|xfail",
            "pytest . skip|xfail (",
            "unittest . skip|skipIf|skipUnless|expectedFailure|SkipTest",
            "raise SkipTest",
            "__test__ = False",
            "@ skip|skipIf|skipUnless|expectedFailure",
            "self . skipTest (",
        ],
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"],
        places: &["*.test.*", "*.spec.*", "*.cy.*", "*.e2e.*", "*-test.*", "*_test.*", "__tests__/", "test/", "tests/", "spec/", "e2e/"],
        needs: "(",
        syntax: Syntax { quotes: &[line("\""), line("'")], oddity: Oddity::Script, ..LIKE_C },
        tests: &[
            "it|test|specify|xit|xtest|fit|ftest|xspecify ( TEXT",
            "it|test|specify . skip|only|todo|fixme|fails|failing|concurrent|sequential ( TEXT",
            "it|test|specify . concurrent|sequential . skip|only|todo ( TEXT",
            "it|test|specify . each ( .. ) ( TEXT",
            "it|test|specify . each TEXT ( TEXT",
            "it|test|specify . skip|only|concurrent . each ( .. ) ( TEXT",
        ],
        markers: &[
            "it|test|describe|context|suite|specify . skip|only|todo|fixme",
            "it|test . failing|fails",
            "it|test|describe . concurrent|sequential . skip|only|todo",
            "xit|xtest|xdescribe|xcontext|xspecify|fit|ftest|fdescribe|fcontext (",
        ],
    },
    Language {
        extensions: &["go"],
        places: &["*_test.go"],
        needs: "func",
        syntax: LIKE_C,
        tests: &["func Test*", "func Benchmark*", "func Fuzz*", "func Example*"],
        markers: &["t|b|f|tb . Skip|Skipf|SkipNow ("],
    },
    Language {
        extensions: &["java", "kt", "kts"],
        places: &["*Test.*", "*Tests.*", "*TestCase.*", "*IT.*", "*Spec.*", "Test*", "test/", "androidTest/", "*Test/"],
        needs: "@",
        syntax: LIKE_C,
        tests: &["@ Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate .. METHOD"],
        markers: &["@ Disabled|Ignore|Ignored"],
    },
    Language {
        extensions: &["cs"],
        places: &["*Test*", "*Spec*", "*Test*/", "*test*/"],
        needs: "[",
        syntax: LIKE_C,
        tests: &["[ Test|TestCase|TestCaseSource|Fact|Theory|TestMethod|DataTestMethod .. METHOD"],
        markers: &[
            "[ Ignore",
            ", Ignore ( TEXT",
            ", Ignore ]",
            "Fact|Theory ( Skip =",
            "DisplayName = TEXT , Skip =",
            "Assert . Ignore|Inconclusive (",
        ],
    },
    Language {
        extensions: &["rb"],
        places: &["*_spec.rb", "*_test.rb", "test_*", "spec/", "test/"],
        needs: "",
        syntax: Syntax {
            line_comments: &["#"],
            block_comment: Some(("=begin", "=end")),
            quotes: &[line("\""), line("'")],
            oddity: Oddity::None,
        },
        tests: &[
            "^it|specify|scenario|example|test|xit|fit|xspecify|xscenario TEXT",
            "^it|specify|scenario|example|test|xit|fit|xspecify|xscenario ( TEXT",
            "def test_*",
        ],
        markers: &[
            "^xit|xdescribe|xcontext|xspecify|xscenario|fit|fdescribe|fcontext|fspecify",
            "^skip|pending TEXT",
            "^skip|pending ( TEXT",
            ": skip|focus",
            "skip|focus : true",
        ],
    },
    Language {
        extensions: &["php"],
        places: &["*Test.php", "*Cest.php", "tests/", "test/"],
        needs: "",
        syntax: Syntax { line_comments: &["//", "# "], quotes: &[line("\""), line("'")], ..LIKE_C },
        tests: &["function test*", "# [ Test .. function WORD", "^it|test ( TEXT"],
        markers: &["markTestSkipped|markTestIncomplete (", "} ) - > skip|only|todo ("],
    },
    Language {
        extensions: &["exs"],
        places: &["*_test.exs"],
        needs: "",
        syntax: Syntax { line_comments: &["#"], block_comment: None, quotes: &[lines("\"\"\""), line("\"")], oddity: Oddity::None },
        tests: &["^test|property TEXT"],
        markers: &["@ tag|moduletag|describetag : skip", "@ tag|moduletag|describetag skip :"],
    },
    Language {
        extensions: &["swift"],
        places: &["*Test.swift", "*Tests.swift", "*Tests/"],
        needs: "",
        syntax: LIKE_C,
        tests: &["func test*", "@ Test .. func NAME"],
        markers: &["XCTSkip|XCTSkipIf|XCTSkipUnless (", ". disabled ("],
    },
];
