//! Who carries a loop when the session itself does not: the hook that revives it after an error, the runner that started it, and the client that makes its
//! conversation shorter. The real client, a scripted model.

use std::{fs, io::Write as _, thread, time::Duration};

use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{ModelServer, Reply, Version, or_skip};
use serde_json::{Value, json};

/// S1-4: a rate limit in the middle of a loop parks it. Nobody is asked meanwhile; then the session is woken by itself, in the same round, and completes.
fn s1_4_a_rate_limit_parks_the_loop_and_the_session_revives_by_itself(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--project"));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let server = ModelServer::with(|request| match request.all_text() {
        text if text.contains("[ralph] The wait is over.") => claim(2),
        text if text.contains("This is iteration 1.") => Reply::error(429, "rate_limit_error", "slow down"),
        _ => round(1),
    });
    // A minute is six seconds.
    let run = bed.client.interactive(&bed.project, &server).env("PATH", &bed.path).env("CLAUDE_CODE_MAX_RETRIES", "0");
    let tui = run.env("RALPH_HASTE", "10").skip_permissions().size(50, 150).start();
    tui.submit("begin");
    bed.wait_journal("the error", |journal| journal.heard("StopFailure") > 0);
    let asked = server.main_requests().len();
    let status = bed.ralph_ok(&["status"]);
    assert!(status.contains("parked") && status.contains("for the rate limit (until 20"), "{status}");
    wait_until("the wait", || bed.ralph_ok(&["status"]).contains("its session is woken then"));
    thread::sleep(Duration::from_secs(1));
    assert_eq!(server.main_requests().len(), asked, "nobody is asked while it is parked");
    sees(&tui, "Ralph: complete after 2 iterations");
    let journal = bed.journal();
    assert_eq!((journal.heard("StopFailure"), journal.heard("woken")), (1, 1), "{:?}", journal.lines());
    assert_eq!((journal.codes(), journal.iterations()), (missing_then(1, "promise.accepted"), vec![1, 2]));
    assert_eq!(server.main_requests().len(), asked + 1);
    let woken = server.main_requests()[asked].last_user_text();
    assert!(woken.contains("Make it work."), "{woken}");
    bed.assert_archived(2);
}
both!(s1_4_a_rate_limit_parks_the_loop_and_the_session_revives_by_itself);

/// S4-5: `compact_every: 2` has the client compact after two rounds, in the same session, and leaves nothing in the settings.
fn s4_5_after_so_many_rounds_the_conversation_is_compacted(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "4"]);
    let file = bed.loop_file().unwrap().replacen("iteration: 1\n", "iteration: 1\ncompact_every: 2\n", 1);
    bed.project.write(LOOP, file);
    let server = ModelServer::with(|request| round(request.index).usage(45_000, 10));
    let output = bed.run(&server, "begin");
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(3, "limit.iterations"), "{:?}", journal.lines());
    let asked: Vec<&Value> = journal.of_kind("heard").into_iter().filter(|r| r["event"]["event"] == "compaction").collect();
    assert_eq!(asked.iter().map(|r| r["event"]["detail"].as_str().unwrap()).collect::<Vec<_>>(), ["asked for"], "{:?}", journal.lines());
    let compacted = journal.of_kind("heard").into_iter().filter(|r| r["event"]["detail"] == "compact").count();
    assert_eq!(compacted, 1, "{:?}", journal.lines());
    assert_eq!(output.events.iter().filter(|event| event["subtype"] == "compact_boundary").count(), 1);
    assert!(!bed.project.exists(".claude/settings.local.json") && !bed.project.exists(".ralph/compaction.json"));
}
both!(s4_5_after_so_many_rounds_the_conversation_is_compacted);

/// S4-6: a session that a runner started stops when it stops. Its hooks know by their environment.
fn s4_6_a_session_of_a_runners_is_let_go(version: Version) {
    const SESSION: &str = "5e551017-0000-4000-8000-00000000000a";
    let bed = or_skip!(Bed::with_init(version, "--user"));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    bed.ralph_ok(&["resume", "--session", SESSION]);
    let journal = bed.journal();
    let mut taken = journal.records.last().unwrap().clone();
    let mark = format!("{}.7", taken["loop"].as_str().unwrap());
    taken["seq"] = (journal.records.len() + 1).into();
    taken["event"] = json!({"kind": "taken", "pid": std::process::id()});
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let born: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    taken["state"]["runner"] = json!({"pid": std::process::id(), "born_ms": born * 10, "mark": mark, "attempt": 1});
    writeln!(fs::File::options().append(true).open(&journal.path).unwrap(), "{taken}").unwrap();
    let file = bed.loop_file();
    let server = ModelServer::scripted([work(1), claim(1), round(2)]);
    let run = |prompt: &str| bed.print(&server, prompt).env("RALPH_RUN", &mark).args(["--session-id", SESSION]).output();
    assert_eq!(run("Make it work.").code, Some(0));
    assert_eq!(server.main_requests().len(), 2);
    assert_eq!((bed.loop_file(), bed.journal().records.len()), (file, journal.records.len() + 1), "{:?}", bed.journal().lines());
    assert!(bed.logged(&["event=Stop", "code=runner.drives"]) == 1 && bed.logged(&["code=runner.carries"]) == 0, "{:?}", bed.hook_log());
}
newest!(s4_6_a_session_of_a_runners_is_let_go);
