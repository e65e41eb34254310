//! Rounds, one session each: what they are told, how they are ruled on, and how the run ends.

use serde_json::{Value, json};

use super::Runs;
use crate::common::{Bed, LOOP};

/// S4-6: each round has a session of its own, until the promise is kept.
#[test]
fn s4_6_rounds_go_on_until_the_promise() {
    let runs = Runs::new("echo work >> work.txt; commit\nif [ $N = 3 ]; then echo '<promise>DONE</promise>'; fi\n");
    let out = runs.ends(0, &["Make it work", "--completion-promise", "DONE"]);
    assert!(out.stdout.contains("complete · 3 iterations"), "{}", out.stdout);
    assert_eq!(runs.iterations(), [1, 2, 3]);
    let codes: Vec<String> = runs.ruled().into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes, ["promise.missing", "promise.missing", "promise.accepted"]);
    assert!(!runs.is_live(), "it is in the archive");
    let sessions: Vec<String> =
        runs.bed.journal().iter().filter(|r| r["event"]["kind"] == "began").map(|r| r["session"].as_str().unwrap().to_owned()).collect();
    assert_eq!(sessions.len(), 3);
    assert!(sessions.iter().all(|s| s.len() == 36) && sessions[0] != sessions[1], "S4-8: {sessions:?}");
}

/// Ten rounds over a list, with a test that fails until it is mended.
#[test]
fn s4_6_a_list_is_worked_off_with_proof() {
    let bed = Bed::in_git();
    let features: Vec<Value> = (1..=10)
        .map(|n| json!({"id": format!("F{n}"), "description": format!("feature {n}"), "passes": false, "verify": format!("test -f f{n}.txt")}))
        .collect();
    bed.write("feature_list.json", json!({"features": features}).to_string());
    bed.write("test.sh", "! grep -q broken f4.txt 2>/dev/null\n");
    bed.write("ralph.toml", "[[gate]]\nname = \"tests\"\ncommand = \"sh test.sh\"\n\n[[gate]]\nfeatures = \"feature_list.json\"\n");
    bed.commit_all("begin");
    bed.ralph_ok(&["trust", "--yes"]);
    let script = r#"
        F=$(grep -o 'F[0-9]*: feature' "$OUT/prompt.$N" | head -1 | sed 's/: feature//')
        if grep -q 'Gate "tests" fails' "$OUT/prompt.$N"; then echo fixed > f4.txt; fi
        n=${F#F}
        if [ ! -f "f$n.txt" ]; then if [ "$n" = 4 ]; then echo broken > f4.txt; else echo "$n" > "f$n.txt"; fi; fi
        sed -i "s/\"id\":\"$F\",\"passes\":false/\"id\":\"$F\",\"passes\":true/" feature_list.json
        commit
    "#;
    let runs = Runs::of(bed, script);
    let out = runs.ends(0, &["Work off the list"]);
    assert!(out.stdout.contains("complete · "), "{}", out.stdout);
    let list: Value = serde_json::from_str(&runs.bed.read("feature_list.json")).unwrap();
    assert!(list["features"].as_array().unwrap().iter().all(|f| f["passes"] == true));
    assert_eq!(runs.bed.read("f4.txt").trim(), "fixed");
    assert!(runs.prompt(1).contains("F1: feature 1"), "{}", runs.prompt(1));
    let items: Vec<String> = runs.of_kind("began").iter().map(|e| e["item"].as_str().unwrap_or("-").to_owned()).collect();
    assert_eq!(items[..3], ["F1", "F2", "F3"]);
}

/// What a session is told: the task first, then the round, what failed, and what a person added.
#[test]
fn s4_6_a_round_is_told_what_failed_last() {
    let runs = Runs::new("if [ $N = 2 ]; then touch ok; fi\n");
    runs.ends(0, &["The task itself", "--verify", "test -f ok || { echo 'ok is not there'; exit 3; }"]);
    assert!(runs.prompt(1).starts_with("The task itself\n\n[ralph] This is iteration 1 of a loop."), "{}", runs.prompt(1));
    let second = runs.prompt(2);
    assert!(second.starts_with("The task itself\n\n[ralph] This is iteration 2 of a loop."), "{second}");
    assert!(second.contains("exit code 3") && second.contains("ok is not there"), "{second}");
    assert_eq!(runs.sessions(), 2);
}

#[test]
fn s4_6_so_many_rounds_and_then_a_rest() {
    let runs = Runs::new("echo $N >> work.txt\n");
    let out = runs.ends(0, &["Go", "--completion-promise", "DONE", "-n", "2"]);
    assert!(out.stdout.contains("2 iterations are done"), "{}", out.stdout);
    assert_eq!((runs.bed.iteration(), runs.bed.value("active")), (3, "false".to_owned()), "it rests: no session takes it by accident");
    assert_eq!(runs.bed.status()["status"], "paused");
    let out = runs.ends(0, &["--continue", "--once"]);
    assert!(out.stdout.contains("goes on at iteration 3"), "{}", out.stdout);
    assert_eq!((runs.iterations(), runs.bed.iteration()), (vec![1, 2, 3], 4));
    runs.ends(0, &["--once"]);
    assert_eq!(runs.bed.iteration(), 5, "without a prompt it goes on, too");
}

#[test]
fn s4_6_limits_of_the_loop_end_the_run() {
    let runs = Runs::new("echo $N >> work.txt\n");
    let out = runs.ends(10, &["Go", "--max-iterations", "2"]);
    assert!(out.stdout.contains("limit of 2 iterations"), "{}", out.stdout);
    assert!(runs.prompt(2).contains("no further iteration"), "soft landing: {}", runs.prompt(2));
    assert!(!runs.prompt(1).contains("There is little left"));
}

/// The number of a loop that rests between two iterations is of the next one, so the last one is still to come.
#[test]
fn s4_6_the_last_iteration_is_worked_on_in_a_run_of_its_own() {
    let runs = Runs::new("echo $N >> work.txt\n");
    runs.ends(0, &["Go", "--max-iterations", "2", "--once"]);
    let out = runs.ends(10, &["--continue", "--once"]);
    assert!(out.stdout.contains("limit of 2 iterations"), "{}", out.stdout);
    assert_eq!(runs.iterations(), [1, 2]);
    let out = runs.run(&["--continue", "--once"]);
    assert!(out.stderr.contains("at iteration 2 of 2: give it more with --max-iterations 4"), "{}", out.stderr);
}

/// The model: of the item, of the rule for failing rounds, of the command line.
#[test]
fn s4_6_the_model_is_chosen_for_each_round() {
    let bed = Bed::in_git();
    let list = json!({"features": [
        {"id": "A", "description": "first", "passes": false, "model": "small"},
        {"id": "B", "description": "second", "passes": false}
    ]});
    bed.write("feature_list.json", list.to_string());
    bed.write("ralph.toml", "[run]\nescalate_after = 2\nescalate_model = \"large\"\n\n[[gate]]\nfeatures = \"feature_list.json\"\n");
    bed.commit_all("begin");
    let script = r#"
        echo "$RALPH_MODEL" >> "$OUT/models"
        echo $N >> work.txt
        case $N in
            1) sed -i 's/"id":"A",\(.*\)"passes":false}/&/; s/\("description":"first".*\)"passes":false\(.*"id":"B"\)/\1"passes":true\2/' feature_list.json;;
            4) sed -i 's/"passes":false/"passes":true/' feature_list.json;;
        esac
    "#;
    let runs = Runs::of(bed, script);
    runs.ends(0, &["Go", "--model", "medium"]);
    assert_eq!(runs.noted("models").lines().collect::<Vec<_>>(), ["small", "medium", "medium", "large"]);
}

