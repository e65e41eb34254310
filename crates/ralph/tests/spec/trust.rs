//! `ralph trust`: nothing of a stranger's repository runs, or draws on the terminal, before a person has seen it and said yes.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use ralph_testkit::{Output, pty::Pty};
use serde_json::{Value, json};

use crate::common::{Bed, LOOP, ME, RALPH, loop_text, run};

const TESTS: &str =
    "[[gate]]\nname = \"tests\"\ncommand = \"cargo test\"\nfolder = \"crates/x\"\nenv = { A = \"1 2\" }\ndeadline = \"10m\"\n";
const SOON: Duration = Duration::from_secs(20);

fn with_settings(text: &str) -> Bed {
    let bed = Bed::in_git();
    bed.write("ralph.toml", text);
    bed
}

/// What there is and whether it is trusted, file by file.
fn states(bed: &Bed) -> Vec<(String, String)> {
    let all = bed.ralph_json(&["trust", "--json"]);
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    all["files"].as_array().unwrap().iter().map(|f| (text(&f["file"]), text(&f["trust"]))).collect()
}

#[track_caller]
fn is(bed: &Bed, trust: &str) {
    assert_eq!(states(bed), [("ralph.toml".to_owned(), trust.to_owned())]);
}

fn on_a_terminal(bed: &Bed, args: &[&str]) -> Pty {
    let mut command = bed.command(RALPH);
    command.args(args).env("TERM", "xterm-256color");
    Pty::spawn(command, 40, 100)
}

#[test]
fn every_command_is_shown_and_the_answer_counts() {
    let bed = with_settings(TESTS);
    for (answer, code, trust) in [("\r", 1, "untrusted"), ("no\r", 1, "untrusted"), ("\u{4}", 1, "untrusted"), ("y\r", 0, "trusted")] {
        let pty = on_a_terminal(&bed, &["trust"]);
        let screen = pty.wait_for(|s| s.contains("[y/N]"), SOON).unwrap();
        for part in ["ralph.toml  not trusted yet", "tests", "$ cargo test", "in the shell, in crates/x, A='1 2', at most 10 min"] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
        pty.send(answer);
        assert_eq!(pty.wait_exit(SOON), Some(code), "{answer:?}");
        is(&bed, trust);
    }
    assert!(bed.ralph_ok(&["trust"]).contains("Everything is trusted already: ralph.toml."));
}

#[test]
fn a_changed_file_asks_again_and_an_old_branch_does_not() {
    let bed = with_settings(TESTS);
    bed.ralph_ok(&["trust", "--yes"]);
    is(&bed, "trusted");
    bed.write("ralph.toml", TESTS.replace("cargo test", "cargo nextest run"));
    is(&bed, "changed");
    assert!(bed.ralph_ok(&["trust", "--yes"]).contains("ralph.toml  changed since you trusted it"));
    is(&bed, "trusted");
    bed.write("ralph.toml", TESTS);
    is(&bed, "trusted");
}

#[test]
fn without_a_terminal_yes_has_to_be_said() {
    let bed = with_settings(TESTS);
    let out = bed.ralph(&["trust"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stdout.contains("$ cargo test") && out.stderr.contains("ralph trust --yes"), "{out:?}");
    is(&bed, "untrusted");
    let pty = Pty::spawn(with_output_elsewhere(&bed), 40, 100);
    assert_eq!(pty.wait_exit(SOON), Some(1), "nobody has seen what it is about");
    is(&bed, "untrusted");
}

/// A terminal to type on, and a file in the place of the screen.
fn with_output_elsewhere(bed: &Bed) -> std::process::Command {
    let mut command = bed.command("/bin/sh");
    command.args(["-c", &format!("'{RALPH}' trust > seen")]);
    command
}

#[test]
fn an_agent_cannot_trust_its_own_commands() {
    let bed = with_settings(TESTS);
    let with = |sign: &str, args: &[&str]| -> Output { run(bed.command(RALPH).args(args).env(sign, "1"), b"y\n") };
    for sign in ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "AI_AGENT", "GEMINI_SESSION_ID", "OPENCODE_PID", "RALPH_AGENTS_SHELL"] {
        for args in [vec!["trust"], vec!["trust", "--yes"], vec!["trust", "--yes", "--json"], vec!["trust", "--revoke"]] {
            let out = with(sign, &args);
            assert_eq!(out.code, Some(1), "{sign} {args:?}: {out:?}");
            assert!(out.stderr.contains("in their own terminal") && out.stderr.contains(sign), "{out:?}");
        }
        assert_eq!(with(sign, &["trust", "--list"]).code, Some(0), "looking is free");
    }
    is(&bed, "untrusted");
}

