//! The crash injector, on a small shell program.

#![cfg(target_os = "linux")]
#![allow(clippy::panic, reason = "test code")]

use std::process::Command;

use ralph_testkit::Project;
use ralph_testkit::killer::{Filter, Outcome, count_syscalls, kill_at_syscall, pause_at_syscall};

/// Copies a line of its input to three files, one after the other, and says so.
fn program(project: &Project) -> Command {
    let mut command = project.command("/bin/sh");
    command.args(["-c", "read l; echo $l > 1; echo $l > 2; echo $l > 3; echo done"]);
    command
}

fn files(project: &Project) -> usize {
    let full = |name: &&str| project.exists(name) && project.read(name) == "hello\n";
    ["1", "2", "3"].iter().filter(|name| full(name)).count()
}

#[test]
fn a_program_that_is_not_killed_finishes() {
    let project = Project::without_git();
    let outcome = kill_at_syscall(&mut program(&project), Filter::Any, usize::MAX, b"hello\n");
    let stdout = "done\n".to_owned();
    assert_eq!(outcome, Outcome::Finished { stdout, code: Some(0) });
    assert_eq!(files(&project), 3);
}

#[test]
fn every_crash_point_is_reached() {
    let project = Project::without_git();
    let any = count_syscalls(&mut program(&project), Filter::Any, b"hello\n");
    let writes = count_syscalls(&mut program(&project), Filter::Writes, b"hello\n");
    // Opening and filling three files.
    assert!(writes >= 6 && any > writes, "{any} {writes}");
    let mut seen = Vec::new();
    for n in 1..=writes {
        let project = Project::without_git();
        match kill_at_syscall(&mut program(&project), Filter::Writes, n, b"hello\n") {
            Outcome::Killed { stdout, .. } => assert_eq!(stdout, "", "the output comes after the last file"),
            finished @ Outcome::Finished { .. } => panic!("not killed at {n}: {finished:?}"),
        }
        seen.push(files(&project));
    }
    assert!(seen.is_sorted(), "{seen:?}");
    seen.dedup();
    assert_eq!(seen, [0, 1, 2]);
    assert_eq!(files(&project), 3, "after the last write comes the end");
}

#[test]
fn what_happens_in_a_pause_happens_before_the_call() {
    let writes = count_syscalls(&mut program(&Project::without_git()), Filter::Writes, b"hello\n");
    for n in 1..=writes {
        let project = Project::without_git();
        let mut seen = None;
        let outcome = pause_at_syscall(&mut program(&project), Filter::Writes, n, b"hello\n", || seen = Some(files(&project)));
        let stdout = "done\n".to_owned();
        assert_eq!(outcome, Outcome::Finished { stdout, code: Some(0) });
        assert!(seen.is_some_and(|seen| seen < 3), "{n} of {writes}: {seen:?}");
        assert_eq!(files(&project), 3);
    }
}

#[test]
fn an_exit_code_comes_through() {
    let project = Project::without_git();
    let mut command = project.command("/bin/sh");
    command.args(["-c", "exit 7"]);
    let outcome = kill_at_syscall(&mut command, Filter::Any, usize::MAX, b"");
    assert!(matches!(outcome, Outcome::Finished { code: Some(7), .. }), "{outcome:?}");
}