/// What programs read: one JSON object for every event, and nothing else.
#[test]
fn s4_6_events_for_programs() {
    let runs = Runs::new("echo one; echo two\n");
    let out = runs.ends(10, &["Go", "--max-iterations", "1", "--json"]);
    let events: Vec<Value> = out.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect();
    let kinds: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"run"));
    assert_eq!(kinds.last(), Some(&"ended"));
    for kind in ["round", "agent", "over", "ruled"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let ended = events.last().unwrap();
    assert_eq!((ended["how"].as_str(), ended["exit"].as_u64()), (Some("capped"), Some(10)), "{ended}");
}

/// Plain lines in a pipe, next to nothing with --quiet.
#[test]
fn s4_6_a_pipe_gets_plain_lines() {
    let runs = Runs::new("echo 'I did something'\n");
    let out = runs.ends(10, &["Go", "--max-iterations", "1"]);
    assert!(out.stdout.contains("I did something") && !out.stdout.contains('\u{1b}'), "{:?}", out.stdout);
    let runs = Runs::new("echo 'I did something'\n");
    let out = runs.ends(10, &["Go", "--max-iterations", "1", "--quiet"]);
    assert!(!out.stdout.contains("I did something") && out.stdout.contains("limit of 1 iteration"), "{:?}", out.stdout);
}

/// A reader that goes away does not end the loop.
#[test]
fn pains_15_a_broken_pipe_costs_only_what_is_shown() {
    let runs = Runs::new("for i in 1 2 3 4 5 6 7 8 9; do echo \"line $i\"; done; echo $N >> work.txt\n");
    let mut command = runs.command(&["Go", "--max-iterations", "3"]);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(10));
    assert_eq!(runs.iterations(), [1, 2, 3]);
}

/// Everything that a session said is kept.
#[test]
fn s4_6_each_session_has_its_log() {
    let runs = Runs::new("echo \"out of session $N\"; echo \"error of session $N\" >&2\n");
    runs.ends(10, &["Go", "--max-iterations", "2"]);
    for (n, event) in runs.of_kind("began").iter().enumerate() {
        let log = runs.bed.read(event["log"].as_str().unwrap());
        assert!(log.contains(&format!("out of session {}", n + 1)) && log.contains(&format!("error of session {}", n + 1)), "{log}");
    }
}

