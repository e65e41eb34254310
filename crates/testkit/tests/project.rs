//! The sealed project.

use std::time::{Duration, Instant};

use ralph_testkit::Project;

#[test]
fn it_is_a_clean_repository_with_one_commit() {
    let project = Project::new();
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(project.git(&["rev-list", "--count", "HEAD"]).trim(), "1");
}

#[test]
fn a_run_sees_nothing_of_the_machine() {
    let project = Project::without_git();
    let output = project.run("/usr/bin/env").output();
    let mut names: Vec<&str> = output.stdout.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.retain(|name| *name != "LLVM_PROFILE_FILE");
    names.sort_unstable();
    assert_eq!(
        names,
        ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT", "HOME", "LANG", "PATH", "RALPH_ALONE", "RALPH_REPORT", "TZ"]
    );
}

#[test]
fn a_run_is_fed_and_collected() {
    let project = Project::without_git();
    let run = project.run("/bin/sh").args(["-c", "cat; echo bad >&2; exit 3"]);
    let big = "x".repeat(300_000);
    let output = run.stdin(big.clone()).output();
    assert_eq!((output.code, output.stdout == big, output.stderr.as_str()), (Some(3), true, "bad\n"));
}

#[test]
fn a_run_ends_at_its_limit() {
    let project = Project::without_git();
    let start = Instant::now();
    let run = project.run("/bin/sh").args(["-c", "sleep 60 & wait"]);
    let output = run.timeout(Duration::from_millis(300)).output();
    assert!(output.timed_out);
    assert!(start.elapsed() < Duration::from_secs(10));
}
