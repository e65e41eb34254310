//! Every event that is no stop: heard, journalled, never blocked (design 7).

use serde_json::json;

use crate::{
    claims::BLOCKED,
    common::{Bed, CLIENT, LOOP, ME, OTHER, PROMPT, loop_text},
};

/// Pid of a process that has ended.
fn dead_pid() -> String {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    pid.to_string()
}

/// Subagents, compactions, API errors and events of the future: silent, in the journal, and free of charge.
#[test]
fn s3_1_other_events_never_block_and_cost_nothing() {
    let bed = Bed::with_loop(2, 3, "DONE");
    bed.work().send();
    let file = bed.loop_bytes();
    let events = [
        ("SubagentStop", "agent_type", "check"),
        ("SubagentStop", "agent_type", ""),
        ("StopFailure", "error", "rate_limit"),
        ("StopFailure", "error", "server_error"),
        ("PreCompact", "trigger", "auto"),
        ("PostToolUse", "tool_name", "Bash"),
        ("SomethingNew", "x", "y"),
        ("", "x", "y"),
    ];
    for (name, field, value) in events {
        bed.event(name).field(field, value).field("last_assistant_message", "<promise>DONE</promise>").client(CLIENT).send().is_silent();
    }
    assert_eq!(bed.loop_bytes(), file);
    let heard: Vec<_> = bed.journal().iter().filter(|r| r["event"]["kind"] == "heard").map(|r| r["event"].clone()).collect();
    assert_eq!(
        heard[..5],
        [
            json!({"kind": "heard", "event": "SubagentStop", "detail": "check"}),
            json!({"kind": "heard", "event": "SubagentStop", "detail": ""}),
            json!({"kind": "heard", "event": "StopFailure", "detail": "rate_limit"}),
            json!({"kind": "heard", "event": "StopFailure", "detail": "server_error"}),
            json!({"kind": "heard", "event": "PreCompact", "detail": "auto"}),
        ]
    );
    assert_eq!(heard[5..].iter().map(|h| h["event"].as_str().unwrap()).collect::<Vec<_>>(), ["PostToolUse", "SomethingNew", ""]);
    assert_eq!(bed.hook_log()[3].split(' ').nth(2), Some("code=host.api-error"));
    // The loop is where it was.
    bed.work().send().line();
    assert_eq!(bed.codes(), ["promise.missing", "limit.iterations"]);
}

/// An event without a name, or of a strange type, is no stop.
#[test]
fn s0_6_an_event_without_a_name_is_no_stop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let file = bed.loop_bytes();
    bed.work().without("hook_event_name").send().is_silent();
    bed.work().field("hook_event_name", json!(["Stop"])).send().is_silent();
    bed.work().field("hook_event_name", "stop").send().is_silent();
    assert_eq!(bed.loop_bytes(), file);
}

/// `/clear` gives a new session id in the same process: the loop comes along, and the person is told.
#[test]
fn s1_ac2_clear_rebinds_the_loop() {
    let bed = Bed::with_loop(1, 9, "DONE");
    let pid = std::process::id().to_string();
    bed.work().env("CLAUDE_PID", &pid).send().blocks_with(PROMPT);
    bed.event("SessionEnd").field("reason", "clear").env("CLAUDE_PID", &pid).send().is_silent();
    bed.event("SessionStart")
        .field("source", "clear")
        .session(OTHER)
        .env("CLAUDE_PID", &pid)
        .send()
        .tells("Ralph: the loop (iteration 2 of 9) goes on in this session after /clear.");
    assert_eq!(bed.read(LOOP), loop_text(&format!("\"{OTHER}\""), 2, 9, "DONE"));
    bed.work().send().is_silent();
    bed.work().session(OTHER).env("CLAUDE_PID", &pid).send().blocks_with(PROMPT);
    assert_eq!(bed.kinds(), ["stop", "heard", "rebound", "stop"]);
}

/// An adopted loop is re-bound in the journal, and its file stays as it is.
#[test]
fn s1_ac2_clear_rebinds_an_adopted_loop() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text("null", 1, 0, "DONE"));
    bed.work().send().blocks_with(PROMPT);
    bed.event("SessionStart").field("source", "clear").session(OTHER).send().line();
    assert_eq!(bed.read(LOOP), loop_text("null", 2, 0, "DONE"));
    bed.work().send().is_silent();
    bed.work().session(OTHER).send().blocks_with(PROMPT);
}

