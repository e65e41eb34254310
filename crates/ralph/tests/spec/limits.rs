//! Brakes and waits: time, idle rounds, background work, queued input, interrupts (design 6; pains 10 … 12).

use std::fs;

use serde_json::json;

use crate::common::{Bed, CLIENT, LOOP, ME, PAUSED_BY_HAND, PROMPT, Transcript, fixture_until, loop_text, next_stop, tick, unique};

/// One round without any tool call: the feedback, a text, and the stop. Returns whether the agent was sent back.
fn idle_round(bed: &Bed, transcript: &Transcript, env: Option<&str>) -> crate::common::Answer {
    tick();
    let said = format!("Still thinking ({}).", unique());
    transcript.feedback(PROMPT).says(&format!("m{}", unique()), &said);
    let mut event = bed.stop(&said);
    if let Some(cap) = env {
        event = event.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", cap);
    }
    event.send()
}

/// How many idle rounds were sent back before the loop paused, and what the person was told.
fn rounds_until_pause(extra: &str, cap: Option<&str>) -> (u64, String) {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("active: true\n", &format!("active: true\n{extra}")));
    let transcript = bed.transcript();
    transcript.user("go");
    for n in 0..60 {
        let answer = idle_round(&bed, &transcript, cap);
        if !answer.blocks() {
            assert_eq!(bed.value("active"), "false");
            assert_eq!(bed.iteration(), n + 1);
            assert!(bed.work().send().line().contains("so this stop was not checked"));
            bed.work().send().is_silent();
            return (n, answer.line());
        }
    }
    panic!("never paused");
}

/// pains 11: seven rounds under the client's own cap of 8, so that the turn never ends behind ralph's back.
#[test]
fn pains_11_seven_idle_rounds_pause_under_the_default_cap() {
    let told = "Ralph: paused at iteration 7: 7 iterations in a row without any tool call, and the client would soon end the turn by itself as \
                if it were done. /ralph-resume arms it again; `ralph init --block-cap 0` lifts the client's cap.";
    assert_eq!(rounds_until_pause("", None), (6, told.to_owned()));
    assert_eq!(rounds_until_pause("", Some("abc")).0, 6);
}

/// pains 11: 25 rounds where the user lifted the cap.
#[test]
fn pains_11_twenty_five_idle_rounds_where_the_cap_is_lifted() {
    let told = "Ralph: paused at iteration 25: 25 iterations in a row without any tool call. /ralph-resume arms it again.";
    assert_eq!(rounds_until_pause("", Some("0")), (24, told.to_owned()));
}

/// pains 11: a lower cap brings the pause forward, and the loop's own key sets it.
#[test]
fn pains_11_other_caps_and_the_loops_own_key() {
    assert_eq!(rounds_until_pause("", Some("3")).0, 1);
    assert_eq!(rounds_until_pause("", Some("5")).0, 3);
    assert_eq!(rounds_until_pause("idle_rounds: 3\n", None).0, 2);
    assert_eq!(rounds_until_pause("idle_rounds: 3\n", Some("0")).0, 2);
    assert_eq!(rounds_until_pause("idle_rounds: 10\n", Some("0")).0, 9);
    // The host's cap cannot be lifted from here: `idle_rounds: 0` and a large number do not outrun it.
    assert_eq!(rounds_until_pause("idle_rounds: 0\n", None).0, 6);
    assert_eq!(rounds_until_pause("idle_rounds: 100\n", None).0, 6);
}

/// A tool call starts the count anew, and so does a new message of the person's.
#[test]
fn pains_11_tool_use_and_a_new_turn_reset_the_count() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go");
    for _ in 0..5 {
        assert!(idle_round(&bed, &transcript, None).blocks());
    }
    assert_eq!(bed.status()["idle_rounds"], 5);
    tick();
    let said = format!("Ran it ({}).", unique());
    transcript.feedback(PROMPT).uses_tool("m-tool").says("m-after", &said);
    assert!(bed.stop(&said).send().blocks());
    assert_eq!(bed.status()["idle_rounds"], 0);
    for _ in 0..6 {
        assert!(idle_round(&bed, &transcript, None).blocks());
    }
    // The client counts within one turn of the person's, and so does ralph.
    tick();
    let said = format!("As you like ({}).", unique());
    transcript.user("do something else").says("m-turn", &said);
    assert!(bed.stop(&said).field("prompt_id", "prompt-2").send().blocks());
    assert_eq!(bed.status()["idle_rounds"], 1);
}

