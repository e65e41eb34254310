//! Tests of the transcript reader: made-up lines in the client's shape, and any bytes at all.

use proptest::prelude::*;

use super::*;

fn assistant(id: &str, block: &str) -> String {
    format!(
        r#"{{"isSidechain":false,"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{block}]}},"timestamp":"2026-11-15T10:00:05.000Z"}}"#
    )
}

fn text(id: &str, text: &str) -> String {
    assistant(id, &format!(r#"{{"type":"text","text":{}}}"#, serde_json::Value::from(text)))
}

fn tool(id: &str) -> String {
    assistant(id, r#"{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}"#)
}

fn result() -> String {
    r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"ok"}]},"timestamp":"2026-11-15T10:00:05.000Z"}"#.to_owned()
}

fn typed(text: &str) -> String {
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":{}}},"timestamp":"2026-11-15T10:00:00.000Z"}}"#,
        serde_json::Value::from(text)
    )
}

fn queue(operation: &str) -> String {
    format!(r#"{{"type":"queue-operation","operation":"{operation}","content":"/cancel-ralph"}}"#)
}

fn file(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|l| l.bytes().chain(*b"\n")).collect()
}

fn round(lines: &[String], event_text: Option<&str>) -> Round {
    last_round(file(lines).as_slice(), None, event_text, &[])
}

#[test]
fn s0_7_all_text_blocks_of_the_last_message_are_joined() {
    let lines = [typed("go"), text("m1", "AAA"), tool("m1"), result(), text("m2", "<promise>X</promise>"), text("m2", "BBB")];
    let got = round(&lines, Some("BBB"));
    assert_eq!(got.text.as_deref(), Some("<promise>X</promise>\n\u{c}BBB"));
    assert_eq!((got.tools, got.caught_up), (ToolUse::Used, true));
}

#[test]
fn pains_2_the_event_carries_what_the_transcript_lags_behind() {
    let lagging = [typed("go"), text("m1", "first block")];
    assert_eq!(round(&lagging, Some("last block")).text.as_deref(), Some("first block\n\u{c}last block"));
    let older_message = [typed("go"), text("m1", "<promise>X</promise>"), tool("m1"), result()];
    assert_eq!(round(&older_message, Some("later")).text.as_deref(), Some("later"));
    assert_eq!(round(&[], Some("only")).text.as_deref(), Some("only"));
    assert_eq!(
        round(&[], None),
        Round { text: None, tools: ToolUse::Unknown, queue: Vec::new(), interrupted: false, caught_up: false, torn: false }
    );
}

