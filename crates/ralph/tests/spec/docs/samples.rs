//! What a page shows as a program's output is what the program prints, but for times, ids and numbers.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use ralph_testkit::pty::Pty;
use serde_json::Value;

use super::blocks;
use crate::{
    common::{Bed, RALPH, run},
    screen::without_styles,
};

const PATIENCE: Duration = Duration::from_mins(2);

/// A line without what differs from run to run: numbers, units of time, the compiler's names of files.
fn masked(line: &str) -> String {
    let mut out = String::new();
    for c in line.trim_end().chars().map(|c| if c.is_ascii_digit() { '0' } else { c }) {
        if !(c == '0' && (out.ends_with('0') || out.ends_with("0."))) {
            out.push(c);
        }
    }
    let out = out.replace("0.", "0").replace(" ms", " s");
    match out.split_once("/deps/shop-") {
        Some((before, _)) => format!("{before}/deps/shop-"),
        None => out,
    }
}

/// The block of a page that begins like this.
fn sample(page: &str, begin: &str) -> Vec<String> {
    let found = blocks(page).into_iter().find(|(_, text)| text.starts_with(begin));
    let (_, text) = found.unwrap_or_else(|| panic!("{page} has no block that begins with {begin:?}"));
    text.lines().map(str::to_owned).collect()
}

/// Every line of the block is printed, in this order. `…` stands for lines that were left out, and `$ ` begins what was typed.
#[track_caller]
fn is_printed(sample: &[String], printed: &str) {
    let printed: Vec<String> = printed.lines().map(masked).collect();
    let mut rest = printed.iter();
    for line in sample.iter().filter(|line| *line != "…" && !line.starts_with("$ ") && !line.is_empty()) {
        let wanted = masked(line);
        assert!(rest.any(|real| *real == wanted), "not printed, or not in this order: {wanted}\n{printed:#?}");
    }
}