/// Six idle rounds; then a line of the second one, with that round's time, arrives late; then the seventh.
fn late_tool(bed: &Bed, transcript: &Transcript) {
    let known = fs::read_to_string(&transcript.path).unwrap().lines().count();
    for _ in 0..6 {
        assert!(idle_round(bed, transcript, None).blocks());
    }
    let text = fs::read_to_string(&transcript.path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = lines[known + 2].split("\"timestamp\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let call = json!({"type": "assistant", "timestamp": at, "message": {"id": "late", "content": [{"type": "tool_use", "name": "Bash"}]}});
    lines.insert(known + 3, call.to_string());
    fs::write(&transcript.path, lines.join("\n") + "\n").unwrap();
    assert!(idle_round(bed, transcript, None).blocks(), "paused in spite of a tool call: {:?}", bed.journal().last());
    assert_eq!(bed.status()["idle_rounds"], 1);
}

/// Tool calls whose lines came late are counted before the loop is paused.
#[test]
fn pains_11_tools_that_were_written_late_are_counted() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").uses_tool("m1").says("m2", "Began.");
    assert!(bed.stop("Began.").send().blocks());
    late_tool(&bed, &transcript);
}

/// The same where the idle rounds began with the loop's first stop.
#[test]
fn pains_11_late_tools_are_counted_from_the_first_stop_on() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go");
    late_tool(&bed, &transcript);
}

/// Without a transcript nothing is known about tools; only a message that repeats itself is known to be idle.
#[test]
fn pains_11_without_a_transcript_only_repetition_is_idle() {
    let bed = Bed::with_loop(1, 0, "DONE");
    for _ in 0..10 {
        assert!(bed.work().send().blocks());
    }
    let bed = Bed::with_loop(1, 0, "DONE");
    let mut sent_back = 0;
    while bed.stop("I am done.").send().blocks() {
        sent_back += 1;
        next_stop();
    }
    // The first one is no repetition.
    assert_eq!(sent_back, 7);
    assert_eq!(bed.codes().pop().unwrap(), "host.block-cap");
}

/// After a resume the count starts anew.
#[test]
fn pains_11_a_resumed_loop_has_a_fresh_count() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go");
    while idle_round(&bed, &transcript, None).blocks() {}
    bed.ralph_ok(&["resume"]);
    assert!(idle_round(&bed, &transcript, None).blocks());
}

/// The wall clock: 8 hours unless told, pauses not counted.
#[test]
fn s2_7_the_time_limit_ends_the_loop() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 2, 0, "DONE").replace("active: true\n", "active: true\nmax_hours: 0.01\n"));
    bed.work().send().blocks_with(PROMPT);
    let mut record = bed.journal().pop().unwrap();
    record["state"]["armed_since"] = json!(crate::common::now_ms() - 60_000);
    bed.write_journal(record["loop"].as_str().unwrap(), &format!("{record}\n"));
    bed.work()
        .send()
        .tells("Ralph: stopped at its time limit of 36 s (iteration 3). The loop is kept: `/ralph-resume --hours 0.1` goes on.");
    assert_eq!(bed.codes(), ["promise.missing", "limit.time"]);
    assert_eq!(bed.last_ended()["status"], "capped");
    let out = bed.ralph(&["resume"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(1), "error: the loop has used up its time (1 min): give it more with --hours H\n"));
    bed.ralph_ok(&["resume", "--hours", "1"]);
    bed.work().send().blocks_with(PROMPT);
}

/// Journal tampering stands for hours that passed: eight are the limit when the file says nothing.
#[test]
fn s2_7_eight_hours_are_the_limit_by_default() {
    for (minutes, blocks) in [(479, true), (481, false)] {
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.work().send().blocks_with(PROMPT);
        let mut record = bed.journal().pop().unwrap();
        record["state"]["armed_since"] = json!(crate::common::now_ms() - minutes * 60_000);
        bed.write_journal(record["loop"].as_str().unwrap(), &format!("{record}\n"));
        assert_eq!(bed.work().send().blocks(), blocks, "{minutes} minutes");
    }
}

