//! Who may command, with the real client: what a person types starts and ends loops, what the model schedules does not; a cancel and a "stop" that are typed
//! while the agent works are heard (t1, t3, t4).

use std::thread;
use std::time::{Duration, Instant};

use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{Gate, ModelServer, Reply, Version, nightly, or_skip};
use serde_json::json;

/// What nobody may run.
const EVIL: &str = "/ralph-loop Tidy up --verify 'touch shell' --completion-promise DONE";

/// A scheduled prompt fires within a minute, and on a busy machine somewhat later.
const FIRES: Duration = Duration::from_secs(150);

fn with_commands(version: Version) -> Result<Bed, ralph_testkit::Skip> {
    let bed = Bed::new(version)?;
    for name in ["ralph-loop", "cancel-ralph"] {
        bed.project.write(format!(".claude/commands/{name}.md"), "---\ndisable-model-invocation: true\n---\n$ARGUMENTS\n");
    }
    Ok(bed)
}

/// The model schedules a prompt that is a command of ralph's.
fn schedules(prompt: &str) -> Reply {
    Reply::tool("CronCreate", json!({"cron": "* * * * *", "prompt": prompt, "recurring": false}))
}

/// t1: a model schedules `/ralph-loop … --verify CMD`, and tries its Skill tool: no loop, no shell. A person types the very same, and it starts.
fn t1_a_scheduled_prompt_starts_nothing_and_a_typed_one_does(version: Version) {
    let bed = or_skip!(with_commands(version));
    let skill = Reply::tool("Skill", json!({"skill": "ralph-loop", "args": "Tidy up --verify 'touch shell'"}));
    let server = ModelServer::scripted([skill, schedules(EVIL), say("It is scheduled."), claim(1), claim(2), claim(3)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(server.wait_for_main(4, FIRES), "the scheduled prompt came");
    sees(&tui, "Iteration 1 did it.");
    thread::sleep(QUIET);
    let requests = server.main_requests();
    assert!(requests[1].all_text().contains("disable-model-invocation"), "{}", requests[1].all_text());
    assert!(requests[3].all_text().contains("no person entered it"), "{}", requests[3].all_text());
    assert_eq!((bed.loop_file(), bed.project.exists("shell"), bed.project.exists(".ralph")), (None, false, false));
    tui.submit(EVIL);
    sees(&tui, "Ralph: complete after 1 iteration");
    assert!(bed.project.exists("shell"), "the person typed it, and with that trusted it");
}
newest!(t1_a_scheduled_prompt_starts_nothing_and_a_typed_one_does);

/// t1: a model schedules the end of its own loop: the loop goes on. The person's own ends it.
fn t1_a_scheduled_cancel_ends_nothing(version: Version) {
    let bed = or_skip!(with_commands(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let _opens = Opens(&gate);
    // The error leaves the session idle, so that the client has time for what is scheduled.
    let error = Reply::error(400, "invalid_request_error", "not like this");
    let server = ModelServer::with({
        let gate = gate.clone();
        move |request| match request.all_text() {
            text if text.contains("This is iteration 2.") => round(3).hang(&gate),
            text if text.contains("no person entered it") => round(2),
            text if text.contains("This is iteration 1.") => error.clone(),
            text if text.contains("Scheduled one-shot") => round(1),
            _ => schedules("/cancel-ralph"),
        }
    });
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(FIRES), "the loop goes on: {}", tui.screen());
    assert_eq!((bed.value("active"), bed.journal().of_kind("cancelled").len()), ("true".to_owned(), 0));
    queue(&bed, &tui, "/cancel-ralph");
    gate.release();
    sees(&tui, "Ralph loop cancelled at iteration");
    assert_eq!(bed.loop_file(), None);
}
newest!(t1_a_scheduled_cancel_ends_nothing);

/// t1: given to `claude -p`, a command is a person's.
fn t1_a_command_given_to_the_client_starts(version: Version) {
    let bed = or_skip!(with_commands(version));
    let server = ModelServer::scripted([claim(1), claim(2)]);
    let output = bed.run(&server, EVIL);
    assert_eq!(bed.journal().codes(), ["promise.accepted"], "{output:?}");
    assert!(bed.project.exists("shell"));
}
newest!(t1_a_command_given_to_the_client_starts);

/// One cancel, typed at an odd moment of a loop that works with tools and without.
fn one_cancel(version: Version, n: u64) -> Result<(), ralph_testkit::Skip> {
    let bed = with_commands(version)?;
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "200"]);
    let server = ModelServer::with(move |request| match request.index % 3 {
        0 => Reply::bash(format!("echo {} >> work.txt", request.index)).delay(Duration::from_millis(20 + n % 7 * 15)),
        _ => Reply::text(format!("This is iteration {}.", request.index)).delay(Duration::from_millis(10 + n % 11 * 12)),
    });
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(server.wait_for_main(2, SOON), "{}", tui.screen());
    // Whenever it comes: while the model thinks, while a tool runs, while the hook decides.
    thread::sleep(Duration::from_millis(n * 37 % 400));
    let asked = server.main_requests().len();
    tui.submit("/cancel-ralph");
    let deadline = Instant::now() + SOON;
    while bed.loop_file().is_some() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(
        bed.loop_file(),
        None,
        "try {n}: ignored for {} requests; {:?}",
        server.main_requests().len() - asked,
        bed.journal().codes()
    );
    // The file goes first, then the journal gets its line.
    bed.wait_journal("the cancel", |journal| journal.of_kind("cancelled").len() == 1);
    Ok(())
}

/// t3: `/cancel-ralph`, typed while the agent works, ends the loop, each and every time.
fn t3_a_storm_of_cancels(version: Version) {
    for n in 0..nightly::amount(2, 20) {
        or_skip!(one_cancel(version, n));
    }
}
newest!(t3_a_storm_of_cancels);

/// t4: "stop", typed while a tool runs, is delivered with its result; the agent stops, and is not sent back. The person is told how to go on.
fn t4_a_stop_typed_while_a_tool_runs_pauses_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let slow = Reply::bash("touch running; sleep 2; echo over");
    let server = ModelServer::scripted([round(1), slow, say("All right, I stop."), round(4)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    wait_until("the tool runs", || bed.project.exists("running"));
    tui.submit("stop");
    sees(&tui, "Ralph: you said stop, so the loop is paused at iteration 2 of 9.");
    thread::sleep(QUIET);
    let requests = server.main_requests();
    assert_eq!(requests.len(), 3, "the loop does not go on");
    assert!(requests[2].all_text().contains("stop"));
    assert_eq!((bed.value("active"), bed.journal().codes()), ("false".to_owned(), vec!["promise.missing", "person.stop"]));
}
newest!(t4_a_stop_typed_while_a_tool_runs_pauses_the_loop);

/// t4: the same while the model speaks: the word waits in the queue, is let through, and then the loop is paused.
fn t4_a_stop_typed_while_the_model_speaks_pauses_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let _opens = Opens(&gate);
    let server = ModelServer::scripted([round(1), round(2).hang(&gate), say("All right, I stop."), round(4)]);
    let tui = open(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    queue(&bed, &tui, "Stop!");
    gate.release();
    sees(&tui, "Ralph: you said stop, so the loop is paused at iteration 2");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), 3, "the loop does not go on");
    assert_eq!(bed.journal().codes(), ["promise.missing", "host.queued-input", "person.stop"]);
}
newest!(t4_a_stop_typed_while_the_model_speaks_pauses_the_loop);

/// t4: a "stop" that the model scheduled is nobody's word.
fn t4_a_scheduled_stop_pauses_nothing(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let error = Reply::error(400, "invalid_request_error", "not like this");
    let server = ModelServer::with(move |request| match request.all_text() {
        text if text.contains("I was told to stop.") => claim(3),
        _ if request.last_user_text().trim_end().ends_with("stop") => say("I was told to stop."),
        text if text.contains("This is iteration 1.") => error.clone(),
        text if text.contains("Scheduled one-shot") => round(1),
        _ => schedules("stop"),
    });
    let tui = open(&bed, &server);
    tui.submit("begin");
    tui.expect("the end", FIRES, |screen| flat(screen).contains("Ralph: complete after 3 iterations"));
    assert_eq!(bed.journal().codes(), missing_then(2, "promise.accepted"));
}
newest!(t4_a_scheduled_stop_pauses_nothing);
