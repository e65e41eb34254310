//! What happens meanwhile: rounds, endings, broken lines, journals that are cut, replaced or removed.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
};

use serde_json::json;

use super::{quits, shows, shows_that, story, watch};
use crate::{
    common::{Bed, LOOP, ME},
    run::Runs,
};

fn append(bed: &Bed, text: &str) {
    let journal = bed.files_in(".ralph/journal").remove(0);
    OpenOptions::new().append(true).open(journal).unwrap().write_all(text.as_bytes()).unwrap();
}

/// A loop in the agent's own session: its stops, its words and tools from its transcript, a line that cannot be read, and its end.
#[test]
fn eyes_1_a_loop_in_the_agents_session_is_followed_to_its_end() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    let transcript = bed.home().join(".claude/projects/p").join(format!("{ME}.jsonl"));
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    let said = |content: serde_json::Value| {
        let line = json!({"type": "assistant", "timestamp": story::at(story::now()), "message": {"id": "m", "role": "assistant", "model": "claude-sonnet-4-6",
            "content": [content], "usage": {"input_tokens": 9, "output_tokens": 9, "cache_read_input_tokens": 60_000}}});
        OpenOptions::new().create(true).append(true).open(&transcript).unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    };
    said(json!({"type": "text", "text": "I read the parser."}));
    let pty = watch(&bed, &[]);
    let screen = shows(&pty, "I read the parser.");
    assert!(screen.contains("active · session 5e551017"), "{screen}");
    assert!(screen.contains("works · iteration 2 for ") && screen.contains("context    █"), "{screen}");
    said(json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "cargo test --all"}}));
    shows(&pty, "Bash  cargo test --all");
    bed.work().send();
    shows(&pty, "sent back to iteration 3: not claimed yet");
    append(&bed, "{\"v\":1,\"seq\":[[[\u{1b}[2J\n");
    shows(&pty, "1 line of the journal cannot be read");
    bed.stop("All is well.\n\n<promise>DONE</promise>").send();
    let screen = shows(&pty, "✓ main-");
    assert!(
        screen.contains("complete after 3 iterations") && screen.contains("next: `ralph report`") && !screen.contains("ralph diff"),
        "{screen}"
    );
    // u7: another one begins and comes up by itself; the one that ended can be gone back to.
    bed.ralph_ok(&["start", "Write the docs", "--name", "docs", "--endless"]);
    shows_that(&pty, "the new loop", |screen| screen.contains("task Write the docs") && screen.contains(" main "));
    pty.send("\t");
    shows(&pty, "complete after 3 iterations");
    quits(&pty);
}

/// A loop that fresh sessions carry: who carries it, what its agent prints, and what only a look at the process tells.
#[test]
fn eyes_1_a_run_is_followed_to_its_end() {
    let runs = Runs::new("echo 'I look at the tests.'\necho \"$N\" >> work.txt\nwhile [ ! -f \"$OUT/go\" ]; do sleep 0.05; done\n");
    let run = runs.start(&["Go", "--completion-promise", "DONE", "--max-iterations", "3", "--usd", "5"]);
    let pty = {
        // There may be no loop yet: then it is waited for.
        let pty = watch(&runs.bed, &[]);
        shows(&pty, "I look at the tests.");
        pty
    };
    let screen = pty.screen();
    assert!(screen.contains("running in `ralph run` (pid ") && screen.contains("works · iteration 1 for "), "{screen}");
    // A plain command reports no money.
    assert!(screen.contains("not counted yet, limit $5"), "{screen}");
    // Who pauses it lets the round that runs come to its end.
    pty.send("p");
    let screen = shows(&pty, "  paused: this iteration is the last");
    assert!(screen.contains("works · iteration 1 for ") && screen.contains("next: `ralph run` ends after this iteration"), "{screen}");
    let status = runs.bed.ralph_ok(&["status"]);
    assert!(status.contains("paused: this iteration is the last") && !status.contains("run --continue"), "{status}");
    assert!(status.contains("not counted yet (limit $5)"), "{status}");
    fs::write(runs.out("go"), "").unwrap();
    let screen = shows(&pty, "next: `ralph run --continue` goes on");
    assert!(!screen.contains("is the last") && !screen.contains("works · iteration"), "{screen}");
    let (_, said) = run.ends();
    assert!(said.contains("--usd cannot brake it"), "{said}");
    let run = runs.start(&["--continue"]);
    let screen = shows(&pty, "capped");
    assert!(screen.contains("stopped at its limit of 3 iterations"), "{screen}");
    // More of its limit is needed, which no key gives.
    assert!(!screen.contains("r resume"), "{screen}");
    pty.send("r");
    shows(&pty, "it is at its limit: `ralph run --continue --max-iterations 6` goes on");
    quits(&pty);
    assert_eq!(run.ends().0, Some(10));
}

/// Nobody knows what becomes of files. Whatever it is, the screen shows what is there.
#[test]
fn eyes_1_a_journal_may_be_cut_replaced_or_removed_and_no_loop_is_waited_for() {
    let bed = Bed::new();
    let pty = watch(&bed, &[]);
    shows(&pty, "No loop in");
    story::paused(&bed, 11);
    shows(&pty, "11 iterations");
    let journal = bed.files_in(".ralph/journal").remove(0);
    fs::write(&journal, story::journal(4)).unwrap();
    shows(&pty, "4 iterations");
    fs::write(bed.path(".ralph/new"), story::journal(7)).unwrap();
    fs::rename(bed.path(".ralph/new"), &journal).unwrap();
    shows(&pty, "7 iterations");
    fs::remove_dir_all(bed.path(".ralph/journal")).unwrap();
    shows_that(&pty, "no iterations", |screen| !screen.contains("iterations ──") && screen.contains("paused"));
    story::paused(&bed, 9);
    shows(&pty, "9 iterations");
    bed.write(LOOP, format!("---\nactive: maybe\nloop_id: {}\n---\n\nGo\n", story::ID));
    shows(&pty, "the loop file cannot be read");
    fs::remove_file(bed.path(LOOP)).unwrap();
    shows(&pty, "its file is gone");
    quits(&pty);
}
