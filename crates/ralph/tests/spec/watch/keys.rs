//! What keys do: the same as the commands, and only for a person.

use ralph_testkit::pty::Pty;

use super::{command, quits, shows, shows_that, watch};
use crate::common::{Bed, LOOP};

/// A loop in an agent's own session that has had a round.
fn bed() -> Bed {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    bed
}

#[test]
fn eyes_1_keys_pause_resume_steer_and_cancel_as_the_commands_do() {
    let bed = bed();
    let pty = watch(&bed, &[]);
    shows(&pty, "p pause");
    pty.send("p");
    shows(&pty, "Ralph loop is paused at iteration 2 of 9.");
    assert_eq!(bed.value("active"), "false");
    shows(&pty, "r resume");
    pty.send("r");
    shows(&pty, "is active again at iteration 2 of 9.");
    assert_eq!(bed.value("active"), "true");
    // Typed, with wide characters, and pasted, with line breaks that send nothing.
    pty.send("s");
    shows(&pty, "Note:");
    pty.send("Lass das 世界\u{1b}[200~ in Ruhe\r\nbitte \u{1b}[201~ab\u{7f}\u{7f}");
    shows(&pty, "Note: Lass das 世界 in Ruhe bitte");
    pty.send("\r");
    shows(&pty, "Note 1 is left for the agent");
    shows(&pty, "note 1 waits for the next prompt: Lass das 世界 in Ruhe bitte");
    assert_eq!(bed.status()["notes"][0]["text"], "Lass das 世界 in Ruhe bitte");
    pty.send("s");
    shows(&pty, "Note:");
    pty.send("never mind\u{1b}");
    shows(&pty, "no note was left");
    // Nothing ends by one key.
    pty.send("c");
    shows(&pty, "? y: yes, any other key: no");
    pty.send("n");
    shows(&pty, "nothing was cancelled");
    assert!(bed.exists(LOOP));
    pty.send("c");
    shows(&pty, "? y: yes, any other key: no");
    pty.send("y");
    shows(&pty, "Ralph loop cancelled at iteration 2");
    // u7: one advice, and not another one in the line of the key.
    let screen = shows(&pty, "  cancelled");
    assert!(screen.matches("brings it back").count() == 1, "{screen}");
    assert!(!bed.exists(LOOP));
    for key in ["p", "s", "c"] {
        pty.send(key);
        shows(&pty, "it has ended: r brings it back");
        pty.send("ll");
        shows(&pty, "l log  r resume");
    }
    pty.send("x");
    shows(&pty, "no key of this screen: ? shows the keys");
    pty.send("?");
    shows(&pty, "cancel it, after a question");
    pty.send("x");
    shows(&pty, "`ralph resume` (or r) brings it back");
    quits(&pty);
}

/// In an agent's shell the screen can be looked at, and nothing else.
#[test]
fn eyes_1_an_agent_cannot_act_through_the_screen() {
    let bed = bed();
    let before = bed.tree_but_log();
    let mut command = command(&bed, &[]);
    command.env("CLAUDECODE", "1");
    let pty = Pty::spawn(command, 24, 80);
    shows(&pty, "p pause");
    for key in ["p", "c", "s", "r"] {
        pty.send(key);
        shows(&pty, "this is an agent's shell (CLAUDECODE is set)");
        pty.send("l");
        shows(&pty, "l back");
        pty.send("l");
        shows(&pty, "p pause");
    }
    quits(&pty);
    assert_eq!(bed.tree_but_log(), before, "looking changes nothing");
}

/// The log is the one of `ralph log`, and words can be looked for in it; loops are switched, and chosen from a list.
#[test]
fn eyes_1_the_log_scrolls_and_loops_are_switched() {
    let bed = Bed::new();
    super::story::paused(&bed, 40);
    bed.ralph_ok(&["start", "Write the docs", "--name", "docs", "--endless"]);
    let pty = watch(&bed, &["main"]);
    shows(&pty, "task Make the importer");
    shows(&pty, " 1 main");
    pty.send("l");
    shows_that(&pty, "the end of the log", |screen| screen.contains("follows the end") && screen.contains("paused by hand"));
    pty.send("\u{1b}[5~");
    shows(&pty, " of 42");
    pty.send("/stop 7 \r");
    shows(&pty, " stop 7 ");
    pty.send("n");
    shows(&pty, "found nothing more above");
    pty.send("\u{1b}[F");
    shows(&pty, "follows the end");
    pty.send("l\t");
    shows(&pty, "task Write the docs");
    pty.send("1");
    shows(&pty, "task Make the importer");
    pty.send("\u{7f}");
    shows(&pty, "2 loops");
    pty.send("\u{1b}[B\r");
    shows(&pty, "task Write the docs");
    quits(&pty);
}
