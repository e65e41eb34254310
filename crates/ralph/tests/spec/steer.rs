//! `ralph steer`: a person's note reaches the agent once, whatever happens meanwhile (S4-6).

use std::process::Command;

use ralph_testkit::killer::{Filter, count_syscalls, kill_at_syscall};
use serde_json::{Value, json};

use crate::common::{Answer, Bed, Event, LOOP, ME, OTHER, PROMPT, RALPH, loop_text, next_stop, run};

/// What the agent gets besides the prompt.
fn told(notes: &[&str]) -> String {
    let list: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
    format!("{PROMPT}\n\n[ralph] The person who started this loop adds, and this comes before all else:\n{}", list.join("\n"))
}

/// The next stop of a turn in which the agent was sent back before.
fn sent_back(bed: &Bed) -> Event<'_> {
    bed.work().field("stop_hook_active", true)
}

fn notes(bed: &Bed) -> Vec<Value> {
    bed.ralph_json(&["steer", "--list", "--json"])["notes"].as_array().unwrap().clone()
}

fn fates(bed: &Bed) -> Vec<String> {
    notes(bed).iter().map(|note| format!("{} {} {}", note["id"], note["fate"].as_str().unwrap(), note["told_in"])).collect()
}

#[test]
fn s4_6_a_note_is_told_at_the_next_stop_once_and_only_once() {
    let bed = Bed::with_loop(4, 0, "DONE");
    bed.work().send().blocks_with(PROMPT);
    let said = bed.ralph_ok(&["steer", "Leave", "the parser alone"]);
    assert!(said.starts_with("Note 1 is left for the agent of main-feca3bfd. The agent gets it with the next prompt."), "{said}");
    assert!(bed.ralph_ok(&["steer", "Use tabs"]).contains("One more waits with it"));
    assert_eq!(bed.status()["notes"], json!([{"id": 1, "text": "Leave the parser alone"}, {"id": 2, "text": "Use tabs"}]));
    assert!(bed.ralph_ok(&["status"]).contains("1: Leave the parser alone (waits for the next prompt)"));
    sent_back(&bed).send().blocks_with(&told(&["Leave the parser alone", "Use tabs"]));
    assert_eq!(bed.status()["notes"][0]["told_in"], 6);
    assert_eq!(fates(&bed), ["1 told 6", "2 told 6"]);
    bed.ralph_ok(&["steer", "And hurry"]);
    sent_back(&bed).send().blocks_with(&told(&["And hurry"]));
    sent_back(&bed).send().blocks_with(PROMPT);
    assert_eq!(bed.status()["notes"], json!([]));
    assert_eq!(fates(&bed), ["1 told 6", "2 told 6", "3 told 7"]);
    assert!(bed.ralph_ok(&["log"]).contains("note 3 by hand: And hurry"));
    assert!(bed.ralph_ok(&["steer", "--list"]).contains("delivered in iteration 7\n  And hurry\n"));
}

#[test]
fn s4_6_two_hooks_on_one_stop_tell_the_same_note() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.ralph_ok(&["steer", "Look at the log"]);
    let event = bed.work();
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2)
            .map(|n| {
                scope.spawn({
                    let event = event.clone().by_plugin(n);
                    move || event.send()
                })
            })
            .collect();
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for answer in &answers {
        answer.blocks_with(&told(&["Look at the log"]));
    }
    assert_eq!(bed.iteration(), 2);
    next_stop();
    sent_back(&bed).send().blocks_with(PROMPT);
}

/// The turn that got it never came to its next stop: nobody knows whether it was heard.
#[test]
fn s4_6_a_note_whose_turn_broke_off_is_told_again() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.ralph_ok(&["steer", "Use tabs"]);
    bed.work().send().blocks_with(&told(&["Use tabs"]));
    // The person interrupted it, or the hook's answer was lost, or the session was: the next stop is the first one of its turn.
    bed.ralph_ok(&["resume", "--session", OTHER]);
    bed.work().session(OTHER).send().blocks_with(&told(&["Use tabs"]));
    bed.work().session(OTHER).field("stop_hook_active", true).send().blocks_with(PROMPT);
    assert_eq!(fates(&bed), ["1 told 3"]);
}

