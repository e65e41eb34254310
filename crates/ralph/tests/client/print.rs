//! The product as it is used: the real Claude Code client, in print mode, with the built binary as its hook, against a
//! scripted model. What these tests prove is what a person gets.

use std::fs::File;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::real::*;
use ralph_testkit::{Gate, Hook, Kind, ModelServer, Reply, Settings, Version, or_skip, write_plugin};
use serde_json::json;

/// S1-AC2, S1-AC4: work with tools goes on for 12 rounds; each time the prompt comes back, once, and the claim in the
/// 12th ends the loop cleanly. The journal has every stop, and judged again they are all the same.
fn s1_ac2_s1_ac4_twelve_iterations_end_with_the_promise(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let prompt = "Build the thing, and prove that it works.";
    bed.ralph_ok(&["start", prompt, "--completion-promise", "DONE", "--max-iterations", "20"]);
    let rounds = (1..=12).flat_map(|n| [work(n), if n == 12 { claim(n) } else { round(n) }]);
    let server = ModelServer::scripted(rounds.collect::<Vec<Reply>>());
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), claimed(12));
    let requests = server.main_requests();
    assert_eq!(requests.len(), 24);
    for (n, first) in requests.iter().step_by(2).enumerate() {
        assert_eq!(count(&first.all_text(), prompt), n + 1, "it was there when the session began, and came back once an iteration");
    }
    assert_eq!(bed.project.read("work.txt").lines().count(), 12);
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(11, "promise.accepted"));
    assert_eq!(journal.iterations(), (1..=12).collect::<Vec<_>>());
    assert!(journal.stops().iter().all(|stop| stop["client"] == version.number()));
    assert_eq!((journal.of_kind("started").len(), journal.of_kind("adopted").len()), (1, 1));
    bed.assert_archived(12);
    bed.assert_replays(12);
}
both!(s1_ac2_s1_ac4_twelve_iterations_end_with_the_promise);

/// design 6: the client ends a turn by itself, as an empty success, when 8 rounds without tools were sent back. Ralph
/// pauses the loop before that, at the 7th; a person resumes it, and the same conversation goes on to the promise.
fn design_6_idle_rounds_pause_before_the_clients_cap(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Think about it.", "--completion-promise", "DONE"]);
    let server = ModelServer::scripted((1..=12).map(round));
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), "This is iteration 7.", "not the client's own empty success");
    assert_eq!(server.main_requests().len(), 7);
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(6, "host.block-cap"));
    assert_eq!((bed.value("active"), bed.value("iteration")), ("false".to_owned(), "7".to_owned()));
    let told = answers(&output, "Stop").last().copied().unwrap();
    assert!(told.contains("paused at iteration 7") && told.contains("ralph init --block-cap 0"), "{told}");
    assert_eq!(informed(&output).iter().filter(|line| line.contains("paused at iteration 7")).count(), usize::from(bed.is_newest()));

    bed.ralph_ok(&["resume"]);
    let server = ModelServer::scripted([round(8), claim(9)]);
    let output = bed.print(&server, "go on").arg("--continue").output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(9).as_str()));
    let mut codes = missing_then(6, "host.block-cap");
    codes.extend(missing_then(1, "promise.accepted"));
    assert_eq!(bed.journal().codes(), codes);
    bed.assert_archived(8);
    bed.assert_replays(9);
}
both!(design_6_idle_rounds_pause_before_the_clients_cap);

/// design 6: where the person lifted the client's cap, 12 rounds without any tool run to the promise.
fn design_6_without_the_cap_twelve_idle_rounds_run(version: Version) {
    let bed = or_skip!(Bed::with(version, |settings| settings.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0")));
    bed.ralph_ok(&["start", "Think about it.", "--completion-promise", "DONE"]);
    let server = ModelServer::scripted((1..12).map(round).chain([claim(12)]));
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), claimed(12));
    assert_eq!(server.main_requests().len(), 12);
    assert_eq!(bed.journal().codes(), missing_then(11, "promise.accepted"));
    bed.assert_archived(12);
    bed.assert_replays(12);
}
newest!(design_6_without_the_cap_twelve_idle_rounds_run);

