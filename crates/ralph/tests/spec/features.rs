//! The feature folder: a loop that has a list of features instead of a loop file (S4-1…S4-4).

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::common::{Answer, Bed, LOOP, ME, OTHER, PAUSED_BY_HAND, loop_text, next_stop};

const DIR: &str = ".claude/data/ralph-loops/current";

/// Three features, of which the first passes.
const LIST: &str = "{\r\n  \"project\": \"x\",\r\n  \"features\": [\r\n    { \"id\": 1, \"description\": \"Log in\", \"steps\": [\"open\"], \"passes\": true },\r\n    \
                    { \"id\": \"F-2\", \"description\": \"Log out\", \"steps\": [\"press the button\", \"see the start page\"], \"passes\": false, \"model\": \"opus\" },\r\n    \
                    { \"id\": \"F-3\", \"description\": \"Stay in\", \"passes\": false }\r\n  ]\r\n}\r\n";

fn path(name: &str) -> String {
    format!("{DIR}/{name}")
}

fn with_list(text: &str) -> Bed {
    let bed = Bed::new();
    bed.write(path("feature_list.json"), text);
    bed
}

fn progress(bed: &Bed) -> String {
    bed.read(path("progress.txt"))
}

fn status(bed: &Bed) -> String {
    let text = progress(bed);
    text.lines().find_map(|l| l.strip_prefix("Status: ")).unwrap_or_default().to_owned()
}

/// What the agent was told.
#[track_caller]
fn told(answer: &Answer) -> String {
    let json = answer.json.clone().expect("an answer");
    assert_eq!(json["decision"], "block", "{json}");
    json["reason"].as_str().unwrap().to_owned()
}

fn pass(bed: &Bed, id: &str) {
    let text = bed.read(path("feature_list.json"));
    let at = text.find(&format!("\"id\": \"{id}\"")).unwrap();
    let (head, tail) = text.split_at(at);
    bed.write(path("feature_list.json"), format!("{head}{}", tail.replacen("\"passes\": false", "\"passes\": true", 1)));
}

/// What a list's items run are commands like any other: in their turn, and not after a gate that does not hold.
#[test]
fn point_4_items_commands_wait_for_their_turn() {
    const WORDS: &str = "[[gate]]\nname = \"words\"\nmarkers = [\"LINT_FINISH\"]\n";
    const FAILS: &str = "[[gate]]\nname = \"tests\"\ncommand = \"echo tests >> ran; false\"\n";
    const ITEMS: &str = "[[gate]]\nname = \"list\"\nfeatures = \"prd.json\"\n";
    let items = |ids: &[(&str, bool)]| {
        let item = |(id, passes): &(&str, bool)| json!({"id": id, "passes": true, "verify": format!("echo {id} >> ran; {passes}")});
        Value::Array(ids.iter().map(item).collect()).to_string()
    };
    let all_well = items(&[("A", true), ("B", true)]);
    let broken = items(&[("A", false), ("B", true)]);
    for (settings, list, ran) in [
        (format!("{ITEMS}{WORDS}"), &all_well, ""),
        (format!("keep_going = true\n{ITEMS}{WORDS}"), &all_well, "A\nB\n"),
        (format!("{FAILS}{ITEMS}"), &all_well, "tests\n"),
        (format!("{ITEMS}{FAILS}"), &all_well, "A\nB\ntests\n"),
        (format!("{ITEMS}{FAILS}"), &broken, "A\n"),
        (format!("keep_going = true\n{ITEMS}{FAILS}"), &broken, "A\nB\ntests\n"),
    ] {
        let bed = Bed::new();
        bed.write("ralph.toml", &settings);
        bed.write("prd.json", list);
        bed.write("ran", "");
        bed.ralph_ok(&["trust", "--yes"]);
        bed.write(LOOP, loop_text(ME, 1, 0, "null"));
        told(&bed.work().send());
        assert_eq!(bed.read("ran"), ran, "{settings}{list}");
    }
    // The row ends at an item that cannot be told, too: here one that nobody trusts.
    let bed = Bed::new();
    bed.write("ralph.toml", ITEMS);
    bed.write("prd.json", items(&[("B", true)]));
    bed.ralph_ok(&["trust", "--yes"]);
    bed.write("prd.json", &all_well);
    bed.write(LOOP, loop_text(ME, 1, 0, "null"));
    assert!(bed.work().send().line().contains("ralph trust"));
    assert!(!bed.path("ran").exists());
}

