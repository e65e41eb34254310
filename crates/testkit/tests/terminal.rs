//! The pseudo terminal, with a shell and with the real client's terminal interface.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use ralph_testkit::{Client, Gate, ModelServer, Project, Pty, Reply, Version, or_skip};

const SOON: Duration = Duration::from_secs(15);

#[test]
fn a_program_gets_a_real_terminal_and_its_size() {
    let project = Project::without_git();
    let mut shell = project.command("/bin/sh");
    shell.args(["-c", "test -t 0 && stty size && read line && stty size && echo got $line"]);
    let pty = Pty::spawn(shell, 24, 80);
    pty.wait_for(|screen| screen.contains("24 80"), SOON).unwrap();
    pty.resize(30, 100);
    pty.send("hello\r");
    let screen = pty.wait_for(|screen| screen.contains("got hello"), SOON).unwrap();
    assert!(screen.contains("30 100"), "{screen}");
    assert_eq!(pty.wait_exit(SOON), Some(0));
}

#[test]
fn a_wait_that_fails_gives_the_screen() {
    let project = Project::without_git();
    let pty = Pty::spawn(project.command("/bin/cat"), 24, 80);
    pty.send("typed");
    let screen = pty.wait_for(|_| false, Duration::from_millis(500)).unwrap_err();
    assert!(screen.contains("typed"), "{screen}");
}

fn typed_message(version: Version) {
    let client = or_skip!(Client::installed(version));
    let project = Project::new();
    let server = ModelServer::scripted([Reply::text("The scripted answer."), Reply::text("Another one.")]);
    let tui = client.interactive(&project, &server).start();
    tui.submit("hello there");
    tui.expect_text("The scripted answer.", SOON);
    tui.submit("once more");
    tui.expect_text("Another one.", SOON);
    assert!(server.main_requests()[0].last_user_text().contains("hello there"));
    tui.submit("/exit");
    assert_eq!(tui.pty.wait_exit(SOON), Some(0));
}

#[test]
fn older_answers_a_typed_message() {
    typed_message(Version::Older);
}

#[test]
fn newest_answers_a_typed_message() {
    typed_message(Version::Newest);
}

fn escape_interrupts(version: Version) {
    let client = or_skip!(Client::installed(version));
    let project = Project::new();
    let gate = Gate::new();
    let server = ModelServer::scripted([Reply::text("half of it and the rest").hang(&gate)]);
    let tui = client.interactive(&project, &server).start();
    tui.submit("start");
    assert!(gate.wait_reached(SOON));
    tui.expect_text("esc to interrupt", SOON);
    tui.escape();
    tui.expect_text("Interrupted", SOON);
}

#[test]
fn older_is_interrupted_by_escape() {
    escape_interrupts(Version::Older);
}

#[test]
fn newest_is_interrupted_by_escape() {
    escape_interrupts(Version::Newest);
}
