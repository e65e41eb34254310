//! Recorded logs and transcripts of both clients, as they grow.

use std::fs;

use super::*;
use crate::hosts::Host;
use crate::sys::temp_dir::Scratch;

fn recorded(path: &str) -> Vec<u8> {
    fs::read(format!("{}/tests/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

struct Bed {
    folder: Scratch,
}

impl Bed {
    fn new() -> Self {
        Bed { folder: Scratch::create("ralph-doing-", false).unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("file.jsonl")
    }

    fn add(&self, bytes: &[u8]) {
        files::append(&self.path(), bytes).unwrap();
    }
}

fn words(activity: Option<&Activity>) -> String {
    match activity.map(|activity| &activity.heard) {
        Some(Heard::Tool { name, what, .. }) => format!("{name} {what}"),
        Some(Heard::Text { text, .. } | Heard::Line { text }) => text.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn eyes_1_a_round_log_tells_what_the_agent_does_now() {
    for (version, does) in [("2.1.197", "Bash sleep 300.747"), ("2.1.325", "Bash timeout 300.937 tail -f /dev/null")] {
        let bed = Bed::new();
        let mut doing = Doing::new(Source::Log(Host::ALL[0], bed.path()));
        assert!(!doing.look() && doing.now().is_none() && doing.used().is_none(), "the log is not there yet");
        bed.add(b"$ claude -p --output-format stream-json\n");
        bed.add(&recorded(&format!("streams/{version}-killed.jsonl")));
        assert!(doing.look());
        assert_eq!(words(doing.now()), does);
        assert!(doing.is_in_a_call() && doing.now().unwrap().at.is_some());
        let used = doing.used().unwrap();
        assert_eq!((used.window, used.is_whole), (Some(1_000_000), true));
        assert!(used.context.unwrap() > 0 && used.usd_micros > 0);
        assert!(!doing.look(), "nothing is new");
    }
}

#[test]
fn eyes_1_subagents_and_the_end_of_a_session_are_heard() {
    for version in ["2.1.197", "2.1.325"] {
        let bed = Bed::new();
        let mut doing = Doing::new(Source::Log(Host::ALL[0], bed.path()));
        let all = recorded(&format!("streams/{version}-subagent.jsonl"));
        // In pieces, as pipes and disks have it.
        for piece in all.chunks(777) {
            bed.add(piece);
            doing.look();
        }
        assert_eq!(words(doing.now()), "main 1");
        assert!(!doing.is_in_a_call());
        let feed: Vec<String> = doing.feed().map(|activity| words(Some(activity))).collect();
        assert!(feed.iter().any(|line| line == "Bash echo sub"), "{feed:?}");
        let whole = {
            let mut doing = Doing::new(Source::Log(Host::ALL[0], bed.path()));
            doing.look();
            doing.used()
        };
        assert_eq!(doing.used(), whole, "however it was read");
    }
}

#[test]
fn eyes_1_a_plain_agent_is_heard_by_its_last_line() {
    let bed = Bed::new();
    let mut doing = Doing::new(Source::Plain(bed.path()));
    bed.add(b"$ ./agent.sh\nreading\n\x1b[31mfixing \x1b]0;evil\x07tests\x1b[0m\nhalf a li");
    doing.look();
    assert_eq!(words(doing.now()), "fixing tests");
    assert_eq!(doing.feed().len(), 2);
    assert_eq!(doing.used(), None);
    bed.add(b"ne\n");
    assert!(doing.look());
    assert_eq!(words(doing.now()), "half a line");
}

#[test]
fn eyes_1_a_transcript_tells_the_same_in_hook_mode() {
    let bed = Bed::new();
    bed.add(&recorded("transcripts/2.1.325-subagent.jsonl"));
    let mut doing = Doing::new(Source::Transcript(bed.path()));
    doing.look();
    let now = doing.now().unwrap();
    assert_eq!((words(Some(now)), now.at), ("second end".to_owned(), ralph_core::text::time::parse("2026-11-15T23:25:43.204Z")));
    let feed: Vec<String> = doing.feed().map(|activity| words(Some(activity))).collect();
    assert!(feed.contains(&"Bash touch a1".to_owned()) && feed.contains(&"first end".to_owned()), "{feed:?}");
    assert!(doing.feed().any(|activity| matches!(activity.heard, Heard::ToolEnded { failed: true, .. })));
    let used = doing.used().unwrap();
    assert_eq!((used.tokens.total(), used.window), (550, Some(1_000_000)), "five messages");
    bed.add(&recorded("transcripts/2.1.325-compacted.jsonl"));
    doing.look();
    assert_eq!(doing.used().unwrap().context, None, "made shorter");
}

#[test]
fn eyes_1_of_a_large_transcript_only_the_end_is_read() {
    let bed = Bed::new();
    let all = recorded("transcripts/2.1.325-subagent.jsonl");
    let note = format!(
        "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"content\":\"{}\"}}]}}}}\n",
        "x".repeat(5 << 20)
    );
    // A hole of 1 GB that takes no room on the disk.
    let file = fs::File::create(bed.path()).unwrap();
    file.set_len(1 << 30).unwrap();
    bed.add(b"\n");
    bed.add(&all);
    bed.add(note.as_bytes());
    let mut doing = Doing::new(Source::Transcript(bed.path()));
    doing.look();
    assert_eq!(words(doing.now()), "second end", "behind a result of 5 MB");
    assert!(!doing.used().unwrap().is_whole);
    bed.add(&all);
    assert!(doing.look());
    // What another file holds in its place is read anew, and what was heard before stays in the feed.
    let feed = doing.feed().len();
    fs::remove_file(bed.path()).unwrap();
    doing.look();
    bed.add(&all);
    assert!(doing.look() && doing.feed().len() > feed);
    assert!(doing.used().unwrap().is_whole);
}

#[test]
fn eyes_1_a_feed_is_bounded_and_goes_on_with_the_next_round() {
    let bed = Bed::new();
    let mut doing = Doing::new(Source::Plain(bed.path()));
    let lines: Vec<String> = (0..100_000).map(|n| format!("line {n}\n")).collect();
    bed.add(lines.concat().as_bytes());
    doing.look();
    assert_eq!(doing.feed().len(), KEPT);
    assert_eq!(words(doing.now()), "line 99999");
    let next = bed.folder.path().join("next.jsonl");
    files::append(&next, b"$ agent\nnext\n").unwrap();
    doing.turn_to(Source::Plain(next.clone()));
    doing.look();
    let end: Vec<String> = doing.feed().rev().take(2).map(|activity| words(Some(activity))).collect();
    assert_eq!(end, ["next", "line 99999"]);
    assert_eq!((doing.feed().len(), doing.path()), (KEPT, next.as_path()));
}

#[test]
fn eyes_1_only_logs_of_iterations_are_opened() {
    let project = Project::at("/project");
    let of = |log: &str| Source::of_log(&project, "claude", log);
    assert_eq!(
        of(".ralph/rounds/main-1/0001-1.jsonl"),
        Some(Source::Log(Host::ALL[0], "/project/.ralph/rounds/main-1/0001-1.jsonl".into()))
    );
    for log in ["/etc/passwd", ".ralph/rounds/../../secret", "notes.txt", ""] {
        assert_eq!(of(log), None, "{log}");
    }
    assert_eq!(Source::of_session("../../../etc/passwd"), None);
}
