//! The product as a person sees it: the real Claude Code client in a real terminal, with the built binary as its hook,
//! against a scripted model. What is typed and what the screen shows is what these tests go by.

use std::thread;

use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{Gate, Kind, ModelServer, Reply, Version, or_skip};
use serde_json::json;

/// S1-AC2, S1-AC4: the loop runs in the terminal; each round the person sees where it is, and at last that it is complete.
fn s1_ac2_s1_ac4_the_person_sees_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let server = ModelServer::scripted([work(1), round(1), work(2), round(2), claim(3), round(4)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    let screen = sees(&tui, "Ralph: complete after 3 iterations");
    for line in ["Ralph: iteration 2 of 9. Ends on <promise>DONE</promise>.", "Ralph: iteration 3 of 9.", "Iteration 3 did it."] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    assert!(!screen.contains("hook error"), "the loop is no error: {screen}");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), 5);
    assert_eq!(bed.journal().codes(), missing_then(2, "promise.accepted"));
    bed.assert_archived(3);
}
newest!(s1_ac2_s1_ac4_the_person_sees_the_loop);

/// design 6: after Esc the person's next message pauses the loop. It is answered, the screen says so, nothing goes on.
fn design_6_an_interrupt_pauses_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.project.write(".claude/commands/ralph-resume.md", "Go on.\n");
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let half = say("half of this and the rest").hang(&gate);
    let server = ModelServer::scripted([round(1), half, say("Here is your answer."), claim(2), round(3)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    tui.expect_text("esc to interrupt", SOON);
    tui.escape();
    tui.expect_text("Interrupted", SOON);
    tui.submit("what is this about?");
    sees(&tui, "Here is your answer.");
    sees(&tui, "Ralph: you interrupted the agent, so the loop is paused at iteration 2");
    thread::sleep(QUIET);
    let requests = server.main_requests();
    assert_eq!(requests.len(), 3, "the loop does not go on");
    assert!(requests[2].last_user_text().contains("what is this about?"));
    assert_eq!((bed.value("active"), bed.value("iteration")), ("false".to_owned(), "2".to_owned()));
    // The person says so, and it goes on.
    tui.submit("/ralph-resume");
    sees(&tui, "Ralph: complete after 2 iterations");
    assert!(server.main_requests()[3].all_text().contains("Make it work."));
    assert_eq!(bed.journal().codes(), ["promise.missing", "loop.paused", "promise.accepted"]);
    bed.assert_archived(2);
}
newest!(design_6_an_interrupt_pauses_the_loop);

/// design 6: what the person types while a round runs goes first: the stop is allowed at no cost, the message is answered, and then the
/// loop goes on.
fn design_6_queued_text_goes_first(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), round(2).hang(&gate), say("I will use blue."), claim(4), round(5)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    queue(&bed, &tui, "please make it blue");
    gate.release();
    sees(&tui, "Ralph: complete after 3 iterations");
    let requests = server.main_requests();
    let got = |text: &str| requests.iter().map(|request| count(&request.all_text(), text)).collect::<Vec<_>>();
    assert_eq!(got("please make it blue"), [0, 0, 1, 1]);
    assert_eq!(got("Stop hook additional context: Make it work."), [0, 1, 1, 2], "the queued text came first, then the loop went on");
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["promise.missing", "host.queued-input", "promise.missing", "promise.accepted"]);
    assert_eq!(journal.iterations(), [1, 2, 2, 3]);
    bed.assert_archived(3);
}
newest!(design_6_queued_text_goes_first);

/// design 6: Esc with text in the queue interrupts and sends the text: that pauses the loop too.
fn design_6_an_interrupt_that_sends_queued_text_pauses_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let half = say("half of this and the rest").hang(&gate);
    let server = ModelServer::scripted([round(1), half, say("Then not."), round(4)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    queue(&bed, &tui, "no, wait");
    tui.escape();
    sees(&tui, "Then not.");
    sees(&tui, "Ralph: you interrupted the agent, so the loop is paused at iteration 2");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), 3, "the loop does not go on");
    assert_eq!((bed.value("active"), bed.value("iteration")), ("false".to_owned(), "2".to_owned()));
}
newest!(design_6_an_interrupt_that_sends_queued_text_pauses_the_loop);

