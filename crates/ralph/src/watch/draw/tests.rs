//! The picture in all sizes, of a loop in which strangers wrote what they liked.

use ralph_core::{
    gate::{Finding, Kind, Verdict},
    journal::{Actor, Event, Record, State},
    judge::{Code, Decision, Evidence, Next, Ruling, session_outcome::Work},
    text::time,
};
use ralph_engine::{
    store::project::Project,
    sys::{clock, files, temp_dir::Scratch},
};
use ratatui::{Terminal, backend::TestBackend};

use super::{Looks, draw};
use crate::watch::{
    app::{App, Asks, Face},
    editor::Editor,
    loops::Loops,
};

/// Clears the screen, moves the cursor, turns the order, hides, and takes two columns or none.
const EVIL: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{200b}\u{2066}evil\r\n\t世界🏳\u{fe0f}\u{200d}🌈e\u{301}\u{301}\u{301}\u{0}";

fn record(seq: u64, event: Event) -> Record {
    let state = State { name: Some("main".to_owned()), stops: seq, iteration: seq + 1, owner: Some(EVIL.to_owned()), ..State::default() };
    Record { v: 1, seq, at: time::format(clock::now() - 1_000), loop_id: "main-1".to_owned(), session: Some(EVIL.to_owned()), event, state }
}

fn stop(seq: u64) -> Record {
    let finding = |n: usize| {
        let verdict = [Verdict::Pass, Verdict::Fail, Verdict::Wait, Verdict::Unknown][n % 4];
        Finding {
            took_ms: u64::MAX,
            needs: Some(EVIL.repeat(9)),
            ..Finding::new(&format!("{EVIL}{n}"), Kind::Command, verdict, EVIL.repeat(40))
        }
    };
    let evidence: Evidence = serde_json::from_value(serde_json::json!({
        "active": true, "iteration": seq, "max_iterations": 3, "promise": EVIL, "claim": {"is": "made"}, "message": {"from": "event"}, "interrupted": false,
        "queued_input": false, "background": [], "spent_ms": u64::MAX, "max_ms": 1, "tools": "used", "idle_rounds": 0, "idle_limit": 9,
        "idle_limit_from": "default", "suspicions": [EVIL, EVIL],
    }))
    .unwrap();
    let evidence = Evidence { gates: (0..30).map(finding).collect(), ..evidence };
    let ruling = Ruling { decision: Decision::Block, code: Code::PromiseUnproven, next: Next::GoesOn { iteration: seq + 1 } };
    let work = Work { usd_micros: u64::MAX, context: u64::MAX, context_window: 1, took_ms: u64::MAX, ..Work::default() };
    let event = Event::Stop { evidence: Box::new(evidence), ruling, said: EVIL.repeat(99), work: Some(Box::new(work)), client: None };
    record(seq, event)
}

/// A loop with a prompt of so many bytes.
fn scene(project: &Project, prompt: usize) -> App {
    let prompt = EVIL.repeat(prompt / EVIL.len());
    let file =
        format!("---\nactive: true\niteration: 3\nmax_iterations: 3\nloop_id: main-1\ncompletion_promise: \"DONE\"\n---\n\n{prompt}\n");
    std::fs::create_dir_all(project.claude()).unwrap();
    project.prepare().unwrap();
    files::append(&project.claude().join("ralph-loop.local.md"), file.as_bytes()).unwrap();
    let started = Event::Started { file: EVIL.to_owned(), by: Actor::File, prompt };
    let note = Event::Steered { by: Actor::CommandLine, id: 1, note: EVIL.to_owned() };
    let error = Event::Error { what: EVIL.repeat(9) };
    let checking = Event::Checking { gate: format!("{EVIL}1"), command: EVIL.to_owned(), limit_ms: u64::MAX / 2 };
    let mut lines = String::from("{\u{1b}[2J\n");
    let records = [record(0, started), stop(1), record(1, note), stop(2), record(2, error), record(2, checking)];
    for record in records {
        lines += &(serde_json::to_string(&record).unwrap() + "\n");
    }
    files::append(&project.journal("main-1"), lines.as_bytes()).unwrap();
    let mut app = App::new(Loops::of(project, None, false), |_, _, _| Ok(String::new()));
    app.look();
    while app.is_behind() {
        app.read_on();
    }
    app
}

