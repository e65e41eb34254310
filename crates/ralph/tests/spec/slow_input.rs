//! Input that is slow, endless, huge or none: the hook answers within a bounded time, and says what it could not read (t14, t24).

use std::{
    fs,
    io::Write,
    os::unix::process::CommandExt,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use crate::common::{Answer, Bed, LOOP, ME, PROMPT, RALPH, loop_text, run};

/// Generous, and far below what an unbounded read would take: the hook's own bounds are some seconds.
const BOUND: Duration = Duration::from_mins(1);

fn armed() -> Bed {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    bed
}

/// Starts the hook and says this, without closing its standard input.
fn open_ended(bed: &Bed, said: &[u8]) -> Child {
    let mut command = bed.stop("Working.").command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(said).unwrap();
    child
}

/// What it answered while its standard input was open.
fn answer_of(mut child: Child) -> Answer {
    let stdin = child.stdin.take();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < BOUND, "the hook waits for the end of its input");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stdin);
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), out.stderr.as_slice()), (Some(0), &b""[..]));
    Answer::of_stdout(&String::from_utf8(out.stdout).unwrap())
}

/// t14: as soon as the object is complete, whatever the pipe does then.
#[test]
fn t14_an_event_is_answered_though_its_pipe_stays_open() {
    for (before, after) in [("", ""), ("\u{feff} \n", "\n \n"), ("", "\n{\"hook_event_name\": \"SessionEnd\"}")] {
        let bed = armed();
        let event = format!("{before}{}{after}", bed.stop("Working.").json());
        assert!(answer_of(open_ended(&bed, event.as_bytes())).blocks(), "{event}");
        assert_eq!(bed.iteration(), 2);
    }
    // In pieces, and with an answer to each only at the end.
    let bed = armed();
    let event = bed.stop("Working, with a \\ and a \" and a }.").json();
    let mut child = open_ended(&bed, b"");
    for part in event.as_bytes().chunks(7) {
        child.stdin.as_mut().unwrap().write_all(part).unwrap();
    }
    assert!(answer_of(child).blocks());
}

/// t14: half an event, and then nothing. The stop is allowed, the loop stays, and the person hears what the matter is.
#[test]
fn t14_who_falls_silent_is_told_so_and_the_loop_stays() {
    let bed = armed();
    let event = bed.stop("Working.").json();
    let answer = answer_of(open_ended(&bed, &event.as_bytes()[..event.len() / 2]));
    let line = answer.line();
    assert!(line.starts_with("Ralph: the hook's input is not a JSON event (") && line.contains("nothing more came for 10 s"), "{line}");
    assert_eq!((bed.iteration(), answer.blocks()), (1, false));
}

/// t14: a turn without words, and a transcript in which another session claims to be done.
#[test]
fn t14_another_sessions_claim_is_not_this_ones() {
    let line = |session: &str| {
        format!(
            "{{\"type\":\"user\",\"sessionId\":\"{session}\",\"message\":{{\"role\":\"user\",\"content\":\"go\"}}}}\n\
             {{\"type\":\"assistant\",\"sessionId\":\"{session}\",\"message\":{{\"id\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"All tests pass.\\n\\n<promise>DONE</promise>\"}}]}}}}\n"
        )
    };
    for (session, ends) in [("somebody-else", false), (ME, true)] {
        let bed = armed();
        fs::create_dir_all(bed.transcript_path().parent().unwrap()).unwrap();
        fs::write(bed.transcript_path(), line(session)).unwrap();
        let answer = bed.stop("").no_message().send();
        assert_eq!((answer.blocks(), bed.path(LOOP).exists()), (!ends, !ends), "{session}: {answer:?}");
    }
}

/// t24: transcripts that nobody wrote. Each is answered as a stop of which the transcript tells nothing.
#[test]
fn t24_a_transcript_of_any_size_and_kind_holds_nobody_up() {
    let blank = || vec![b'\n'; 100_000_000];
    let short = || b"\"user\"\n".repeat(6_000_000);
    let long = || [b"{\"type\":\"assistant\",\"x\":\"".to_vec(), vec![b'x'; 60_000_000], b"\"}\n".to_vec()].concat();
    let deep = || [vec![b'['; 5_000_000], b"\"user\"\n".to_vec()].concat();
    for (what, bytes) in [("blank lines", blank()), ("short lines", short()), ("a long line", long()), ("deep", deep())] {
        let bed = armed();
        fs::create_dir_all(bed.transcript_path().parent().unwrap()).unwrap();
        fs::write(bed.transcript_path(), bytes).unwrap();
        let begun = Instant::now();
        bed.stop("Working.").send().blocks_with(PROMPT);
        assert!(begun.elapsed() < BOUND, "{what}: {:?}", begun.elapsed());
    }
    let bed = armed();
    fs::create_dir_all(bed.transcript_path().parent().unwrap()).unwrap();
    fs::File::create(bed.transcript_path()).unwrap().set_len(1 << 40).unwrap();
    bed.stop("Working.").send().blocks_with(PROMPT);
    for odd in ["/dev/zero", "/dev/tty", "/proc/self/mem"] {
        bed.stop("Working on it.").field("transcript_path", odd).send().blocks_with(PROMPT);
        crate::common::tick();
    }
    let fifo = bed.path("fifo");
    assert_eq!(run(bed.command("mkfifo").arg(&fifo), b"").code, Some(0));
    bed.stop("Still working.").field("transcript_path", fifo.to_str().unwrap()).send().blocks_with(PROMPT);
}

/// t24: blank and broken lines of a journal cost one line on the screen, and no time.
#[test]
fn t24_the_log_of_a_broken_journal_is_short() {
    let bed = armed();
    bed.stop("Working.").send();
    let journal = fs::read_dir(bed.path(".ralph/journal")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&journal).unwrap();
    let shown = bed.ralph_ok(&["log"]);
    fs::write(&journal, [vec![b'\n'; 30_000_000], b"junk\n".repeat(200_000), whole].concat()).unwrap();
    let begun = Instant::now();
    assert_eq!(bed.ralph_ok(&["log"]), format!("(200000 lines that cannot be read)\n{shown}"));
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    bed.ralph_ok(&["status"]);
    bed.stop("Working on.").send().blocks_with(PROMPT);
}

/// t24: a limit on the size of files is an error like a full disk: the stop is allowed, and the person is told.
#[test]
fn t24_a_limit_on_files_is_told_and_kills_nobody() {
    let bed = armed();
    bed.stop("Working.").send().blocks_with(PROMPT);
    let before = fs::read_to_string(bed.path(LOOP)).unwrap();
    let event = bed.stop("Working on.");
    let mut command = bed.command("bash");
    command.args(["-c", "ulimit -f 0; exec \"$0\" hook claude", RALPH]).envs(event.command().get_envs().filter_map(|(k, v)| Some((k, v?))));
    command.arg0("bash");
    let out = run(&mut command, event.json().as_bytes());
    assert_eq!((out.code, out.signal), (Some(0), None), "{out:?}");
    let answer = Answer::of_stdout(&out.stdout);
    assert!(!answer.blocks() && answer.line().contains("File too large"), "{answer:?}");
    assert_eq!(fs::read_to_string(bed.path(LOOP)).unwrap(), before, "the loop is kept");
    bed.stop("And on.").send().blocks_with(PROMPT);
}