#[test]
fn point_4_one_item_is_told_as_one() {
    let bed = with_list(r#"[{"id": 1, "passes": true}]"#);
    let line = bed.work().send().line();
    assert!(line.contains("the only feature is verified"), "{line}");
}

/// A loop whose list somebody takes away does not end in silence: its person is told once.
#[test]
fn s4_1_a_list_that_is_gone_is_told_once() {
    let bed = with_list(LIST);
    bed.work().send();
    fs::rename(bed.path(path("feature_list.json")), bed.path("elsewhere.json")).unwrap();
    bed.work().session(OTHER).send().is_silent();
    let line = bed.work().send().line();
    assert_eq!(line, format!("Ralph: the list {DIR}/feature_list.json is gone, so the loop waits. It goes on once the list exists again."));
    bed.work().send().is_silent();
    assert!(bed.hook_log().iter().any(|line| line.contains("code=loop.lost-list")));
    // It is there again.
    fs::rename(bed.path("elsewhere.json"), bed.path(path("feature_list.json"))).unwrap();
    assert!(told(&bed.work().send()).contains("2 of 3 features are open"));
    fs::remove_dir_all(bed.path(DIR)).unwrap();
    assert!(bed.work().send().line().contains("is gone"));
    bed.work().send().is_silent();
    // One that was paused, or that nobody worked on, is missed by nobody.
    let bed = with_list(LIST);
    fs::remove_file(bed.path(path("feature_list.json"))).unwrap();
    bed.work().send().is_silent();
    let bed = with_list(LIST);
    bed.work().send();
    bed.ralph_ok(&["pause"]);
    fs::remove_file(bed.path(path("feature_list.json"))).unwrap();
    bed.work().send().is_silent();
}

#[test]
fn s4_1_s4_2_s4_3_a_list_is_worked_off_item_by_item() {
    let bed = with_list(LIST);
    let first = bed.work().send();
    let text = told(&first);
    for part in [
        ".claude/data/ralph-loops/current/feature_list.json",
        "2 of 3 features are open",
        "Next: F-2: Log out",
        "- press the button\n- see the start page",
        "`ralph item done F-2`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("F-3"), "one at a time: {text}");
    assert_eq!(progress(&bed), "Iteration: 2\nMax Iterations: 15\nStatus: IN_PROGRESS\n");
    pass(&bed, "F-2");
    let text = told(&bed.work().send());
    assert!(text.contains("1 of 3 features is open") && text.contains("Next: F-3: Stay in"), "{text}");
    pass(&bed, "F-3");
    let line = bed.work().send().line();
    assert!(line.starts_with("Ralph: complete after 3 iterations") && line.contains("all 3 features verified"), "{line}");
    assert_eq!(progress(&bed), "Iteration: 3\nMax Iterations: 15\nStatus: COMPLETE\n");
    assert_eq!(bed.read(path("feature_list.json")), LIST.replace("false", "true"), "the list is as its writers left it");
    bed.work().send().is_silent();
    assert_eq!(bed.codes(), ["gate.failed", "gate.failed", "gates.passed"]);
    assert_eq!(bed.last_ended()["status"], "complete");
    let log = bed.read(path("hook.log"));
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 4, "{log}");
    for (line, what) in
        lines.iter().zip(["adopted", "block gate.failed: iteration 1 of 15", "block gate.failed: iteration 2 of 15", "allow gates.passed"])
    {
        let (stamp, rest) = line.split_at(22);
        assert!(stamp.starts_with("[20") && stamp.ends_with("] ") && stamp.as_bytes()[11] == b' ', "{line}");
        assert!(rest.starts_with(what) && rest.contains(ME), "{line}");
    }
}

#[test]
fn s4_2_progress_is_changed_in_place() {
    let bed = with_list(LIST);
    let before =
        "# My run \u{e9}\r\n\r\n**Max Iterations:** 9\r\nIteration: 4   # ralph's\r\nStatus: IN_PROGRESS (since Monday)\r\n\r\nnotes\tend";
    bed.write(path("progress.txt"), before);
    assert!(bed.work().send().blocks());
    assert_eq!(progress(&bed), before.replace("Iteration: 4 ", "Iteration: 5 "));
    assert_eq!(bed.status()["max_iterations"], 9);
    bed.ralph_ok(&["pause"]);
    assert_eq!(progress(&bed), before.replace("Iteration: 4 ", "Iteration: 5 ").replace("IN_PROGRESS", "PAUSED"));
    let tail = bed.read(".ralph/backup/feature-list.md");
    assert_eq!(tail, before.replace("Iteration: 4 ", "Iteration: 5 "), "the version before");
}

#[test]
fn s4_3_at_the_limit_it_says_how_many_remain() {
    let bed = with_list(LIST);
    bed.write(path("progress.txt"), "Iteration: 2\nMax Iterations: 2\nStatus: IN_PROGRESS\n");
    let line = bed.work().send().line();
    assert!(line.contains("limit of 2 iterations") && line.contains("2 of 3 features are open"), "{line}");
    assert_eq!(status(&bed), "REACHED_LIMIT");
    bed.work().send().is_silent();
    assert_eq!(bed.last_ended()["status"], "capped");
    // A person raises the limit, by hand or with ralph.
    assert_eq!(bed.ralph(&["resume"]).code, Some(1));
    bed.ralph_ok(&["resume", "--max-iterations", "4"]);
    assert_eq!(progress(&bed), "Iteration: 2\nMax Iterations: 4\nStatus: IN_PROGRESS\n");
    assert!(bed.work().send().blocks());
    // Not by its own word: ralph knows the loop as alive, and judges the stop.
    bed.write(path("progress.txt"), "Iteration: 4\nMax Iterations: 4\nStatus: REACHED_LIMIT\n");
    assert!(bed.work().send().line().contains("limit of 4 iterations"));
    bed.work().send().is_silent();
    bed.write(path("progress.txt"), "Iteration: 4\nMax Iterations: 6\nStatus: REACHED_LIMIT\n");
    assert!(bed.work().send().blocks());
    assert_eq!(progress(&bed), "Iteration: 5\nMax Iterations: 6\nStatus: IN_PROGRESS\n");
}

#[test]
fn s4_3_a_limit_of_time_holds_as_well() {
    let bed = with_list(LIST);
    bed.write(path("progress.txt"), "Iteration: 1\nMax Hours: 0.000001\n");
    let mut answer = bed.work().send();
    for _ in 0..3 {
        if !answer.blocks() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        answer = bed.work().send();
    }
    assert!(answer.line().contains("time limit"), "{answer:?}");
    assert_eq!(status(&bed), "REACHED_LIMIT");
    bed.work().send().is_silent();
    assert_eq!(bed.ralph(&["resume"]).code, Some(1));
    bed.ralph_ok(&["resume", "--hours", "1.5"]);
    assert!(progress(&bed).contains("Max Hours: 1.5\n") && status(&bed) == "IN_PROGRESS");
    assert!(bed.work().send().blocks());
}

#[test]
fn s4_1_a_cancel_wins_against_hooks_that_count() {
    for round in 0..25 {
        let bed = with_list(LIST);
        let hooks: Vec<_> = (0..3).map(|_| bed.work()).collect();
        std::thread::scope(|scope| {
            for hook in &hooks {
                scope.spawn(|| hook.send());
            }
            std::thread::sleep(std::time::Duration::from_millis(round));
            bed.ralph_ok(&["cancel"]);
        });
        assert_eq!(status(&bed), "CANCELLED", "{}", bed.read(path("hook.log")));
        bed.work().send().is_silent();
    }
}

#[test]
fn s4_4_stop_hook_active_changes_nothing_and_the_count_stops_a_runaway() {
    let bed = with_list(LIST);
    let mut blocks = 0;
    for _ in 0..30 {
        // An agent that sets the count back at every round.
        bed.write(path("progress.txt"), "Iteration: 1\nMax Iterations: 5\nStatus: COMPLETE\n");
        blocks += u32::from(bed.work().field("stop_hook_active", true).env("CLAUDE_PID", std::process::id().to_string()).send().blocks());
        if status(&bed) == "REACHED_LIMIT" {
            break;
        }
    }
    assert_eq!(blocks, 4, "{}", progress(&bed));
}

#[test]
fn s4_1_the_folder_is_where_the_variable_says() {
    let bed = Bed::new();
    bed.write("work/list/feature_list.json", LIST);
    bed.work().send().is_silent();
    assert!(told(&bed.work().env("RALPH_LOOP_DIR", "work/list").send()).contains("Next: F-2"));
    assert!(bed.read("work/list/progress.txt").starts_with("Iteration: 2\n"));
    // Outside of the project, too.
    let bed = Bed::new();
    let dir = bed.home().join("lists");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("feature_list.json"), LIST).unwrap();
    assert!(told(&bed.work().env("RALPH_LOOP_DIR", &dir).send()).contains("Next: F-2"));
    assert!(dir.join("hook.log").exists());
}