#[test]
fn pains_3_text_of_an_earlier_turn_or_of_a_subagent_never_counts() {
    let stale = [
        typed("a"),
        text("m1", "<promise>X</promise>"),
        typed("b"),
        tool("m2"),
        result(),
        assistant("m3", r#"{"type":"thinking","thinking":"hm"}"#),
    ];
    assert_eq!(round(&stale, None).text, None);
    let sidechain = text("m9", "<promise>X</promise>").replace("\"isSidechain\":false", "\"isSidechain\":true");
    assert_eq!(round(&[typed("a"), text("m1", "working"), sidechain], None).text.as_deref(), Some("working"));
    let feedback = typed("Stop hook feedback:\ngo on").replace("\"type\":\"user\"", "\"type\":\"user\",\"isMeta\":true");
    assert_eq!(round(&[typed("a"), text("m1", "<promise>X</promise>"), feedback, tool("m2")], None).text, None);
}

#[test]
fn the_time_of_the_last_ruling_begins_a_round() {
    let lines = [text("m1", "<promise>X</promise>"), tool("m1"), text("m2", "new").replace("10:00:05", "10:00:09")];
    let since = time::parse("2026-11-15T10:00:07Z");
    let got = last_round(file(&lines).as_slice(), since, None, &[]);
    assert_eq!((got.text.as_deref(), got.tools), (Some("new"), ToolUse::None));
    let behind = last_round(file(&lines[..2]).as_slice(), since, Some("event"), &[]);
    assert_eq!(
        (behind.text.as_deref(), behind.tools),
        (Some("event"), ToolUse::Unknown),
        "nothing is concluded from lines that are not there"
    );
    assert!(used_tools_since(file(&lines).as_slice(), 0));
    assert!(!used_tools_since(file(&lines).as_slice(), since.unwrap_or(0)));
}

#[test]
fn an_interrupt_since_the_last_ruling_is_seen_beyond_the_turn() {
    let esc = typed("[Request interrupted by user]").replace("10:00:00", "10:00:08");
    let lines = [text("m1", "x"), esc, typed("then").replace("10:00:00", "10:00:09"), text("m2", "y").replace("10:00:05", "10:00:09")];
    let interrupted = |since: &str| last_round(file(&lines).as_slice(), time::parse(since), Some("y"), &[]).interrupted;
    assert!(interrupted("2026-11-15T10:00:07Z"));
    assert!(!interrupted("2026-11-15T10:00:08Z"), "an older one has been dealt with");
}

#[test]
fn a_message_without_text_falls_back_to_the_last_one_that_has_some() {
    let nudge = typed("[Your previous response had no visible output.]").replace("\"type\":\"user\"", "\"type\":\"user\",\"isMeta\":true");
    let lines = [
        typed("go"),
        text("m1", "<promise>X</promise>"),
        tool("m1"),
        result(),
        nudge,
        assistant("m2", r#"{"type":"thinking","thinking":"hm"}"#),
    ];
    assert_eq!(round(&lines, None).text.as_deref(), Some("<promise>X</promise>"));
}

#[test]
fn input_that_waits_in_the_queue_is_seen() {
    let queued = |ops: &[&str]| {
        let mut lines = vec![typed("go")];
        lines.extend(ops.iter().map(|o| queue(o)));
        lines.push(text("m1", "x"));
        !round(&lines, None).queue.is_empty()
    };
    assert!(queued(&["enqueue"]));
    assert!(!queued(&["enqueue", "dequeue"]));
    assert!(queued(&["enqueue", "enqueue", "remove"]));
    assert!(queued(&["enqueue", "enqueue", "popAll"]), "one line for each item");
    assert!(queued(&["enqueue", "dequeue", "enqueue"]));
    let waiting = |before: &[&str], lines: &[String]| {
        let before: Vec<String> = before.iter().map(|text| (*text).to_owned()).collect();
        last_round(file(lines).as_slice(), Some(0), None, &before).queue
    };
    let put =
        |c: &str| format!(r#"{{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-15T10:00:00.000Z","content":{c}}}"#);
    let (a, b, taken) = (put(r#""fix  that""#), put(r#""/context""#), queue("dequeue"));
    assert_eq!(waiting(&[], &[a.clone(), b.clone()]), ["fix that", "/context"], "the oldest first");
    assert_eq!(waiting(&[], &[a, b.clone(), taken.clone()]), ["/context"]);
    assert_eq!(waiting(&["fix that"], &[b.clone(), taken.clone()]), ["/context"], "what waited before is taken first");
    assert_eq!(waiting(&["fix that", "/context"], std::slice::from_ref(&taken)), ["/context"]);
    assert_eq!(waiting(&["fix that"], &[b]), ["/context"], "what waited may have been taken without a line of this round");
    assert_eq!(waiting(&[], &[put(r#"[{"type":"text"}]"#)]), [""]);
}

#[test]
fn torn_and_garbled_lines_are_passed_over() {
    let mut bytes = file(&[typed("go"), text("m1", "said"), "not json".to_owned(), "{\"type\":\"user\",".to_owned()]);
    bytes.extend_from_slice(b"{\"type\":\"assistant\",\"message\":{\"id\":\"m2\",\"content\":[{\"type\":\"te");
    let got = last_round(bytes.as_slice(), None, None, &[]);
    assert_eq!((got.text.as_deref(), got.torn), (Some("said"), true));
    let control = text("m1", "Q").replace('Q', "\u{1}\u{7}<promise>X</promise>");
    assert!(round(&[typed("go"), control], None).text.is_some_and(|t| t.contains("<promise>X</promise>")));
}

#[test]
fn a_line_of_megabytes_is_passed_over_and_still_tells_of_the_tool() {
    let huge = result().replace("\"ok\"", &format!("\"{}\"", "x".repeat(3 * 1024 * 1024)));
    let got = round(&[typed("go"), text("m1", "said"), tool("m1"), huge], None);
    assert_eq!((got.text.as_deref(), got.tools), (Some("said"), ToolUse::Used));
}

#[test]
fn an_interrupt_is_the_last_thing_that_happened() {
    let esc = typed("[Request interrupted by user]");
    assert!(was_interrupted(file(&[typed("go"), text("m1", "half"), esc.clone()]).as_slice(), "stop it"));
    assert!(was_interrupted(file(&[typed("go"), esc.clone(), typed("stop it")]).as_slice(), "stop it"));
    assert!(!was_interrupted(file(&[typed("go"), esc, typed("then"), text("m2", "on")]).as_slice(), "stop it"));
    assert!(!was_interrupted(file(&[typed("go"), text("m1", "x")]).as_slice(), "stop it"));
    assert!(!was_interrupted([].as_slice(), "stop it"));
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = last_round(bytes.as_slice(), Some(0), None, &[]);
        let _ = was_interrupted(bytes.as_slice(), "x");
    }

    /// Lines come back in reverse order and complete, whatever their lengths.
    #[test]
    fn lines_are_those_of_a_naive_reader(lengths in proptest::collection::vec(0usize..90_000, 1..8), torn in any::<bool>()) {
        let mut bytes: Vec<u8> = Vec::new();
        for (i, n) in lengths.iter().enumerate() {
            bytes.extend(std::iter::repeat_n(b'a' + u8::try_from(i).unwrap_or(0), *n));
            bytes.push(b'\n');
        }
        if torn {
            bytes.pop();
        }
        let naive: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).rev().map(<[u8]>::to_vec).collect();
        let mut lines = LinesBack::new(bytes.as_slice());
        let mut got = Vec::new();
        while let Some(place) = lines.next() {
            let (start, end) = (usize::try_from(place.start).unwrap_or(0), usize::try_from(place.end).unwrap_or(0));
            got.push(bytes[start..end].to_vec());
        }
        prop_assert_eq!(got, naive);
    }
}
