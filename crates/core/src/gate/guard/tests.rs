//! What is a test, what is a marker, and which changes are suspicious.

use proptest::prelude::*;

use super::*;
use crate::gate::{Command, Features, File, Markers, Origin};

fn seen(path: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let source = Source::read(path, text).unwrap_or_default();
    (source.tests, source.markers)
}

/// A source in a language, its tests and its markers.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const SAMPLES: &[Row] = &[
    (
        "src/lib.rs",
        r##"
            /// See `#[ignore]`. /* not /* nested */ #[test] fn no() */
            #[cfg(test)] mod tests {
                #[test] fn one() { let s = "#[ignore]"; let r = r#"" #[ignore] #[test] fn no()"#; let c = '"'; let q = '\''; }
                fn helper<'a>(x: &'a str) -> &'a str { x }
                // #[ignore]
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "slow"]
                async fn two() {}
                #[test_case(1 ; "first")]
                #[test_case(2 ; "second")]
                fn three(n: u8) {}
                #[rstest] pub fn four() {}
                #[test]
                #[should_panic(expected = "fn")]
                fn five() {}
            }"##,
        &["one", "two", "three", "four", "five"],
        &["#[ignore]"],
    ),
    (
        "tests/test_login.py",
        "
            '''docstring with @pytest.mark.skip'''
            import pytest  # it's @pytest.mark.skip here
            def test_one(): assert \"@pytest.mark.skip\"
            @pytest.mark.skip(reason='later')
            async def test_two(self): ...
            @pytest.mark.skipif(True, reason='x')
            def test_three(): ...
            @unittest.skip('x')
            def test_four(self): self.skipTest('x')
            def helper_test(): ...
            ",
        &["test_one", "test_two", "test_three", "test_four"],
        &["pytest.mark.skip", "pytest.mark.skipif", "unittest.skip", "self.skipTest"],
    ),
    (
        "src/login.test.tsx",
        r#"
            // it.skip('commented')
            describe('login', () => {
                it('works', () => { expect(/['"]it.skip(/.test('x')).toBe(a / b / c) })
                test.only("alone", async () => {})
                it(`says ${name(`x`)}`, () => {})
                it.skip(
                    'formatted',
                    () => {})
                xit('old', () => {})
                it.each([[1, 2], [3, 4]])('adds %i', (a, b) => {})
                test.each`a | b
                ${1} | ${2}`('takes $a', () => {})
                it.todo('later')
                const s = "describe.only(";
                submit('no test');
            })"#,
        &["works", "alone", "says ${name(", "formatted", "old", "adds %i", "takes $a", "later"],
        &["test.only", "it.skip", "xit", "it.todo"],
    ),
    (
        "pkg/login_test.go",
        "
            func TestLogin(t *testing.T) { s := `t.Skip(\"x\")`; if testing.Short() { t.Skip(\"slow\") } }
            // t.Skip()
            func helper(t *testing.T) {}
            func BenchmarkLogin(b *testing.B) {}
            ",
        &["TestLogin", "BenchmarkLogin"],
        &["t.Skip"],
    ),
    (
        "src/test/java/LoginTest.java",
        "
            class LoginTest {
                @Test public void works() throws Exception { new Foo(1); }
                @Test(expected = IllegalStateException.class) void fails() {}
                /* @Disabled */
                @ParameterizedTest @ValueSource(strings = {\"a(\", \"b\"}) @DisplayName(\"x\")
                <T> List<T> many(String s) { return null; }
                @Disabled(\"later\") @Test void later() {}
            }",
        &["works", "fails", "many", "later"],
        &["@Disabled"],
    ),
    (
        "app/src/test/kotlin/LoginTest.kt",
        "
            class LoginTest {
                @Test fun works() = runTest { }
                @Test
                fun `says hello to (everybody)`() { }
                @Ignore @Test suspend fun later() {}
            }",
        &["works", "says hello to (everybody)", "later"],
        &["@Ignore"],
    ),
    (
        "App.Tests/Login.cs",
        "
            [TestFixture] public class LoginTests {
                [Test] public void Works() { Foo(1); }
                [Theory, InlineData(1)] [InlineData(2)] public async Task<int> Many(int n) {}
                [Fact(Skip = \"later\")] public void Later() {}
                // [Ignore]
                [Test, Ignore(\"x\")] public void Old() {}
                [TestMethod] [Ignore] public void Older() {}
            }",
        &["Works", "Many", "Later", "Old", "Older"],
        &["Fact(Skip=", "Ignore", "[Ignore]"],
    ),
    (
        "spec/login_spec.rb",
        "
            # xit 'commented'
            describe Login do
              it 'works' do expect(x).to eq \"xit 'y'\" end
              it(\"works too\") { skip }
              xit 'old' do end
              it 'later' do
                skip 'not yet'
              end
              list.skip 3
            end
            ",
        &["works", "works too", "old", "later"],
        &["xit", "skip"],
    ),
    (
        "tests/LoginTest.php",
        "<?php
            class LoginTest extends TestCase {
                // $this->markTestSkipped();
                public function testWorks(): void { $this->q->skip(3); }
                #[Test] public function says_hello(): void { $this->markTestSkipped('x'); }
            }
            it('pests', function () { })->skip('later');
            ",
        &["testWorks", "says_hello", "pests"],
        &["markTestSkipped", "})->skip"],
    ),
    (
        "test/login_test.exs",
        "
            @tag :skip
            test \"works\" do
              assert \"@tag :skip\" # @tag :skip
            end
            test \"more\", %{conn: conn} do end
            ",
        &["works", "more"],
        &["@tag:skip"],
    ),
    (
        "Tests/LoginTests.swift",
        "
            func testWorks() throws { throw XCTSkip(\"x\") }
            @Test(\"says hello\", .disabled(\"later\")) func hello() {}
            func helper() {}
            ",
        &["testWorks", "hello"],
        &["XCTSkip", ".disabled"],
    ),
];

#[test]
fn tests_and_markers_of_every_language() {
    for (path, text, tests, markers) in SAMPLES {
        let (found_tests, found_markers) = seen(path, text);
        assert_eq!(found_tests, *tests, "{path}");
        assert_eq!(found_markers, *markers, "{path}");
    }
}

#[test]
fn every_pattern_of_the_table_is_an_expression() {
    for language in &languages::LANGUAGES {
        for table in [language.tests, language.markers] {
            assert_eq!(source::compiled(table).len(), table.len(), "{:?}", language.extensions);
        }
    }
}

#[test]
fn ways_to_skip_that_are_less_known() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &[&str])] = &[
        ("a.rs", "#[cfg_attr(miri, ignore)] #[test] fn a() {}", &["#[cfg_attr(miri,ignore)]"]),
        ("a.rs", "#[cfg_attr(all(unix, x), ignore = \"slow\")] #[test] fn a() {}", &["#[cfg_attr(all(unix,x),ignore)]"]),
        ("a.rs", "#[cfg_attr(test, derive(Debug))] struct A; #[test] fn a() { f(x, ignore) }", &[]),
        ("test_a.py", "def test_a():\n    raise unittest.SkipTest('x')", &["unittest.SkipTest"]),
        ("test_a.py", "def test_a():\n    raise SkipTest", &["raise SkipTest"]),
        ("test_a.py", "def test_a():\n    pytest.skip('x')", &["pytest.skip"]),
        ("test_a.py", "class TestA:\n    __test__ = False\n", &["__test__=False"]),
        ("test_a.py", "class TestA:\n    __test__ = True\n", &[]),
        ("a.test.ts", "it.failing('x', f)", &["it.failing"]),
    ];
    for (path, text, markers) in table {
        assert_eq!(seen(path, text).1, *markers, "{text}");
    }
}

#[test]
fn only_what_may_hold_tests_is_read() {
    for path in [
        "src/lib.rs",
        "tests/test_a.py",
        "app/tests/a.py",
        "a.spec.ts",
        "x/__tests__/a.js",
        "a_test.go",
        "src/test/java/A.java",
        "B.Tests/C.cs",
    ] {
        assert!(Source::may_hold_tests(path), "{path}");
    }
    for path in [
        "README.md",
        "src/app.py",
        "src/latest.js",
        "main.go",
        "src/main/java/A.java",
        "vendor/a/a_test.go",
        "tests/fixtures/test_a.py",
        "Makefile",
        "",
    ] {
        assert!(!Source::may_hold_tests(path), "{path}");
    }
}

fn facts(sources: &[(&str, &str)]) -> Facts {
    let sources = sources.iter().filter_map(|(path, text)| Some(((*path).to_owned(), Source::read(path, text)?))).collect();
    Facts { sources: Some(sources), items: Some(Vec::new()), ..Facts::default() }
}

const AUTH: (&str, &str) =
    ("tests/auth.rs", "#[test] fn login() { assert!(a); }\n#[test]\n#[ignore]\nfn slow() {}\n#[test] fn logout() {}");

/// What honest work looks like. Whoever adds a language adds a row.
#[test]
fn harmless_changes_raise_no_suspicion() {
    let table: &[(&str, &[(&str, &str)])] = &[
        ("nothing changed", &[AUTH]),
        (
            "tests moved to another file, with a marker",
            &[("tests/auth.rs", "#[test] fn login() {}"), ("src/auth.rs", "#[test] #[ignore] fn slow() {} #[test] fn logout() {}")],
        ),
        ("the file was renamed", &[("tests/sign_in.rs", AUTH.1)]),
        (
            "bodies changed",
            &[("tests/auth.rs", "#[test] fn login() { other() }\n#[test]\n#[ignore]\nfn slow() { new() }\n#[test] fn logout() {}")],
        ),
        (
            "formatted",
            &[(
                "tests/auth.rs",
                "#[test]\nfn login() {\n    assert!(a);\n}\n\n#[test]\n#[ignore]\nfn slow() {}\n\n#[test]\nfn logout() {\n}\n",
            )],
        ),
        ("a new test", &[AUTH, ("tests/new.rs", "#[test] fn new() {}")]),
        (
            "a comment that mentions a marker",
            &[AUTH, ("tests/new.rs", "// no #[ignore] here\n/* #[ignore] */ #[test] fn new() { \"#[ignore]\" }")],
        ),
        ("a marker was removed", &[("tests/auth.rs", "#[test] fn login() {}\n#[test] fn slow() {}\n#[test] fn logout() {}")]),
        ("words", &[AUTH, ("README.md", "#[ignore] #[test] it.skip")]),
        ("other code", &[AUTH, ("src/main.rs", "fn main() { skip(); ignore(); }")]),
        ("the order changed", &[("tests/auth.rs", "#[test] fn logout() {} #[test] #[ignore] fn slow() {} #[test] fn login() {}")]),
        (
            "became async, got an attribute",
            &[(
                "tests/auth.rs",
                "#[tokio::test] async fn login() {} #[test] #[ignore] fn slow() {} #[test] #[serial] pub(crate) fn logout() {}",
            )],
        ),
    ];
    for (what, now) in table {
        assert_eq!(Facts::suspicions(&facts(&[AUTH]), &facts(now)), [""; 0], "{what}");
    }
    let unread = Facts { sources: None, items: None, ..Facts::default() };
    assert_eq!(Facts::suspicions(&unread, &facts(&[AUTH])), [""; 0], "nothing is known about the start");
}

#[test]
fn tests_that_are_gone_and_markers_are_said() {
    type Files = &'static [(&'static str, &'static str)];
    let table: &[(Files, &[&str])] = &[
        (&[("tests/auth.rs", "#[test] #[ignore] fn slow() {}")], &["tests/auth.rs: 2 tests are gone (login, logout)"]),
        (&[], &["tests/auth.rs: 3 tests are gone (login, slow, logout)"]),
        (
            &[("tests/auth.rs", "// #[test] fn login() {}\n#[test] #[ignore] fn slow() {} #[test] fn logout() {}")],
            &["tests/auth.rs: 1 test is gone (login)"],
        ),
        (
            &[("tests/auth.rs", "#[test] fn log_in() {} #[test] #[ignore] fn slow() {} #[test] fn logout() {}")],
            &["tests/auth.rs: 1 test is gone (login); 1 is new"],
        ),
        (
            &[("tests/auth.rs", "#[test] #[ignore] fn login() {} #[test] #[ignore] fn slow() {} #[test] #[ignore] fn logout() {}")],
            &["tests/auth.rs: 2 markers that skip or single out tests were added (`#[ignore]`)"],
        ),
        (
            &[AUTH, ("web/a.test.ts", "it.only('x', f); xit('y', f)")],
            &["web/a.test.ts: 2 markers that skip or single out tests were added (`it.only`, `xit`)"],
        ),
    ];
    for (now, said) in table {
        assert_eq!(Facts::suspicions(&facts(&[AUTH]), &facts(now)), *said);
    }
}

#[test]
fn who_hides_the_tests_is_suspicious() {
    let unseen = Facts { sources: None, unseen: vec!["git does not answer".to_owned()], ..facts(&[]) };
    assert_eq!(
        Facts::suspicions(&facts(&[AUTH]), &unseen),
        ["the tests could not be compared with those of the start: git does not answer"]
    );
    assert_eq!(Facts::suspicions(&unseen, &unseen), [""; 0], "they could not be seen at the start either");
}

#[test]
fn one_of_two_tests_of_a_name_is_missed() {
    let before = facts(&[("tests/a.rs", "#[test] fn works() {}"), ("tests/b.rs", "#[test] fn works() {}")]);
    assert_eq!(Facts::suspicions(&before, &facts(&[("tests/a.rs", "#[test] fn works() {}")])), ["tests/b.rs: 1 test is gone (works)"]);
    assert_eq!(
        Facts::suspicions(&before, &facts(&[("tests/c.rs", "mod a { #[test] fn works() {} } mod b { #[test] fn works() {} }")])),
        [""; 0]
    );
}

fn gate(name: &str, check: Check) -> Gate {
    Gate { trusted: true, ..Gate::new(name, check, Origin::Loop) }
}

fn command(line: &str) -> Command {
    Command::shell(line)
}

fn audit() -> File {
    File { contains: Some("PASS".to_owned()), fresh: Some(Vec::new()), ..File::at("AUDIT.md") }
}

fn with_gates(gates: &[Gate]) -> Facts {
    Facts { gates: gates.iter().map(Asked::of).collect(), ..facts(&[]) }
}

#[test]
fn a_gate_may_ask_for_more_but_not_for_less() {
    let tests = gate("tests", Check::Command(command("cargo test")));
    let words = gate("words", Check::Markers(Markers { words: vec!["A".to_owned(), "B".to_owned()] }));
    let list = gate("list", Check::Features(Features::of("prd.json")));
    let before = with_gates(&[tests.clone(), gate("audit", Check::File(audit())), words.clone(), list.clone()]);
    let with = |changed: Gate| {
        let all = [tests.clone(), gate("audit", Check::File(audit())), words.clone(), list.clone()];
        with_gates(&all.map(|gate| if gate.name == changed.name { changed.clone() } else { gate }))
    };
    let of_command = |command: Command| with(gate("tests", Check::Command(command)));
    let of_file = |file: File| with(gate("audit", Check::File(file)));
    let words_of = |words: &[&str]| with(gate("words", Check::Markers(Markers { words: words.iter().map(|w| (*w).to_owned()).collect() })));

    let harmless = [
        before.clone(),
        of_command(Command { deadline_ms: 1, excerpt: 9, parallel: true, cache: false, ..command("cargo test") }),
        words_of(&["B", "A", "C"]),
        with_gates(&[
            gate("renamed", tests.check.clone()),
            gate("audit", Check::File(audit())),
            words.clone(),
            list.clone(),
            gate("new", tests.check.clone()),
        ]),
    ];
    for now in harmless {
        assert_eq!(Facts::suspicions(&before, &now), [""; 0]);
    }
    #[rustfmt::skip]
    let weaker = [
        (with_gates(&[gate("audit", Check::File(audit())), words.clone(), list.clone()]), "gate \"tests\" is gone (`cargo test`)"),
        (of_command(command("true")), "gate \"tests\" asked for `cargo test` when the loop began, and asks for `true` now"),
        (of_command(Command { env: vec![("SKIP".to_owned(), "1".to_owned())], ..command("cargo test") }), "gate \"tests\": its environment was `` when the loop began, and is `SKIP=1` now"),
        (of_command(Command { old_failures: OldFailures::Allow, ..command("cargo test") }), "gate \"tests\": its word on old failures was `block` when the loop began, and is not asked for now"),
        (of_file(File { contains: None, ..audit() }), "gate \"audit\": its text was `PASS` when the loop began, and is not asked for now"),
        (of_file(File { contains: Some(".".to_owned()), ..audit() }), "gate \"audit\": its text was `PASS` when the loop began, and is `.` now"),
        (of_file(File { fresh: None, ..audit() }), "gate \"audit\": its list of sources was `` when the loop began, and is not asked for now"),
        (of_file(File { path: "OTHER.md".to_owned(), ..audit() }), "gate \"audit\" asked for `AUDIT.md` when the loop began, and asks for `OTHER.md` now"),
        (words_of(&["A"]), "gate \"words\" asked for `A, B` when the loop began, and asks for `A` now"),
        (with(gate("list", Check::Features(Features::of("empty.json")))), "gate \"list\" asked for `prd.json` when the loop began, and asks for `empty.json` now"),
    ];
    for (now, said) in weaker {
        assert_eq!(Facts::suspicions(&before, &now), [said]);
    }
}

#[test]
fn files_items_and_the_guard_itself_are_watched() {
    let item = |id: &str, criteria: &str| Item { list: "prd.json".to_owned(), id: id.to_owned(), criteria: criteria.to_owned() };
    let file = |digest: &str| BTreeMap::from([("verify.sh".to_owned(), digest.to_owned())]);
    let before = Facts {
        files: file("1"),
        runners: BTreeMap::from([("verify.sh".to_owned(), BTreeSet::from(["tests".to_owned()]))]),
        items: Some(vec![item("1", "a"), item("2", "b"), item("3", "c")]),
        guard: GuardPolicy::Warn,
        ..Facts::default()
    };
    let more = Facts {
        items: Some(vec![item("3", "c"), item("2", "b"), item("1", "a"), item("4", "d")]),
        guard: GuardPolicy::Block,
        ..before.clone()
    };
    assert_eq!(Facts::suspicions(&before, &more), [""; 0]);
    assert_eq!(Facts::suspicions(&before, &Facts { files: BTreeMap::new(), ..before.clone() }), [""; 0], "nobody asks for it any more");
    let less = Facts { files: file("2"), items: Some(vec![item("2", "easier")]), guard: GuardPolicy::Off, ..before.clone() };
    assert_eq!(
        Facts::suspicions(&before, &less),
        [
            "verify.sh, which the gate \"tests\" runs, has changed since the loop began",
            "prd.json: 2 items are gone (1, 3)",
            "prd.json: what 1 item asked for changed (2)",
            "the guard was set to \"warn\" when the loop began, and is set to \"off\" now",
        ]
    );
    assert_eq!(
        Facts::suspicions(&before, &Facts { files: file(""), ..before.clone() }),
        ["verify.sh, which the gate \"tests\" runs, is gone"]
    );
    let nobody = Facts { files: file("2"), runners: BTreeMap::new(), ..before.clone() };
    assert_eq!(Facts::suspicions(&before, &nobody), ["verify.sh, which declares gates, has changed since the loop began"]);
    assert_eq!(GuardPolicy::Block.stricter(GuardPolicy::Off), GuardPolicy::Block);
    assert_eq!(GuardPolicy::Off.stricter(GuardPolicy::Warn), GuardPolicy::Warn);
}

#[test]
fn what_is_said_is_bounded_and_clean() {
    let source: String = (0..400).fold(String::new(), |all, n| format!("{all}#[test] fn t{n}() {{}}\n"));
    let many: Vec<(String, String)> =
        (0..40).map(|n| (format!("tests/\u{1b}[31m{n}.rs"), source.replace("fn t", &format!("fn t{n}_")))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let said = Facts::suspicions(&facts(&many), &facts(&[]));
    assert_eq!(said.len(), 21);
    assert_eq!(said[20], "and 20 more");
    assert!(said[0].ends_with("400 tests are gone (t0_0, t0_1, t0_2, t0_3, t0_4 and 395 more)"), "{}", said[0]);
    assert!(said.iter().all(|line| line.len() < 300 && !line.contains('\u{1b}')));
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "[#\\[\\]a-z(){}'\"`/\\\\*$@.:\n r=]{0,200}", n in 0..10_usize) {
        let paths = ["a.rs", "test_a.py", "a.test.ts", "a_test.go", "ATest.java", "ATest.cs", "a_spec.rb", "ATest.php", "a_test.exs", "ATests.swift"];
        Source::read(paths[n], &text);
    }

    #[test]
    fn nor_too_foreign(text in any::<String>(), n in 0..10_usize) {
        let paths = ["a.rs", "test_a.py", "a.test.ts", "a_test.go", "ATest.java", "ATest.cs", "a_spec.rb", "ATest.php", "a_test.exs", "ATests.swift"];
        Source::read(paths[n], &format!("test ( func [ @{text}"));
    }
}
