//! The README is true: its commands run, and its settings register the hook.

use std::fs;

use serde_json::Value;

use crate::common::{Answer, Bed, RALPH};

/// The fenced blocks of one kind in the README.
fn blocks(kind: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let text = fs::read_to_string(path).unwrap();
    let begin = format!("```{kind}\n");
    text.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Every command of ralph's own and every file that the README asks for; what cargo does is proven elsewhere.
#[test]
fn s1_3_the_readmes_commands_run() {
    let bed = Bed::new();
    let bin = std::path::Path::new(RALPH).parent().unwrap();
    let lines: Vec<String> = blocks("sh").iter().flat_map(|b| b.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let ours: Vec<&String> = lines.iter().filter(|l| !l.starts_with("cargo ")).collect();
    assert!(ours.iter().any(|l| l.starts_with("ralph start ")), "{lines:?}");
    for line in ours {
        let out = bed.run("/bin/sh").args(["-c", line]).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output();
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{line}");
    }
    assert_eq!(bed.read(".claude/commands/ralph-loop.md"), "$ARGUMENTS\n");
    assert_eq!(bed.status()["completion_promise"], "DONE");
}

/// The command line in the settings is the one that answers events.
#[test]
fn s1_1_the_readmes_settings_register_the_hook() {
    let settings: Value = serde_json::from_str(&blocks("json")[0]).unwrap();
    for (event, entries) in settings["hooks"].as_object().unwrap() {
        let hook = &entries[0]["hooks"][0];
        assert_eq!(hook["command"], "ralph", "{event}");
        assert!(hook["timeout"].as_u64().is_some_and(|t| t >= 10), "{event}");
        let bed = Bed::with_loop(1, 0, "DONE");
        let args: Vec<&str> = hook["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
        let mut sent = bed.work();
        sent = sent.field("hook_event_name", event.as_str());
        let out = bed.run(RALPH).args(args).env("CLAUDE_PROJECT_DIR", bed.dir()).stdin(sent.json()).output();
        assert_eq!(out.code, Some(0), "{event}");
        if event == "Stop" {
            assert!(Answer::of(&out).blocks());
        }
    }
}