/// S0-5, S1-AC5: the limit is reached: the loop stops with a message, which 2.1.325 shows as an event of its own.
fn s0_5_s1_ac5_the_limit_stops_the_loop_with_a_message(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "3"]);
    let server = ModelServer::scripted((1..=6).map(round));
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), "This is iteration 3.");
    assert_eq!(server.main_requests().len(), 3);
    let answers = answers(&output, "Stop");
    let message = "Ralph: stopped at its limit of 3 iterations";
    assert!(answers.len() == 3 && answers[2].contains(message), "{answers:?}");
    let shown = informed(&output);
    if bed.is_newest() {
        let lines = ["iteration 2 of 3", "iteration 3 of 3", message];
        assert!(shown.len() == 3 && lines.iter().zip(&shown).all(|(line, shown)| shown.contains(line)), "{shown:?}");
    } else {
        assert_eq!(shown, Vec::<&str>::new());
    }
    assert_eq!(bed.journal().codes(), missing_then(2, "limit.iterations"));
    bed.assert_archived(3);
    bed.assert_replays(3);
}
both!(s0_5_s1_ac5_the_limit_stops_the_loop_with_a_message);

/// A prompt of `size` bytes, with everything that breaks in a shell, a template or a JSON string.
fn awkward_prompt(size: usize) -> String {
    let head = "It's \"quoted\" and 'quoted', $(id) `id` ${HOME} \\n \\ %s {{x}} #12 | > < & ; !\n\n\tsecond line 🚀 “é”\n";
    let line = "Another line of a long task, with 'quotes' and 🚀.\n";
    let end = "The last line.";
    let lines = (size - head.len() - end.len()) / line.len();
    format!("{head}{}{end}", line.repeat(lines))
}

/// Sends `prompt` back once in the wanted form; gives the text that the model got, and ralph's answer.
fn sent_back(bed: &Bed, prompt: &str, form: &str) -> (String, String) {
    bed.project.write("TASK.md", prompt);
    let start = ["start", "--prompt-file", "TASK.md", "--completion-promise", "DONE", "--continue-with", form];
    bed.ralph_ok(&start);
    let server = ModelServer::scripted([round(1), claim(2)]);
    let output = bed.run(&server, "begin");
    let requests = server.main_requests();
    assert_eq!(requests.len(), 2);
    (requests[1].all_text(), answers(&output, "Stop")[0].to_owned())
}

