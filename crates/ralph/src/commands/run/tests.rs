//! What each observer makes of the same run.

use std::{
    cell::Cell,
    io::{self, Write},
    sync::{Arc, Mutex},
};

use ralph_core::{
    gate::{Finding, Kind, Tally, Verdict},
    judge::{
        Code, Decision, Ending, Next, Ruling,
        session_outcome::{Cut, Outcome, Then, Tokens, Trouble, Work},
    },
    text::time::Millis,
};
use ralph_engine::run::events::{End, Heard, Observer, RunEvent};

use super::{lines, printed::Printed, screen::Screen, status::Status, summary::Last};
use crate::term::live_lines::Terminal;

thread_local! {
    /// Each test is a thread, and has its own time.
    static NOW: Cell<Millis> = const { Cell::new(BEGIN) };
}

/// 2026-11-15T09:30:00Z
const BEGIN: Millis = 1_794_735_000_000;
const SESSION: &str = "1a2b3c4d-0000-4000-8000-000000000000";

fn now() -> Millis {
    NOW.get()
}

fn later(ms: Millis) {
    NOW.set(NOW.get() + ms);
}

/// What was written, for the test to read; once it is closed, nobody reads any more.
#[derive(Clone, Default)]
struct Reader {
    read: Arc<Mutex<Vec<u8>>>,
    closed: bool,
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.read.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Reader {
    fn bytes(&self) -> Vec<u8> {
        self.read.lock().unwrap().clone()
    }

    fn text(&self) -> String {
        anstream::adapter::strip_str(&String::from_utf8(self.bytes()).unwrap()).to_string()
    }
}

fn text(text: &str) -> Heard {
    Heard::Text { text: text.to_owned(), of_subagent: false }
}

fn tool(name: &str, what: &str, of_subagent: bool) -> Heard {
    Heard::Tool { name: name.to_owned(), what: what.to_owned(), of_subagent }
}

fn on_event(observer: &dyn Observer, heard: &Heard) {
    observer.on_event(&RunEvent::Agent { heard });
}

fn round(observer: &dyn Observer, iteration: u64, attempt: u64) {
    observer.on_event(&RunEvent::Iteration {
        iteration,
        max_iterations: 10,
        attempt,
        session: SESSION,
        model: Some("opus"),
        item: Some("F2"),
        prompt: "Do it.",
        log: ".ralph/logs/3.log",
        notes: &[4, 5],
    });
}

fn work() -> Work {
    let tokens = Tokens { input: 1_000, output: 500, cache_read: 40_000, cache_written: 0 };
    Work { tool_calls: 2, tokens, usd_micros: 310_000, took_ms: 72_000, context: 50_000, context_window: 200_000, ..Work::default() }
}

fn begin(observer: &dyn Observer) {
    observer.on_event(&RunEvent::Run {
        of_loop: "main-1",
        iteration: 3,
        max_iterations: 10,
        picked_up: Some("iteration 3 was begun and not ended".to_owned()),
        folder: "/p",
        limits: vec!["at most 10 iterations".to_owned()],
    });
    observer.on_event(&RunEvent::Warning { text: "no gate\u{1b}[2J is declared".to_owned() });
}

/// An iteration with all that an agent does in it; the time that it takes passes.
fn works(observer: &dyn Observer) {
    round(observer, 3, 1);
    let session = Heard::Session {
        session: SESSION.to_owned(),
        model: Some("opus-5".to_owned()),
        permission_mode: Some("acceptEdits".to_owned()),
        client: Some("2.1".to_owned()),
    };
    on_event(observer, &session);
    on_event(observer, &Heard::Thinking);
    on_event(observer, &text("I look at the te"));
    on_event(observer, &Heard::Used { tokens: 41_500, usd: Some(0.31), context: 50_000 });
    on_event(observer, &text("sts.\n\nThen "));
    later(12_000);
    on_event(observer, &tool("Bash", "npm test\n  --all", false));
    on_event(observer, &Heard::ToolEnded { failed: true, of_subagent: false });
    on_event(observer, &tool("Read", "src/\u{9b}31ma.rs", true));
    on_event(observer, &Heard::Text { text: "It is there.\n".to_owned(), of_subagent: true });
    on_event(observer, &Heard::Denied { tool: "Bash".to_owned(), what: "curl x".to_owned(), rule: "Bash(curl:*)".to_owned() });
    on_event(observer, &Heard::ToolEnded { failed: true, of_subagent: false });
    on_event(observer, &Heard::Retry { attempt: 2, after_ms: 5_000, status: Some(529) });
    on_event(observer, &Heard::Compacting);
    on_event(observer, &Heard::Line { text: "a plain line".to_owned() });
}

fn is_judged(observer: &dyn Observer) {
    observer.on_event(&RunEvent::Over { iteration: 3, attempt: 1, outcome: &Outcome::Stopped, work: &work(), then: Then::Judge });
    observer.on_event(&RunEvent::Checking { gate: "tests", limit_ms: 120_000, usual_ms: Some(40_000) });
    let features = Finding {
        tally: Some(Tally { done: 3, total: 10, per_session: 0 }),
        ..Finding::new("features", Kind::Features, Verdict::Fail, "7 open")
    };
    let ruling = Ruling { decision: Decision::Block, code: Code::GateFailed, next: Next::GoesOn { iteration: 4 } };
    observer.on_event(&RunEvent::Ruled {
        iteration: 3,
        ruling: &ruling,
        findings: &[Finding::new("tests", Kind::Command, Verdict::Pass, "ok"), features],
        line: Some("Ralph: iteration 4 of 10."),
        spent_ms: 80_000,
        spent_usd: 0.31,
        spent_tokens: 41_500,
    });
    observer.on_event(&RunEvent::Snapshot { name: "refs/ralph/main-1/3", commit: "0123456789abcdef" });
}

fn rests(observer: &dyn Observer) {
    let limit = Outcome::Failed { trouble: Trouble::Limit { until: Some(BEGIN + 600_000), quota: Some("five_hour".to_owned()) } };
    observer.on_event(&RunEvent::Over {
        iteration: 4,
        attempt: 1,
        outcome: &limit,
        work: &Work::default(),
        then: Then::Park { until: BEGIN + 600_000 },
    });
    observer.on_event(&RunEvent::Rests {
        until: "2026-11-15T09:40:00.000Z",
        until_ms: BEGIN + 600_000,
        why: "the 5-hour limit of the account is used up".to_owned(),
    });
}

fn ends(observer: &dyn Observer) {
    observer.on_event(&RunEvent::GoesOn);
    observer.on_event(&RunEvent::Finishing);
    round(observer, 4, 2);
    observer.on_event(&RunEvent::Over {
        iteration: 4,
        attempt: 2,
        outcome: &Outcome::Cut { by: Cut::Silence },
        work: &work(),
        then: Then::Judge,
    });
    let ruling = Ruling { decision: Decision::Allow, code: Code::GatesPassed, next: Next::Ends { ending: Ending::Complete } };
    let line = "Ralph: complete after 4 iterations.";
    let findings = [Finding { skipped: true, ..Finding::new("slow", Kind::Command, Verdict::Unknown, "") }];
    observer.on_event(&RunEvent::Ruled {
        iteration: 4,
        ruling: &ruling,
        findings: &findings,
        line: Some(line),
        spent_ms: 1,
        spent_usd: 0.62,
        spent_tokens: 83_000,
    });
    observer.on_event(&RunEvent::Ended {
        how: End::Complete,
        exit: 0,
        line: line.to_owned(),
        rounds: 2,
        spent_usd: 0.62,
        spent_tokens: 83_000,
        total_usd: 0.62,
        total_tokens: 83_000,
        denied: vec!["Bash(curl:*)".to_owned()],
        allow: "add what you want to allow to permissions.allow in the client's settings",
        doubtful: false,
    });
}

fn play(observer: &dyn Observer) {
    begin(observer);
    works(observer);
    is_judged(observer);
    rests(observer);
    ends(observer);
}

/// S4-6: plain lines in a pipe, each with its time, and nothing that steers a terminal.
#[test]
fn s4_6_a_pipe_gets_plain_lines() {
    let reader = Reader::default();
    play(&lines::printed(Box::new(reader.clone()), now));
    let out = String::from_utf8(reader.bytes()).unwrap();
    let lines: Vec<&str> = out.lines().map(|line| line.strip_prefix("2026-11-15 09:30:").unwrap()).collect();
    assert_eq!(
        lines,
        [
            "00Z loop main-1 in /p",
            "00Z iteration 3 was begun and not ended",
            "00Z at most 10 iterations",
            "00Z warning: no gate[2J is declared",
            "00Z Iteration 3 of 10 · item F2 · opus · with note 4, 5 · session 1a2b3c4d · log .ralph/logs/3.log",
            "00Z opus-5 · permissions acceptEdits · client 2.1",
            "00Z agent: I look at the tests.",
            "12Z agent: Then",
            "12Z tool: Bash  npm test --all",
            "12Z subagent's tool: Read  src/31ma.rs",
            "12Z subagent: It is there.",
            "12Z denied: Bash  curl x; the rule Bash(curl:*) would allow it",
            "12Z the service is retried in 5 s (try 2, status 529)",
            "12Z the client compacts the conversation",
            "12Z agent: a plain line",
            "12Z iteration 3 is over: 2 tools, 42k tokens, $0.31, 1 min 12 s",
            "12Z gate tests runs, about 40 s, for 2 min at most",
            "12Z iteration 3: ✓ tests  ✗ features 3/10 · next is iteration 4",
            "12Z Ralph: iteration 4 of 10.",
            "12Z files kept as refs/ralph/main-1/3",
            "12Z iteration 4 is over: the 5-hour limit of the account is used up (0 s)",
            "12Z waits until 2026-11-15 09:40:00Z",
            "12Z goes on",
            "12Z ends after this iteration, because a person asked for it",
            "12Z Iteration 4 of 10 · try 2 · item F2 · opus · with note 4, 5 · session 1a2b3c4d · log .ralph/logs/3.log",
            "12Z iteration 4 is over: nothing was heard of the agent any more (2 tools, 42k tokens, $0.31, 1 min 12 s)",
            "12Z iteration 4: - slow · complete",
            "12Z ✓ complete · 2 iterations in this run · 83k tokens · $0.62",
            "12Z complete after 4 iterations.",
            "12Z Some calls were denied: Bash(curl:*); add what you want to allow to permissions.allow in the client's settings",
            "12Z `ralph report` shows how it went, `ralph diff` what it changed.",
        ]
    );
}

#[test]
fn s4_6_quiet_is_only_what_was_ruled_and_how_it_ended() {
    let reader = Reader::default();
    play(&Printed::quiet(Box::new(reader.clone())));
    assert_eq!(
        reader.text().lines().collect::<Vec<_>>(),
        [
            "iteration 3: ✓ tests  ✗ features 3/10 · next is iteration 4",
            "iteration 4: - slow · complete",
            "✓ complete · 2 iterations in this run · 83k tokens · $0.62",
            "  complete after 4 iterations.",
        ]
    );
}

/// S4-6: every event is one line of JSON with its name and time.
#[test]
fn s4_6_programs_get_every_event() {
    let reader = Reader::default();
    play(&Printed::json(Box::new(reader.clone()), now));
    let out = String::from_utf8(reader.bytes()).unwrap();
    assert!(!out.contains(['\u{1b}', '\u{9b}']), "{out}");
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let agent = ["agent"; 14];
    let before = ["run", "warning", "round"];
    let after = ["over", "checking", "ruled", "snapshot", "over", "rests", "goes-on", "finishing", "round", "over", "ruled", "ended"];
    assert_eq!(names, [&before[..], &agent[..], &after[..]].concat());
    assert!(lines.iter().all(|line| line["at"].as_str().unwrap().starts_with("2026-11-15T09:30:")));
    assert_eq!(
        lines[5],
        serde_json::json!({"at": "2026-11-15T09:30:00.000Z", "event": "agent", "heard": "text", "text": "I look at the te", "of_subagent": false})
    );
    let ruled = lines.iter().find(|line| line["event"] == "ruled").unwrap();
    assert_eq!((&ruled["ruling"]["code"], &ruled["ruling"]["next"]["iteration"]), (&"gate.failed".into(), &4.into()));
    assert_eq!((&ruled["findings"][1]["verdict"], &ruled["spent_tokens"]), (&"fail".into(), &41_500.into()));
    let mut schemas = boon::Schemas::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/run-events.schema.json");
    let schema = boon::Compiler::new().compile(path, &mut schemas).unwrap();
    for line in &lines {
        schemas.validate(line, schema).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    let mut unknown = lines[0].clone();
    unknown["event"] = "other".into();
    assert!(schemas.validate(&unknown, schema).is_err());
    let ended = lines.last().unwrap();
    assert_eq!((&ended["how"], &ended["exit"], &ended["denied"][0]), (&"complete".into(), &0.into(), &"Bash(curl:*)".into()));
}

/// The lines that a terminal shows.
fn shown(reader: &Reader, width: u16) -> Vec<String> {
    on_rows(reader, 60, width)
}

fn on_rows(reader: &Reader, rows: u16, width: u16) -> Vec<String> {
    let mut parser = vt100::Parser::new(size(rows), size(width), 0);
    // What a terminal does with the end of a line.
    parser.process(&String::from_utf8(reader.bytes()).unwrap().replace('\n', "\r\n").into_bytes());
    assert!(!parser.screen().hide_cursor());
    parser.screen().contents().lines().map(|line| line.trim_end().to_owned()).collect()
}

fn size(n: u16) -> std::num::NonZeroU16 {
    std::num::NonZeroU16::new(n).unwrap()
}

fn screen(reader: &Reader, width: fn() -> usize, plain: bool) -> Screen {
    Screen::still(Terminal::new(Box::new(reader.clone()), width, plain), now)
}

/// S4-6: on a terminal the work goes by, and below it stands a line that counts.
#[test]
fn s4_6_a_terminal_shows_the_work_and_how_it_goes() {
    let reader = Reader::default();
    let screen = screen(&reader, || 80, false);
    begin(&screen);
    works(&screen);
    let so_far = [
        "Ralph runs main-1 in /p",
        "  iteration 3 was begun and not ended",
        "  limits: 10 iterations",
        "warning: no gate[2J is declared",
        "",
        "Iteration 3 of 10 · item F2 · opus · with note 4, 5",
        "opus-5 · permissions acceptEdits · client 2.1",
        "I look at the tests.",
        "",
        "Then",
        "● Bash  npm test --all",
        "  ✗ that failed",
        "  ○ Read  src/31ma.rs",
        "It is there.",
        "  ✗ denied: Bash  curl x; the rule Bash(curl:*) would allow it",
        "the client compacts the conversation",
        "a plain line",
    ];
    let status = "iteration 3 of 10 · 12 s · 42k tokens · $0.31 · context 50k";
    assert_eq!(shown(&reader, 80), [&so_far[..], &[status]].concat());

    on_event(&screen, &text("Now I thi"));
    screen.tick();
    assert_eq!(shown(&reader, 80), [&so_far[..], &["Now I thi", status]].concat(), "a line that is not whole yet");
    later(48_000);
    screen.tick();
    let status = "iteration 3 of 10 · 1 min · 42k tokens · $0.31 · context 50k · quiet for 48 s";
    assert_eq!(shown(&reader, 80), [&so_far[..], &["Now I thi", status]].concat());
    let written = reader.bytes().len();
    screen.tick();
    assert_eq!(reader.bytes().len(), written, "nothing is drawn where nothing changes");
    on_event(&screen, &text("nk.\n"));
    assert_eq!(shown(&reader, 80).last().unwrap(), "iteration 3 of 10 · 1 min · 42k tokens · $0.31 · context 50k");

    is_judged(&screen);
    let judged = [
        "Now I think.",
        "2 tools, 42k tokens, $0.31, 1 min 12 s",
        "iteration 3: ✓ tests  ✗ features 3/10 · next is iteration 4",
        "  Ralph: iteration 4 of 10.",
    ];
    assert_eq!(shown(&reader, 80), [&so_far[..], &judged[..]].concat());
    rests(&screen);
    let lines = shown(&reader, 80);
    assert_eq!(lines.last().unwrap(), "goes on in 9 min");
    assert!(lines.contains(&"waits until 2026-11-15 09:40:00Z".to_owned()), "{lines:?}");
    ends(&screen);
    let end = [
        "iteration 4: - slow · complete",
        "",
        "✓ complete · 2 iterations in this run · 83k tokens · $0.62",
        "  complete after 4 iterations.",
        "  Some calls were denied: Bash(curl:*); add what you want to allow to",
        "  permissions.allow in the client's settings",
        "  `ralph report` shows how it went, `ralph diff` what it changed.",
    ];
    let lines = shown(&reader, 80);
    assert_eq!(lines[lines.len() - end.len()..], end);
}

/// S4-6: what is drawn in place stays in place when the screen is full and everything scrolls.
#[test]
fn s4_6_a_full_screen_scrolls_above_the_line_at_the_bottom() {
    let reader = Reader::default();
    let screen = screen(&reader, || 40, false);
    round(&screen, 3, 1);
    for n in 1..=20 {
        on_event(&screen, &text(&format!("line {n}\nbegun {n}")));
        screen.tick();
        on_event(&screen, &Heard::Thinking);
    }
    on_event(&screen, &text("and more"));
    screen.tick();
    assert_eq!(on_rows(&reader, 6, 40), ["line 19", "begun 19", "line 20", "begun 20", "and more", "iteration 3 of 10 · 0 s"]);
}

/// S4-6: no line is wider than the terminal, and the line at the bottom keeps what matters most.
#[test]
fn s4_6_a_narrow_terminal_gets_what_fits() {
    let reader = Reader::default();
    let narrow = screen(&reader, || 30, false);
    works(&narrow);
    let lines = shown(&reader, 30);
    assert_eq!(lines.last().unwrap(), "12 s · 42k tokens · $0.31");
    assert!(lines.contains(&"● Bash  npm test --all".to_owned()), "{lines:?}");
    on_event(&narrow, &tool("Bash", &"x".repeat(200), false));
    assert!(shown(&reader, 30).contains(&format!("● Bash  {}…", "x".repeat(20))));
    is_judged(&narrow);
    ends(&narrow);
    let all = shown(&reader, 200);
    assert!(all.len() > 30 && all.iter().all(|line| crate::term::width::columns(line) < 30), "{all:?}");
}

/// A terminal without sequences gets none, and the line at the bottom is put away all the same.
#[test]
fn s4_6_a_plain_terminal_gets_no_sequences() {
    let reader = Reader::default();
    let plain = screen(&reader, || 80, true);
    works(&plain);
    on_event(&plain, &text("not whole"));
    plain.tick();
    assert_eq!(shown(&reader, 80).last().unwrap(), "iteration 3 of 10 · 12 s · 42k tokens · $0.31 · context 50k");
    drop(plain);
    let lines = shown(&reader, 80);
    assert_eq!(lines.last().unwrap(), "not whole", "nothing is lost, and no line is left behind: {lines:?}");
}

/// S4-6: what cannot be shown is lost, and the run goes on.
#[test]
fn s4_6_a_reader_that_has_gone_away_harms_nothing() {
    let gone = || Box::new(Reader { closed: true, ..Reader::default() });
    play(&lines::printed(gone(), now));
    play(&Printed::quiet(gone()));
    play(&Printed::json(gone(), now));
    play(&Screen::still(Terminal::new(gone(), || 80, false), now));
}

/// The exit codes are part of the interface.
#[test]
fn s4_6_every_end_has_its_exit_code() {
    let codes = [
        (End::Complete, 0),
        (End::Enough, 0),
        (End::Failed, 1),
        (End::Capped, 10),
        (End::Stalled, 11),
        (End::Blocked, 12),
        (End::Parked, 75),
        (End::Paused, 130),
        (End::Cancelled, 130),
        (End::Interrupted, 130),
    ];
    for (end, code) in codes {
        assert_eq!(end.exit(), code, "{end:?}");
    }
}

/// What this run used is not what the loop has cost.
#[test]
fn s4_6_the_figures_of_the_run_are_told_from_those_of_the_loop() {
    let mut last = Last::default();
    last.on_event(&RunEvent::Over { iteration: 3, attempt: 1, outcome: &Outcome::Stopped, work: &work(), then: Then::Judge });
    let ended = |spent_usd: f64, spent_tokens: u64| RunEvent::Ended {
        how: End::Capped,
        exit: 10,
        line: String::new(),
        rounds: 1,
        spent_usd,
        spent_tokens,
        total_usd: spent_usd,
        total_tokens: spent_tokens,
        denied: Vec::new(),
        allow: "",
        doubtful: false,
    };
    let head = |told: &RunEvent<'_>| anstream::adapter::strip_str(&last.words(told).0).to_string();
    assert_eq!(head(&ended(0.31, 41_500)), "stopped at a limit · 1 iteration in this run · 42k tokens · $0.31");
    assert_eq!(
        head(&ended(1.05, 83_000)),
        "stopped at a limit · 1 iteration in this run · 42k tokens · $0.31 (the loop in all: 83k tokens · $1.05)"
    );
}

#[test]
fn eyes_5_the_line_at_the_bottom_measures_a_gate_by_its_last_runs() {
    let mut status = Status::default();
    status.on_event(&RunEvent::Checking { gate: "tests", limit_ms: 120_000, usual_ms: Some(40_000) }, BEGIN);
    assert_eq!(status.line(80, BEGIN + 12_000), "gate tests: ███░░░░░░░ 12 s of about 40 s (2 min at most)");
    assert_eq!(status.line(80, BEGIN + 60_000), "gate tests: longer than usual: 1 min, usually 40 s (2 min at most)");
}