fn drawn(app: &mut App, width: u16, height: u16, looks: Looks) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app, looks, clock::now())).unwrap();
    let buffer = terminal.backend().buffer();
    (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect()).collect()
}

#[test]
fn eyes_1_strangers_words_are_harmless_in_every_size_and_on_every_face() {
    let scratch = Scratch::create("ralph-watch-", false).unwrap();
    let mut app = scene(&Project::passing(scratch.path()), 1 << 20);
    let looks = Looks { colour: true, ascii: false };
    for face in [Face::Loop, Face::Log, Face::Overview, Face::Help] {
        for (width, height) in [(1, 1), (2, 3), (9, 4), (20, 5), (40, 10), (79, 23), (80, 24), (116, 17), (120, 40), (200, 60), (500, 2)] {
            app.face = face;
            let rows = drawn(&mut app, width, height, looks);
            let all = rows.concat();
            let harmful =
                all.chars().find(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'));
            assert_eq!(harmful, None, "{face:?} {width}x{height}:\n{}", rows.join("\n"));
        }
    }
    app.face = Face::Loop;
    let rows = drawn(&mut app, 80, 24, looks).join("\n");
    assert!(rows.contains("main-1  active") && rows.contains("iterations ") && rows.contains("gates ─"), "{rows}");
    let rows = drawn(&mut app, 80, 24, Looks { colour: false, ascii: true });
    assert!(rows.iter().all(|row| row.is_ascii()), "{rows:?}");
    app.asks = Asks::Note({
        let mut editor = Editor::default();
        editor.insert(&EVIL.repeat(30));
        editor
    });
    (1..60).for_each(|width| drop(drawn(&mut app, width, 3, looks)));
}

/// What does not fit is left out whole, or cut with a mark; 40 by 10 still says what matters.
#[test]
fn eyes_1_a_corner_of_a_screen_says_what_matters() {
    let scratch = Scratch::create("ralph-watch-", false).unwrap();
    let mut app = scene(&Project::passing(scratch.path()), 100);
    let rows = drawn(&mut app, 40, 10, Looks { colour: true, ascii: false });
    assert!(rows[0].starts_with("● main-1  active"), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("iteration 3 of 3")), "{rows:#?}");
    // No process measures the gate that this journal says is being measured.
    assert!(rows.iter().any(|row| row.starts_with("works")) && !rows.iter().any(|row| row.starts_with("checks ")), "{rows:#?}");
    assert!(rows[9].starts_with("q quit  ? help"), "{rows:#?}");
}

/// The session of a run that is under way counts: most of a night's money is in it.
#[test]
fn u7_the_bars_count_the_session_that_runs() {
    let scratch = Scratch::create("ralph-watch-", false).unwrap();
    let project = Project::passing(scratch.path());
    let mut app = scene(&project, 100);
    let log = ".ralph/rounds/main-1/3.jsonl";
    let began = serde_json::json!({"kind": "began", "iteration": 3, "attempt": 1, "agent": "claude", "log": log});
    let record = record(2, serde_json::from_value(began).unwrap());
    files::append(&project.journal("main-1"), (serde_json::to_string(&record).unwrap() + "\n").as_bytes()).unwrap();
    let usage = serde_json::json!({"input_tokens": 1_000, "output_tokens": 2_000_000});
    let said = serde_json::json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "model": "claude-sonnet-4-6", "content": [], "usage": usage}});
    std::fs::create_dir_all(project.root().join(".ralph/rounds/main-1")).unwrap();
    files::append(&project.root().join(log), format!("{said}\n").as_bytes()).unwrap();
    let view = &mut app.loops.entries[0].view;
    (view.carrier, view.max_usd, view.max_tokens) = (ralph_engine::view::Carrier::Runner, 0.0, 9_000_000);
    app.read_on();
    let rows = drawn(&mut app, 80, 24, Looks { colour: true, ascii: false }).join("\n");
    assert!(rows.contains("2.0M of 9.0M"), "{rows}");
    app.loops.entries[0].view.carrier = ralph_engine::view::Carrier::Nobody;
    let rows = drawn(&mut app, 80, 24, Looks { colour: true, ascii: false }).join("\n");
    assert!(!rows.contains("2.0M of 9.0M"), "what is over is in the journal: {rows}");
}
