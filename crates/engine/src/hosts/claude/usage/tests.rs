//! Transcripts that grow, tear, shrink and repeat themselves.

use proptest::prelude::*;
use ralph_core::{journal::Spending, text::time};

use super::{
    spending::{REACH, Seen},
    *,
};

/// One block of a message that used a thousand tokens of output: 2.5 cents.
fn line(id: &str, at: Millis) -> String {
    of_model(id, at, "claude-opus-5", 1_000)
}

const COST: Micros = 25_000;

fn of_model(id: &str, at: Millis, model: &str, output: u64) -> String {
    let usage = format!(r#"{{"input_tokens":0,"output_tokens":{output},"cache_creation":null,"service_tier":null}}"#);
    let at = time::format(at);
    format!(r#"{{"type":"assistant","timestamp":"{at}","message":{{"id":"{id}","model":"{model}","content":[],"usage":{usage}}}}}"#) + "\n"
}

fn own(text: &str, changed: u64) -> Seen<'_, [u8]> {
    Seen { file: "main".to_owned(), is_own: true, changed, source: text.as_bytes() }
}

fn read(spending: &mut Spending, text: &str) -> Micros {
    spending::read(spending, &own(text, 1), &mut REACH.clone());
    spending.usd_micros
}

#[test]
fn s2_7_a_message_counts_once_however_many_lines_it_has() {
    let user = "{\"type\":\"user\",\"message\":{\"content\":\"\\\"usage\\\"\"}}\n";
    let text = line("a", 10) + &line("a", 11) + user + &line("b", 12) + &line("a", 13) + &line("b", 14);
    assert_eq!(read(&mut Spending::default(), &text), 2 * COST);
    let grown = of_model("a", 10, "claude-opus-5", 1) + &line("a", 11);
    assert_eq!(read(&mut Spending::default(), &grown), COST, "an aborted answer that was written twice");
}

/// The client does not write down what a compaction used.
#[test]
fn s2_7_a_compaction_counts_by_its_size() {
    let compacted = |at: Millis| {
        let at = time::format(at);
        format!(r#"{{"type":"system","subtype":"compact_boundary","timestamp":"{at}","compactMetadata":{{"preTokens":100000}}}}"#) + "\n"
    };
    let mut spending = Spending::since(9);
    let synthetic = of_model("x", 11, "<synthetic>", 0);
    let text = compacted(9) + &line("a", 10) + &synthetic + &compacted(12);
    assert_eq!(read(&mut spending, &text), COST + 500_000 + 250_000, "at the price of the model that spoke last");
    assert_eq!(read(&mut Spending::default(), &compacted(1)), 1_500_000 + 750_000, "the dearest, where nobody has spoken");
}

#[test]
fn s2_7_each_stop_reads_only_what_is_new() {
    let mut spending = Spending::default();
    let mut text = line("a", 10);
    assert_eq!(read(&mut spending, &text), COST);
    text.push_str(&line("a", 11));
    assert_eq!(read(&mut spending, &text), COST, "a late block of the same message");
    let half = line("b", 12);
    text.push_str(&half[..40]);
    assert_eq!(read(&mut spending, &text), COST, "half a line is none");
    text.push_str(&half[40..]);
    assert_eq!(read(&mut spending, &text), 2 * COST);
    let mut left = 10;
    spending::read(&mut spending, &own(&text, 1), &mut left);
    assert_eq!((spending.usd_micros, left), (2 * COST, 10), "nothing was read");
}

#[test]
fn s2_7_what_is_older_than_the_loop_does_not_count() {
    let text = line("old", 100) + &line("new", 101);
    assert_eq!(read(&mut Spending::since(100), &text), COST);
    let spending = Spending::since(10_000);
    assert!(spending.has_read("agent-1", 5, 8_000) && !spending.has_read("agent-1", 5, 10_001));
    assert!(!spending.has_read("agent-1", 5, 9_996), "the time of a file is a little late: its last message may be newer");
}

#[test]
fn s2_7_a_transcript_that_was_replaced_counts_nothing_twice() {
    let mut spending = Spending::default();
    read(&mut spending, &(line("a", 10) + &line("b", 20)));
    let shrunk = line("b", 20);
    assert_eq!(read(&mut spending, &shrunk), 2 * COST);
    assert_eq!(read(&mut spending, &(shrunk + &line("c", 30))), 3 * COST);
    let other = format!("{{\"type\":\"summary\",\"text\":\"{}\"}}\n", "x".repeat(2_000)) + &line("b", 20) + &line("d", 40);
    assert_eq!(read(&mut spending, &other), 4 * COST, "it is as long as the one before, and another one");
}

#[test]
fn s2_7_a_line_of_any_length_is_passed_over() {
    let long = format!("{{\"type\":\"user\",\"usage\":\"{}\"}}\n", "x".repeat(MAX_LINE + BLOCK));
    let text = line("a", 10) + &long + &line("b", 11);
    assert_eq!(read(&mut Spending::default(), &text), 2 * COST);
}

#[test]
fn s2_7_what_is_read_for_one_stop_is_bounded() {
    let text = (0..4_000).map(|n| line(&format!("m{n}"), n + 1)).collect::<String>();
    let mut spending = Spending::default();
    let mut rounds = 0;
    while spending.usd_micros < 4_000 * COST && rounds < 100 {
        spending::read(&mut spending, &own(&text, 1), &mut 1);
        rounds += 1;
    }
    assert_eq!(spending.usd_micros, 4_000 * COST);
    assert!(rounds > 2, "a block at a time");
}

#[test]
fn s2_7_hundreds_of_subagents_leave_a_small_state() {
    let mut spending = Spending::default();
    for n in 0..300_u64 {
        let text = line(&format!("m{n}"), 10);
        let file = format!("agent-{n}");
        assert!(!spending.has_read(&file, text.len() as u64, 1_000 + n), "{n}");
        spending::read(&mut spending, &Seen { file, is_own: false, changed: 1_000 + n, source: text.as_bytes() }, &mut REACH.clone());
        let main = line("main", 10);
        spending::read(&mut spending, &own(&main, 5), &mut REACH.clone());
    }
    assert_eq!((spending.usd_micros, spending.files.len()), (301 * COST, 16));
    assert!(spending.has_read("agent-3", 1, 1_003) && spending.has_read("agent-299", line("m299", 10).len() as u64, 1_299));
    assert!(serde_json::to_string(&spending).unwrap_or_default().len() < 3_000);
    let main = line("main", 10) + &line("main-2", 11);
    spending::read(&mut spending, &own(&main, 6), &mut REACH.clone());
    assert_eq!(spending.usd_micros, 302 * COST, "the session's own is never forgotten");
}

/// One block of a message with a context of 107 tokens.
fn of_message(id: &str, at: Millis, output: u64) -> String {
    let at = time::format(at);
    format!(
        r#"{{"type":"assistant","timestamp":"{at}","message":{{"id":"{id}","model":"claude-opus-5","usage":{{"input_tokens":7,"cache_read_input_tokens":100,"output_tokens":{output}}}}}}}"#
    )
}

fn usage(json: &str) -> Usage {
    Usage::of(&serde_json::from_str(json).unwrap())
}

#[test]
fn s4_6_a_message_counts_once_and_by_the_most_that_was_reported() {
    let mut meter = Meter::default();
    meter.count("a", "claude-opus-5", usage(r#"{"input_tokens":100,"output_tokens":1,"cache_read_input_tokens":7}"#));
    assert_eq!(meter.count("a", "claude-opus-5", usage(r#"{"output_tokens":1000}"#)), 1_107);
    meter.count("b", "claude-opus-5", usage(r#"{"input_tokens":5,"cache_creation_input_tokens":3}"#));
    meter.count("a", "claude-opus-5", usage(r#"{"output_tokens":1}"#));
    assert_eq!(meter.tokens, Tokens { input: 105, output: 1_000, cache_read: 7, cache_written: 3 });
    assert_eq!((meter.messages, meter.model.as_deref()), (2, Some("claude-opus-5")));
    assert!((25_500..25_600).contains(&meter.usd_micros), "{}", meter.usd_micros);
}

#[test]
fn eyes_2_each_call_of_a_tool_counts_once() {
    let mut meter = Meter::default();
    let mut add = |block: &str| {
        let line = of_message("a", 2_000, 1).replace("\"usage\"", &format!("\"content\":[{block}],\"usage\""));
        meter.line(line.as_bytes(), |_| false).map_or(0, |amount| amount.tool_calls)
    };
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"ls"}}}}"#);
    assert_eq!(add(r#"{"type":"text","text":"a \"tool_use\""}"#), 0);
    assert_eq!(add(&call("t1")), 1);
    assert_eq!(add(&call("t1")), 0, "told again");
    assert_eq!(add(&format!("{},{}", call("t2"), call("t3"))), 2);
    assert_eq!(add("7"), 0);
}

#[test]
fn eyes_2_each_message_adds_once_and_what_grows_adds_the_rest() {
    let mut meter = Meter::since(1_000);
    let mut add = |line: &str| meter.line(line.as_bytes(), |id| id == "elsewhere");
    assert_eq!(add(&of_message("old", 1_000, 5)), None, "before the loop");
    let first = add(&of_message("a", 2_000, 1)).unwrap();
    assert_eq!((first.at, first.tokens.total(), first.context, first.is_new), (2_000, 108, Some(107), true));
    assert_eq!(add(&of_message("a", 2_001, 1)), None);
    let more = add(&of_message("a", 2_002, 1_001)).unwrap();
    assert_eq!((more.tokens.total(), more.usd_micros, more.is_new), (1_000, 25_000, false));
    assert_eq!(add(&of_message("elsewhere", 2_003, 1)), None);
    assert_eq!(add("garbled \"usage\""), None);
    let compacted = r#"{"type":"system","timestamp":"1970-01-01T00:00:09Z","compactMetadata":{"preTokens":50000}}"#;
    let compacted = add(compacted).unwrap();
    assert_eq!((compacted.at, compacted.tokens.input, compacted.context), (9_000, 50_000, None));
}

proptest! {
    #[test]
    fn s2_7_any_bytes_never_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..5)) {
        let mut spending = Spending::default();
        for bytes in &pieces {
            spending::read(&mut spending, &Seen { file: String::new(), is_own: true, changed: 0, source: bytes.as_slice() }, &mut REACH.clone());
        }
        prop_assert_eq!(spending.usd_micros, 0);
    }

    /// However a transcript is cut into stops, the sum is the same.
    #[test]
    fn s2_7_the_sum_does_not_depend_on_the_stops(ids in proptest::collection::vec(0u8..6, 1..20), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        // Blocks of one message stand next to each other.
        let mut ids = ids;
        ids.sort_unstable();
        let text: String = ids.iter().zip(1..).map(|(id, at)| line(&id.to_string(), at)).collect();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([text.len()]).collect();
        ends.sort_unstable();
        let mut spending = Spending::default();
        for end in ends {
            read(&mut spending, &text[..end]);
        }
        ids.dedup();
        prop_assert_eq!(spending.usd_micros, ids.len() as u64 * COST);
    }
}