#[test]
fn s4_1_without_a_list_nothing_is_touched() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path(DIR)).unwrap();
    bed.write(path("progress.txt"), "Iteration: 1\n");
    let mut before = bed.tree();
    bed.work().send().is_silent();
    bed.work().env("RALPH_LOOP_DIR", "nowhere").send().is_silent();
    // But for the line that says why (t20).
    before.insert(path("hook.log").into(), bed.read(path("hook.log")));
    assert_eq!(bed.tree(), before);
}

#[test]
fn s4_3_complete_is_announced_once() {
    let all = LIST.replace("false", "true");
    let bed = with_list(&all);
    assert!(bed.work().send().line().contains("all 3 features verified"));
    bed.work().send().is_silent();
    bed.work().session(OTHER).send().is_silent();
    // New work is a new loop, which counts from the beginning.
    bed.write(path("progress.txt"), "Iteration: 14\nMax Iterations: 15\nStatus: COMPLETE\n");
    bed.write(path("feature_list.json"), LIST);
    assert!(bed.work().session(OTHER).send().blocks());
    assert_eq!(progress(&bed), "Iteration: 2\nMax Iterations: 15\nStatus: IN_PROGRESS\n");
    bed.work().send().is_silent();
}

#[test]
fn s4_1_a_list_belongs_to_the_first_session_that_stops() {
    let bed = with_list(LIST);
    assert!(bed.work().send().blocks());
    bed.work().session(OTHER).send().is_silent();
    let before = progress(&bed);
    bed.event("SubagentStop").field("agent_type", "general-purpose").field("agent_id", "a").send().is_silent();
    bed.event("StopFailure").field("error", "rate_limit").send().is_silent();
    bed.work()
        .field("background_tasks", json!([{"id": "b", "type": "shell", "status": "running", "command": "x", "description": "tests"}]))
        .send()
        .is_silent();
    assert_eq!(progress(&bed), before, "none of them costs an iteration");
    assert_eq!(bed.status()["session"], ME);
    assert_eq!(bed.status()["name"], "feature-list");
}