/// S0-10: the block form. Not one byte of the prompt is lost on its way back to the model.
fn s0_10_the_block_form_brings_the_prompt_back_intact(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let prompt = awkward_prompt(9_000);
    let (text, answer) = sent_back(&bed, &prompt, "block");
    assert!(answer.starts_with(r#"{"decision":"block","reason":"It's \"quoted\""#), "{answer}");
    assert_eq!(count(&text, &format!("Stop hook feedback:\n{prompt}")), 1, "{text}");
    let of_the_start = 1;
    assert_eq!(count(&text, &prompt) - of_the_start, if bed.is_newest() { 2 } else { 1 }, "the newest client repeats a reason");
}
both!(s0_10_the_block_form_brings_the_prompt_back_intact);

/// design 7: the context form. The prompt reaches the model once, whole, and not as an error.
fn design_7_the_context_form_brings_the_prompt_back_intact(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let prompt = awkward_prompt(9_000);
    let (text, answer) = sent_back(&bed, &prompt, "context");
    assert!(answer.starts_with(r#"{"hookSpecificOutput":{"hookEventName":"Stop","#), "{answer}");
    assert_eq!(count(&text, &format!("Stop hook additional context: {prompt}")), 1, "{text}");
    assert_eq!((count(&text, &prompt), count(&text, "error from command")), (2, 0), "when the session began, and now");
}
newest!(design_7_the_context_form_brings_the_prompt_back_intact);

/// design 7: what the client would cut to a preview goes as a block, even where the context form was asked for.
fn design_7_a_long_prompt_is_never_cut(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let prompt = awkward_prompt(20_000);
    let (text, answer) = sent_back(&bed, &prompt, "context");
    assert!(answer.starts_with(r#"{"decision":"block""#), "{answer}");
    assert!(text.contains(&format!("Stop hook feedback:\n{prompt}")), "{text}");
}
newest!(design_7_a_long_prompt_is_never_cut);

/// design 4: a cancel from another process wins. The agent may stop at its next stop, and the file never comes back.
fn design_4_a_cancel_from_outside_wins(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), round(2), round(3).hang(&gate), round(4)]);
    let output = thread::scope(|scope| {
        let opens = Opens(&gate);
        let client = scope.spawn(|| bed.run(&server, "begin"));
        assert!(gate.wait_reached(SOON));
        let said = bed.ralph_ok(&["cancel"]);
        assert!(said.contains("Ralph loop cancelled at iteration 3"), "{said}");
        assert_eq!(bed.loop_file(), None);
        drop(opens);
        client.join().unwrap()
    });
    assert_eq!(result_text(&output), "This is iteration 3.");
    assert_eq!(server.main_requests().len(), 3);
    bed.assert_archived(3);
    let journal = bed.journal();
    assert_eq!(journal.codes(), times(2, "promise.missing"));
    assert_eq!(journal.records.last().unwrap()["event"]["kind"], "cancelled");
    assert_eq!(bed.ralph(&["status"]).code, Some(3));
}
newest!(design_4_a_cancel_from_outside_wins);

/// design 4: a second session in the same project is not held up, and nothing that it says or does touches the loop.
fn design_4_another_session_is_left_alone(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), round(2).hang(&gate), claim(3)]);
    let output = thread::scope(|scope| {
        let opens = Opens(&gate);
        let first = scope.spawn(|| bed.run(&server, "begin"));
        assert!(gate.wait_reached(SOON));
        let (file, journal) = (bed.loop_file(), bed.journal().records);
        let other = ModelServer::scripted([claim(1), round(2)]);
        let second = bed.run(&other, "something else");
        assert_eq!(result_text(&second), claimed(1));
        assert_eq!(other.main_requests().len(), 1);
        let told: String = ["SessionStart", "UserPromptSubmit", "Stop"].iter().flat_map(|event| answers(&second, event)).collect();
        assert_eq!(told, "", "the second session hears nothing of the loop");
        assert_eq!((bed.loop_file(), bed.journal().records), (file, journal));
        assert_eq!(bed.logged(&["event=Stop", "code=session.other", &format!("session={}", session_of(&second))]), 1);
        drop(opens);
        first.join().unwrap()
    });
    assert_eq!(result_text(&output), claimed(3));
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(2, "promise.accepted"));
    let session = session_of(&output);
    assert!(journal.records.iter().skip(1).all(|record| record["session"] == session));
}
newest!(design_4_another_session_is_left_alone);

/// design 4: an API error in mid-loop costs no iteration and ends nothing; the resumed session goes on where it was.
fn design_4_an_api_error_costs_nothing(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "5"]);
    // However often the client asks again, it gets the error.
    let server = ModelServer::with(|request| match request.index {
        n @ 0..2 => round(n + 1),
        _ => Reply::error(400, "invalid_request_error", "not like this"),
    });
    let output = bed.print(&server, "begin").output();
    assert_eq!(output.code, Some(1), "{output:?}");
    let session = session_of(&output);
    assert_eq!((bed.value("iteration"), bed.loop_file().unwrap().contains("active: false")), ("3".to_owned(), false));
    let journal = bed.journal();
    assert_eq!(journal.codes(), times(2, "promise.missing"));
    // The client does not wait for this hook: it may be missing, but it is never more than once.
    assert!(journal.heard("StopFailure") <= 1, "{:?}", journal.lines());

    let server = ModelServer::scripted([round(3), claim(4)]);
    let output = bed.print(&server, "go on").args(["--resume", &session]).output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(4).as_str()));
    let told = answers(&output, "SessionStart").concat();
    assert!(told.contains("this session's loop is armed (iteration 3 of 5"), "the person is told what will happen: {told}");
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(3, "promise.accepted"));
    assert_eq!(journal.iterations(), [1, 2, 3, 4]);
    bed.assert_archived(4);
}
newest!(design_4_an_api_error_costs_nothing);

/// design 4: while a task runs in the background the agent may stop at no cost; the client wakes it when the task has
/// ended, and the loop goes on.
fn design_4_a_background_task_is_waited_for(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let task = json!({"command": "sleep 3; echo built > built.txt", "description": "build", "run_in_background": true});
    let server = ModelServer::scripted([Reply::tool("Bash", task), say("The build runs."), say("The build is done."), claim(2)]);
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), claimed(2));
    assert_eq!(bed.project.read("built.txt"), "built\n");
    assert_eq!(server.main_requests().len(), 4);
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["host.background", "promise.missing", "promise.accepted"]);
    assert_eq!(journal.iterations(), [1, 1, 2]);
    let running = journal.stops()[0]["evidence"]["background"].to_string();
    assert!(running.contains("build"), "{running}");
    bed.assert_archived(2);
    bed.assert_replays(3);
}
newest!(design_4_a_background_task_is_waited_for);

