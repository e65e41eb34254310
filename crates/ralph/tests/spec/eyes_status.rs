//! `ralph status` and `ralph list` at a glance, of one project and of all.

use std::fs;

use serde_json::{Value, json};

use crate::{
    common::{Bed, LOOP, ME, OTHER, RALPH, loop_text, run},
    screen::{shown, without_styles},
};

/// A loop with limits and three gates: one that fails, one that holds, one that nobody trusts.
fn gated() -> Bed {
    let bed = Bed::new();
    let gates = "keep_going = true\n[[gate]]\nname = \"tests\"\ncommand = \"echo 3 of 14 failed; exit 1\"\n\
                 [[gate]]\nname = \"lint\"\ncommand = \"true\"\n[[gate]]\nname = \"docs\"\nfile = \"DOCS.md\"\n";
    bed.write("ralph.toml", gates);
    bed.ralph_ok(&["trust", "--yes"]);
    let limits = ["--max-iterations", "20", "--hours", "8", "--usd", "50", "--completion-promise", "DONE"];
    bed.ralph_ok(&[&["start", "Make it work", "--endless", "--session", ME][..], &limits].concat());
    bed.stop("It is done.\n\n<promise>DONE</promise>").send();
    bed
}

/// One loop with three gates fits a usual terminal, with bars for what is limited, none in a pipe, and none where there is no room.
#[test]
fn eyes_3_status_is_one_screen() {
    let bed = gated();
    let text = without_styles(&shown(&bed, 80, &["status"], &[]));
    assert!(text.lines().count() < 24, "{text}");
    let bar = |label: &str, text: &str| text.lines().find(|line| line.starts_with(label)).unwrap().matches(['█', '░']).count();
    for label in ["  iteration ", "  time ", "  money "] {
        assert_eq!(bar(label, &text), 20, "{text}");
        assert_eq!(bar(label, &bed.ralph_ok(&["status"])), 0);
        assert_eq!(bar(label, &without_styles(&shown(&bed, 40, &["status"], &[]))), 0);
    }
    let at: Vec<usize> = text.lines().filter_map(|line| line.find(['█', '░'])).collect();
    assert!(at.len() == 3 && at.windows(2).all(|pair| pair[0] == pair[1]), "the bars stand below each other: {text}");
    let gates: Vec<&str> = text.lines().filter(|line| line.starts_with("  gate ")).collect();
    assert_eq!(gates.len(), 3, "{text}");
    assert!(gates[0].contains("tests  fail: ") && gates[1].contains("lint   pass: ") && gates[2].contains("docs   fail: "), "{text}");
}

/// What needs somebody comes before everything else.
#[test]
fn eyes_3_status_says_first_what_is_the_matter() {
    let bed = gated();
    bed.ralph_ok(&["pause"]);
    let text = bed.ralph_ok(&["status"]);
    let at = |label: &str| text.lines().position(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{label}: {text}"));
    assert_eq!(at("  next "), 1, "{text}");
    assert!(at("  next ") < at("  iteration "));
}

/// A loop can be named, by its name or its id, also when it has ended.
#[test]
fn eyes_3_status_of_one_loop() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.write(".claude/ralph-loop.docs.local.md", loop_text(OTHER, 3, 7, "DONE"));
    bed.work().send();
    let ids = |args: &[&str]| bed.ralph_json(args)["loops"].as_array().unwrap().iter().map(|v| v["name"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&["status", "--json"]), ["main", "docs"]);
    assert_eq!(ids(&["status", "docs", "--json"]), ["docs"]);
    bed.ralph_ok(&["cancel", "main"]);
    let ended = bed.ralph_json(&["status", "main", "--json"]);
    assert_eq!((&ended["loops"], &ended["last_ended"]["status"]), (&json!([]), &json!("cancelled")));
    let text = bed.ralph_ok(&["status", "main"]);
    assert!(text.contains("  cancelled\n") && text.contains("\n  ended ") && !text.contains("docs"), "{text}");
    let out = bed.ralph(&["status", "nobody"]);
    assert!(out.code == Some(1) && out.stderr.contains("`ralph status --all` shows all loops"), "{out:?}");
}

/// Two projects and a working tree of one of them: all loops of this user, with their folders, wherever one stands.
#[test]
fn eyes_3_all_shows_the_loops_of_every_project() {
    let bed = Bed::in_git();
    bed.write("file", "x");
    bed.commit_all("one");
    let out = bed.ralph(&["run", "Go", "--worktree=side", "--agent-cmd", "true", "--max-iterations", "1"]);
    assert_eq!(out.code, Some(10), "{out:?}");
    bed.ralph_ok(&["start", "Here", "--max-iterations", "4"]);
    // Another project of the same user, whose loop file nobody started: the hook saw it first.
    let second = bed.home().join("second");
    fs::create_dir_all(second.join(".claude")).unwrap();
    fs::write(second.join(LOOP), loop_text(OTHER, 2, 5, "DONE").replace(&format!("session_id: {OTHER}\n"), "")).unwrap();
    bed.work().session(OTHER).field("cwd", second.to_str()).env("CLAUDE_PROJECT_DIR", &second).send();
    let elsewhere = bed.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let there = |args: &[&str]| run(bed.command(RALPH).args(args).current_dir(&elsewhere), b"");
    let status: Value = serde_json::from_str(&there(&["status", "--all", "--json"]).stdout).unwrap();
    let roots = |all: &Value| all.as_array().unwrap().iter().map(|v| v["project"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let (here, second) = (bed.dir().canonicalize().unwrap(), second.canonicalize().unwrap());
    let mut expected = vec![here.display().to_string(), second.display().to_string()];
    expected.sort();
    assert_eq!(roots(&status["loops"]), expected);
    let text = there(&["status", "--all"]).stdout;
    assert!(text.contains("~/second\n") && text.contains("3/5") && text.contains("1/4"), "{text}");
    // The working tree's loop has ended, so only the list has it, once, with its own folder.
    let listed: Value = serde_json::from_str(&there(&["list", "--all", "--json"]).stdout).unwrap();
    let side = here.join(".ralph/worktrees/side").display().to_string();
    assert_eq!(roots(&listed).iter().filter(|root| **root == side).count(), 1, "{listed:#}");
    assert!(there(&["list", "--all"]).stdout.contains("FOLDER"));
    // What is gone is left out, and nothing is lost for it.
    fs::remove_dir_all(&second).unwrap();
    let status: Value = serde_json::from_str(&there(&["status", "--all", "--json"]).stdout).unwrap();
    assert_eq!(roots(&status["loops"]), [here.display().to_string()]);
    assert!(!bed.ralph_ok(&["list"]).contains("FOLDER"));
}
