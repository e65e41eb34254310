//! S4-6: three hundred sessions leave no thread, no descriptor and no process. Alone in its program, because it counts what the program has.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::{path::Path, time::Duration};

use ralph_core::judge::session_outcome::Outcome;
use ralph_engine::{
    hosts::prices::Prices,
    run::session::{Agent, Session},
    store::runner,
    sys::random,
};
use ralph_testkit::Project;

fn run(project: &Project, iteration: u64) {
    let agent = Agent::Command("cat > /dev/null; echo one; (sleep 1000 &); echo two >&2".to_owned());
    let (id, mark) = (random::uuid(), runner::new_mark("many"));
    let session = Session {
        agent: &agent,
        folder: project.dir(),
        prompt: "go on",
        id: &id,
        model: None,
        permission_mode: None,
        usd_micros_left: 0,
        prices: &Prices::default(),
        mark: &mark,
        iteration,
        silence: Duration::from_mins(1),
        limit: Duration::from_mins(1),
        grace: Duration::from_secs(1),
        log: &project.path(format!("logs/{}.log", iteration % 7)),
    };
    let ended = session.run(&|_| {}, &|| true);
    assert_eq!(ended.outcome, Outcome::Stopped);
}

fn entries(folder: &str) -> usize {
    std::fs::read_dir(Path::new(folder)).unwrap().count()
}

/// A thread that has done its work may need a moment to go.
fn settles(wanted: usize, count: impl Fn() -> usize) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(if count() <= wanted { 0 } else { 20 }));
        count() <= wanted
    })
}

#[test]
fn s4_6_three_hundred_sessions_leave_nothing_behind() {
    let project = Project::without_git();
    run(&project, 0);
    let (threads, descriptors) = (2, entries("/proc/self/fd"));
    for iteration in 1..=300 {
        run(&project, iteration);
    }
    assert!(settles(threads, || entries("/proc/self/task")), "{} threads", entries("/proc/self/task"));
    assert!(settles(descriptors, || entries("/proc/self/fd")), "{descriptors} descriptors became {}", entries("/proc/self/fd"));
    let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", std::process::id())).unwrap();
    assert_eq!(children, "", "processes");
}