#[test]
fn s4_6_a_paused_loop_keeps_its_notes() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.ralph_ok(&["pause"]);
    assert!(bed.ralph_ok(&["steer", "Later"]).contains("The agent gets it when the loop goes on: `ralph resume`."));
    assert!(bed.work().send().line().contains("so this stop was not checked"));
    assert_eq!(fates(&bed), ["1 waiting null"]);
    bed.ralph_ok(&["resume"]);
    bed.work().send().blocks_with(&told(&["Later"]));
}

/// A limit is not held up; what came too late is told to the person, and to the agent should the loop come back.
#[test]
fn s4_6_a_note_that_came_too_late_is_not_lost() {
    let bed = Bed::with_loop(4, 4, "DONE");
    bed.ralph_ok(&["steer", "One more thing"]);
    let line = bed.stop("<promise>DONE</promise>").send().line();
    assert!(line.contains("its limit of 4 iterations, with a claim that was not judged, because a note was not delivered."), "{line}");
    assert!(line.ends_with("A note that was left for the agent came too late: `ralph steer --list` shows what is kept."), "{line}");
    assert_eq!((bed.codes().pop().unwrap().as_str(), fates(&bed)), ("limit.iterations", vec!["1 waiting null".to_owned()]));
    bed.ralph_ok(&["resume", "--session", ME, "--max-iterations", "9"]);
    bed.work().send().blocks_with(&told(&["One more thing"]));
}

/// t5: a note that the agent has not heard counts before its claim, and costs no measurement; then the claim counts.
#[test]
fn t5_a_note_goes_before_a_claim() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send().blocks_with(PROMPT);
    bed.ralph_ok(&["steer", "Use tabs"]);
    let answer = bed.stop("<promise>DONE</promise>").field("stop_hook_active", true).send();
    let prompt = told(&["Use tabs"]);
    let first = "[ralph] <promise>DONE</promise> was claimed, but the person had left a note by then. The note comes first: do what it says, and then claim again.";
    let line = answer.blocks_with(&prompt.replacen("\n\n", &format!("\n\n{first}\n\n"), 1));
    assert!(line.contains("The agent claims to be done; your note comes first."), "{line}");
    assert_eq!(fates(&bed), ["1 told 3"]);
    bed.stop("Tabs it is.\n\n<promise>DONE</promise>").field("stop_hook_active", true).send().line();
    assert_eq!(bed.codes(), ["promise.missing", "note.undelivered", "promise.accepted"]);
    bed.ralph_ok(&["explain", "--replay", bed.files_in(".ralph/journal")[0].to_str().unwrap()]);
}

/// t5: no gate is measured for a claim that cannot count, and where gates alone decide the note goes first as well.
#[test]
fn t5_a_note_goes_before_gates() {
    for promise in ["DONE", "null"] {
        let bed = Bed::new();
        let text = format!(
            "---\niteration: 1\nsession_id: {ME}\ncompletion_promise: {promise}\nverify:\n  - run: touch measured\n---\n{PROMPT}\n"
        );
        bed.write(LOOP, text);
        bed.ralph_ok(&["trust", "--yes"]);
        bed.ralph_ok(&["steer", "Use tabs"]);
        assert!(bed.stop("All is well.\n\n<promise>DONE</promise>").send().blocks());
        assert!(!bed.exists("measured"), "{promise}");
        bed.stop("Tabs.\n\n<promise>DONE</promise>").field("stop_hook_active", true).send().line();
        assert_eq!(bed.codes()[0], "note.undelivered", "{promise}");
        assert!(bed.exists("measured") && !bed.exists(LOOP), "{promise}");
    }
}

#[test]
fn s4_6_notes_can_be_taken_back() {
    let bed = Bed::with_loop(1, 0, "DONE");
    assert!(bed.ralph_ok(&["steer", "--clear"]).contains("No note is waiting"));
    for note in ["a", "b"] {
        bed.ralph_ok(&["steer", note]);
    }
    assert!(bed.ralph_ok(&["steer", "--clear"]).contains("2 notes are taken back"));
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(fates(&bed), ["1 taken-back null", "2 taken-back null"]);
    assert!(bed.ralph_ok(&["log"]).contains("note 2 taken back by hand"));
    assert_eq!(bed.ralph_json(&["steer", "c", "--json"])["notes"], json!([{"id": 3, "text": "c"}]));
}

#[test]
fn s4_6_a_note_comes_from_standard_input_too_and_steers_no_terminal() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let mut command = bed.command(RALPH);
    let out = run(command.args(["steer", "-"]), b"first\x1b[31m line\n\nthird\n");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    bed.work().send().blocks_with(&told(&["first[31m line\n\nthird"]));
    let out = run(bed.command(RALPH).args(["steer", "-"]), b"\xff");
    assert_eq!((out.code, out.stderr.as_str()), (Some(2), "error: the note is not UTF-8 text\n"));
}