/// The hook pauses a loop that it may not prove; the person who trusts is told how to go on.
#[test]
fn the_hook_runs_nothing_before_and_all_of_it_after() {
    let bed = with_settings("[[gate]]\nname = \"tests\"\ncommand = \"touch ran\"\n");
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    let line = bed.stop("<promise>DONE</promise>").send().line();
    assert!(line.contains("ralph trust"), "{line}");
    assert!(!bed.path("ran").exists());
    assert!(bed.ralph_ok(&["trust", "--yes"]).ends_with("A loop is paused here: `ralph resume` goes on.\n"));
    bed.ralph_ok(&["resume"]);
    assert!(bed.stop("Again. <promise>DONE</promise>").send().line().contains("complete"));
    assert!(bed.path("ran").exists());
}

#[test]
fn there_may_be_nothing_to_trust() {
    let bed = Bed::in_git();
    assert_eq!(bed.ralph_ok(&["trust"]), "There is nothing to trust: no file of this project declares a command.\n");
    bed.write("ralph.toml", "[[gate]]\nfile = \"x\"\n");
    assert_eq!(states(&bed), [], "a file that runs nothing needs nobody's trust");
    assert_eq!(bed.ralph_ok(&["trust", "--list"]), "No file of this project declares a command.\n");
    assert!(bed.ralph_ok(&["trust", "--revoke"]).contains("Nothing was trusted"));
}