/// design 6: a task that ended while the agent was still talking waits in the client's queue: it goes first, and the loop is not lost.
fn design_6_a_task_that_reports_in_mid_round_goes_first(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let task = json!({"command": "sleep 0.5; echo built > built.txt", "description": "build", "run_in_background": true});
    let gate = Gate::new();
    let server =
        ModelServer::scripted([Reply::tool("Bash", task), say("The build runs.").hang(&gate), say("It is built."), claim(2), round(3)]);
    let output = thread::scope(|scope| {
        let opens = Opens(&gate);
        let client = scope.spawn(|| bed.run(&server, "begin"));
        assert!(gate.wait_reached(SOON));
        thread::sleep(Duration::from_millis(1500));
        drop(opens);
        client.join().unwrap()
    });
    assert_eq!(result_text(&output), claimed(2));
    assert_eq!(server.main_requests().len(), 4);
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["host.queued-input", "promise.missing", "promise.accepted"]);
    assert_eq!(journal.iterations(), [1, 1, 2]);
    bed.assert_archived(2);
}
newest!(design_6_a_task_that_reports_in_mid_round_goes_first);

/// design 7: the model's `cd` moves the hook's folder; the loop is found all the same.
fn design_7_the_loop_is_found_from_a_sub_directory(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.project.write("sub/deep/x", "");
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let replies = [Reply::bash("cd sub/deep"), round(1), Reply::bash("pwd > where.txt"), round(2), claim(3)];
    let server = ModelServer::scripted(replies);
    let output = bed.run(&server, "begin");
    assert_eq!(bed.project.read("sub/deep/where.txt").trim(), bed.project.path("sub/deep").to_str().unwrap(), "the model really moved");
    assert_eq!(result_text(&output), claimed(3));
    assert_eq!(bed.journal().codes(), missing_then(2, "promise.accepted"));
    assert!(!bed.project.exists("sub/deep/.ralph") && !bed.project.exists("sub/deep/.claude"));
    bed.assert_archived(3);
}
newest!(design_7_the_loop_is_found_from_a_sub_directory);

/// S0-6, S0-7: with no transcript at all the loop runs and completes.
fn s0_6_s0_7_no_transcript_is_needed(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let server = ModelServer::scripted([work(1), round(1), round(2), round(3), claim(4)]);
    let output = bed.print(&server, "begin").arg("--no-session-persistence").output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(4).as_str()));
    assert_eq!(bed.project.transcripts(), Vec::<PathBuf>::new());
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(3, "promise.accepted"));
    assert!(journal.stops().iter().all(|stop| stop["evidence"]["tools"] == "unknown"));
    bed.assert_archived(4);
}
newest!(s0_6_s0_7_no_transcript_is_needed);

/// design 4, S1-1: registered by the settings and by a plugin, both hooks fire on every stop, and it counts once.
fn design_4_s1_1_two_hooks_count_a_stop_once(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let plugin = write_plugin(&bed.project, "ralph-too", &[Hook::new(RALPH)]);
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    // No time between the rounds: that is when two calls for one stop are hardest to tell from two stops.
    let server = ModelServer::scripted((1..5).map(|n| Reply::text(format!("iteration {n}"))).chain([Reply::text(claimed(5))]));
    let output = bed.print(&server, "begin").arg("--plugin-dir").arg(plugin).output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(5).as_str()));
    assert_eq!(server.main_requests().len(), 5);
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(4, "promise.accepted"));
    assert_eq!(journal.iterations(), [1, 2, 3, 4, 5]);
    assert_eq!(bed.logged(&["event=Stop"]), 10, "both hooks fired");
    // At the last stop the second hook may find the loop gone before the first one has noted why.
    let silent = bed.logged(&["event=Stop", "code=loop.none"]);
    assert_eq!(bed.logged(&["event=Stop", "code=stop.repeated"]) + silent.min(1), 5);
    bed.assert_archived(5);
}
newest!(design_4_s1_1_two_hooks_count_a_stop_once);

