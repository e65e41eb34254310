//! Brakes that look at what a loop costs and at what it changes (S2-7): money, counted from the client's transcripts, and rounds that change nothing.

use std::fs;

use serde_json::json;

use crate::{
    common::{Answer, Bed, LOOP, ME, PROMPT, Transcript, loop_text, now_ms, tick, unique},
    gated::{Gated, gate},
    hub::Hubbed,
};

/// A loop file with further keys.
fn with_keys(keys: &str) -> String {
    loop_text(ME, 1, 0, "DONE").replace("active: true\n", &format!("active: true\n{keys}"))
}

/// A message of a model that writes 40 000 tokens for one dollar, in two lines.
fn dollar(transcript: &Transcript, id: &str, said: &str) {
    spends(transcript, id, said, 40_000, now_ms());
}

fn spends(transcript: &Transcript, id: &str, said: &str, output: u64, at: i64) {
    let usage = json!({"input_tokens": 0, "output_tokens": output, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    for block in [json!({"type": "thinking", "thinking": "…"}), json!({"type": "text", "text": said})] {
        let message = json!({"id": id, "role": "assistant", "model": "claude-opus-5", "content": [block], "usage": usage});
        let at = ralph_core::text::time::format(at);
        transcript.line(json!({"type": "assistant", "isSidechain": false, "timestamp": at, "message": message}));
    }
}

/// One round that costs a dollar.
fn round(bed: &Bed, transcript: &Transcript) -> Answer {
    tick();
    let said = format!("Worked ({}).", unique());
    transcript.feedback(PROMPT).uses_tool(&format!("t{}", unique()));
    dollar(transcript, &format!("m{}", unique()), &said);
    bed.stop(&said).send()
}

/// What the last stop was judged by.
fn evidence(bed: &Bed) -> serde_json::Value {
    let stop = bed.journal().into_iter().rev().find(|r| r["event"]["kind"] == "stop").unwrap();
    stop["event"]["evidence"].clone()
}

/// S2-7: each message counts once, the limit ends the loop, and a new allowance goes on from there.
#[test]
fn s2_7_money_that_is_spent_ends_the_loop() {
    let bed = Bed::new();
    bed.write(LOOP, with_keys("max_usd: 3\n"));
    let transcript = bed.transcript();
    transcript.user("go");
    assert!(round(&bed, &transcript).blocks());
    assert!(round(&bed, &transcript).blocks());
    let spent = evidence(&bed)["spent_usd_micros"].as_u64().unwrap();
    assert!((2_000_000..2_010_000).contains(&spent), "{spent}: each tool call of the bed has one token of an unknown model");
    assert!(bed.ralph_ok(&["status"]).contains("about $2.00 of $3"), "{}", bed.ralph_ok(&["status"]));
    assert_eq!((bed.status()["max_usd"].as_f64(), bed.status()["spent_usd"].as_f64().map(f64::round)), (Some(3.0), Some(2.0)));
    round(&bed, &transcript)
        .tells("Ralph: stopped at its limit of $3: about $3.00 spent (iteration 3). The loop is kept: `/ralph-resume --usd 3` goes on.");
    assert_eq!(bed.codes(), ["promise.missing", "promise.missing", "limit.cost"]);
    assert_eq!(bed.last_ended()["status"], "capped");
    let explained = bed.ralph_ok(&["explain"]);
    assert!(explained.contains("about $3.00 of $3") && explained.contains("no limit on money"), "{explained}");

    let out = bed.ralph(&["resume"]);
    assert_eq!(
        (out.code, out.stderr.as_str()),
        (Some(1), "error: the loop has used up its money (about $3.00 of $3): give it more with --usd 3\n")
    );
    bed.ralph_ok(&["resume", "--usd", "1.5"]);
    assert!(bed.ralph_ok(&["status"]).contains("about $0 of $1.50"));
    assert!(round(&bed, &transcript).blocks(), "it has its new allowance from now on");
    assert!(!round(&bed, &transcript).blocks());
    bed.ralph_ok(&["resume", "--usd", "0"]);
    for _ in 0..3 {
        assert!(round(&bed, &transcript).blocks(), "0 is no limit");
    }
    let replayed = bed.ralph_ok(&["explain", "--replay", bed.files_in(".ralph/journal")[0].to_str().unwrap()]);
    assert!(replayed.contains("0 different"), "{replayed}");
}

/// S2-7: where nobody set a limit nothing is counted, and nothing about money is in the journal.
#[test]
fn s2_7_without_a_limit_nothing_is_counted() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go");
    assert!(round(&bed, &transcript).blocks());
    let journal = fs::read_to_string(&bed.files_in(".ralph/journal")[0]).unwrap();
    assert!(!journal.contains("usd") && !journal.contains("stalled_rounds") && !journal.contains("spending"), "{journal}");
    assert_eq!((bed.status()["max_usd"].as_f64(), bed.status()["spent_usd"].is_null()), (Some(0.0), true));
    // A limit that comes later counts from the loop's start.
    bed.write(LOOP, bed.read(LOOP).replace("active: true\n", "active: true\nmax_usd: 1.5\n"));
    assert!(!round(&bed, &transcript).blocks());
    assert_eq!(bed.codes().pop().unwrap(), "limit.cost");
}

/// S2-7: what was used before the loop started, and while it was paused, is the person's own.
#[test]
fn s2_7_only_the_loops_own_use_counts() {
    let bed = Bed::new();
    let transcript = bed.transcript();
    transcript.user("hello");
    for n in 0..5 {
        dollar(&transcript, &format!("before-{n}"), "Hello.");
    }
    tick();
    bed.typed("/ralph-loop fix it --completion-promise DONE --usd 2").send();
    assert!(bed.read(LOOP).contains("\nmax_usd: 2\n"), "{}", bed.read(LOOP));
    assert!(round(&bed, &transcript).blocks());
    assert!((1_000_000..1_010_000).contains(&evidence(&bed)["spent_usd_micros"].as_u64().unwrap()));
    bed.ralph_ok(&["pause"]);
    for _ in 0..3 {
        assert!(!round(&bed, &transcript).blocks());
    }
    tick();
    bed.ralph_ok(&["resume"]);
    tick();
    let said = "Nothing dear.";
    transcript.feedback(PROMPT).uses_tool("t").says("cheap", said);
    assert!(bed.stop(said).send().blocks(), "{:?}", evidence(&bed));
    assert!(!round(&bed, &transcript).blocks());
}

/// S2-7: what subagents use counts as well; they have files of their own.
#[test]
fn s2_7_subagents_count() {
    let bed = Bed::new();
    bed.write(LOOP, with_keys("max_usd: 3.5\n"));
    let transcript = bed.transcript();
    transcript.user("go");
    let folder = bed.transcript_path().with_extension("").join("subagents");
    fs::create_dir_all(&folder).unwrap();
    let agent = |name: &str| {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        Transcript { path }
    };
    let one = agent("agent-1.jsonl");
    dollar(&one, "sub-1", "Checked.");
    dollar(&agent("notes.jsonl"), "none", "No agent's.");
    assert!(round(&bed, &transcript).blocks());
    let spent = || evidence(&bed)["spent_usd_micros"].as_u64().unwrap() / 1_000_000;
    assert_eq!(spent(), 2);
    tick();
    dollar(&one, "sub-1", "The same message goes on.");
    assert!(round(&bed, &transcript).blocks());
    assert_eq!(spent(), 3);
    dollar(&agent("agent-2.jsonl"), "sub-2", "Checked again.");
    let said = "Done for now.";
    transcript.feedback(PROMPT).uses_tool("t").says("cheap", said);
    assert!(!bed.stop(said).send().blocks());
    assert_eq!((spent(), bed.codes().pop().unwrap().as_str()), (4, "limit.cost"));
}

/// S2-7: a transcript that was replaced, torn, or is not there harms nothing and counts nothing twice.
#[test]
fn s2_7_odd_transcripts_count_nothing_twice() {
    let bed = Bed::new();
    bed.write(LOOP, with_keys("max_usd: 100\n"));
    bed.work().send().blocks_with(PROMPT);
    let transcript = bed.transcript();
    transcript.user("go");
    for _ in 0..3 {
        assert!(round(&bed, &transcript).blocks());
    }
    let spent = || evidence(&bed)["spent_usd_micros"].as_u64().unwrap() / 1_000_000;
    assert_eq!(spent(), 3);
    let text = fs::read_to_string(&transcript.path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&transcript.path, lines[lines.len() - 2..].join("\n") + "\n").unwrap();
    assert!(round(&bed, &transcript).blocks());
    assert_eq!(spent(), 4);
    transcript.raw(b"{\"type\":\"assistant\",\"message\":{\"usage\":{\"output_tokens\":-1}}}\n\xff\x00{\"usage\"\n{\"type\":\"assi");
    tick();
    transcript.raw(b"\n");
    assert!(round(&bed, &transcript).blocks());
    assert_eq!(spent(), 5);
}

/// S2-7: the loops of a pull request have no last round, so their other brakes are on, and all of it is spelled out.
#[test]
fn s2_7_the_presets_of_a_pull_request_have_brakes() {
    let Some(bed) = Hubbed::new() else { return };
    let said = bed.ralph_asking(&["start", "Ship it.", "--preset", "pre-pr"]).stdout;
    for line in [
        "no limit on iterations",
        "at most 8 h",
        "at most about $50, estimated from the tokens that the client reports",
        "pauses after 6 iterations in a row that change nothing: no commit, no file, no finding",
    ] {
        assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(line), "{line}: {said}");
    }
    assert!(bed.read(LOOP).contains("max_usd: 50\n") && bed.read(LOOP).contains("stall_rounds: 6\n"));
    assert!(bed.ralph_ok(&["status"]).contains("about $0 of $50"));
    assert_eq!(bed.status()["stall_limit"], 6);
    let Some(none) = Hubbed::new() else { return };
    let said = none.ralph_asking(&["start", "Ship it.", "--preset", "after-pr", "--usd", "0", "--stall-iterations", "0"]).stdout;
    assert!(said.contains("no limit on money") && said.contains("no pause for iterations that change nothing"), "{said}");
    assert!(none.read(LOOP).contains("max_usd: 0\n") && none.read(LOOP).contains("stall_rounds: 0\n"));
    let out = none.ralph(&["start", "x", "--usd", "lots"]);
    assert!(out.code == Some(2) && out.stderr.contains("needs a number of dollars from 0 on"), "{out:?}");
}

