//! A loop with a past: a journal as ralph writes it, of so many rounds, ending some minutes ago.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::common::{Bed, LOOP};

pub(super) const ID: &str = "main-20261115-214500";

const ROUND: i64 = 600_000;

/// The time in milliseconds since the epoch.
pub(super) fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

pub(super) fn at(ms: i64) -> String {
    ralph_core::text::time::format(ms)
}

fn loop_file(rounds: i64, active: bool) -> String {
    format!(
        "---\nactive: {active}\niteration: {}\nmax_iterations: 20\ncompletion_promise: \"DONE\"\nmax_hours: 8\nmax_usd: 50\nloop_id: {ID}\n---\n\n\
         Make the importer read the new format.\n",
        rounds + 1
    )
}

/// A paused loop. Its last round ended twelve and a half minutes ago.
pub(super) fn paused(bed: &Bed, rounds: i64) {
    bed.write(LOOP, loop_file(rounds, false));
    bed.write_journal(ID, &journal(rounds));
}

/// The records, one a line.
pub(super) fn journal(rounds: i64) -> String {
    let end = now() - 750_000;
    let begin = end - rounds * ROUND;
    let mut text = String::new();
    let mut seq = 0;
    let mut put = |at_ms: i64, event: Value, stops: i64, armed: bool| {
        seq += 1;
        let mut state = json!({"name": "main", "stops": stops, "iteration": stops + 1, "owner": "5e551017-0000-4000-8000-000000000001", "spent_ms": 0,
            "spending": {"usd_micros": stops * 900_000, "since": at_ms}, "tokens": {"input": stops * 1000, "output": stops * 2000, "cache_read": stops * 90_000, "cache_written": 0},
            "idle_rounds": 0, "gated": true});
        if armed {
            state["armed_since"] = json!(begin);
        } else {
            state["spent_ms"] = json!(at_ms - begin);
        }
        let record = json!({"v": 1, "seq": seq, "at": at(at_ms), "loop": ID, "event": event, "state": state});
        text.push_str(&record.to_string());
        text.push('\n');
    };
    put(
        begin,
        json!({"kind": "started", "file": "ralph-loop.local.md", "by": "command-line", "prompt": "Make the importer read the new format."}),
        0,
        true,
    );
    for round in 1..=rounds {
        put(begin + round * ROUND, stop(round, rounds), round, true);
    }
    put(end + 1_000, json!({"kind": "paused", "by": "command-line", "why": ""}), rounds, false);
    text
}

/// A stop that was sent back. Every third one is a claim.
fn stop(round: i64, rounds: i64) -> Value {
    let claims = round % 3 == 0;
    let verdict = |good: bool| if good { "pass" } else { "fail" };
    let tests = round * 2 > rounds;
    let gates = json!([
        {"gate": "tests", "kind": "command", "verdict": verdict(tests), "what": if tests { "142 tests pass" } else { "3 of 142 tests fail" }, "took_ms": 41_000},
        {"gate": "lint", "kind": "command", "verdict": "fail", "what": "2 warnings are denied", "took_ms": 5_000},
    ]);
    json!({"kind": "stop",
        "evidence": {"active": true, "iteration": round, "max_iterations": 20, "promise": "DONE", "claim": if claims { json!({"is": "made"}) } else { json!({"is": "none"}) },
            "message": {"from": "event"}, "interrupted": false, "queued_input": false, "background": [], "spent_ms": round * ROUND, "max_ms": 28_800_000,
            "max_usd_micros": 50_000_000, "tools": "used", "idle_rounds": 0, "idle_limit": 25, "idle_limit_from": "default", "fresh": true, "gates": gates},
        "ruling": {"decision": "block", "code": if claims { "promise.unproven" } else { "promise.missing" }, "next": {"loop": "goes-on", "iteration": round + 1}},
        "said": "I go on.",
        "work": {"turns": 3, "tool_calls": 12, "input": 1000, "output": 2000, "cache_read": 90_000, "cache_written": 0, "usd_micros": 100_000 * (round % 9 + 1),
            "took_ms": ROUND, "context": 10_000 * (round % 10 + 1), "context_window": 200_000}})
}