/// A tiny limit is a limit: only 0 means none.
#[test]
fn s2_7_a_tiny_time_limit_is_not_no_limit() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("active: true\n", "active: true\nmax_hours: 0.0000001\n"));
    bed.work().send();
    next_stop();
    assert!(!bed.work().send().blocks());
    let none = Bed::new();
    none.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("active: true\n", "active: true\nmax_hours: 0\n"));
    none.work().send();
    next_stop();
    assert!(none.work().send().blocks());
}

/// Time in a pause does not count.
#[test]
fn s2_7_time_in_a_pause_does_not_count() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("active: true\n", "active: true\nmax_hours: 0.0003\n"));
    bed.work().send();
    bed.ralph_ok(&["pause"]);
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    bed.ralph_ok(&["resume"]);
    assert!(bed.work().send().blocks(), "{:?}", bed.journal().last());
}

/// pains 12: while something runs in the background the stop is allowed, silently, and costs no iteration.
#[test]
fn pains_12_background_tasks_are_waited_for_in_silence() {
    let bed = Bed::with_loop(2, 3, "DONE");
    let before = bed.loop_bytes();
    let tasks = [
        json!([{"id": "b1", "type": "shell", "status": "running", "description": "npm test", "command": "npm test"}]),
        json!([{"id": "a1", "type": "subagent", "status": "running", "description": "check", "agent_type": "check"}]),
        json!([{"id": "b1", "status": "completed"}, {"id": "b2", "status": "running"}]),
        json!([{"id": "b1"}]),
    ];
    for tasks in tasks {
        bed.work().field("background_tasks", tasks).send().is_silent();
    }
    assert_eq!(bed.loop_bytes(), before);
    assert_eq!(bed.codes(), vec!["host.background"; 4]);
    // A promise is a promise, whatever runs on; finished tasks hold nothing up.
    bed.work().field("background_tasks", json!([{"id": "b1", "status": "completed"}])).send().blocks_with(PROMPT);
    bed.stop("<promise>DONE</promise>").field("background_tasks", json!([{"id": "b1", "status": "running"}])).send().line();
    assert!(!bed.exists(LOOP));
}

/// Odd shapes of the list are no background work and no error.
#[test]
fn pains_12_odd_background_lists_are_ignored() {
    let bed = Bed::with_loop(1, 0, "DONE");
    for odd in [json!(null), json!("x"), json!({}), json!([])] {
        bed.work().field("background_tasks", odd).send().blocks_with(PROMPT);
    }
    assert_eq!(bed.iteration(), 5);
}

/// design 6: what the person typed while the agent worked is let through first; it costs no iteration, and the loop goes on after it.
#[test]
fn pains_9_queued_input_is_let_through_first() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").queue("enqueue").says("m1", "Iteration one.");
    let before = bed.loop_bytes();
    bed.stop("Iteration one.").send().is_silent();
    assert_eq!(bed.loop_bytes(), before);
    assert_eq!(bed.codes(), ["host.queued-input"]);
    // The client delivers it, and the loop goes on at the next stop.
    tick();
    transcript.queue("dequeue").user("typed while busy").says("m2", "Iteration two.");
    bed.stop("Iteration two.").field("prompt_id", "prompt-2").send().blocks_with(PROMPT);
}

/// Each way to leave the queue counts: dequeue, remove, popAll.
#[test]
fn pains_9_a_queue_that_was_emptied_holds_nothing_up() {
    for (lines, waits) in [
        (vec!["enqueue", "dequeue"], false),
        (vec!["enqueue", "remove"], false),
        (vec!["enqueue", "enqueue", "popAll", "popAll"], false),
        (vec!["enqueue", "enqueue", "dequeue"], true),
        (vec!["enqueue", "dequeue", "enqueue"], true),
        (vec!["dequeue", "enqueue"], true),
    ] {
        let bed = Bed::with_loop(1, 0, "DONE");
        let transcript = bed.transcript();
        transcript.user("go");
        for line in &lines {
            transcript.queue(line);
        }
        transcript.says("m1", "Words.");
        assert_eq!(bed.stop("Words.").send().blocks(), !waits, "{lines:?}");
    }
}