/// S2-7: rounds that change nothing pause the loop, whatever tools were called. Any change starts the count anew.
#[test]
fn s2_7_rounds_that_change_nothing_pause_the_loop() {
    let bed = Bed::in_git();
    bed.write(LOOP, with_keys("stall_rounds: 3\n"));
    bed.write("a.txt", "1");
    let transcript = bed.transcript();
    transcript.user("go");
    let stalled = || evidence(&bed)["stalled_rounds"].as_u64().unwrap_or(0);
    let goes_on = |expected: u64| {
        assert!(round(&bed, &transcript).blocks(), "{:?}", evidence(&bed));
        assert_eq!(stalled(), expected);
    };
    goes_on(0);
    goes_on(1);
    goes_on(2);
    bed.write("a.txt", "2");
    goes_on(0);
    goes_on(1);
    bed.commit_all("a commit of the very same files");
    goes_on(0);
    goes_on(1);
    goes_on(2);
    assert!(bed.ralph_ok(&["status"]).contains("2 iterations changed nothing (of 3)"));
    assert_eq!(bed.status()["stalled_rounds"], 2);
    round(&bed, &transcript)
        .tells("Ralph: paused at iteration 9: 3 iterations changed nothing: same commit, same files. /ralph-resume arms it again.");
    let why = bed.status()["why"].as_str().unwrap().to_owned();
    assert_eq!(why, "paused at iteration 9: 3 iterations changed nothing: same commit, same files. `ralph resume` arms it again.");
    assert_eq!((bed.codes().pop().unwrap().as_str(), bed.value("active").as_str()), ("progress.none", "false"));
    let explained = bed.ralph_ok(&["explain"]);
    assert!(
        explained.contains("3 iterations in a row changed nothing; it pauses after 3") && explained.contains("a change in this iteration"),
        "{explained}"
    );
    bed.ralph_ok(&["resume"]);
    for _ in 0..3 {
        assert!(round(&bed, &transcript).blocks(), "a fresh count");
    }
    assert!(!round(&bed, &transcript).blocks());
}