/// design 6: text that the client delivered with a tool's result waits no longer, and holds nothing up.
fn design_6_text_delivered_within_the_turn_holds_nothing_up(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let slow = Reply::bash("touch running; sleep 1.5; echo over");
    let server = ModelServer::scripted([slow, round(1), claim(2), round(3)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    wait_until("the tool runs", || bed.project.exists("running"));
    tui.submit("please make it blue");
    sees(&tui, "Ralph: complete after 2 iterations");
    let requests = server.main_requests();
    assert!(requests[1].all_text().contains("please make it blue"), "delivered with the tool's result");
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(1, "promise.accepted"));
    bed.assert_archived(2);
}
newest!(design_6_text_delivered_within_the_turn_holds_nothing_up);

/// S1-AC6: `/cancel-ralph`, typed while a round runs, ends the loop as soon as that round is over.
fn s1_ac6_a_queued_cancel_ends_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.project.write(".claude/commands/cancel-ralph.md", "Cancel the loop.\n");
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), round(2).hang(&gate), round(3), round(4)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    queue(&bed, &tui, "/cancel-ralph");
    gate.release();
    sees(&tui, "Ralph loop cancelled at iteration 2");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), 2, "the model is not asked");
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["promise.missing", "host.queued-input"]);
    assert_eq!(journal.of_kind("cancelled").len(), 1);
    bed.assert_archived(2);
}
newest!(s1_ac6_a_queued_cancel_ends_the_loop);

/// design 7: `/clear` gives the session a new id; the loop comes along, the screen says so, and the next stop goes on with it.
fn design_7_clear_takes_the_loop_along(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let server = ModelServer::with(|request| match request.all_text() {
        text if text.contains("begin") && text.contains("This is iteration 1.") => {
            Reply::error(400, "invalid_request_error", "not like this")
        }
        text if text.contains("begin") => round(1),
        text if text.contains("This is iteration 2.") => claim(3),
        _ => round(2),
    });
    let tui = open(&bed, &server);
    tui.submit("begin");
    // The error leaves the session idle and the loop armed.
    let journal = bed.wait_journal("the error", |journal| journal.heard("StopFailure") > 0);
    assert_eq!(journal.codes(), ["promise.missing"]);
    let before = journal.records.last().unwrap()["session"].clone();
    tui.submit("/clear");
    sees(&tui, "Ralph: the loop (iteration 2) goes on in this session after /clear.");
    let journal = bed.wait_journal("the new session", |journal| !journal.of_kind("rebound").is_empty());
    let rebound = journal.of_kind("rebound")[0].clone();
    assert_eq!(rebound["event"]["from"], before);
    assert_ne!(rebound["session"], before);
    tui.submit("carry on");
    sees(&tui, "Ralph: complete after 3 iterations");
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(2, "promise.accepted"));
    assert_eq!(journal.of_kind("stop").last().unwrap()["session"], rebound["session"]);
    bed.assert_archived(3);
}
newest!(design_7_clear_takes_the_loop_along);

/// design 6: a session that died leaves its loop behind; the next one says so at its start and does not take it by itself.
fn design_6_a_loop_left_behind_is_announced(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), round(2).hang(&gate)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    // Killed: no event tells that this session is over.
    drop(tui);
    let server = ModelServer::scripted([say("Hello to you."), claim(2), round(3)]);
    let tui = open(&bed, &server);
    sees(&tui, "Ralph: a loop was left behind here (iteration 2 of 9");
    tui.submit("hello");
    sees(&tui, "Hello to you.");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), 1, "the loop is not this session's");
    assert_eq!((bed.value("iteration"), bed.journal().codes()), ("2".to_owned(), vec!["promise.missing"]));
}
newest!(design_6_a_loop_left_behind_is_announced);

/// S1-3, S1-AC1: `/ralph-loop`, typed at the prompt, starts the loop; the screen says with which limits.
fn s1_3_s1_ac1_a_typed_command_starts_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.project.write(".claude/commands/ralph-loop.md", "$ARGUMENTS\n");
    let server = ModelServer::scripted([round(1), round(2), round(3), round(4)]);
    let tui = open(&bed, &server);
    tui.submit("/ralph-loop don't say \"x\" & `y` --max-iterations 2");
    sees(&tui, "Ralph: stopped at its limit of 2 iterations");
    assert_eq!(server.main_requests().len(), 2);
    let journal = bed.journal();
    assert_eq!((journal.of_kind("started").len(), journal.codes()), (1, vec!["promise.none", "limit.iterations"]));
    assert_eq!(prompt_in(&bed.archive()[0]), "don't say \"x\" & `y`");
    assert_eq!(count(&flat(&tui.screen()), "Ralph: loop started"), 1);
}
newest!(s1_3_s1_ac1_a_typed_command_starts_the_loop);