/// The folder of the cargo that runs these tests, so that no other chooses a toolchain.
fn cargo() -> String {
    let folder = Path::new(env!("CARGO")).parent().unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

/// A crate with a test that fails.
fn shop() -> Bed {
    let bed = Bed::in_git();
    bed.write("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    bed.write(".gitignore", "target/\n");
    let tests = "#[cfg(test)]\nmod tests {}\n\n#[test]\nfn an_empty_cart_costs_nothing() {\n    let total = 1;\n    assert_eq!(total, 0);\n}\n\n#[test]\nfn a_cart_can_be_filled() {}\n";
    bed.write("src/lib.rs", tests);
    bed
}

/// What a command shows in a wide terminal, where `answer` is typed once there is a question.
fn in_terminal(bed: &Bed, args: &[&str], answer: Option<&str>) -> String {
    let mut command = bed.command(RALPH);
    // What cargo says, and what the tests that it runs say, come one after the other in a terminal; in two pipes they may overtake each other.
    let bin = bed.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    crate::hub::script(&bin.join("cargo"), &format!("exec '{}' \"$@\" 2>&1", env!("CARGO")));
    let path = format!("{}:{}", bin.display(), cargo());
    command.args(args).env("TERM", "xterm-256color").env("PATH", path);
    let pty = Pty::spawn(command, 60, 200);
    if let Some(answer) = answer {
        pty.wait_for(|screen| screen.contains("[y/N]"), PATIENCE).unwrap_or_else(|screen| panic!("no question: {screen}"));
        pty.send(answer);
    }
    assert!(pty.wait_exit(PATIENCE).is_some(), "{}", pty.screen());
    without_styles(&String::from_utf8_lossy(&pty.raw()).replace("\r\n", "\n")).replace('\r', "\n")
}

/// docs/gates.md, from the first claim to the trust: with the real cargo.
#[test]
fn u10_the_samples_of_gates_are_real() {
    let bed = shop();
    let out = run(
        bed.command(RALPH).args([
            "start",
            "Make all tests pass",
            "--promise",
            "DONE",
            "--verify",
            "cargo test",
            "--session",
            crate::common::ME,
        ]),
        b"",
    );
    assert_eq!(out.code, Some(0), "{out:?}");
    let told = bed.stop("All tests pass.\n\n<promise>DONE</promise>").env("PATH", cargo()).send().reason();
    is_printed(&sample("docs/gates.md", "[ralph] <promise>DONE</promise> was claimed"), &told);
    is_printed(&sample("docs/gates.md", "$ ralph gate\n"), &in_terminal(&bed, &["gate"], None));
    bed.ralph_ok(&["cancel"]);

    let bed = shop();
    bed.write("ralph.toml", "[[gate]]\nname = \"lint\"\ncommand = \"cargo clippy -- -D warnings\"\n");
    is_printed(&sample("docs/gates.md", "$ ralph trust\n"), &in_terminal(&bed, &["trust"], Some("y\r")));

    let list = r#"{"userStories": [{"id": "US-2", "title": "A discount", "passes": false, "verify": ["test -f discount.txt"]}]}"#;
    bed.write("prd.json", list);
    bed.ralph_ok(&["trust", "--yes"]);
    is_printed(&sample("docs/gates.md", "$ ralph item done US-2\n"), &in_terminal(&bed, &["item", "done", "US-2"], None));
}

/// The steps of `ralph init`, as the guide shows them.
#[test]
fn u10_the_guide_on_the_page_is_the_real_one() {
    let bed = Bed::at_home("code/shop");
    bed.write("package.json", r#"{"scripts": {"test": "vitest run", "lint": "eslint ."}}"#);
    let bin = bed.home().join("bin");
    fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(RALPH, bin.join("ralph")).unwrap();
    for program in ["claude", "npm"] {
        fs::write(bin.join(program), "#!/bin/sh\necho '2.1.325 (Claude Code)'\n").unwrap();
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = bed.command(RALPH);
    command.arg("init").env("TERM", "xterm-256color").env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let pty = Pty::spawn(command, 60, 100);
    for question in 1..=4 {
        let asked = |screen: &str| screen.matches("[Y/n]").count() == question;
        pty.wait_for(asked, PATIENCE).unwrap_or_else(|screen| panic!("question {question}: {screen}"));
        pty.send("\r");
    }
    assert_eq!(pty.wait_exit(PATIENCE), Some(0), "{}", pty.screen());
    let screen = pty.screen();
    let screen: Vec<&str> = screen.lines().map(str::trim_end).collect();
    assert_eq!(sample("docs/guide.md", "will write ~/code/shop/ralph.toml").join("\n"), screen.join("\n").trim_end());
}

/// The fields of `ralph pr --json`, and the rows of `ralph pr`, are those on the page.
#[test]
fn u10_the_answer_about_a_pull_request_is_the_documented_one() {
    let hub = crate::hub!();
    hub.open(&[ralph_testkit::Check::run("build").failed()]);
    let out = hub.ralph_asking(&["start", "Go", "--preset", "pr", "--session", crate::common::ME]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let shown: Value = serde_json::from_str(&sample("docs/pull-requests.md", "{\n  \"phase\"").join("\n")).unwrap();
    let real: Value = serde_json::from_str(&hub.ralph_asking(&["pr", "--json"]).stdout).unwrap();
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(fields(&shown), fields(&real), "{real:#}");
    assert_eq!(fields(&shown["pull_request"]), fields(&real["pull_request"]));
    assert_eq!(fields(&shown["checks"][0]), fields(&real["checks"][0]));
    let label = |line: &String| line.split_whitespace().next().unwrap_or_default().to_owned();
    let real: Vec<String> = hub.ralph_asking(&["pr"]).stdout.lines().map(|line| label(&line.to_owned())).collect();
    for line in sample("docs/pull-requests.md", "p1  the pull request") {
        assert!(real.contains(&label(&line)), "{line}: {real:?}");
    }
}