/// S2-7: a finding that changes is a change, the time that a command took is none, and neither is claiming.
#[test]
fn s2_7_findings_are_part_of_what_changes() {
    // What the gate says comes from a file outside of the tree.
    let gated = Gated::in_git(&gate("tests", "sleep 0.0$(date +%N | cut -c3); exit $(cat \"$HOME/code\")", "cache = false"));
    gated.write(LOOP, with_keys("stall_rounds: 3\n"));
    let code = |code: &str| fs::write(gated.home().join("code"), code).unwrap();
    let stalled = |claims: bool| {
        let event = if claims { gated.claim() } else { gated.works() };
        assert!(event.send().blocks(), "{:?}", evidence(&gated));
        evidence(&gated)["stalled_rounds"].as_u64().unwrap_or(0)
    };
    code("1");
    assert_eq!([stalled(true), stalled(true), stalled(false)], [0, 1, 2]);
    code("2");
    assert_eq!([stalled(true), stalled(false), stalled(true)], [0, 1, 2]);
    let line = gated.claim().send().line();
    assert!(line.contains("3 iterations changed nothing: same commit, same files, same findings (tests failed: "), "{line}");
}

/// S2-7: what waits costs no round, so it is no standstill either; nor is a stop while something runs in the background.
#[test]
fn s2_7_waiting_is_no_standstill() {
    let bed = Bed::in_git();
    bed.write(LOOP, with_keys("stall_rounds: 2\n"));
    for _ in 0..2 {
        assert!(bed.work().send().blocks());
    }
    for _ in 0..4 {
        bed.work().field("background_tasks", json!([{"id": "b1", "status": "running"}])).send().is_silent();
    }
    bed.write("a.txt", "new");
    assert!(bed.work().send().blocks());
}

