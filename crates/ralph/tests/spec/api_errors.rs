//! A turn that ended in an error of the model's service: parked or paused, and woken (S1-4).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    common::{Bed, CLIENT, Event, LOOP, ME, OTHER, PROMPT, now_ms},
    gated::{Running, begin},
    waiting::{PRINT, soon},
};

const OLDER: &str = "claude-code_2-1-197_harness";

/// A minute of waiting is a second.
const HASTE: (&str, &str) = ("RALPH_HASTE", "60");

pub(crate) fn fails<'b>(bed: &'b Bed, error: &str) -> Event<'b> {
    let event = bed.event("StopFailure").field("error", error).field("last_assistant_message", "API Error");
    event.field("prompt_id", format!("prompt-{}", crate::common::unique())).client(CLIENT).env(HASTE.0, HASTE.1)
}

/// Both hooks of one failure, as the client starts them.
fn both(event: &Event<'_>) -> Running {
    let waiter = begin(event, &["--wait", "--timeout", "60"]);
    event.send().is_silent();
    waiter
}

/// What the session is woken with; empty: it is not.
fn woken(waiter: Running) -> String {
    let output = waiter.child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(if said.is_empty() { 0 } else { 2 }), "{said}");
    said
}

fn parked(bed: &Bed) -> Value {
    bed.journal().last().unwrap()["state"]["parked"].clone()
}

/// The line of a limit that 2.1.325 writes.
pub(crate) fn limit_line(resets_at: i64) -> Value {
    let info = json!({"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour"});
    json!({
        "type": "assistant", "isSidechain": false, "isApiErrorMessage": true, "error": "rate_limit", "apiErrorStatus": 429,
        "apiError": "usage_limit_reached", "apiErrorParams": {"rate_limit_info": info}, "quotaLimits": info,
        "message": {"id": "e", "model": "<synthetic>", "content": [{"type": "text", "text": "You've hit your 5-hour limit"}], "usage": {"input_tokens": 0}},
    })
}

#[test]
fn s1_4_an_error_of_the_service_parks_the_loop_and_the_session_is_woken_with_its_task() {
    for client in [CLIENT, OLDER] {
        let bed = Bed::with_loop(1, 9, "DONE");
        bed.work().send();
        let waiter = both(&fails(&bed, "server_error").client(client));
        let status = bed.status();
        assert_eq!(
            (&status["status"], &status["waits"]["what"], &status["waits"]["by"]),
            (&"parked".into(), &"the model's service".into(), &"session".into())
        );
        assert!(status["waits"]["until"].is_string(), "{status}");
        let words = bed.ralph_ok(&["status"]);
        assert!(words.contains("for the model's service (until 20") && words.contains("its session is woken then"), "{words}");
        assert_eq!(bed.journal().last().unwrap()["state"]["armed_since"], Value::Null, "the loop's clock stands");
        let told = woken(waiter);
        assert!(told.contains("[ralph] The wait is over.") && told.ends_with(PROMPT), "{told}");
        assert_eq!((bed.iteration(), bed.status()["status"].as_str()), (2, Some("active")), "the same iteration");
        assert_eq!(bed.journal().last().unwrap()["event"]["event"], "woken");
        // The client reports it as if it had been typed: the person is told, and nothing is interrupted.
        let wake = format!("<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n{told}");
        let line = bed.typed(&wake).send().line();
        assert!(line.contains("goes on by itself at iteration 2 of 9"), "{line}");
        bed.work().send().blocks_with(PROMPT);
    }
}

#[test]
fn s1_4_pauses_grow_with_the_failures_in_a_row_and_an_answer_ends_the_row() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    let pause = || {
        let event = fails(&bed, "server_error").no_env(HASTE.0);
        event.send().is_silent();
        event.send().is_silent();
        let parked = parked(&bed);
        (parked["until"].as_i64().unwrap() - parked["since"].as_i64().unwrap()) / 60_000
    };
    assert_eq!([(); 7].map(|()| pause()), [1, 2, 5, 10, 20, 30, 30], "however many hooks report a failure");
    assert!(bed.work().send().blocks());
    assert_eq!((parked(&bed), pause()), (Value::Null, 1));
}