/// design 4: the same where the second hook comes late, as on a busy machine or behind a wrapper.
fn design_4_s1_1_a_late_second_hook_counts_nothing(version: Version) {
    let bed = or_skip!(Bed::new(version));
    // A child of the shell, not the shell itself: what counts is when ralph's own process was born.
    let late = bed.project.script("late.sh", &format!("#!/bin/sh\nsleep 0.1\n'{RALPH}' hook claude\nexit 0\n"));
    let plugin = write_plugin(&bed.project, "ralph-late", &[Hook::new(late).events(["Stop"])]);
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let server = ModelServer::scripted([round(1), round(2), claim(3)]);
    let output = bed.print(&server, "begin").arg("--plugin-dir").arg(plugin).output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(3).as_str()));
    assert_eq!(bed.logged(&["event=Stop"]), 6, "both hooks fired");
    assert_eq!(bed.journal().iterations(), [1, 2, 3]);
    bed.assert_archived(3);
}
newest!(design_4_s1_1_a_late_second_hook_counts_nothing);

/// S1-1: registered by a plugin alone.
fn s1_1_a_plugin_alone_is_enough(version: Version) {
    let bed = or_skip!(Bed::with(version, |_| Settings::new()));
    let plugin = write_plugin(&bed.project, "ralph", &[Hook::new(RALPH)]);
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let server = ModelServer::scripted([round(1), claim(2)]);
    let output = bed.print(&server, "begin").arg("--plugin-dir").arg(plugin).output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(2).as_str()));
    assert_eq!(bed.journal().codes(), missing_then(1, "promise.accepted"));
    bed.assert_archived(2);
}
newest!(s1_1_a_plugin_alone_is_enough);

/// design 6: a subagent's promise is not the agent's; its stop is noted, not blocked, and costs nothing.
fn design_6_a_subagents_promise_does_not_count(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let session = "11111111-2222-4333-8444-555555555555";
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--session", session]);
    let task = json!({"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose", "run_in_background": false});
    let server = ModelServer::with(move |request| match (request.kind, request.index) {
        (Kind::Subagent, _) => say("The subagent did it.\n\n<promise>DONE</promise>"),
        (_, 0) => Reply::tool("Agent", task.clone()),
        (_, 1) => round(1),
        _ => claim(2),
    });
    let output = bed.print(&server, "begin").args(["--session-id", session]).output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(2).as_str()));
    assert_eq!(server.requests().iter().filter(|r| r.kind == Kind::Subagent).count(), 1, "the subagent was not sent back");
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(1, "promise.accepted"));
    assert_eq!(journal.heard("SubagentStop"), 1);
    assert!(journal.records.iter().skip(1).all(|record| record["session"] == session));
    bed.assert_archived(2);
}
newest!(design_6_a_subagents_promise_does_not_count);

/// A project whose check agents have to write `right` into `sum.txt`, and the call of one.
fn with_check_agent(version: Version) -> Result<(Bed, Reply), ralph_testkit::Skip> {
    let bed = Bed::new(version)?;
    bed.project.write(".claude/agents/check.md", "---\nname: check\ndescription: Checks the work.\n---\nYou check the work.\n");
    bed.project.write(".ideal/worktree.yaml", "verify:\n  - test -d .ideal # the project\n  - 'grep -q right sum.txt'\n");
    bed.ralph_ok(&["trust", "--yes"]);
    let task = json!({"description": "check", "prompt": "Check the sum.", "subagent_type": "check", "run_in_background": false});
    Ok((bed, Reply::tool("Agent", task).delay(PACE)))
}