#[test]
fn s4_1_one_stop_counts_once() {
    let bed = with_list(LIST);
    let stop = bed.stop("the same words");
    let first = stop.send();
    assert!(first.blocks());
    assert_eq!(told(&stop.clone().by_plugin(1).send()), told(&first));
    assert!(progress(&bed).starts_with("Iteration: 2\n"));
    next_stop();
    assert!(stop.send().blocks());
    assert!(progress(&bed).starts_with("Iteration: 3\n"));
    // The stop that completes it, too.
    bed.write(path("feature_list.json"), LIST.replace("false", "true"));
    let last = bed.stop("done");
    let line = last.send().line();
    assert_eq!(last.clone().by_plugin(1).send().line(), line);
}

#[test]
fn s4_1_what_git_tracks_waits_for_a_person() {
    let bed = Bed::in_git();
    bed.write(path("feature_list.json"), LIST);
    bed.git(&["add", "-f", DIR]);
    let before = bed.tree();
    bed.work().send().is_silent();
    assert_eq!(bed.tree(), before);
    assert_eq!(bed.status()["status"], "tracked");
    bed.ralph_ok(&["resume"]);
    assert!(bed.work().send().blocks());
    // A list that the agent commits on its way goes on.
    let bed = Bed::in_git();
    bed.write(path("feature_list.json"), LIST);
    assert!(bed.work().send().blocks());
    bed.git(&["add", "-f", DIR]);
    assert!(bed.work().send().blocks());
}

