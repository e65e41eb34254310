//! S4-6: what the sessions of a dead runner left running. Alone in its program: whatever else runs sessions there would take them for its own strays.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, reason = "tests")]

use std::time::{Duration, Instant};

use ralph_engine::store::runner;

/// How long anything may take that should be there at once, on a machine that is busy.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn s4_6_what_a_dead_runner_left_is_found_by_its_mark() {
    let mark = runner::new_mark("test");
    let start = |mark: &str| {
        let mut command = std::process::Command::new("/bin/sh");
        // Its child has no mark any more.
        command.args(["-c", "trap '' TERM; env -i sleep 1000 & wait"]).env("RALPH_RUN", mark);
        command.spawn().unwrap()
    };
    let (mut left, mut other) = (start(&mark), start(&runner::new_mark("test")));
    let deadline = Instant::now() + SOON;
    while children(left.id()).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(runner::end_leftovers(&mark), 2);
    assert_eq!(runner::end_leftovers(&mark), 0);
    assert!(other.try_wait().unwrap().is_none(), "another runner's");
    for pid in children(other.id()) {
        let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    let _ = (left.wait(), other.kill(), other.wait());
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