/// S3-1, S3-3, S3-5: a check agent that says it is done is sent back with what failed, mends it with its tools, and is let
/// go. Its caller gets its last message.
fn s3_1_s3_5_a_check_agent_is_blocked_until_verify_passes(version: Version) {
    let (bed, call) = or_skip!(with_check_agent(version));
    let sum = bed.project.path("sum.txt");
    let server = ModelServer::with(move |request| match (request.kind, request.index) {
        (Kind::Subagent, 0) => say("I looked at it: all is fine."),
        (Kind::Subagent, 1) => Reply::tool("Write", json!({"file_path": sum, "content": "right\n"})).delay(PACE),
        (Kind::Subagent, _) => say("I looked at it: all is fine. Then I wrote the sum."),
        (_, 0) => call.clone(),
        _ => say("The check agent is through."),
    });
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), "The check agent is through.");
    let requests = server.requests();
    let of_agent: Vec<_> = requests.iter().filter(|r| r.kind == Kind::Subagent).collect();
    assert_eq!(of_agent.len(), 3, "said it, wrote it, said it again");
    let told = of_agent[1].all_text();
    for part in
        ["Your work is not verified (iteration 1 of 5)", "grep -q right sum.txt", "exit code 2", ".ralph/logs/", "Keep your full report"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(count(&told, "iteration 1 of 5"), 1, "the context form is sent once: {told}");
    assert_eq!(bed.project.read("sum.txt"), "right\n");
    let caller = server.main_requests()[1].all_text();
    assert!(caller.contains("Then I wrote the sum.") && !caller.contains("not verified"), "{caller}");
    assert_eq!(bed.logged(&["event=SubagentStop", "decision=block", "code=verify.failed"]), 1);
    assert_eq!(bed.logged(&["event=SubagentStop", "decision=allow", "code=verify.passed"]), 1);
    let state: serde_json::Value = serde_json::from_str(&bed.project.read(".ideal/.verify-state.json")).unwrap();
    assert!(state["iteration"] == 2 && state["agents"].as_object().unwrap().values().all(|agent| agent["let_go"] == true), "{state}");
}
newest!(s3_1_s3_5_a_check_agent_is_blocked_until_verify_passes);

/// S3-5: five rounds stay below the client's own cap on blocks, and the end of them is a warning that the work is unverified.
fn s3_5_a_check_agent_that_mends_nothing_is_let_go_unverified(version: Version) {
    let (bed, call) = or_skip!(with_check_agent(version));
    let server = ModelServer::with(move |request| match (request.kind, request.index) {
        (Kind::Subagent, n) => say(format!("All is fine, I say ({n}).")),
        (_, 0) => call.clone(),
        _ => say("The check agent is through."),
    });
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), "The check agent is through.");
    assert_eq!(server.requests().iter().filter(|r| r.kind == Kind::Subagent).count(), 5);
    assert!(server.main_requests()[1].all_text().contains("All is fine, I say (4)."));
    assert_eq!(bed.logged(&["event=SubagentStop", "decision=block", "code=verify.failed"]), 4);
    let last = answers(&output, "SubagentStop").last().copied().unwrap();
    assert!(last.contains("the work of the agent check is unverified: grep -q right sum.txt failed"), "{last}");
    // The client shows nobody what a hook says at a subagent's stop, so the session's own stop says it again.
    let told = answers(&output, "Stop").last().copied().unwrap();
    assert!(told.contains("the work of the agent check is unverified"), "{told}");
    assert_eq!(informed(&output).iter().filter(|line| line.contains("is unverified")).count(), usize::from(bed.is_newest()));
}
both!(s3_5_a_check_agent_that_mends_nothing_is_let_go_unverified);

/// S0-7: all text blocks of the last message count, not only the last one, which is all that the event carries.
fn s0_7_a_promise_in_an_earlier_block_counts(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let last = Reply::texts([claimed(2), "That was all, goodbye.".to_owned()]).delay(PACE);
    let server = ModelServer::scripted([round(1), last, claim(3)]);
    let output = bed.run(&server, "begin");
    assert_eq!(server.main_requests().len(), 2, "no third iteration");
    assert!(result_text(&output).contains("goodbye"));
    assert_eq!(bed.journal().codes(), missing_then(1, "promise.accepted"));
    bed.assert_archived(2);
}
newest!(s0_7_a_promise_in_an_earlier_block_counts);

/// S0 (amended): a turn that ends without any text is no error. The loop goes on.
fn s0_6_a_turn_without_text_goes_on(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    // The client itself asks once more before it gives up on an answer.
    let server = ModelServer::with(|request| match count(&request.all_text(), "Go on.") {
        1 => Reply::thinking("Hm.").delay(PACE),
        2 => round(2),
        _ => claim(3),
    });
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), claimed(3));
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(2, "promise.accepted"));
    assert_eq!(journal.stops()[0]["evidence"]["message"]["from"], "no-text");
    bed.assert_archived(3);
}
newest!(s0_6_a_turn_without_text_goes_on);