#[test]
fn all_files_that_can_run_something_are_shown() {
    let bed = with_settings("[verify]\ncommands = [\"pnpm lint\", { run = [\"a b\", \"c\"], deadline = \"10m\" }]\n");
    bed.write(".ideal/worktree.yaml", "verify:\n  - pnpm test\n");
    bed.write(".trellis/worktree.yaml", "verify:\n  - make check\n");
    let text = bed.ralph_ok(&["trust", "--list"]);
    for part in ["$ pnpm lint", "$ 'a b' c", "without a shell, at most 10 min", "$ pnpm test", "$ make check"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = bed.ralph_ok(&["trust", "--yes"]);
    assert!(text.ends_with("Trusted: ralph.toml, .ideal/worktree.yaml, .trellis/worktree.yaml. A changed file asks again.\n"), "{text}");
    assert!(states(&bed).iter().all(|(_, trust)| trust == "trusted"));
    bed.write(".ideal/worktree.yaml", "verify: [\n");
    let out = bed.ralph(&["trust", "--list"]);
    assert!(out.stderr.contains(".ideal/worktree.yaml cannot be read"), "{out:?}");
}

/// The flags of a list and the counters of a loop file change all the time: only their commands are looked at.
#[test]
fn lists_and_loop_files_are_trusted_by_their_commands() {
    let bed = with_settings("[[gate]]\nfeatures = \"work.json\"\n");
    let list = |passes: bool, commands: &[&str]| {
        let item = json!({"id": "7", "description": "x", "passes": passes, "verify": commands});
        bed.write("work.json", json!({ "features": [item] }).to_string());
    };
    let is = |trust: &str| assert_eq!(states(&bed), [("work.json".to_owned(), trust.to_owned())]);
    list(false, &[]);
    assert_eq!(states(&bed), []);
    list(false, &["make a", "make b"]);
    is("untrusted");
    let text = bed.ralph_ok(&["trust", "--yes"]);
    assert!(text.contains("  7\n    $ make a\n") && text.ends_with("Trusted: work.json. Only a changed command asks again.\n"), "{text}");
    is("trusted");
    list(true, &["make b"]);
    is("trusted");
    list(true, &["make b", "curl evil"]);
    is("changed");
    fs::remove_file(bed.path("ralph.toml")).unwrap();
    bed.write(LOOP, "---\nactive: true\niteration: 1\nverify:\n  - make c\n---\n\nGo\n");
    assert_eq!(states(&bed), [(LOOP.to_owned(), "untrusted".to_owned())]);
    bed.ralph_ok(&["trust", "--yes"]);
    bed.write(LOOP, "---\nactive: true\niteration: 2\nverify: make c\n---\n\nGo on\n");
    assert_eq!(states(&bed), [(LOOP.to_owned(), "trusted".to_owned())]);
    assert!(bed.ralph_ok(&["trust", "--list"]).contains("1 command of loop files"));
}

#[test]
fn what_was_trusted_is_listed_and_taken_back() {
    let bed = with_settings(TESTS);
    bed.ralph_ok(&["trust", "--yes"]);
    let text = bed.ralph_ok(&["trust", "--list"]);
    assert!(text.contains("ralph.toml  trusted") && text.contains("1 version of ralph.toml"), "{text}");
    assert_eq!(bed.ralph_ok(&["trust", "--revoke"]), "no longer trusted: 1 version of ralph.toml\n");
    is(&bed, "untrusted");
    let all = bed.ralph_json(&["trust", "--yes", "--json"]);
    assert_eq!((&all["trusted"], &all["files"][0]["trust"]), (&json!(["ralph.toml"]), &json!("trusted")));
    let command = json!({"name": "tests", "run": "cargo test", "folder": "crates/x", "env": {"A": "1 2"}, "deadline_ms": 600_000});
    assert_eq!(all["files"][0]["commands"], json!([command]));
    assert_eq!(bed.ralph_json(&["trust", "--revoke", "--json"])["revoked"][0]["origin"], "ralph.toml");
}

/// Real worktrees of a real repository, and a clone of it.
#[test]
fn worktrees_share_what_is_trusted_and_a_clone_does_not() {
    let bed = with_settings(TESTS);
    let git = |args: &[&str]| {
        let out = bed.run("git").args(args).output();
        assert_eq!(out.code, Some(0), "{args:?}: {out:?}");
    };
    git(&["add", "ralph.toml"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "settings"]);
    let beside = |name: &str| bed.home().join(name);
    git(&["worktree", "add", "-q", beside("tree").to_str().unwrap()]);
    git(&["clone", "-q", ".", beside("clone").to_str().unwrap()]);
    bed.ralph_ok(&["trust", "--yes"]);
    let trust = |dir: &Path| {
        let all = bed.ralph_json(&["-C", dir.to_str().unwrap(), "trust", "--json"]);
        all["files"][0]["trust"].as_str().unwrap().to_owned()
    };
    assert_eq!((trust(&beside("tree")).as_str(), trust(&beside("clone")).as_str()), ("trusted", "untrusted"));
    // The way to somebody's repository is not enough: what git made there has to lead back.
    let planted = beside("planted");
    fs::create_dir(&planted).unwrap();
    for file in [".git", "ralph.toml"] {
        fs::copy(beside("tree").join(file), planted.join(file)).unwrap();
    }
    assert_eq!(trust(&planted), "untrusted");
}

#[test]
fn without_a_home_nothing_can_be_trusted() {
    let bed = with_settings(TESTS);
    let out = run(bed.command(RALPH).args(["trust", "--yes"]).env_remove("HOME").env_remove("XDG_STATE_HOME"), b"");
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("set HOME"), "{out:?}");
    // A home that lies in the project is a home that the project brings along.
    let before = bed.tree();
    let out = run(bed.command(RALPH).args(["trust", "--yes"]).env("HOME", ".").env_remove("XDG_STATE_HOME"), b"");
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("set HOME"), "{out:?}");
    assert_eq!(bed.tree(), before);
}