/// design 7: a compaction (for the client a subagent without a type) is not disturbed; the loop keeps its session, and the agent is
/// reminded of how it ends.
fn design_7_a_compaction_is_left_alone(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let server = ModelServer::with(|request| match request.all_text() {
        text if text.contains("This is iteration 4.") => claim(5),
        text if text.contains("carry on") => round(4),
        text if text.contains("This is iteration 3.") => Reply::error(400, "invalid_request_error", "not like this"),
        text if text.contains("This is iteration 2.") => round(3),
        text if text.contains("This is iteration 1.") => round(2),
        _ => round(1),
    });
    let tui = open(&bed, &server);
    tui.submit("begin");
    bed.wait_journal("the error", |journal| journal.heard("StopFailure") > 0);
    tui.submit("/compact");
    let journal = bed.wait_journal("the compaction", |journal| journal.heard("SessionStart") > 0);
    assert_eq!((journal.heard("PreCompact"), journal.heard("SubagentStop")), (1, 1));
    tui.expect("the prompt", SOON, |screen| screen.contains("Compacted"));
    tui.submit("carry on");
    sees(&tui, "Ralph: complete after 5 iterations");
    let requests = server.main_requests();
    let after = requests.iter().find(|request| request.all_text().contains("carry on")).unwrap();
    assert!(after.all_text().contains("A Ralph loop is active in this session (iteration 4)"), "{}", after.all_text());
    assert_eq!(bed.journal().codes(), missing_then(4, "promise.accepted"));
    bed.assert_archived(5);
}
newest!(design_7_a_compaction_is_left_alone);

/// S3-5: on the terminal nobody sees what a hook says at a subagent's stop; that the work is unverified stands there when the
/// session itself stops. (2.1.325 takes the agent into the background, and the session stops once more when it is through.)
fn s3_5_the_person_sees_that_an_agents_work_is_unverified(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.project.write(".claude/agents/check.md", "---\nname: check\ndescription: Checks the work.\n---\nYou check the work.\n");
    bed.project.write(".ideal/worktree.yaml", "verify: 'grep -q right sum.txt'\n");
    bed.project.write("ralph.toml", "[verify]\nrounds = 2\n");
    bed.ralph_ok(&["trust", "--yes"]);
    let task = json!({"description": "check", "prompt": "Check the sum.", "subagent_type": "check", "run_in_background": false});
    let server = ModelServer::with(move |request| match (request.kind, request.index) {
        (Kind::Subagent, n) => say(format!("All is fine, I say ({n}).")),
        (_, 0) => Reply::tool("Agent", task.clone()).delay(PACE),
        _ => say("The check agent is through."),
    });
    let tui = open(&bed, &server);
    tui.submit("begin");
    sees(&tui, "Ralph: the work of the agent check is unverified: grep -q right sum.txt failed");
}
newest!(s3_5_the_person_sees_that_an_agents_work_is_unverified);

/// eyes 3: with `ralph statusline` in the client's settings the person sees how far the loop is, after the line that was there before.
fn eyes_3_the_clients_status_line_shows_the_loop(version: Version) {
    let command = format!("{RALPH} statusline --after 'echo own line'");
    let bed = or_skip!(Bed::with(version, |settings| settings.set("statusLine", json!({"type": "command", "command": command}))));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), round(2), round(3).hang(&gate), claim(4), round(5)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    sees(&tui, "own line | ralph 3/9 · ");
    gate.release();
    sees(&tui, "Ralph: complete after 4 iterations");
    // The loop has ended; the line of the person's own is as it was.
    tui.expect("no loop in the status line", SOON, |screen| screen.contains("own line") && !screen.contains("own line | ralph"));
}
newest!(eyes_3_the_clients_status_line_shows_the_loop);
