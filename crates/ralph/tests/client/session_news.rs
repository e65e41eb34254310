//! A loop in the person's own session tells its person what happens (u6), with the real client: the hooks as `ralph init` registers them, a prompt on a real
//! terminal, and a notifier that counts.

use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{Gate, ModelServer, Reply, Tui, Version, or_skip};
use serde_json::Value;
use std::thread;

/// A project that `ralph init` set up, with a notifier that keeps what it is told.
fn told(version: Version) -> Result<Bed, ralph_testkit::Skip> {
    let bed = Bed::with_init(version, "--project")?;
    bed.project.write("ralph.toml", "[notify]\ncommand = \"cat >> .git/news; echo >> .git/news\"\n");
    bed.ralph_ok(&["trust", "--yes"]);
    Ok(bed)
}

/// What the notifier was told, in a word each.
fn news(bed: &Bed) -> Vec<String> {
    let text = std::fs::read_to_string(bed.project.path(".git/news")).unwrap_or_default();
    let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.map(|news| news["how"].as_str().unwrap_or_default().to_owned()).collect()
}

fn status(bed: &Bed) -> Value {
    let all: Value = serde_json::from_str(&bed.ralph_ok(&["status", "--json"])).unwrap();
    all["loops"][0].clone()
}

/// The client in the mode in which it asks.
fn open_asking(bed: &Bed, server: &ModelServer) -> Tui {
    let run = bed.client.interactive(&bed.project, server).env("PATH", &bed.path);
    run.args(["--permission-mode", "default"]).size(50, 150).start()
}

/// A prompt in the middle of a loop is told once; views say since when; the tool that was allowed runs, and views say that, too; the end is told once.
fn u6_a_permission_prompt_reaches_the_person(version: Version) {
    let bed = or_skip!(told(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let waits = Reply::bash("touch asked; while [ ! -e go ]; do sleep 0.1; done").delay(PACE);
    let server = ModelServer::scripted([round(1), waits, claim(2), round(3)]);
    let tui = open_asking(&bed, &server);
    tui.submit("begin");
    sees(&tui, "Do you want to");
    wait_until("the notification", || !news(&bed).is_empty());
    thread::sleep(QUIET);
    assert_eq!(news(&bed), ["permission"]);
    assert_eq!(status(&bed)["waits"]["by"], "person");
    let shown = bed.ralph_ok(&["status"]);
    assert!(shown.contains("for your permission since"), "{shown}");
    assert!(!bed.project.exists("asked"));
    tui.pty.send("\r");
    wait_until("the tool runs", || bed.project.exists("asked"));
    wait_until("the views say so", || status(&bed)["waits"].is_null());
    assert_eq!(status(&bed)["status"], "active");
    bed.project.write("go", "");
    sees(&tui, "Ralph: complete after 2 iterations");
    wait_until("the end is told", || news(&bed).len() > 1);
    thread::sleep(QUIET);
    assert_eq!(news(&bed), ["permission", "complete"]);
    assert_eq!(bed.logged(&["event=Notification", "code=permission.asked"]), 1);
}
both!(u6_a_permission_prompt_reaches_the_person);

/// Esc fires no hook: the views say "interrupted" all the same.
fn u6_an_interrupt_is_seen(version: Version) {
    let bed = or_skip!(told(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let _opens = Opens(&gate);
    let server = ModelServer::scripted([round(1), say("half of this and the rest").hang(&gate), say("x")]);
    let tui = open_asking(&bed, &server);
    tui.submit("begin");
    assert!(gate.wait_reached(SOON));
    tui.expect_text("esc to interrupt", SOON);
    assert!(status(&bed)["interrupted"].is_null());
    tui.escape();
    tui.expect_text("Interrupted", SOON);
    wait_until("the views say so", || status(&bed)["interrupted"].is_string());
    assert!(bed.ralph_ok(&["status"]).lines().next().unwrap().ends_with("  interrupted"));
    assert_eq!(news(&bed), Vec::<String>::new(), "the person who did it knows");
}
both!(u6_an_interrupt_is_seen);

/// In print mode the process ends soon after its last hook: the notification is sent all the same, once, and the limit is told.
fn u6_an_end_in_print_mode_is_told_once(version: Version) {
    let bed = or_skip!(told(version));
    bed.ralph_ok(&["start", "Make it work.", "--completion-promise", "DONE", "--max-iterations", "2"]);
    let server = ModelServer::scripted([round(1), round(2), round(3)]);
    bed.run(&server, "begin");
    wait_until("the end is told", || !news(&bed).is_empty());
    thread::sleep(QUIET);
    assert_eq!(news(&bed), ["capped"]);
}
both!(u6_an_end_in_print_mode_is_told_once);