/// Names, commands, variables and problems of a stranger's file reach the terminal only as plain characters, and all of them do.
#[test]
fn a_hostile_file_draws_nothing_and_hides_nothing() {
    let evil = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u000d\u0008\u202e\u200b";
    let shapes = [
        format!("[[gate]]\ncommand = \"echo {evil} ; rm -rf x\"\n"),
        format!("[[gate]]\ncommand = [\"echo\", \"{evil}\", \"rm -rf x\"]\n"),
        format!("[[gate]]\ncommand = \"rm -rf x\"\nfolder = \"{evil}\"\n"),
        format!("[[gate]]\ncommand = \"rm -rf x\"\nenv = {{ \"{evil}\" = \"{evil}\" }}\n"),
        "[[gate]]\nname = \"a\"\ncommand = '''\ntrue\n  b\n    $ true\nrm -rf x'''\n".to_owned(),
    ];
    for text in shapes {
        let bed = with_settings(&text);
        let pty = on_a_terminal(&bed, &["trust"]);
        let screen = pty.wait_for(|s| s.contains("[y/N]"), SOON).unwrap();
        assert!(screen.contains("rm -rf x"), "{text}: {screen}");
        let raw = String::from_utf8_lossy(&pty.raw()).replace("\r\n", "\n");
        let steers = ["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{9b}", "\r", "\u{8}", "\u{202e}", "\u{200b}"];
        assert!(!steers.iter().any(|trick| raw.contains(trick)), "{raw:?}");
    }
    let bed = with_settings(&format!("[[gate]]\nname = \"{evil}\"\ncommand = \"x\"\n"));
    let out = bed.ralph(&["trust", "--yes"]);
    assert!(!format!("{}{}", out.stdout, out.stderr).contains('\u{1b}'), "{out:?}");
    assert_eq!(states(&bed), [], "a name that steers a terminal is no name");
}

#[test]
fn a_command_of_a_megabyte_is_cut_and_says_so() {
    let bed = with_settings(&format!("[[gate]]\nname = \"a\"\ncommand = \"echo {}\"\n", "x".repeat(900_000)));
    let text = bed.ralph_ok(&["trust", "--list"]);
    assert!(text.len() < 10_000 && text.contains("more characters: read them in the file"), "{}", text.len());
    bed.write("ralph.toml", "#".repeat(2 << 20));
    let out = bed.ralph(&["trust"]);
    assert!(out.stderr.contains("ralph.toml cannot be read"), "{out:?}");
}

/// What is no plain file of the project is not read, and keeps nobody waiting.
#[test]
fn links_and_pipes_in_the_place_of_a_file() {
    let bed = Bed::in_git();
    let outside = bed.home().join("elsewhere.toml");
    fs::write(&outside, "[[gate]]\ncommand = \"secret-word\"\n").unwrap();
    symlink(&outside, bed.path("ralph.toml")).unwrap();
    let out = bed.ralph(&["trust", "--yes"]);
    assert!(out.stderr.contains("a link that leads out of the project"), "{out:?}");
    assert!(!out.stdout.contains("secret-word"), "{out:?}");
    assert_eq!(states(&bed), []);
    fs::remove_file(bed.path("ralph.toml")).unwrap();
    assert_eq!(bed.run("mkfifo").args(["ralph.toml"]).output().code, Some(0));
    let out = bed.ralph(&["trust", "--yes"]);
    assert!(out.stderr.contains("not a plain file") && out.duration < Duration::from_secs(5), "{out:?}");
    fs::remove_file(bed.path("ralph.toml")).unwrap();
    symlink("ralph.toml", bed.path("ralph.toml")).unwrap();
    assert!(bed.ralph(&["trust", "--yes"]).stderr.contains("ralph.toml cannot be read"));
}

/// A repository can set variables for those who work in it; decisions that lie in it are its own word.
#[test]
fn decisions_in_the_repository_count_for_nothing() {
    let bed = with_settings(TESTS);
    let state = bed.path("state");
    let with = |args: &[&str]| run(bed.command(RALPH).args(args).env("XDG_STATE_HOME", &state), b"");
    assert_eq!(with(&["trust", "--yes"]).code, Some(1));
    bed.ralph_ok(&["trust", "--yes"]);
    assert_eq!(bed.run("/bin/cp").args(["-rp"]).args([bed.home().join(".local/state").as_path(), &state]).output().code, Some(0));
    let all: Value = serde_json::from_str(&with(&["trust", "--json"]).stdout).unwrap();
    assert_eq!(all["files"][0]["trust"], "untrusted");
    is(&bed, "trusted");
}
