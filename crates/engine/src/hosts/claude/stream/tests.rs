//! What both clients printed, recorded and trimmed (`tests/streams/`), and lines that no client prints.

use super::*;
use proptest::prelude::*;
use ralph_core::judge::session_outcome::{Cut, Trouble};

const VERSIONS: [&str; 2] = ["2.1.197", "2.1.325"];

/// Of an error, the clients end with 1.
const FAILED: Exit = Exit { code: Some(1), signal: None };

fn recorded(version: &str, case: &str) -> String {
    let path = format!("{}/tests/streams/{version}-{case}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn heard(text: &str) -> (Stream, Vec<Heard>) {
    let mut stream = Stream::default();
    let mut told = Vec::new();
    for line in text.lines() {
        stream.line(line.as_bytes(), &mut told);
    }
    (stream, told)
}

/// What came of a recorded session, with both clients.
fn of(case: &str, exit: Exit) -> [(Stream, Vec<Heard>, Outcome); 2] {
    VERSIONS.map(|version| {
        let (stream, told) = heard(&recorded(version, case));
        let outcome = stream.outcome(exit, "");
        (stream, told, outcome)
    })
}

fn trouble(case: &str, wanted: &Trouble) {
    for (_, _, outcome) in of(case, FAILED) {
        assert_eq!(outcome, Outcome::Failed { trouble: wanted.clone() }, "{case}");
    }
}

#[test]
fn s1_4_what_is_in_the_way_is_told_by_structured_fields_alone() {
    trouble("limit", &Trouble::Limit { until: Some(1_794_784_418_000), quota: Some("five_hour".to_owned()) });
    trouble("rate", &Trouble::Service { status: Some(429) });
    trouble("overloaded", &Trouble::Service { status: Some(529) });
    trouble("unreachable", &Trouble::Service { status: None });
    trouble("sign-in", &Trouble::SignIn { status: Some(401) });
    trouble("not-signed-in", &Trouble::SignIn { status: None });
    trouble("forbidden", &Trouble::SignIn { status: Some(403) });
    trouble("credit", &Trouble::Billing { status: Some(400) });
    trouble("billing", &Trouble::Billing { status: Some(402) });
    trouble("too-long", &Trouble::Refused { status: Some(400), too_long: true });
    trouble("bad-request", &Trouble::Refused { status: Some(400), too_long: false });
    trouble("refusal", &Trouble::Refused { status: None, too_long: false });
    trouble("max-output", &Trouble::Refused { status: None, too_long: false });
    for (stream, _, outcome) in of("model", FAILED) {
        assert!(stream.model.is_some());
        assert_eq!(outcome, Outcome::Failed { trouble: Trouble::Model { name: stream.model.clone() } });
    }
}

/// A session that is cut off during a call had not said its last word before it.
#[test]
fn s4_6_what_is_said_before_a_call_is_no_last_word() {
    let said = |id: &str, block: &str| format!(r#"{{"type":"assistant","message":{{"id":"{id}","model":"m","content":[{block}]}}}}"#);
    let (claim, call) = (r#"{"type":"text","text":"<promise>DONE</promise>"}"#, r#"{"type":"tool_use","id":"t","name":"Bash","input":{}}"#);
    assert_eq!(heard(&[said("a", claim), said("a", call)].join("\n")).0.text(), None);
    assert_eq!(heard(&[said("a", claim), said("b", call)].join("\n")).0.text(), None);
    assert_eq!(heard(&[said("a", call), said("b", claim)].join("\n")).0.text().as_deref(), Some("<promise>DONE</promise>"));
}

/// Results count on: whatever writes another one into the client's output makes nothing cheaper.
#[test]
fn s1_4_a_later_result_takes_nothing_back() {
    let result = |usd: f64, tokens: u64| {
        let usage = format!(r#"{{"m":{{"inputTokens":{tokens},"costUSD":{usd}}}}}"#);
        format!(r#"{{"type":"result","subtype":"success","is_error":false,"total_cost_usd":{usd},"modelUsage":{usage}}}"#)
    };
    let work = heard(&[result(1.5, 900), result(0.0, 0)].join("\n")).0.work();
    assert_eq!((work.usd_micros, work.tokens.total()), (1_500_000, 900));
}

#[test]
fn s1_4_a_limit_that_does_not_stop_the_session_is_none() {
    for case in ["overage", "limit-in-subagent", "warned"] {
        for (_, told, outcome) in of(case, Exit { code: Some(0), signal: None }) {
            assert_eq!(outcome, Outcome::Stopped, "{case}");
            assert!(told.iter().any(|heard| matches!(heard, Heard::Quota { .. })), "{case}");
        }
    }
    let [(_, older, _), (_, newer, _)] = of("warned", FAILED);
    for told in [older, newer] {
        assert!(
            told.iter().any(
                |heard| matches!(heard, Heard::Quota { used: Some(90), rejected: false, quota: Some(name), .. } if name == "five_hour")
            ),
            "{told:?}"
        );
    }
}

#[test]
fn s4_6_the_client_ends_a_session_that_spent_enough() {
    for (stream, _, outcome) in of("budget", FAILED) {
        assert_eq!(outcome, Outcome::Cut { by: Cut::Money });
        assert_eq!(stream.work().tokens.input, 10_000, "as the server counted");
    }
    for (_, _, outcome) in of("turns", FAILED) {
        assert_eq!(outcome, Outcome::Cut { by: Cut::Turns });
    }
}

#[test]
fn s4_6_without_a_result_it_crashed() {
    let signal = Exit { code: None, signal: Some(9) };
    for (stream, _, outcome) in of("killed", signal) {
        assert_eq!(outcome, Outcome::Failed { trouble: Trouble::Crash { code: None, signal: Some(9) } });
        assert!(!stream.is_accounted());
        assert!(stream.work().estimated && stream.work().tokens.input > 0, "{:?}", stream.work());
    }
    for (stream, _, outcome) in of("interrupted", FAILED) {
        assert_eq!(outcome, Outcome::Failed { trouble: Trouble::Crash { code: Some(1), signal: None } }, "somebody else interrupted it");
        assert_eq!((stream.tools(), stream.work().tokens.input), (ToolUse::Used, 100));
    }
    let silent = Stream::default();
    let why = |outcome| match outcome {
        Outcome::Failed { trouble: Trouble::CannotStart { why } } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(silent.outcome(FAILED, "error: unknown option '--x'\n")), "error: unknown option '--x'");
    assert_eq!(why(silent.outcome(Exit { code: Some(127), signal: None }, "")), "exit code 127");
    assert!(matches!(silent.outcome(signal, "killed"), Outcome::Failed { trouble: Trouble::Crash { .. } }));
}

/// Server: 101 input tokens of the session's own and 11 000 of its subagent's, and so on for the other kinds.
#[test]
fn s4_6_tokens_are_what_the_server_counted_subagents_included() {
    for (stream, told, outcome) in of("subagent", Exit { code: Some(0), signal: None }) {
        assert_eq!(outcome, Outcome::Stopped);
        let work = stream.work();
        assert_eq!(work.tokens, Tokens { input: 11_101, output: 22_202, cache_read: 44_404, cache_written: 33_303 });
        assert!(!work.estimated && work.usd_micros > 0 && work.context_window == 1_000_000);
        assert_eq!((work.tool_calls, stream.tools()), (2, ToolUse::Used));
        assert!(told.contains(&Heard::Tool { name: "Bash".to_owned(), what: "echo sub".to_owned(), of_subagent: true }));
        assert_eq!(stream.text().as_deref(), Some("main 1"));
    }
}

#[test]
fn s4_6_the_last_of_several_results_counts() {
    let [(older, ..), (newer, _, outcome)] = of("background", Exit { code: Some(0), signal: None });
    assert_eq!((older.work().tokens.input, older.text().as_deref()), (200, Some("end")));
    assert_eq!((newer.work().tokens.input, newer.text().as_deref(), newer.work().turns), (300, Some("(end)"), 3));
    assert_eq!(outcome, Outcome::Stopped);
    // In the middle of it: the model was woken, and works.
    let text = recorded("2.1.325", "background");
    let half: Vec<&str> = text.lines().take_while(|line| !line.contains("(end)")).collect();
    let (stream, _) = heard(&half.join("\n"));
    assert!(!stream.is_over() && stream.verdict.is_some());
    assert!(matches!(stream.outcome(FAILED, ""), Outcome::Failed { trouble: Trouble::Crash { .. } }));
}

#[test]
fn s4_6_a_message_in_pieces_is_told_once() {
    for version in VERSIONS {
        let (stream, told) = heard(&recorded(version, "partial"));
        let texts: String =
            told.iter().filter_map(|heard| if let Heard::Text { text, .. } = heard { Some(text.as_str()) } else { None }).collect();
        assert_eq!(texts, "done\n", "{version}");
        assert_eq!(told.iter().filter(|heard| matches!(heard, Heard::Tool { .. })).count(), 1);
        assert_eq!(told.iter().filter(|heard| matches!(heard, Heard::Session { .. })).count(), 1);
        assert!(told.contains(&Heard::ToolEnded { failed: false, of_subagent: false }));
        // The server: 11 + 22 + 33 + 44. What is heard before the result is the same.
        let used: Vec<u64> =
            told.iter().filter_map(|heard| if let Heard::Used { tokens, .. } = heard { Some(*tokens) } else { None }).collect();
        assert_eq!(used[used.len() - 2..], [110, 110], "{version}: {used:?}");
        assert_eq!((stream.work().tokens.total(), stream.work().context), (110, 100));
    }
}

#[test]
fn s4_6_what_was_denied_is_known_once_with_its_rule() {
    for (stream, told, outcome) in of("denied", Exit { code: Some(0), signal: None }) {
        assert_eq!(outcome, Outcome::Stopped);
        let rules: Vec<String> = stream.work().denied.into_iter().map(|denied| denied.rule).collect();
        assert_eq!(rules, ["Bash(touch:*)", "Write", "Edit", "Bash(curl:*)"]);
        assert_eq!(told.iter().filter(|heard| matches!(heard, Heard::Denied { .. })).count(), 4);
    }
    for (stream, ..) in of("two-results", FAILED) {
        assert_eq!(stream.work().denied.len(), 2, "each result has its own");
    }
}

#[test]
fn s4_6_lines_that_are_no_events_are_told_apart() {
    let mut stream = Stream::default();
    let mut told = Vec::new();
    for line in ["Warning: something", "{\"type\":\"assist", "[1,2]", "{}", "null", "\"type\"", ""] {
        assert_eq!(stream.line(line.as_bytes(), &mut told), Line::Plain, "{line}");
    }
    assert_eq!(stream.line(br#"{"type":"of the future","result":7}"#, &mut told), Line::Event);
    assert_eq!(stream.line(br#"{"type":"stream_event","event":{"type":"ping"}}"#, &mut told), Line::Ping);
    assert_eq!(stream.line(br#"{"type":"result"}"#, &mut told), Line::Event);
    assert_eq!(stream.outcome(Exit::default(), ""), Outcome::Stopped);
    stream.line(br#"{"type":"assistant","message":{"content":"x","usage":[]},"parent_tool_use_id":7}"#, &mut told);
    stream.line(br#"{"type":"result","is_error":true,"subtype":"success","api_error_status":99999999,"total_cost_usd":-1e300}"#, &mut told);
    assert_eq!(stream.work().usd_micros, 0);
}

proptest! {
    /// Whatever is torn, left out or repeated: nothing panics, and nothing is told of what is not there.
    #[test]
    fn s4_6_torn_streams_never_panic(case in 0usize..5, cut in 0usize..20_000, drop in 0usize..20, flip in any::<u8>()) {
        let case = ["partial", "subagent", "background", "denied", "limit"][case];
        let mut bytes = recorded("2.1.325", case).into_bytes();
        bytes.truncate(cut);
        if let Some(byte) = bytes.last_mut() {
            *byte = flip;
        }
        let mut stream = Stream::default();
        let mut told = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').skip(drop) {
            stream.line(line, &mut told);
        }
        let _ = (stream.outcome(FAILED, "x"), stream.text(), stream.work(), stream.tools());
    }
}