#[test]
fn s1_4_a_limit_that_says_when_it_ends_is_waited_for_until_then() {
    let bed = Bed::with_loop(1, 9, "DONE");
    let reset = now_ms() / 1_000 + 3;
    bed.transcript().user("go").line(limit_line(reset));
    let event = fails(&bed, "rate_limit");
    let begun = Instant::now();
    let waiter = both(&event);
    assert_eq!((parked(&bed)["until"].as_i64(), parked(&bed)["what"].as_str()), (Some(reset * 1_000), Some("the account's 5-hour limit")));
    // A client that goes on by itself is given its time: 150 s, here 2.5.
    assert!(woken(waiter).ends_with(PROMPT));
    assert!(now_ms() >= reset * 1_000 + 2_000 && begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn s1_4_whatever_happens_to_the_loop_meanwhile_nobody_is_woken_twice() {
    const RESUMED: &str = "Your claude.ai usage limit has reset. Continue the task you were working on when the limit was reached.";
    type Happens = fn(&Bed);
    let cases: [(&str, Happens); 6] = [
        ("the client itself", |bed| bed.typed(RESUMED).send().is_silent()),
        ("the person", |bed| bed.typed("are you there?").send().is_silent()),
        ("paused", |bed| drop(bed.ralph_ok(&["pause"]))),
        ("cancelled", |bed| drop(bed.ralph_ok(&["cancel"]))),
        ("another session", |bed| drop(bed.typed("/ralph-resume").session(OTHER).send())),
        ("deleted", |bed| std::fs::remove_file(bed.path(LOOP)).unwrap()),
    ];
    for (what, happens) in cases {
        let bed = Bed::with_loop(1, 9, "DONE");
        bed.work().send();
        let waiter = both(&fails(&bed, "rate_limit").env("RALPH_HASTE", "20"));
        happens(&bed);
        let before = bed.journal().len();
        assert_eq!(woken(waiter), "", "{what}");
        assert_eq!(bed.journal().len(), before, "{what}");
    }
}

/// A message begins a turn: the clock runs, and its stop is judged.
#[test]
fn s1_4_a_message_arms_a_parked_loop_again() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.transcript().user("go").line(limit_line(now_ms() / 1_000 + 600));
    fails(&bed, "rate_limit").send().is_silent();
    bed.typed("Your claude.ai usage limit has reset. Continue the task.").send().is_silent();
    let state = bed.journal().pop().unwrap()["state"].clone();
    assert_eq!((&state["parked"], state["armed_since"].is_i64()), (&Value::Null, true));
    assert_eq!((bed.value("active").as_str(), bed.iteration()), ("true", 1));
    bed.transcript().user("go on").says("m", "Went on.");
    bed.stop("Went on.").send().blocks_with(PROMPT);
}

#[test]
fn s1_4_a_newer_failure_takes_over_and_a_client_that_is_gone_is_not_waited_for() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    let older = both(&fails(&bed, "server_error").env("RALPH_HASTE", "6"));
    let newer = both(&fails(&bed, "server_error"));
    assert_eq!(woken(older), "");
    assert!(woken(newer).ends_with(PROMPT));
    let ended = both(&fails(&bed, "server_error").no_env(HASTE.0));
    ended.terminate();
    assert_eq!(woken(ended), "");
    assert_eq!(bed.status()["waits"]["by"], "nobody");
}

#[test]
fn s1_4_where_nobody_can_be_woken_the_loop_stays_parked() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    let event = fails(&bed, "server_error").env(PRINT.0, PRINT.1);
    assert_eq!(woken(both(&event)), "");
    assert_eq!(bed.status()["status"], "parked");
    bed.event("SessionEnd").field("reason", "other").send().is_silent();
    let status = bed.ralph_ok(&["status"]);
    assert!(status.contains("left behind") && status.contains("`ralph run --continue`"), "{status}");
}

#[test]
fn s1_4_what_waiting_does_not_mend_pauses_the_loop_and_says_what_to_do() {
    for (error, why, remedy) in [
        ("authentication_failed", "not signed in", "/login"),
        ("billing_error", "no credit left", "credit"),
        ("model_not_found", "is not available to this account", "/model"),
        ("invalid_request", "rejected the request", "`ralph run --continue` goes on in fresh sessions"),
    ] {
        let bed = Bed::with_loop(1, 9, "DONE");
        bed.work().send();
        let waiter = both(&fails(&bed, error));
        assert_eq!((woken(waiter).as_str(), bed.value("active").as_str()), ("", "false"), "{error}");
        let told = bed.work().send().line();
        assert!(told.contains("paused at iteration 2 of 9") && told.contains(why) && told.contains(remedy), "{told}");
        assert!(bed.ralph_ok(&["log"]).contains(why));
    }
    // What nobody knows changes nothing.
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    let file = bed.loop_bytes();
    for error in ["unknown", "max_output_tokens", ""] {
        fails(&bed, error).send().is_silent();
        assert_eq!((bed.loop_bytes() == file, bed.status()["status"].as_str()), (true, Some("active")), "{error}");
    }
    // Another session's failure is its own affair.
    fails(&bed, "rate_limit").session(OTHER).send().is_silent();
    assert_eq!(bed.status()["status"], "active");
}

#[test]
fn s1_4_ralph_wait_waits_for_the_time() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    fails(&bed, "server_error").no_env(HASTE.0).send().is_silent();
    assert_eq!(bed.ralph(&["wait", "--timeout", "1"]).code, Some(75));
    fails(&bed, "server_error").env("RALPH_HASTE", "120").send().is_silent();
    let waited = bed.ralph(&["wait"]).stdout;
    assert!(waited.ends_with(&format!("  claude --resume {ME} /ralph-resume\n")), "{waited}");
    assert!(soon(|| bed.status()["status"] == "parked"));
}
