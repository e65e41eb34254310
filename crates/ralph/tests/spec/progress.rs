//! Long work shows how far it is: gates by hand and in a hook, and a wait.

use std::{fs, time::Duration};

use ralph_testkit::pty::Pty;

use crate::{
    api_errors::fails,
    common::{Bed, RALPH},
    gated::{Gated, begin, gate},
    hub::Hubbed,
    waiting::soon,
};

const SOON: Duration = Duration::from_secs(20);

fn on_a_terminal(mut command: std::process::Command, cols: u16) -> Pty {
    Pty::spawn(
        {
            command.env("TERM", "xterm-256color");
            command
        },
        24,
        cols,
    )
}

/// The first runs teach what is usual; then it is told on a terminal, in a pipe and by `status`, and that it takes longer.
#[test]
fn eyes_5_a_gate_says_how_long_it_usually_takes() {
    let slow = "while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done";
    let bed = Gated::in_git(&[gate("first", "true", ""), gate("slow", slow, "cache = false"), gate("last", "true", "")].concat());
    let (go, hold) = (bed.home().join("go"), || fs::remove_file(bed.home().join("go")).unwrap());
    fs::write(&go, "").unwrap();
    assert!(bed.ralph_ok(&["gate"]).contains("gate slow: running…\n"), "nobody knows yet");
    let piped = bed.ralph_ok(&["gate"]);
    assert!(piped.contains("gate slow: running… about 1 s\ngate slow: pass (") && !piped.contains('\r'), "{piped}");
    hold();
    let mut command = bed.command(RALPH);
    command.arg("gate");
    let pty = on_a_terminal(command, 80);
    pty.wait_for(|s| s.contains("1 of 3 done, gate slow: ") && s.contains("░ 0 s of about 1 s (2 min at most)"), SOON).unwrap();
    let screen = pty.wait_for(|s| s.contains("1 of 3 done, gate slow: longer than usual: 3 s, usually 1 s (2 min at most)"), SOON).unwrap();
    assert_eq!(screen.matches("at most").count(), 1, "drawn in place: {screen}");
    fs::write(&go, "").unwrap();
    assert_eq!(pty.wait_exit(SOON), Some(0));
    hold();
    let hook = begin(&bed.claim(), &["--timeout", "60"]);
    assert!(soon(|| bed.status()["checking"]["gate"] == "slow"), "{}", bed.status());
    // The three runs so far: two that took no time and a long one.
    assert!(bed.status()["checking"]["usual_ms"].as_u64() < Some(1_500), "{}", bed.status());
    let told = bed.ralph_ok(&["status"]);
    assert!(told.contains("  checking    slow: ") && told.contains(" s of about 1 s (") || told.contains("usually 1 s ("), "{told}");
    fs::write(&go, "").unwrap();
    assert!(!hook.answer().0.blocks());
}

/// A moment that is known is counted to; what was typed to end it leaves a clean line.
#[test]
fn eyes_5_ralph_wait_counts_to_the_moment() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    fails(&bed, "server_error").no_env("RALPH_HASTE").send().is_silent();
    let piped = bed.ralph(&["wait", "--timeout", "1"]);
    assert_eq!(piped.stderr.matches("waits for ").count(), 1, "{}", piped.stderr);
    assert!(piped.stderr.contains(" (until 20") && piped.stderr.contains("Z, in ") && piped.stdout.is_empty(), "{piped:?}");
    let mut command = bed.command(RALPH);
    command.arg("wait");
    let pty = on_a_terminal(command, 80);
    let is_line = |l: &str| l.starts_with("waits for ") && l.contains(" so far · goes on in ") && l.ends_with(" s");
    let first = pty.wait_for(|s| s.lines().next().is_some_and(is_line), SOON).unwrap();
    pty.wait_for(|s| *s != *first && s.lines().next().is_some_and(is_line) && s.lines().count() == 1, SOON).unwrap();
    pty.resize(24, 44);
    pty.wait_for(|s| s.lines().count() == 1 && s.lines().all(|l| l.contains('…') && is_line(l)), SOON).unwrap();
    pty.send("\u{3}");
    assert_eq!(pty.wait_exit(SOON), Some(130));
    assert!(pty.wait_closed(SOON));
    assert_eq!(pty.screen().trim_end(), "error: interrupted; the loop is as it was");
}

/// What others decide is looked at now and then; what a look finds is told when it is something else.
#[test]
fn eyes_5_ralph_wait_says_when_it_looks_again() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    let pty = on_a_terminal(bed.asking_command(&["wait"]), 100);
    let is_line = |l: &str| l.starts_with("waits for ci: ") && l.contains(" · looks again in ");
    pty.wait_for(|s| s.lines().next().is_some_and(|l| is_line(l) && l.contains("build")), SOON).unwrap();
    bed.hub.passed(&head, "build");
    bed.hub.pending(&head, "deploy");
    pty.wait_for(|s| s.lines().count() == 1 && s.lines().all(|l| is_line(l) && l.contains("deploy")), SOON).unwrap();
    bed.hub.passed(&head, "deploy");
    assert_eq!(pty.wait_exit(SOON), Some(0));
    assert!(pty.wait_closed(SOON));
    let screen = pty.screen();
    assert!(!screen.contains("waits for") && !screen.contains("looks again") && screen.contains("ci      pass"), "{screen}");
}