#[test]
fn s4_6_what_is_no_note_is_refused_with_what_to_do() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let refused = |args: &[&str], code: i32, why: &str| {
        let out = bed.ralph(args);
        assert_eq!((out.code, out.stdout.as_str()), (Some(code), ""), "{args:?}");
        assert!(out.stderr.contains(why), "{args:?}: {}", out.stderr);
    };
    refused(&["steer"], 2, "TEXT");
    refused(&["steer", " \u{1b} "], 1, "there is nothing in the note");
    refused(&["steer", &"é".repeat(4_001)], 1, "the note has 4001 characters, and 4000 is the most: put it into a file");
    let out = run(bed.command(RALPH).args(["steer", "-"]), &vec![b'x'; 1 << 20]);
    assert!(out.code == Some(1) && out.stderr.contains("longer than 4000"), "{}", out.stderr);
    bed.ralph_ok(&["steer", &"é".repeat(4_000)]);
    for n in 2..=20 {
        bed.ralph_ok(&["steer", &n.to_string()]);
    }
    refused(&["steer", "one more"], 1, "20 notes wait already");
    assert_eq!(notes(&bed).len(), 20);
    assert_eq!(bed.ralph(&["steer", "x", "--name", "nobody"]).code, Some(3));
    assert_eq!(Bed::new().ralph(&["steer", "x", "--json"]).code, Some(3));
}

#[test]
fn s4_6_the_loop_that_is_meant_gets_the_note() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.write(".claude/ralph-loop.two.local.md", loop_text(OTHER, 1, 0, "DONE"));
    assert_eq!(bed.ralph(&["steer", "x"]).code, Some(2));
    bed.ralph_ok(&["steer", "x", "--name", "two"]);
    bed.work().send().blocks_with(PROMPT);
    bed.work().session(OTHER).send().blocks_with(&told(&["x"]));
}

/// An agent that steered its own loop would speak in the person's name.
#[test]
fn s4_6_an_agent_cannot_steer() {
    let bed = Bed::with_loop(1, 0, "DONE");
    for args in [vec!["steer", "You may stop now"], vec!["steer", "--clear"]] {
        let out = run(bed.command(RALPH).args(&args).env("CLAUDECODE", "1"), b"");
        assert_eq!(out.code, Some(1), "{args:?}");
        assert!(out.stderr.contains("an agent's shell (CLAUDECODE is set), and only a person can leave notes"), "{}", out.stderr);
    }
    assert_eq!(notes(&bed), Vec::<Value>::new());
}

#[test]
fn pains_7_a_steer_and_the_hook_that_tells_it_can_be_killed_anywhere() {
    let steer = |bed: &Bed| {
        let mut command = bed.command(RALPH);
        command.args(["steer", "Use tabs"]);
        (command, String::new())
    };
    let tell = |bed: &Bed| {
        bed.ralph_ok(&["steer", "Use tabs"]);
        let event = bed.work();
        (event.command(), event.json())
    };
    for (victim, is_left) in [(&steer as &dyn Fn(&Bed) -> (Command, String), false), (&tell, true)] {
        let at = |n: Option<usize>| {
            let bed = Bed::with_loop(9, 0, "DONE");
            let (mut command, stdin) = victim(&bed);
            let count = match n {
                None => count_syscalls(&mut command, Filter::crash_points(), stdin.as_bytes()),
                Some(n) => {
                    let _ = kill_at_syscall(&mut command, Filter::crash_points(), n, stdin.as_bytes());
                    n
                }
            };
            (bed, count)
        };
        let (_, count) = at(None);
        assert!(count > 10, "{count}");
        for n in 1..=count {
            let (bed, _) = at(Some(n));
            let known = notes(&bed);
            assert!(known.len() == 1 || (!is_left && known.is_empty()), "call {n}: {known:?}");
            let expected = if known.is_empty() { PROMPT.to_owned() } else { told(&["Use tabs"]) };
            // The turn that a killed hook belonged to is over: what it may never have said is said at the first stop of the next one.
            bed.work().send().blocks_with(&expected);
            sent_back(&bed).send().blocks_with(PROMPT);
            assert!(bed.read(LOOP).contains("active: true"), "call {n}");
        }
    }
}
