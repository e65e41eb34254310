//! A loop that a runner carries: what the hooks of its sessions do, and of all others (issue 6, points 2 and 5).

use std::fs;

use serde_json::{Value, json};

use crate::{
    common::{Bed, CLIENT, Event, LOOP, ME, OTHER, PROMPT, unique},
    gated::{Gated, begin, gate, line, reason, send_with},
};

/// When a process was born, as ralph notes it.
fn born_ms(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse::<u64>().unwrap() * 10
}

/// Writes into the only journal that a runner took the loop; the mark of its sessions.
fn taken_by(bed: &Bed, runner: Value) -> String {
    let mut last = bed.journal().pop().unwrap();
    let id = last["loop"].as_str().unwrap().to_owned();
    let mark = format!("{id}.{}", unique());
    last["seq"] = (last["seq"].as_u64().unwrap() + 1).into();
    last["event"] = json!({"kind": "taken", "pid": runner["pid"]});
    last["state"]["runner"] = runner;
    last["state"]["runner"]["mark"] = mark.clone().into();
    bed.change_journal(&id, |text| format!("{text}{last}\n"));
    mark
}

/// A runner that lives: this very process.
fn living(inner_limit: u64) -> Value {
    let pid = std::process::id();
    json!({"pid": pid, "born_ms": born_ms(pid), "attempt": 1, "inner_limit": inner_limit})
}

/// A process with the same number as a living one, and born at another time.
fn dead() -> Value {
    json!({"pid": std::process::id(), "born_ms": 1, "attempt": 1})
}

/// A project whose loop is carried; the loop's session is [`ME`].
fn carried() -> (Bed, String) {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send().blocks_with(PROMPT);
    let mark = taken_by(&bed, living(0));
    (bed, mark)
}

fn code(bed: &Bed) -> String {
    bed.hook_log().pop().unwrap().split(' ').find_map(|word| word.strip_prefix("code=")).unwrap().to_owned()
}

/// All that counts: the loop and its journal.
fn all(bed: &Bed) -> (Vec<u8>, usize) {
    (bed.loop_bytes(), bed.journal().len())
}

#[test]
fn s4_6_a_session_that_a_runner_started_may_stop_and_its_hooks_change_nothing() {
    let (bed, mark) = carried();
    let before = all(&bed);
    let within = |event: Event<'_>| {
        event.env("RALPH_RUN", &mark).client(CLIENT).send().is_silent();
        assert_eq!(code(&bed), "runner.drives");
    };
    within(bed.work());
    within(bed.stop("<promise>DONE</promise>"));
    within(bed.event("SessionStart").field("source", "startup"));
    within(bed.event("SessionEnd").field("reason", "other"));
    within(bed.event("StopFailure").field("error", "rate_limit"));
    within(bed.typed("/cancel-ralph"));
    within(bed.typed("hello"));
    assert_eq!(all(&bed), before);
    // The hook that waits has nothing to wait for.
    let stop = bed.work().env("RALPH_RUN", &mark).client(CLIENT);
    let output = begin(&stop, &["--wait", "--timeout", "60"]).child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    assert_eq!(all(&bed), before);
}

#[test]
fn s4_6_what_a_dead_runner_left_is_let_go_and_counted_nowhere() {
    let (bed, mark) = carried();
    taken_by(&bed, dead());
    for stranded in [mark, "main-gone.1".to_owned(), "x".to_owned()] {
        let before = all(&bed);
        if !stranded.starts_with("main-gone") && stranded != "x" {
            bed.work().env("RALPH_RUN", &stranded).send().is_silent();
        }
        // Another session of that run takes nothing either, not even a loop that waits for one.
        bed.write(".claude/ralph-loop.docs.local.md", crate::common::loop_text("null", 1, 9, "DONE"));
        bed.work().session(OTHER).env("RALPH_RUN", &stranded).send().is_silent();
        assert_eq!(code(&bed), "runner.within");
        bed.event("SessionStart").field("source", "startup").session(OTHER).env("RALPH_RUN", &stranded).send().is_silent();
        fs::remove_file(bed.path(".claude/ralph-loop.docs.local.md")).unwrap();
        assert_eq!(all(&bed), before, "{stranded}");
    }
}