#[test]
fn s4_1_cancel_pause_and_resume() {
    let bed = with_list(LIST);
    bed.work().send();
    let line = bed.ralph_ok(&["cancel"]);
    assert!(line.contains("cancelled at iteration 2") && line.contains("Status: CANCELLED"), "{line}");
    assert_eq!(status(&bed), "CANCELLED");
    bed.work().send().is_silent();
    assert_eq!(bed.last_ended()["status"], "cancelled");
    assert_eq!(bed.ralph(&["cancel"]).code, Some(3));
    bed.ralph_ok(&["resume"]);
    assert!(bed.work().send().blocks());
    assert!(progress(&bed).starts_with("Iteration: 3\n"));
    bed.ralph_ok(&["pause", "feature-list"]);
    assert_eq!((bed.status()["status"].clone(), status(&bed)), (json!("paused"), "PAUSED".to_owned()));
    assert!(bed.work().send().line().contains("so this stop was not checked"));
    bed.ralph_ok(&["resume", "feature-list"]);
    assert!(bed.work().send().blocks());
    // A hand that writes the status is obeyed.
    bed.write(path("progress.txt"), progress(&bed).replace("IN_PROGRESS", "PAUSED"));
    bed.work().send().tells(PAUSED_BY_HAND);
    let log = bed.read(path("hook.log"));
    for what in ["cancelled at iteration 2", "resumed at iteration 2", "paused"] {
        assert!(log.contains(what), "{what}: {log}");
    }
    assert!(bed.typed("/cancel-ralph").send().instead().contains("cancelled"));
    assert_eq!(status(&bed), "CANCELLED");
}

#[test]
fn s4_3_nothing_is_left_to_resume_in_a_finished_list() {
    let bed = with_list(&LIST.replace("false", "true"));
    bed.work().send();
    let out = bed.ralph(&["resume"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("there is nothing to go on with"), "{}", out.stderr);
}

#[test]
fn s4_1_a_list_that_cannot_be_read_is_told_once_and_left_alone() {
    let broken = "{\"features\": [\n  {\"id\": 1,}\n]}";
    for (text, problem) in [
        (broken, "line 2: this is not valid JSON: trailing comma"),
        ("{\"features\": []}", "an empty list proves nothing"),
        ("", "the file is empty"),
        ("[1", "there is no item in it"),
    ] {
        let bed = with_list(text);
        let line = bed.work().send().line();
        assert!(line.contains(problem) && line.contains("feature_list.json"), "{line}");
        bed.work().send().is_silent();
        assert_eq!(bed.read(path("feature_list.json")), text);
        assert!(!bed.path(path("progress.txt")).exists());
        bed.write(path("feature_list.json"), "[{\"id\": 1, \"passes\": 7}]");
        let text = told(&bed.work().send());
        assert!(text.contains("`passes: 7`, which is a number"), "{text}");
    }
    // In the middle of a loop: it goes on where it was.
    let bed = with_list(LIST);
    bed.work().send();
    bed.write(path("feature_list.json"), broken);
    assert!(bed.work().send().line().contains("line 2"));
    bed.work().session(OTHER).send().is_silent();
    bed.write(path("feature_list.json"), LIST);
    assert!(bed.work().send().blocks());
    assert!(progress(&bed).starts_with("Iteration: 3\n"));
}

#[test]
fn s4_1_the_person_sees_it_like_any_other_loop() {
    let bed = with_list(LIST);
    let started = bed.event("SessionStart").field("source", "startup").send();
    assert!(started.json.unwrap().to_string().contains("a loop waits for a session"));
    bed.work().send();
    for (args, what) in [
        ("status", "feature-list-folder"),
        ("list", "feature-list-folder"),
        ("log", "feature_list.json"),
        ("explain", "feature-list-folder"),
    ] {
        let out = bed.ralph_ok(&[args]);
        assert!(out.contains(what), "{args}: {out}");
    }
    assert!(bed.ralph_ok(&["explain"]).contains("2 of 3 features are open"));
    let found: Value = bed.status();
    assert_eq!(Path::new(found["file"].as_str().unwrap()).file_name().unwrap(), "feature_list.json");
}

#[test]
fn s4_1_a_loop_file_goes_first_and_other_gates_count_too() {
    let bed = Bed::with_loop(1, 5, "DONE");
    bed.write(path("feature_list.json"), LIST.replace("false", "true"));
    bed.work().send().blocks_with(crate::common::PROMPT);
    assert!(!bed.path(path("progress.txt")).exists());
    // What ralph.toml asks for has to hold as well.
    let bed = with_list(&LIST.replace("false", "true"));
    bed.write("ralph.toml", "[[gate]]\nname = \"words\"\nmarkers = [\"LINT_FINISH\"]\n");
    assert!(told(&bed.work().send()).contains("LINT_FINISH"));
    assert!(bed.stop("LINT_FINISH").send().line().contains("complete"));
}

#[test]
fn point_4_lists_of_other_kinds_are_gates() {
    for (file, open, done, next) in [
        (
            "prd.json",
            r#"{"userStories": [{"id": "US-2", "title": "later", "priority": 2, "passes": true}, {"id": "US-1", "title": "sooner", "acceptanceCriteria": ["a"], "priority": 1, "passes": false}]}"#,
            "",
            "US-1: sooner\nSteps:\n- a",
        ),
        (
            "docs/PLAN.md",
            "# Plan\n\n- [x] T-1: one\n- [ ] T-2: two\n  - [ ] first\n- [2024-01-02] no box\n",
            "# Plan\n\n- [x] T-1: one\n- [x] T-2: two\n  - [x] first\n",
            "T-2: two\nSteps:\n- [ ] first",
        ),
    ] {
        let bed = Bed::with_loop(1, 9, "null");
        bed.write("ralph.toml", format!("[[gate]]\nname = \"list\"\nfeatures = \"{file}\"\n"));
        let text = told(&bed.work().send());
        assert!(text.contains(&format!("{file} is not there")), "{text}");
        bed.write(file, open);
        let text = told(&bed.work().send());
        assert!(text.contains(&format!("Next: {next}")) && text.contains("1 of 2"), "{text}");
        bed.write(file, if done.is_empty() { open.replace("false", "true") } else { done.to_owned() });
        assert!(bed.work().send().line().contains("all 2"));
    }
}

#[test]
fn point_4_a_feature_whose_command_fails_is_open_whatever_its_flag_says() {
    let list = r#"{"features": [
        {"id": "A", "description": "a", "passes": true, "verify": "echo the reason is here; test -e a"},
        {"id": "B", "description": "b", "passes": true, "verify": ["test -e b", "true"]}]}"#;
    let bed = with_list(list);
    let line = bed.work().send().line();
    assert!(line.contains("ralph trust") && !line.contains("complete"), "nobody trusts them yet: {line}");
    assert_eq!(bed.status()["status"], "paused");
    bed.ralph_ok(&["trust", "--yes"]);
    bed.ralph_ok(&["resume"]);
    let text = told(&bed.work().send());
    for part in
        ["1 of 2 features is open; A is marked as done, but its command fails", "Next: A: a", "the reason is here", "`ralph item done A`"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    bed.write("a", "");
    let text = told(&bed.work().send());
    assert!(text.contains("B is marked as done, but its command fails"), "{text}");
    bed.write("b", "");
    assert!(bed.work().send().line().contains("all 2 features verified"));
    assert_eq!(bed.read(path("feature_list.json")), list);
}

