//! The README is true: its commands run, and its links lead somewhere.

use std::fs;

use crate::common::{Bed, RALPH};

/// The fenced blocks of one kind in the README.
fn blocks(kind: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let text = fs::read_to_string(path).unwrap();
    let begin = format!("```{kind}\n");
    text.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Every command of ralph's own, in the README's order, for a user who has nothing yet. What cargo does is proven by CI, what `claude` does with the
/// real client.
#[test]
fn s1_3_the_readmes_commands_run() {
    let bed = Bed::in_git();
    let bin = std::path::Path::new(RALPH).parent().unwrap();
    let lines: Vec<String> = blocks("sh").iter().flat_map(|b| b.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let ours: Vec<&String> = lines.iter().filter(|l| !l.starts_with("cargo ") && !l.starts_with("claude ")).collect();
    for command in ["init", "doctor", "start", "status", "log", "uninstall"] {
        assert!(ours.iter().any(|l| l.starts_with(&format!("ralph {command}"))), "{command}: {lines:?}");
    }
    for line in ours {
        let out = bed.run("/bin/sh").args(["-c", line]).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output();
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{line}: {}", out.stdout);
    }
    assert_eq!(bed.status()["completion_promise"], "DONE");
    assert!(!bed.home().join(".claude/settings.json").exists(), "uninstall leaves nothing behind");
}

/// The command that the README types in Claude Code starts a loop, with the limits that it names.
#[test]
fn s1_3_the_readmes_slash_command_starts_a_loop() {
    let typed = blocks("text").into_iter().find(|b| b.starts_with("/ralph-loop ")).unwrap();
    let bed = Bed::new();
    bed.typed(typed.trim_end()).send();
    let status = bed.status();
    assert_eq!((&status["completion_promise"], &status["max_iterations"]), (&"DONE".into(), &20.into()), "{status}");
}

/// Every file that the README links to is there.
#[test]
fn the_readmes_links_lead_somewhere() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let text = fs::read_to_string(root.join("README.md")).unwrap();
    let links: Vec<&str> = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert!(links.len() > 10, "{links:?}");
    for link in links {
        assert!(root.join(link).exists(), "{link}");
    }
}