#[test]
fn s4_6_nobody_takes_a_loop_that_a_runner_carries() {
    let (bed, mark) = carried();
    let before = all(&bed);
    // Somebody opens the session of the runner's in a terminal.
    bed.work().client(CLIENT).send().is_silent();
    assert_eq!(code(&bed), "runner.carries");
    bed.event("SessionStart").field("source", "resume").send();
    bed.event("SessionEnd").field("reason", "other").send().is_silent();
    bed.work().session(OTHER).send().is_silent();
    bed.work().env("RALPH_RUN", format!("{mark}0")).send().is_silent();
    assert_eq!(all(&bed), before);
    let refused = bed.ralph(&["resume"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains(&format!("`ralph run` (pid {}) works on this loop", std::process::id())), "{}", refused.stderr);
    let refused = bed.typed("/ralph-resume").session(OTHER).send().instead();
    assert!(refused.contains("works on this loop"), "{refused}");
    assert_eq!(all(&bed), before);
    let status = bed.status();
    assert_eq!(
        (&status["carrier"], &status["runner_pid"], &status["status"]),
        (&"runner".into(), &std::process::id().into(), &"active".into())
    );
    let pid = std::process::id();
    let (status, list) = (bed.ralph_ok(&["status"]), bed.ralph_ok(&["list"]));
    assert!(
        status.contains(&format!("`ralph run`, pid {pid}")) && list.contains(&format!("running in `ralph run` (pid {pid})")),
        "{status}{list}"
    );
}

#[test]
fn s4_6_a_loop_whose_runner_died_is_left_behind_and_can_be_taken() {
    let (bed, _) = carried();
    taken_by(&bed, dead());
    assert_eq!((&bed.status()["status"], &bed.status()["carrier"]), (&"left-behind".into(), &"nobody".into()));
    let answer = bed.typed("/ralph-resume").session(OTHER).env("CLAUDE_PID", std::process::id().to_string()).send();
    let told = answer.json.unwrap();
    assert!(told["systemMessage"].as_str().unwrap().contains("goes on at iteration 2 of 9"), "{told}");
    assert_eq!(
        (&bed.status()["status"], &bed.status()["carrier"], &bed.status()["session"]),
        (&"active".into(), &"session".into(), &OTHER.into())
    );
    assert_eq!(bed.journal().last().unwrap()["state"]["runner"], Value::Null);
    bed.work().session(OTHER).send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 3);
}

/// `inner`: as often as the runner allows, and only while a gate fails.
#[test]
fn s4_6_inner_rounds_send_a_session_back_with_what_failed_and_count_nothing() {
    let bed = Gated::new(&gate("tests", "test -e fixed", ""));
    bed.works().send();
    let mark = taken_by(&bed, living(2));
    let stop = |event: Event<'_>| send_with(&event.env("RALPH_RUN", &mark), &["--timeout", "60"]).0;
    let before = (bed.iteration(), bed.codes().len());
    // Nobody claims anything: commands do not run, and there is nothing to send it back for.
    stop(bed.works()).is_silent();
    let first = bed.claim();
    let answer = stop(first.clone());
    let told = reason(&answer);
    assert!(told.contains("Gate \"tests\" fails") && !told.contains(PROMPT), "{told}");
    assert!(line(&answer).contains("1 of 2"), "{answer:?}");
    assert_eq!(reason(&stop(first.by_plugin(1))), told, "a second hook on the same stop says the same");
    assert!(stop(bed.claim()).blocks());
    stop(bed.claim()).is_silent();
    assert_eq!((bed.iteration(), bed.codes().len()), before, "no iteration is counted");
    let inner = bed.journal().iter().filter(|r| r["event"]["event"] == "runner.inner").count();
    assert_eq!((inner, &bed.journal().last().unwrap()["state"]["runner"]["inner"]), (2, &2.into()));
    // What holds is the runner's to judge.
    bed.write("fixed", "");
    let mark = taken_by(&bed, living(9));
    send_with(&bed.claim().env("RALPH_RUN", &mark), &["--timeout", "60"]).0.is_silent();
    assert!(bed.path(LOOP).exists() && bed.value("session_id") == ME);
}