/// S2-7: without git all files are looked at, and a feature folder has the same brakes.
#[test]
fn s2_7_outside_of_git_and_in_a_feature_folder() {
    let bed = Bed::new();
    bed.write(LOOP, with_keys("stall_rounds: 1\n"));
    assert!(bed.work().send().blocks());
    bed.write("a.txt", "new");
    assert!(bed.work().send().blocks());
    assert!(!bed.work().send().blocks());

    let folder = Bed::new();
    let dir = ".claude/data/ralph-loops/current";
    folder.write(format!("{dir}/feature_list.json"), r#"[{"id": "F1", "description": "one", "passes": false}]"#);
    folder.write(format!("{dir}/progress.txt"), "Iteration: 1\nMax USD: 1\nStall Rounds: 9\n");
    let transcript = folder.transcript();
    transcript.user("go");
    assert!(round(&folder, &transcript).blocks(), "nothing says when it began, so it begins with its first stop");
    let answer = round(&folder, &transcript);
    assert!(answer.line().contains("stopped at its limit of $1: about $1.00 spent"), "{}", answer.line());
    round(&folder, &transcript).is_silent();
    folder.ralph_ok(&["resume", "--usd", "5", "--stall-iterations", "4"]);
    let progress = folder.read(format!("{dir}/progress.txt"));
    assert!(progress.contains("Max USD: 5\nStall Rounds: 4\n"), "{progress}");
    assert!(round(&folder, &transcript).blocks());
}

/// The tokens of fresh sessions are counted by the journal; whoever gives a new allowance begins to count anew.
#[test]
fn s4_6_a_new_allowance_of_tokens_begins_at_nothing() {
    let bed = Bed::new();
    bed.ralph_ok(&["start", "Go", "--tokens", "100"]);
    let used = |text: &str| text.replace(r#""stops":0"#, r#""tokens":{"input":60,"output":40,"cache_read":0,"cache_written":0},"stops":0"#);
    bed.change_journal(bed.status()["id"].as_str().unwrap(), used);
    bed.ralph_ok(&["pause"]);
    let out = bed.ralph(&["resume"]);
    assert_eq!(
        (out.code, out.stderr.as_str()),
        (Some(1), "error: the loop has used up its tokens (100 of 100): give it more with --tokens 100\n")
    );
    bed.ralph_ok(&["resume", "--tokens", "50"]);
    assert!(bed.read(LOOP).contains("max_tokens: 50\n"));
    bed.ralph_ok(&["pause"]);
    bed.ralph_ok(&["resume"]);

    let folder = Bed::new();
    let dir = ".claude/data/ralph-loops/current";
    folder.write(format!("{dir}/feature_list.json"), r#"[{"id": "F1", "description": "one", "passes": false}]"#);
    folder.write(format!("{dir}/progress.txt"), "Iteration: 1\nMax Tokens: 7\n");
    folder.ralph_ok(&["pause"]);
    folder.ralph_ok(&["resume", "--tokens", "70"]);
    let progress = folder.read(format!("{dir}/progress.txt"));
    assert!(progress.contains("Max Tokens: 70\n"), "{progress}");
}