#[test]
fn point_4_a_false_mark_is_seen_while_others_are_open() {
    let bed = with_list(
        r#"{"features": [
        {"id": "A", "passes": true, "verify": "echo ran >> runs; test -e a"},
        {"id": "B", "passes": false}]}"#,
    );
    bed.ralph_ok(&["trust", "--yes"]);
    let text = told(&bed.work().send());
    assert!(text.contains("2 of 2 features are open; A is marked as done, but its command fails"), "{text}");
    bed.write("a", "");
    for _ in 0..3 {
        let text = told(&bed.work().send());
        assert!(text.contains("1 of 2 features is open") && text.contains("Next: B"), "{text}");
    }
    assert_eq!(bed.read("runs"), "ran\nran\n", "once it failed, once it passed, and then it is known");
}

#[test]
fn point_4_a_session_does_only_so_many_features() {
    let bed = with_list(LIST);
    bed.write("ralph.toml", "[features]\nper_session = 1\n");
    assert!(bed.work().send().blocks());
    pass(&bed, "F-2");
    let line = bed.work().send().line();
    assert!(line.contains("paused at iteration 2 of 15: items done in this session: 1, and `per_session` is 1"), "{line}");
    assert_eq!(status(&bed), "PAUSED");
    assert_eq!(bed.codes().last().unwrap(), "features.per-session");
    bed.ralph_ok(&["resume"]);
    assert!(bed.work().send().blocks());
    pass(&bed, "F-3");
    assert!(bed.work().send().line().contains("complete"), "the last one completes it");
}
