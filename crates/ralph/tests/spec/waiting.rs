//! Waiting for what is decided elsewhere, so that no model does (S2-5).

use std::{
    thread,
    time::{Duration, Instant},
};

use ralph_testkit::{Check, Fault};

use crate::{
    common::{CLIENT, Event, LOOP, ME},
    gated::{begin, line, reason, send_with},
    hub::Hubbed,
};

/// A session that cannot be woken.
pub(crate) const PRINT: (&str, &str) = ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");

/// A stop in a session that a hook in its background can wake.
pub(crate) fn wakeable(bed: &Hubbed) -> Event<'_> {
    bed.works().env("AI_AGENT", CLIENT)
}

pub(crate) fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(15);
    while Instant::now() < until {
        if what() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn s2_5_the_hook_waits_for_red_checks_and_answers_once_with_their_log() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    let hook = begin(&bed.works().env(PRINT.0, PRINT.1), &["--timeout", "60"]);
    assert!(soon(|| bed.hub.count_of("PullRequestList") >= 2), "it looks again: {:?}", bed.hub.requests());
    let status = bed.status();
    assert_eq!((&status["waits"]["by"], &status["status"]), (&"hook".into(), &"active".into()), "{status}");
    assert_eq!(bed.iteration(), 1);
    bed.hub.failed(&head, "build", "compiling\nerror: the widget is broken\nprocess exited with 1\n");
    let (answer, _) = hook.answer();
    let reason = reason(&answer);
    assert!(reason.contains("Gate \"ci\" fails") && reason.contains("error: the widget is broken"), "{reason}");
    assert_eq!(bed.iteration(), 2, "one answer, one iteration");
    assert_eq!(bed.codes(), ["promise.missing"]);
    assert!(bed.journal().last().unwrap()["event"]["evidence"]["waited_ms"].as_u64() > Some(1_000));
    assert!(bed.hub.unexpected().is_empty(), "{:?}", bed.hub.unexpected());
}

#[test]
fn s2_5_where_the_time_ends_first_the_loop_is_parked_and_ralph_wait_goes_on_with_it() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    let (answer, took) = send_with(&bed.works().env(PRINT.0, PRINT.1), &["--timeout", "9"]);
    assert!(took < Duration::from_secs(9), "{took:?}");
    assert!(!answer.blocks());
    let told = line(&answer);
    assert!(told.contains("parked at iteration 1") && told.contains("build") && told.contains("`ralph pr --wait`"), "{told}");
    let status = bed.status();
    assert_eq!(
        (&status["status"], &status["waits"]["by"], &status["iteration"]),
        (&"parked".into(), &"nobody".into(), &1.into()),
        "{status}"
    );
    // Nothing is decided within a second.
    let waited = bed.ralph_asking(&["wait", "--timeout", "1"]);
    assert_eq!(waited.code, Some(75), "{waited:?}");
    assert!(
        waited.stderr.contains("waits for ci: CI runs on") && waited.stderr.contains("`ralph pr --wait` waits on"),
        "{}",
        waited.stderr
    );
    let gates = bed.ralph_asking(&["gate"]);
    assert_eq!(gates.code, Some(75), "{gates:?}");
    assert!(gates.stdout.ends_with("not decided yet: `ralph pr --wait` waits for it.\n"), "{}", gates.stdout);
    bed.green(&head);
    let waited = bed.ralph_asking(&["wait"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert!(waited.stdout.contains("is not merged"), "{}", waited.stdout);
    assert!(waited.stdout.ends_with(&format!("\n  claude --resume {ME} /ralph-resume\n")), "{}", waited.stdout);
    assert_eq!(bed.status()["status"], "active");
    assert_eq!(bed.iteration(), 1, "no iteration was counted");
}

#[test]
fn s2_5_a_cancel_ends_the_wait_at_once() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    let hook = begin(&bed.works().env(PRINT.0, PRINT.1), &["--timeout", "600"]);
    assert!(soon(|| bed.hub.count_of("PullRequestList") >= 2));
    assert!(bed.kinds().contains(&"waiting".to_owned()));
    let begun = Instant::now();
    bed.ralph_ok(&["cancel"]);
    let (answer, _) = hook.answer();
    assert!(!answer.blocks() && begun.elapsed() < Duration::from_secs(5), "{answer:?} {:?}", begun.elapsed());
    assert!(!bed.path(LOOP).exists());
}