/// The `/clear` of another client's process is not this loop's.
#[test]
fn pains_6_clear_in_another_process_does_not_take_the_loop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().env("CLAUDE_PID", "1").send();
    let file = bed.loop_bytes();
    bed.event("SessionStart").field("source", "clear").session(OTHER).env("CLAUDE_PID", std::process::id().to_string()).send().is_silent();
    assert_eq!(bed.loop_bytes(), file);
    bed.work().session(OTHER).send().is_silent();
}

/// A session that begins where a loop waits, is paused, was left behind or is broken hears of it.
#[test]
fn s2_8_a_new_session_is_told_of_the_loop() {
    let start = |bed: &Bed, source: &str| bed.event("SessionStart").field("source", source).session(OTHER).send();
    // Waiting for a session.
    let bed = Bed::new();
    bed.write(LOOP, loop_text("null", 1, 5, "DONE"));
    let waits = "Ralph: a loop waits for a session (iteration 1 of 5). It takes this one at its first stop; /cancel-ralph drops it.";
    let answer = start(&bed, "startup").json.unwrap();
    assert_eq!(answer["systemMessage"], waits);
    let task = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(task.contains("tells you to begin") && task.contains("<promise>DONE</promise>") && task.ends_with(PROMPT), "{task}");
    bed.write(LOOP, loop_text("null", 1, 5, "DONE") + &"x".repeat(20_000));
    start(&bed, "startup").tells(waits);
    // Somebody else's, and alive: nothing to say.
    let bed = Bed::with_loop(3, 5, "DONE");
    bed.work().send();
    start(&bed, "startup").is_silent();
    // Paused.
    bed.ralph_ok(&["pause"]);
    let line = start(&bed, "startup").line();
    assert!(line.starts_with("Ralph: a loop is paused here (iteration 4 of 5, last active "), "{line}");
    assert!(line.ends_with(" ago). /ralph-resume goes on with it, /cancel-ralph drops it."), "{line}");
    // Left behind: the session has ended.
    bed.ralph_ok(&["resume"]);
    bed.event("SessionEnd").field("reason", "prompt_input_exit").send().is_silent();
    let line = start(&bed, "startup").line();
    assert!(line.starts_with("Ralph: a loop was left behind here (iteration 4 of 5, last active "), "{line}");
    assert_eq!(bed.status()["status"], "left-behind");
    // Left behind: its process is gone without a word.
    let bed = Bed::with_loop(3, 5, "DONE");
    bed.work().env("CLAUDE_PID", dead_pid()).send();
    assert!(start(&bed, "startup").line().starts_with("Ralph: a loop was left behind here"));
    // And it traps nobody.
    bed.work().session(OTHER).send().is_silent();
    // Broken.
    let bed = Bed::new();
    bed.write(LOOP, "---\niteration: x\n---\nGo\n");
    let line = start(&bed, "startup").line();
    assert!(line.contains("ralph-loop.local.md cannot be read: line 2: `iteration` must be"), "{line}");
    assert!(bed.exists(LOOP));
}

/// The owner that comes back (`--resume` keeps the id) hears that its loop is armed, and goes on.
#[test]
fn s2_8_the_owner_that_comes_back_goes_on() {
    let bed = Bed::with_loop(3, 5, "DONE");
    bed.work().send();
    bed.event("SessionEnd").field("reason", "other").send().is_silent();
    assert_eq!(bed.status()["status"], "left-behind");
    let line = bed.event("SessionStart").field("source", "resume").send().line();
    assert!(line.starts_with("Ralph: this session's loop is armed (iteration 4 of 5, last active "), "{line}");
    assert_eq!(bed.status()["status"], "active");
    bed.work().send().blocks_with(PROMPT);
}

/// After a compaction the agent is reminded how the loop ends: a summary may have lost it.
#[test]
fn s4_5_compaction_reminds_the_agent() {
    let bed = Bed::with_loop(4, 0, "DONE");
    let answer = bed.event("SessionStart").field("source", "compact").send();
    let text = "A Ralph loop is active in this session (iteration 4). Only when all of it is completely true, end your message with \
                <promise>DONE</promise> on a line of its own.";
    let text = format!("{text} {BLOCKED}");
    assert_eq!(answer.json, Some(json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})));
    let none = Bed::with_loop(4, 0, "null");
    none.event("SessionStart").field("source", "compact").send().is_silent();
    let paused = Bed::new();
    paused.write(LOOP, loop_text(ME, 4, 0, "DONE").replace("active: true", "active: false"));
    paused.event("SessionStart").field("source", "compact").send().is_silent();
}

