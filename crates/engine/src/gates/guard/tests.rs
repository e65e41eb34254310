//! The guard in a real project.

use ralph_core::gate::{Command, Features, Finding, Gate, Kind, Origin, Verdict};

use super::*;
use crate::sys::{files::write_whole, temp_dir::Scratch};

struct Bed {
    scratch: Scratch,
    _state: Scratch,
    project: Project,
}

const LOOP: &str = "a-loop";

impl Bed {
    fn new() -> Self {
        let scratch = Scratch::create("ralph-guard-", false).unwrap();
        let state = Scratch::create("ralph-guard-", false).unwrap();
        let project = Project::with_state(scratch.path(), state.path());
        let bed = Bed { scratch, _state: state, project };
        bed.write("tests/auth.rs", "#[test] fn login() {}\n#[test] fn logout() {}\n");
        bed.write("src/lib.rs", "#[cfg(test)] mod tests { #[test] fn adds() {} }\n");
        bed.write("verify.sh", "#!/bin/sh\n# all of it\ncargo test\n");
        bed.write("scripts/lint.sh", "cargo clippy\n");
        bed.write("package.json", r#"{"scripts": {"test": "npm run unit && sh scripts/lint.sh", "unit": "vitest", "dev": "vite"}}"#);
        bed.write("Makefile", "check:\n\tcargo test\n");
        bed.write(
            "prd.json",
            r#"{"userStories": [{"id": "1", "title": "a", "passes": false}, {"id": "2", "title": "b", "passes": false}]}"#,
        );
        bed.write("TODO.md", "- [ ] first\n- [ ] second\n  - [ ] step\n");
        bed
    }

    fn write(&self, path: &str, text: &str) {
        write_whole(&self.scratch.path().join(path), text.as_bytes()).unwrap();
    }

    fn begin(&self) {
        note_start(&self.project, LOOP, &declared());
    }

    fn says(&self, said: &[&str]) {
        assert_eq!(Start::of(&self.project, LOOP).suspicions(&self.project, &declared()), said);
    }
}

fn gate(name: &str, check: Check) -> Gate {
    Gate { trusted: true, ..Gate::new(name, check, Origin::Loop) }
}

fn declared() -> Declared {
    let run = |line: &str| gate(line, Check::Command(Command::shell(line)));
    let list = |path: &str| gate(path, Check::Features(Features::of(path)));
    let gates = vec![run("./verify.sh"), run("npm test"), run("make check"), list("prd.json"), list("TODO.md")];
    Declared { gates, ..Declared::default() }
}

#[test]
fn honest_work_is_not_suspicious() {
    let bed = Bed::new();
    bed.begin();
    bed.says(&[]);
    bed.write("tests/auth.rs", "#[test]\nfn login() {\n    assert!(true);\n}\n");
    bed.write("tests/session.rs", "mod logout;\n#[test] fn logout() {}\n#[test] fn more() {}\n");
    bed.write("verify.sh", "#!/bin/sh\n\n# all of it, said better\ncargo test  \n");
    bed.write(
        "package.json",
        r#"{"version": "2", "scripts": {"unit": "vitest", "test": "npm run unit && sh scripts/lint.sh", "dev": "vite --open", "new": "x"}}"#,
    );
    bed.write(
        "prd.json",
        r#"{"userStories": [{"id": "1", "title": "a", "passes": true}, {"id": "2", "title": "b", "passes": true, "notes": "x"}]}"#,
    );
    bed.write("TODO.md", "- [ ] before all\n- [x] first\n- [x] second\n  - [x] step\n");
    bed.write("README.md", "#[ignore]");
    bed.says(&[]);
}

#[test]
fn a_weaker_proof_is() {
    let bed = Bed::new();
    bed.begin();
    bed.write("tests/auth.rs", "#[test]\n#[ignore]\nfn login() {}\n");
    bed.write("verify.sh", "exit 0\n");
    bed.write("scripts/lint.sh", "true\n");
    bed.write("package.json", r#"{"scripts": {"test": "true", "unit": "true"}}"#);
    std::fs::remove_file(bed.scratch.path().join("Makefile")).unwrap();
    bed.write("prd.json", r#"{"userStories": [{"id": "1", "title": "something easier", "passes": true}]}"#);
    bed.write("TODO.md", "- [x] second\n  - [x] step\n");
    bed.says(&[
        "tests/auth.rs: 1 test is gone (logout)",
        "tests/auth.rs: 1 marker that skips or singles out tests was added (`#[ignore]`)",
        "Makefile, which the gate \"make check\" runs, is gone",
        "package.json (script \"test\"), which the gate \"npm test\" runs, has changed since the loop began",
        "verify.sh, which the gate \"./verify.sh\" runs, has changed since the loop began",
        "TODO.md: 1 item is gone (first)",
        "prd.json: 1 item is gone (2)",
        "prd.json: what 1 item asked for changed (1)",
    ]);
    accept(&bed.project, LOOP, &declared()).unwrap();
    bed.says(&[]);
}

#[test]
fn a_script_of_a_script_counts() {
    let bed = Bed::new();
    bed.begin();
    bed.write("scripts/lint.sh", "true\n");
    bed.says(&["scripts/lint.sh, which the gate \"npm test\" runs, has changed since the loop began"]);
}

#[test]
fn a_script_in_another_folder_counts_too() {
    let bed = Bed::new();
    bed.write("ci/check.sh", "cargo test\n");
    bed.write("packages/a/package.json", r#"{"scripts": {"test": "vitest"}}"#);
    let run = |line: &str| gate(line, Check::Command(Command::shell(line)));
    let gates = vec![run("cd ci && ./check.sh"), run("pnpm --filter @x/a test")];
    let declared = Declared { gates, ..Declared::default() };
    note_start(&bed.project, LOOP, &declared);
    bed.write("ci/check.sh", "true\n");
    bed.write("packages/a/package.json", r#"{"scripts": {"test": "true"}}"#);
    assert_eq!(
        Start::of(&bed.project, LOOP).suspicions(&bed.project, &declared),
        [
            "ci/check.sh, which the gate \"cd ci && ./check.sh\" runs, has changed since the loop began",
            "packages/a/package.json (script \"test\"), which the gate \"pnpm --filter @x/a test\" runs, has changed since the loop began",
        ]
    );
}

#[test]
fn the_beginning_is_noted_once() {
    let bed = Bed::new();
    bed.says(&[]);
    bed.begin();
    bed.write("tests/auth.rs", "");
    bed.begin();
    bed.says(&["tests/auth.rs: 2 tests are gone (login, logout)"]);
}

#[test]
fn the_guard_cannot_be_switched_off_by_the_one_it_watches() {
    let bed = Bed::new();
    note_start(&bed.project, LOOP, &Declared { guard: GuardPolicy::Block, ..declared() });
    let off = Declared { guard: GuardPolicy::Off, ..declared() };
    assert_eq!(Start::of(&bed.project, LOOP).policy(&off), GuardPolicy::Block);
    assert_eq!(
        Start::of(&bed.project, LOOP).suspicions(&bed.project, &off),
        ["the guard was set to \"block\" when the loop began, and is set to \"off\" now"]
    );
    note_start(&bed.project, "another", &off);
    assert_eq!(Start::of(&bed.project, "another").policy(&off), GuardPolicy::Off, "it was off from the beginning");
    assert!(read(&bed.project, "another").unwrap().sources.is_some(), "the ending is still compared with the start");
}

/// Who trusts `ralph.toml` has seen `ralph.toml`, and nothing else.
#[test]
fn trusted_settings_renew_themselves_alone() {
    let bed = Bed::new();
    bed.write("ralph.toml", "x");
    let of_toml = |gate: Gate| Gate { origin: Origin::File("ralph.toml".to_owned()), ..gate };
    let run = |name: &str, line: &str| gate(name, Check::Command(Command::shell(line)));
    let before = vec![of_toml(run("tests", "./verify.sh")), run("own", "make check"), of_toml(run("lint", "sh scripts/lint.sh"))];
    note_start(&bed.project, LOOP, &Declared { gates: before, guard: GuardPolicy::Block, ..Declared::default() });
    bed.write("ralph.toml", "y");
    bed.write("verify.sh", "exit 0\n");
    bed.write("tests/auth.rs", "#[test] fn login() {}\n");
    let now = Declared { gates: vec![of_toml(run("tests", "./verify.sh --fast")), run("own", "true")], ..Declared::default() };
    let said = weaker_settings(&bed.project, LOOP, &now, "ralph.toml");
    assert_eq!(
        said,
        [
            "gate \"tests\" asked for `./verify.sh` when the loop began, and asks for `./verify.sh --fast` now",
            "gate \"lint\" is gone (`sh scripts/lint.sh`)",
        ]
    );
    accept_settings(&bed.project, LOOP, &now, "ralph.toml").unwrap();
    assert_eq!(
        Start::of(&bed.project, LOOP).suspicions(&bed.project, &now),
        [
            "tests/auth.rs: 1 test is gone (logout)",
            "gate \"own\" asked for `make check` when the loop began, and asks for `true` now",
            "verify.sh, which the gate \"tests\" runs, has changed since the loop began",
            "the guard was set to \"block\" when the loop began, and is set to \"tests\" now",
        ]
    );
}

#[test]
fn another_loop_of_the_same_name_begins_anew() {
    let bed = Bed::new();
    bed.begin();
    baseline::note(&bed.project, LOOP, "tests", &Finding::new("tests", Kind::Command, Verdict::Fail, ""));
    bed.write("tests/auth.rs", "#[test] fn login() {}\n");
    forget(&bed.project, LOOP);
    bed.says(&[]);
    assert_eq!(baseline::of(&bed.project, LOOP, "tests"), None);
}

/// Who removes tests must not be able to hide it.
#[test]
fn a_guard_that_is_blinded_says_so() {
    let bed = Bed::new();
    bed.begin();
    bed.write(".git", "gitdir: /nowhere");
    bed.says(&[]);
    bed.write("tests/auth.rs", "#[test] fn login() {}\n");
    bed.says(&["tests/auth.rs: 1 test is gone (logout)"]);
    bed.write("tests/auth.rs", &format!("#[test] fn login() {{}}\n{}", " ".repeat(MAX_SOURCE)));
    bed.says(&["the tests could not be compared with those of the start: tests/auth.rs cannot be read: larger than 1048576 bytes"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_does_not_blind_it() {
    use std::os::unix::ffi::OsStrExt;
    let bed = Bed::new();
    bed.begin();
    write_whole(&bed.scratch.path().join(std::ffi::OsStr::from_bytes(b"odd\xff")), b"").unwrap();
    bed.write("tests/auth.rs", "#[test] fn login() {}\n");
    bed.says(&["tests/auth.rs: 1 test is gone (logout)"]);
}

#[test]
fn what_cannot_be_seen_is_no_suspicion() {
    let bed = Bed::new();
    bed.begin();
    bed.write("prd.json", "{");
    bed.says(&[]);
    let problem = Finding::new("ralph.toml", Kind::Config, Verdict::Unknown, "broken");
    let broken = Declared { gates: Vec::new(), problems: vec![problem], ..Declared::default() };
    assert_eq!(Start::of(&bed.project, LOOP).suspicions(&bed.project, &broken), [""; 0]);
    write_whole(&bed.project.make_state_file(&path(LOOP)).unwrap(), b"{").unwrap();
    assert_eq!(Start::of(&bed.project, LOOP).suspicions(&bed.project, &Declared::default()), [""; 0]);
}

#[test]
fn s3_the_tests_of_a_tree_are_read_once_and_those_of_another_one_anew() {
    let bed = Bed::new();
    let seen = || {
        let ctx = Context::new(&bed.project, LOOP, PATIENCE);
        assert!(ctx.known_fingerprint().is_none(), "nothing was asked for yet");
        assert!(ctx.fingerprint().is_some() && ctx.known_fingerprint() == ctx.fingerprint());
        let (found, unread) = sources(&bed.project, None, Some(&ctx)).unwrap();
        assert_eq!(unread, Vec::<String>::new());
        (found, ctx.fingerprint().unwrap())
    };
    let (first, tree) = seen();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["src/lib.rs", "tests/auth.rs"]);
    assert_eq!(seen(), (first.clone(), tree.clone()));
    // It is remembered: what is written there is what is told.
    let path = format!("tests/{}-{tree}", env!("CARGO_PKG_VERSION"));
    let none: BTreeMap<String, Source> = BTreeMap::new();
    bed.project.save(&path, &none).unwrap();
    assert_eq!(seen(), (none, tree.clone()));
    bed.write("tests/auth.rs", "#[test] fn login() {}\n");
    let (changed, other) = seen();
    assert_ne!(other, tree);
    assert_eq!(changed.keys().collect::<Vec<_>>(), ["src/lib.rs", "tests/auth.rs"]);
    assert_ne!(changed, first);
    // Without a fingerprint, files are read.
    let ctx = Context::new(&bed.project, LOOP, PATIENCE);
    assert_eq!(sources(&bed.project, None, Some(&ctx)).unwrap().0, changed);
}