fn write_commands(bed: &Bed) {
    for name in ["ralph-loop", "cancel-ralph", "ralph-status", "ralph"] {
        bed.project.write(format!(".claude/commands/{name}.md"), "$ARGUMENTS\n");
    }
}

/// t22: a loop that was typed in the session: its time is work and gates, none of it is paused, and its gates are told.
fn t22_the_report_of_a_typed_loop_tells_true_times(version: Version) {
    let bed = or_skip!(Bed::new(version));
    write_commands(&bed);
    let server = ModelServer::scripted([round(1), round(2), claim(3)]);
    let output = bed.run(&server, "/ralph-loop Make it work --completion-promise DONE --verify 'sleep 0.3'");
    assert_eq!(result_text(&output), claimed(3));
    let report: serde_json::Value = serde_json::from_str(&bed.ralph_ok(&["report", "--json"])).unwrap();
    let took = &report["figures"]["took"];
    assert_eq!((&report["status"], &took["paused_ms"]), (&json!("complete"), &json!(0)), "{report:#}");
    assert!(took["gates_ms"].as_u64() >= Some(300) && took["work_ms"].as_u64() > Some(0), "{took:#}");
    assert_eq!(report["acceptance"].as_array().unwrap().iter().filter(|one| one["standing"] == "proven").count(), 2, "{report:#}");
}
newest!(t22_the_report_of_a_typed_loop_tells_true_times);

/// S1-3, S1-AC1: `/ralph-loop` starts the loop from the client's own event: every byte of the prompt, no shell, once only.
fn s1_3_s1_ac1_a_slash_command_starts_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    write_commands(&bed);
    let prompt = "fix it's \"x\" & issue #12; $(touch pwned) `touch pwned` | tee > x {a,b} <b> \\n 100%\n\n\tdon't stop 🚀";
    let server = ModelServer::scripted((1..=6).map(round));
    let output = bed.run(&server, &format!("/ralph-loop {prompt} --max-iterations 3 --completion-promise 'ALL DONE'"));
    assert_eq!(result_text(&output), "This is iteration 3.");
    let requests = server.main_requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(count(&requests[0].all_text(), "A Ralph loop was started in this session"), 1, "the model is told");
    assert!(requests[1].all_text().contains(&format!("Stop hook additional context: {prompt}")));
    let journal = bed.journal();
    assert_eq!((journal.of_kind("started").len(), journal.of_kind("adopted").len()), (1, 0));
    assert_eq!(journal.codes(), missing_then(2, "limit.iterations"));
    assert_eq!(bed.logged(&["code=command.start"]), 1, "two events, one loop");
    bed.assert_archived(3);
    let file = bed.archive().remove(0);
    assert_eq!(prompt_in(&file), prompt);
    assert_eq!((value_in(&file, "max_iterations").as_str(), value_in(&file, "completion_promise").as_str()), ("3", "\"ALL DONE\""));
    assert_eq!(value_in(&file, "session_id").trim_matches('"'), session_of(&output));
    assert!(!bed.project.exists("pwned"));
}
both!(s1_3_s1_ac1_a_slash_command_starts_the_loop);

/// S1-AC6, S1-AC7: `/cancel-ralph` and `/ralph-status` are answered by ralph, the model is not asked.
fn s1_ac6_s1_ac7_cancel_and_status_need_no_model(version: Version) {
    let bed = or_skip!(Bed::new(version));
    write_commands(&bed);
    let server = ModelServer::with(|_| round(1));
    let typed = |command: &str| {
        let output = bed.client.print(&bed.project, &server, command).output();
        format!("{}{}", output.stdout, output.stderr)
    };
    let none = "No active Ralph loop";
    assert!(typed("/cancel-ralph").contains(none));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let status = typed("/ralph-status");
    assert!(status.contains("waiting for a session, iteration 1 of 9"), "{status}");
    assert!(bed.loop_file().is_some());
    let cancelled = typed("/cancel-ralph");
    assert!(cancelled.contains("Ralph loop cancelled at iteration 1 (") && !cancelled.contains(none), "{cancelled}");
    bed.assert_archived(1);
    assert_eq!(bed.journal().of_kind("cancelled").len(), 1);
    assert!(typed("/ralph-status").contains(none));
    assert_eq!(server.main_requests().len(), 0, "the model was never asked");
}
newest!(s1_ac6_s1_ac7_cancel_and_status_need_no_model);