#[test]
fn s2_5_an_interactive_session_is_woken_and_its_screen_is_free_meanwhile() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    let stop = wakeable(&bed).env("RALPH_REPORT", "on");
    let waiter = begin(&stop, &["--wait", "--timeout", "60"]);
    let (answer, took) = send_with(&stop, &["--timeout", "3600"]);
    assert!(!answer.blocks() && took < Duration::from_secs(10), "{answer:?} {took:?}");
    assert_eq!(bed.files_in(".ralph/reports").len(), 1, "the page of a parked loop");
    let told = line(&answer);
    assert!(told.contains("parked at iteration 1, for ci: CI runs on") && told.contains("goes on by itself"), "{told}");
    assert!(!told.contains("`ralph pr --wait`"), "nobody has to do anything: {told}");
    let status = bed.status();
    assert_eq!((&status["status"], &status["waits"]["by"]), (&"parked".into(), &"session".into()), "{status}");
    let asked = bed.typed("/ralph-status").send();
    let status = asked.json.unwrap()["stopReason"].as_str().unwrap().to_owned();
    assert!(status.contains("parked") && status.contains("waits for ci: CI runs on"), "{status}");
    bed.hub.failed(&head, "build", "error: the widget is broken\n");
    let output = waiter.child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{told}");
    assert!(told.starts_with("[ralph] The wait is over.") && told.contains("error: the widget is broken"), "{told}");
    assert_eq!(bed.iteration(), 2);
    assert_eq!(bed.codes(), ["gate.waiting", "promise.missing"]);
    assert_eq!(bed.status()["status"], "active");
    // The client reports what it woke the agent with as if it had been typed: that is nobody's interrupt, and the person is told then.
    let wake = format!("<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n{told}");
    let answer = bed.typed(&wake).send();
    assert!(line(&answer).contains("iteration 2"), "{answer:?}");
    assert_eq!(bed.value("active"), "true");
}

#[test]
fn s2_5_only_the_newest_waiter_waits() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    let park = || {
        let stop = wakeable(&bed);
        let waiter = begin(&stop, &["--wait", "--timeout", "60"]);
        let (answer, _) = send_with(&stop, &["--timeout", "3600"]);
        assert!(line(&answer).contains("parked"), "{answer:?}");
        waiter
    };
    let older = park();
    let newer = park();
    let output = older.child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "the person spoke, and the agent stopped again");
    bed.green(&head);
    let output = newer.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(bed.iteration(), 2);
}

#[test]
fn s2_5_a_session_that_cannot_be_woken_is_not_waited_for_twice() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    for event in [bed.works().env(PRINT.0, PRINT.1), bed.works().env("AI_AGENT", "claude-code_2-1-100_harness")] {
        let output = begin(&event, &["--wait", "--timeout", "3600"]).child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len(), output.stdout.len()), (Some(0), 0, 0));
    }
    assert!(bed.hub.requests().is_empty(), "nobody was asked");
}

#[test]
fn s2_5_an_outage_is_waited_for_and_costs_no_round() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.check(&head, Check::run("build").failed().log("error: red\n"));
    bed.hub.fail(Fault::BadGateway, 2);
    let (answer, _) = send_with(&bed.works().env(PRINT.0, PRINT.1), &["--timeout", "60"]);
    assert!(reason(&answer).contains("error: red"), "{answer:?}");
    assert_eq!(bed.codes().len(), 1);
    assert_eq!(bed.iteration(), 2);
}

#[test]
fn s2_5_a_claim_that_waited_for_its_proof_completes_in_the_background() {
    let Some((bed, number, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    bed.hub.merge(number);
    let stop = bed.claims().env("AI_AGENT", CLIENT);
    let waiter = begin(&stop, &["--wait", "--timeout", "60"]);
    let (answer, _) = send_with(&stop, &["--timeout", "3600"]);
    assert!(line(&answer).contains("parked at iteration 1"), "{answer:?}");
    bed.green(&head);
    let output = waiter.child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "there is nothing to wake the agent for");
    assert!(!bed.path(LOOP).exists());
    assert_eq!(bed.last_ended()["status"], "complete");
    // Nobody sees what a hook in the background says, so it is said when the session stops next.
    let told = line(&bed.asking(bed.work()).send());
    assert!(
        told.contains("Ralph: complete after 1 iteration") && told.contains("CI is green") || told.contains("all 3 gates hold"),
        "{told}"
    );
}
