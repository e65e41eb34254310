//! `ralph watch` in a real terminal: what a person sees, what keys do, what becomes of the screen.

mod follows;
mod keys;
mod leaves;
mod screens;
mod story;

use std::{process::Command, time::Duration};

use ralph_testkit::pty::Pty;

use crate::common::{Bed, RALPH};

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

fn command(bed: &Bed, args: &[&str]) -> Command {
    let mut command = bed.command(RALPH);
    command.arg("watch").args(args).env("TERM", "xterm-256color");
    command
}

/// A screen of 24 rows and 80 columns.
fn watch(bed: &Bed, args: &[&str]) -> Pty {
    Pty::spawn(command(bed, args), 24, 80)
}

#[track_caller]
fn shows(pty: &Pty, wanted: &str) -> String {
    shows_that(pty, wanted, |screen| screen.contains(wanted))
}

#[track_caller]
fn shows_that(pty: &Pty, what: &str, wanted: impl Fn(&str) -> bool) -> String {
    pty.wait_for(wanted, PATIENCE).unwrap_or_else(|screen| panic!("{what}:\n{screen}"))
}

/// Every line of the screen without the blanks at its end.
fn trimmed(screen: &str) -> String {
    screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Quits with a key, and everything is as it was.
#[track_caller]
fn quits(pty: &Pty) {
    pty.send("q");
    assert_eq!(pty.wait_exit(PATIENCE), Some(0), "{}", pty.screen());
    assert!(pty.wait_closed(PATIENCE), "all that it wrote is there");
}