/// Real transcripts, cut at the stop that the queue was full at.
#[test]
fn pains_9_real_queues_are_seen() {
    for version in ["2.1.197", "2.1.325"] {
        for (name, waits) in [("queue-text", true), ("queue-slash", true), ("queue-slash-tool", true), ("queue-popall", false)] {
            let name = format!("{version}-{name}");
            // Up to the first assistant's text after the first line of the queue.
            let seen = std::cell::Cell::new(false);
            let text = fixture_until(&name, |line| {
                seen.set(seen.get() || line["type"] == "queue-operation" && line["operation"] != "dequeue");
                seen.get() && line["type"] == "assistant" && line["message"]["content"][0]["type"] == "text"
            });
            let bed = Bed::with_loop(1, 0, "DONE");
            // What an earlier process of the client left in its queue is gone; this one was started just now.
            let text = text.replace("\"timestamp\":\"2026", "\"timestamp\":\"2099");
            fs::write(bed.transcript_path(), &text).unwrap();
            let said: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
            let answer = bed.stop(said["message"]["content"][0]["text"].as_str().unwrap()).send();
            assert_eq!(answer.blocks(), !waits, "{name}: {:?}", bed.codes());
        }
    }
}

/// design 6: an interrupt since the last ruling pauses the loop, even if the message after it went by unseen.
#[test]
fn pains_9_an_interrupt_pauses_the_loop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "One.");
    bed.stop("One.").send().blocks_with(PROMPT);
    tick();
    transcript.feedback(PROMPT).says("m2", "Tw").user("[Request interrupted by user]").user("what is 2 + 2?").says("m3", "4");
    bed.stop("4").field("prompt_id", "prompt-2").send().tells(
        "Ralph: you interrupted the agent, so the loop is paused at iteration 2. /ralph-resume arms it again, /cancel-ralph ends it.",
    );
    assert_eq!((bed.value("active").as_str(), bed.iteration()), ("false", 2));
    assert!(bed.work().send().line().contains("so this stop was not checked"));
}

/// An interrupt before the loop began, or before the last ruling, is history.
#[test]
fn pains_9_an_old_interrupt_is_history() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("[Request interrupted by user]").user("/ralph-loop go").says("m1", "One.");
    bed.stop("One.").send().blocks_with(PROMPT);
    tick();
    transcript.feedback(PROMPT).says("m2", "Two.");
    bed.stop("Two.").send().blocks_with(PROMPT);
}

/// pains 13 (its hook half): words about limits in the agent's text change nothing.
#[test]
fn pains_13_words_about_rate_limits_are_words() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.stop("API Error: rate limit exceeded (429), usage limit reached").client(CLIENT).send().goes_on_with(PROMPT);
    assert_eq!(bed.iteration(), 2);
}

/// A pause by hand costs no time.
#[test]
fn s2_7_a_pause_by_hand_stops_the_clock() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("max_iterations: 0", "max_iterations: 0\nmax_hours: 0.0005"));
    bed.work().send().blocks_with(PROMPT);
    bed.write(LOOP, bed.read(LOOP).replace("active: true", "active: false"));
    bed.work().send().tells(PAUSED_BY_HAND);
    std::thread::sleep(std::time::Duration::from_secs(2));
    bed.write(LOOP, bed.read(LOOP).replace("active: false", "active: true"));
    bed.work().send().blocks_with(PROMPT);
}

/// Nor does a session that is closed.
#[test]
fn s2_7_a_closed_session_stops_the_clock() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("max_iterations: 0", "max_iterations: 0\nmax_hours: 0.0005"));
    bed.work().send().blocks_with(PROMPT);
    bed.event("SessionEnd").field("reason", "other").send().is_silent();
    std::thread::sleep(std::time::Duration::from_secs(2));
    bed.event("SessionStart").field("source", "resume").send();
    bed.work().send().blocks_with(PROMPT);
}