#[test]
fn bad_orders_are_refused_with_what_to_do() {
    let runs = Runs::new("true\n");
    let refused = |args: &[&str], code: i32, words: &str| {
        let out = runs.run(args);
        assert_eq!(out.code, Some(code), "{args:?}: {} {}", out.stdout, out.stderr);
        let said = format!("{}{}", out.stdout, out.stderr);
        assert!(said.contains(words), "{args:?}: {said}");
    };
    refused(&["--continue"], 3, "No active Ralph loop");
    refused(&["Go on", "--continue"], 2, "name only the loop");
    refused(&["nowhere", "--continue"], 1, "there is no loop \"nowhere\"");
    refused(&["Go", "-n", "0"], 2, "1");
    refused(&["Go", "-n", "x"], 2, "whole number");
    refused(&["Go", "--once", "-n", "3"], 2, "cannot be used with");
    refused(&["Go", "--permission-mode", "plan"], 2, "plan");
    assert!(!runs.is_live() && runs.sessions() == 0, "nothing was begun");
    runs.bed.write(LOOP, crate::common::loop_text("null", 1, 5, "DONE"));
    refused(&["Another", "task"], 1, "--continue");
}

/// S4-6: a feature folder is a loop without a file; a run carries it, too.
#[test]
fn s4_6_a_feature_folder_is_carried_as_well() {
    let bed = Bed::in_git();
    bed.write(
        ".claude/data/ralph-loops/current/feature_list.json",
        json!({"features": [{"id": "A", "description": "a", "passes": false}]}).to_string(),
    );
    let runs = Runs::of(bed, "sed -i 's/\"passes\":false/\"passes\":true/' .claude/data/ralph-loops/current/feature_list.json\n");
    let out = runs.ends(0, &[]);
    assert!(out.stdout.contains("complete · 1 iteration"), "{}", out.stdout);
    assert!(runs.prompt(1).contains("A: a"), "{}", runs.prompt(1));
    assert!(runs.bed.read(".claude/data/ralph-loops/current/progress.txt").contains("Status: COMPLETE"));
}

/// Whoever goes on with a loop goes on with its agent, unless they say otherwise.
#[test]
fn s4_6_a_run_that_goes_on_has_the_same_agent() {
    let runs = Runs::new("echo \"$RALPH_MODEL\" >> \"$OUT/models\"; echo $N >> work.txt\n");
    runs.ends(0, &["Go", "--completion-promise", "DONE", "--once", "--model", "one"]);
    let go_on = |args: &[&str]| {
        let out = runs.bed.ralph(&[&["run", "--continue", "--once"], args].concat());
        assert_eq!(out.code, Some(0), "{} {}", out.stdout, out.stderr);
        out.stdout
    };
    assert!(go_on(&[]).contains("as before: --agent-cmd"));
    go_on(&["--model", "two"]);
    go_on(&[]);
    assert_eq!(runs.noted("models").lines().collect::<Vec<_>>(), ["one", "one", "two", "two"]);
    let out = runs.bed.ralph(&["run", "--continue", "--once", "--agent", "claude"]);
    assert_eq!(out.code, Some(12), "there is none: {}", out.stderr);
}

/// What is sure to end in a question is asked before the first round.
#[test]
fn s4_6_gates_that_cannot_be_measured_are_told_in_the_evening() {
    for (settings, words) in [("[[gate]]\ncommand = \"true\"\n", "ralph trust"), ("[[gate]]\ncomand = \"true\"\n", "did you mean")] {
        let bed = Bed::in_git();
        bed.write("ralph.toml", settings);
        let runs = Runs::of(bed, "true\n");
        let out = runs.ends(12, &["Go"]);
        assert!(out.stderr.contains(words), "{}", out.stderr);
        assert!(runs.sessions() == 0 && !runs.is_live());
    }
}

/// A round that begins again loses nothing of what it left before: neither its log nor its files.
#[test]
fn s4_6_a_round_that_begins_again_keeps_what_it_left() {
    let runs = Runs::new("echo \"half $N\" > half.txt; echo \"session $N\"; [ $N = 1 ] && exit 3; exit 0\n");
    runs.bed.write("ralph.toml", "[run]\nretries = 0\n");
    runs.ends(12, &["Go", "--completion-promise", "DONE"]);
    let refs = || runs.bed.git(&["for-each-ref", "--format=%(refname) %(tree)", "refs/ralph"]);
    let start = refs();
    runs.ends(0, &["--continue", "--once"]);
    assert!(refs().starts_with(start.trim()), "{start}\n{}", refs());
    let logs = runs.bed.files_in(&format!(".ralph/rounds/{}", runs.bed.status()["id"].as_str().unwrap()));
    let said: Vec<String> = logs.iter().map(|log| std::fs::read_to_string(log).unwrap()).collect();
    assert!(said.len() == 2 && said[0].contains("session 1") && said[1].contains("session 2"), "{said:?}");
}