/// `SessionEnd` for `/clear` does not leave the loop behind; every other reason does.
#[test]
fn s2_8_session_end_leaves_the_loop_behind_unless_it_is_a_clear() {
    for (reason, status) in [("clear", "active"), ("other", "left-behind"), ("prompt_input_exit", "left-behind"), ("logout", "left-behind")]
    {
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.work().send();
        let file = bed.loop_bytes();
        bed.event("SessionEnd").field("reason", reason).send().is_silent();
        assert_eq!(bed.status()["status"], status, "{reason}");
        assert_eq!(bed.loop_bytes(), file);
    }
}

/// design 6: Esc fires no hook. The next typed message pauses the loop instead of silently resuming it.
#[test]
fn pains_9_a_message_after_an_interrupt_pauses() {
    let bed = Bed::with_loop(3, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "wor").user("[Request interrupted by user]");
    bed.typed("wait, what are you doing?")
        .send()
        .tells("Ralph: you interrupted the agent, so the loop is paused at iteration 3. /ralph-resume goes on, /cancel-ralph ends it.");
    assert_eq!((bed.value("active").as_str(), bed.iteration()), ("false", 3));
    // Told once.
    bed.typed("hello?").send().is_silent();
    // u6: a stop that is not checked says so, once: a claim must not look like success.
    let unchecked =
        "Ralph: the loop is paused at iteration 3, so this stop was not checked. /ralph-resume goes on, /cancel-ralph ends the loop.";
    bed.stop("<promise>DONE</promise>").send().tells(unchecked);
    bed.work().send().is_silent();
    bed.typed("/ralph-resume").send();
    assert_eq!(bed.value("active"), "true");
}

/// An event may name the transcript of another session: what happened there is not this one's.
#[test]
fn t14_an_interrupt_of_another_session_pauses_nothing() {
    for (session, active) in [(OTHER, "true"), (ME, "false")] {
        let bed = Bed::with_loop(3, 0, "DONE");
        let transcript = bed.transcript();
        for text in ["go", "[Request interrupted by user]"] {
            transcript.line(
                json!({"type": "user", "sessionId": session, "message": {"role": "user", "content": [{"type": "text", "text": text}]}}),
            );
        }
        bed.typed("go on").send();
        assert_eq!(bed.value("active"), active);
    }
}

/// `ralph resume` in a terminal takes an interrupt back, so that the message after it goes on.
#[test]
fn u6_an_interrupt_before_a_resume_is_over() {
    let bed = Bed::with_loop(3, 0, "DONE");
    bed.work().send();
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "wor").user("[Request interrupted by user]");
    bed.ralph_ok(&["resume", "--session", ME]);
    bed.typed("go on").send().is_silent();
    assert_eq!(bed.value("active"), "true");
    transcript.user("go on").says("m2", "more").user("[Request interrupted by user]");
    bed.typed("wait").send().line();
    assert_eq!(bed.value("active"), "false", "a later one pauses");
}

/// The same for a pause from elsewhere.
#[test]
fn u6_the_first_stop_after_a_pause_says_that_it_was_not_checked() {
    let bed = Bed::with_loop(2, 9, "DONE");
    bed.work().send();
    bed.ralph_ok(&["pause"]);
    assert!(bed.stop("<promise>DONE</promise>").send().line().contains("so this stop was not checked. /ralph-resume goes on"));
    bed.work().send().is_silent();
}

/// The same for an interrupted tool, with the typed message already written; and a message without an interrupt pauses nothing.
#[test]
fn pains_9_which_messages_pause() {
    let bed = Bed::with_loop(3, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "Working.");
    let file = bed.loop_bytes();
    bed.typed("one more thing").send().is_silent();
    assert_eq!(bed.loop_bytes(), file);
    transcript.uses_tool("m2").user("[Request interrupted by user for tool use]").user("stop that");
    bed.typed("stop that").send().line();
    assert_eq!(bed.value("active"), "false");
}

/// Real interrupts of both clients.
#[test]
fn pains_9_real_interrupts_are_seen() {
    for version in ["2.1.197", "2.1.325"] {
        for name in ["esc-stream", "esc-tool"] {
            let name = format!("{version}-{name}");
            let text = crate::common::fixture_until(&name, |line| line.to_string().contains("[Request interrupted by user"));
            let bed = Bed::with_loop(3, 0, "DONE");
            std::fs::write(bed.transcript_path(), text).unwrap();
            bed.typed("and now?").send().line();
            assert_eq!(bed.value("active"), "false", "{name}");
        }
    }
}
