//! Iterations that change nothing, and sessions that are not needed, with the real client and a scripted model (t16, t17).

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::real::*;
use ralph_testkit::{ModelServer, Reply, SignIn, Version, or_skip};

/// A model that uses its shell once in every iteration, for this command, and then stops.
fn busy(command: impl Fn(usize) -> String + Send + Sync + 'static) -> ModelServer {
    let calls = AtomicUsize::new(0);
    ModelServer::with(move |request| {
        if !request.is_main() {
            return Reply::text("ok");
        }
        let n = calls.fetch_add(1, Ordering::Relaxed);
        if n.is_multiple_of(2) { Reply::bash(command(n / 2 + 1)).delay(PACE / 2) } else { say(format!("I looked at it ({n}).")) }
    })
}

/// The agent calls a tool in every iteration, so that no other brake holds it, and nothing comes of it.
fn t16_a_session_that_is_busy_and_changes_nothing_is_paused(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let server = busy(|_| "ls -la && git status".to_owned());
    bed.ralph_ok(&["start", "Tidy up", "--completion-promise", "DONE"]);
    bed.run(&server, "Begin.");
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(9, "progress.none"));
    assert_eq!(server.main_requests().len(), 20, "ten iterations of two requests");
    assert_eq!(bed.value("active"), "false");
    let explained = bed.ralph_ok(&["explain"]);
    assert!(explained.contains("10 iterations in a row changed nothing"), "{explained}");
    bed.assert_replays(10);
}
newest!(t16_a_session_that_is_busy_and_changes_nothing_is_paused);

/// The same with something to show for it goes on to its limit.
fn t16_a_session_that_changes_something_goes_on(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let server = busy(|n| format!("echo {n} >> work.txt"));
    bed.ralph_ok(&["start", "Tidy up", "--completion-promise", "DONE", "--max-iterations", "13"]);
    bed.run(&server, "Begin.");
    assert_eq!(bed.journal().codes(), missing_then(12, "limit.iterations"));
}
newest!(t16_a_session_that_changes_something_goes_on);

/// Everything holds: the model is not asked at all.
fn t17_a_run_with_nothing_to_do_asks_no_model(version: Version) {
    let server = ModelServer::scripted([round(1), round(2)]);
    let mut bed = or_skip!(Bed::new(version));
    bed.project.write("README.md", "a project\n");
    bed.project.commit_all("begin");
    let program = bed.client.as_program(&bed.project, &server, SignIn::Key, &[]);
    bed.path = format!("{}:{}", program.parent().unwrap().display(), bed.path);
    let run = |args: &[&str]| {
        let run = bed.project.run(RALPH).env("PATH", &bed.path).env("IS_SANDBOX", "1").arg("run").args(args);
        run.args(["--permission-mode", "bypassPermissions"]).timeout(Duration::from_mins(3)).output()
    };
    let output = run(&["Keep it tidy", "--verify", "test -e README.md"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("No session was started"), "{output:?}");
    assert_eq!(run(&["--continue"]).code, Some(1), "what is complete is not started again");
    assert_eq!(server.requests().len(), 0);
}
newest!(t17_a_run_with_nothing_to_do_asks_no_model);