/// Registers ralph twice, so that a typed command reaches it as pairs of calls, which leave a line each; gives the plugin.
fn register_twice(bed: &Bed) -> PathBuf {
    let script = bed.project.script("noted.sh", &format!("#!/bin/sh\necho >> arrived\nexec '{RALPH}' hook claude\n"));
    let typed = Hook::new(script).events(["UserPromptSubmit", "UserPromptExpansion"]);
    let stop = Hook::new(RALPH).events(["Stop"]);
    Settings::new().hook(typed.clone()).hook(stop.clone()).write(&bed.project);
    write_plugin(&bed.project, "ralph-too", &[typed, stop])
}

/// Runs `work` and holds ralph's lock until both calls of the first pair are there: neither can be done before the other begins.
fn with_calls_that_meet<T>(bed: &Bed, work: impl FnOnce() -> T) -> T {
    let lock = File::create(bed.project.write(".ralph/lock", "")).unwrap();
    lock.lock().unwrap();
    let arrived = || bed.project.exists("arrived") && bed.project.read("arrived").len() >= 2;
    thread::scope(|scope| {
        scope.spawn(move || {
            let deadline = Instant::now() + SOON;
            while !arrived() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(10));
            }
            // From there to the lock it is a few milliseconds; ralph's patience with the lock is seconds.
            thread::sleep(Duration::from_millis(300));
            drop(lock);
        });
        work()
    })
}

/// design 4, S1-3: with two hooks registered a typed command arrives four times, in pairs at the same moment. It is carried out once, and
/// nobody is told that it could not be.
fn design_4_s1_3_two_hooks_start_one_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    write_commands(&bed);
    let plugin = register_twice(&bed);
    let server = ModelServer::scripted((1..=6).map(round));
    let run = bed.print(&server, "/ralph-loop Go on. --max-iterations 2").arg("--plugin-dir").arg(plugin);
    let output = with_calls_that_meet(&bed, || run.output());
    assert_eq!((output.code, result_text(&output)), (Some(0), "This is iteration 2."));
    assert_eq!((bed.logged(&["code=command.start"]), bed.logged(&["code=command.repeated"])), (1, 1), "one event counts, twice");
    let journal = bed.journal();
    assert_eq!((journal.of_kind("started").len(), journal.iterations()), (1, vec![1, 2]));
    bed.assert_archived(2);
}
newest!(design_4_s1_3_two_hooks_start_one_loop);

/// design 4, S1-AC6: the same for the command that ends it.
fn design_4_s1_ac6_two_hooks_cancel_one_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    write_commands(&bed);
    let plugin = register_twice(&bed);
    bed.ralph_ok(&["start", "Go on.", "--endless"]);
    let server = ModelServer::scripted([round(1)]);
    let run = bed.print(&server, "/cancel-ralph").arg("--plugin-dir").arg(plugin);
    let output = with_calls_that_meet(&bed, || run.output());
    let said = result_text(&output);
    assert!(said.contains("Ralph loop cancelled at iteration 1 (") && !said.contains("No active"), "{said}");
    assert_eq!(bed.logged(&["code=loop.none", "decision=answered"]), 0);
    assert_eq!(bed.journal().of_kind("cancelled").len(), 1);
    bed.assert_archived(1);
}
newest!(design_4_s1_ac6_two_hooks_cancel_one_loop);

/// t2: in the agent's own shell `ralph start`, `ralph cancel` and `ralph trust` are refused, and the loop goes on.
fn t2_the_agents_shell_commands_no_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let tries = Reply::bash(format!("'{RALPH}' cancel; '{RALPH}' start More --name more; '{RALPH}' trust --yes; '{RALPH}' pause"));
    let server = ModelServer::scripted([tries, round(1), claim(2), round(3)]);
    bed.run(&server, "begin");
    let told = server.main_requests()[1].all_text();
    assert_eq!(count(&told, "this is an agent's shell (CLAUDECODE is set)"), 4, "{told}");
    assert_eq!(bed.journal().codes(), missing_then(1, "promise.accepted"));
    bed.assert_archived(2);
}
newest!(t2_the_agents_shell_commands_no_loop);
