//! Journals as ralph writes them, told again.

#![expect(clippy::needless_pass_by_value, reason = "values that are made where they are passed read better")]

use serde_json::{Value, json};

use super::*;
use crate::{gate::Verdict, journal::records};

/// A journal whose records are written at so many seconds after noon.
#[derive(Default)]
struct Journal {
    lines: Vec<Value>,
    state: Value,
}

impl Journal {
    fn new() -> Self {
        Journal { lines: Vec::new(), state: json!({ "iteration": 1, "armed_since": 1, "owner": "s1" }) }
    }

    fn add(&mut self, seconds: i64, event: Value, change: Value) -> &mut Self {
        if let (Some(state), Value::Object(change)) = (self.state.as_object_mut(), change) {
            state.extend(change);
        }
        let at = time::format(1_794_830_400_000 + seconds * 1000);
        self.lines.push(json!({ "v": 1, "seq": self.lines.len() + 1, "at": at, "loop": "main-1", "session": "s1", "event": event, "state": self.state }));
        self
    }

    fn stop(&mut self, seconds: i64, iteration: u64, (claim, code, next): (Value, &str, Value), gates: Value, change: Value) -> &mut Self {
        let stops = self.state["stops"].as_u64().unwrap_or(0) + 1;
        let decision = if next["loop"] == "goes-on" { "block" } else { "allow" };
        let event = json!({
            "kind": "stop", "said": "All done, I promise.",
            "evidence": {
                "active": true, "iteration": iteration, "max_iterations": 9, "promise": "DONE", "claim": claim, "message": { "from": "event" },
                "queued_input": false, "background": [], "spent_ms": 0, "max_ms": 0, "tools": "used", "idle_rounds": 0, "idle_limit": 25,
                "idle_limit_from": "default", "gates": gates
            },
            "ruling": { "decision": decision, "code": code, "next": next }
        });
        self.add(seconds, event, json!({ "stops": stops })).state(change)
    }

    /// Changes what the last record and those after it say.
    fn state(&mut self, change: Value) -> &mut Self {
        if let (Some(state), Value::Object(change)) = (self.state.as_object_mut(), change) {
            state.extend(change);
        }
        let state = self.state.clone();
        if let Some(last) = self.lines.last_mut() {
            last["state"] = state;
        }
        self
    }

    /// The history, which is the same as the one that `watch` gathers of whole records.
    fn told(&self) -> History {
        let journal = self.lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let told = History::of(journal.as_bytes());
        let mut whole = History { unreadable: told.unreadable, ..History::default() };
        let records = records(journal.as_bytes()).0;
        // With the fields in the order in which ralph writes them.
        let written = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect::<Vec<_>>().join("\n");
        for record in records {
            whole.take(record);
        }
        // Its order is another one in each.
        let shown = |history: &History| format!("{:?}", History { known_sessions: HashSet::new(), ..history.clone() });
        assert_eq!(shown(&told), shown(&whole));
        assert_eq!(shown(&History { unreadable: told.unreadable, ..History::of(written.as_bytes()) }), shown(&whole));
        told
    }
}

fn started() -> Value {
    json!({ "kind": "started", "file": "f", "by": "command-line", "prompt": "Fix it" })
}

fn gate(verdict: &str, took_ms: u64) -> Value {
    json!([{ "gate": "tests", "kind": "command", "verdict": verdict, "what": "exit code 1", "took_ms": took_ms }])
}

fn made() -> Value {
    json!({ "is": "made" })
}

fn goes_on(iteration: u64) -> Value {
    json!({ "loop": "goes-on", "iteration": iteration })
}

#[test]
fn eyes_2_time_is_told_by_what_was_done_with_it() {
    let mut journal = Journal::new();
    let checking = || json!({ "kind": "checking", "gate": "tests", "command": "t", "limit_ms": 1000 });
    journal.add(0, started(), json!({}));
    journal.add(60, checking(), json!({}));
    journal.stop(90, 1, (made(), "promise.unproven", goes_on(2)), gate("fail", 30_000), json!({ "iteration": 2 }));
    journal.add(150, checking(), json!({}));
    journal.add(160, json!({ "kind": "waiting", "what": "checks" }), json!({}));
    journal.stop(
        460,
        2,
        (made(), "promise.accepted", json!({ "loop": "ends", "ending": "complete" })),
        gate("pass", 10_000),
        json!({ "ended": "complete" }),
    );
    let told = journal.told();
    assert_eq!(told.timeline.total, Took { work_ms: 120_000, gates_ms: 40_000, elsewhere_ms: 300_000, ..Took::default() });
    let rounds: Vec<_> =
        told.rounds.iter().map(|r| (r.iteration, r.took.work_ms, r.took.gates_ms, r.took.elsewhere_ms, r.took_ms())).collect();
    assert_eq!(rounds, [(1, 60_000, 30_000, 0, 90_000), (2, 60_000, 10_000, 300_000, 370_000)]);
    assert_eq!(told.ended.map(|e| (e.ending, e.code)), Some((Ending::Complete, Some(Code::PromiseAccepted))));
    assert_eq!(told.timeline.now, None, "what is over takes no more time");
    let verdicts: Vec<Verdict> = told.gates[0].marks.iter().map(|mark| mark.verdict).collect();
    assert_eq!(verdicts, [Verdict::Fail, Verdict::Pass]);
    assert_eq!((told.refused.count, told.refused.kept[0].stop, told.refused.kept[0].said.as_str()), (1, 1, "All done, I promise."));
}

#[test]
fn eyes_2_quota_pauses_and_deaths_are_not_work() {
    let mut journal = Journal::new();
    let began = |attempt: u64| json!({ "kind": "began", "iteration": 1, "attempt": attempt, "agent": "claude", "log": "x" });
    journal.add(0, started(), json!({ "runner": { "pid": 1 } }));
    journal.add(0, began(1), json!({}));
    let work = json!({ "tool_calls": 2, "input": 10, "output": 5, "usd_micros": 100 });
    let limit = json!({ "outcome": "failed", "trouble": { "trouble": "limit", "until": 5 } });
    journal.add(
        10,
        json!({ "kind": "broke", "iteration": 1, "attempt": 1, "outcome": limit, "then": { "then": "park", "until": 5 }, "work": work }),
        json!({}),
    );
    let parked = json!({ "since": 1, "what": "the limit", "until": 5, "tools": "unknown", "idle_rounds": 0 });
    journal.add(10, json!({ "kind": "waiting", "what": "the limit" }), json!({ "parked": parked }));
    journal.add(70, began(2), json!({ "parked": null }));
    journal.add(100, json!({ "kind": "taken", "pid": 2, "unfinished": 1 }), json!({}));
    journal.add(100, began(3), json!({}));
    journal.add(130, json!({ "kind": "paused", "by": "command-line", "why": "lunch" }), json!({ "armed_since": null }));
    journal.add(130, json!({ "kind": "left", "why": "lunch" }), json!({ "runner": null }));
    let told = journal.told();
    assert_eq!(told.unreadable, 0);
    assert_eq!(told.timeline.total, Took { work_ms: 40_000, service_ms: 60_000, paused_ms: 30_000, ..Took::default() });
    assert_eq!(told.timeline.until(told.last.unwrap_or(0) + 5_000).1.paused_ms, 35_000);
    assert_eq!((told.open.sessions, told.open.tool_calls, told.open.total_tokens(), told.open.usd_micros), (3, Some(2), 15, Some(100)));
    assert_eq!(told.troubles.kept[0].what, "the account's limit is used up");
    assert_eq!(told.why.as_deref(), Some("lunch"));
}

/// The first iteration of a loop that a session took when it stopped, and the last one of a run that somebody pauses.
#[test]
fn eyes_2_who_stops_has_worked() {
    let mut journal = Journal::new();
    journal.add(0, started(), json!({ "owner": null }));
    journal.add(12, json!({ "kind": "adopted" }), json!({ "owner": "s1" }));
    journal.stop(12, 1, (json!({ "is": "none" }), "promise.missing", goes_on(2)), json!([]), json!({ "iteration": 2 }));
    assert_eq!(journal.told().rounds[0].took.work_ms, 12_000);
    journal.add(
        12,
        json!({ "kind": "began", "iteration": 2, "attempt": 1, "agent": "claude", "log": "x" }),
        json!({ "runner": { "pid": 1 } }),
    );
    journal.add(20, json!({ "kind": "paused", "by": "command-line", "why": "" }), json!({ "armed_since": null }));
    journal.stop(30, 2, (json!({ "is": "none" }), "loop.paused", json!({ "loop": "pauses" })), json!([]), json!({}));
    let told = journal.told();
    assert_eq!((told.rounds[1].took.work_ms, told.rounds[1].took.paused_ms), (18_000, 0));
}

/// What a person is told of the time between two tries.
#[test]
fn eyes_2_a_rest_after_a_crash_is_no_wait_for_a_quota() {
    let mut journal = Journal::new();
    journal.add(0, started(), json!({ "runner": { "pid": 1 } }));
    let crash = json!({ "outcome": "failed", "trouble": { "trouble": "crash", "code": 1, "signal": null } });
    let broke =
        json!({ "kind": "broke", "iteration": 1, "attempt": 1, "outcome": crash, "then": { "then": "again", "at": 5 }, "work": {} });
    journal.add(10, broke, json!({}));
    let parked = json!({ "since": 1, "what": "a crash", "until": 5, "tools": "unknown", "idle_rounds": 0 });
    journal.add(10, json!({ "kind": "waiting", "what": "a crash" }), json!({ "parked": parked }));
    journal.add(40, json!({ "kind": "began", "iteration": 1, "attempt": 2, "agent": "claude", "log": "x" }), json!({ "parked": null }));
    let told = journal.told();
    assert_eq!(
        (told.unreadable, told.timeline.total.work_ms, told.timeline.total.paused_ms, told.timeline.total.service_ms),
        (0, 10_000, 30_000, 0)
    );
}

#[test]
fn eyes_2_a_parked_round_that_is_ruled_on_again_is_one_round() {
    let mut journal = Journal::new();
    journal.add(0, started(), json!({}));
    let parked = json!({ "since": 1, "what": "checks", "tools": "used", "idle_rounds": 0 });
    journal.stop(10, 1, (made(), "gate.waiting", json!({ "loop": "parks" })), gate("wait", 0), json!({ "parked": parked }));
    journal.stop(70, 1, (made(), "promise.unproven", goes_on(2)), gate("fail", 0), json!({ "parked": null, "iteration": 2 }));
    let told = journal.told();
    assert_eq!(told.rounds.len(), 1);
    assert_eq!((told.rounds[0].took.work_ms, told.rounds[0].took.elsewhere_ms, told.rounds[0].stop), (10_000, 60_000, 2));
}

#[test]
fn eyes_1_what_cannot_be_read_costs_only_itself() {
    let mut journal = Journal::new();
    journal.add(0, started(), json!({}));
    let mut bytes = format!("{}\nhalf a li", journal.lines[0]).into_bytes();
    bytes.extend_from_slice(b"\n\xff\xfe\n\n{\"v\":1}\n");
    let told = History::of(&bytes);
    assert_eq!((told.records, told.unreadable, told.prompt.as_str()), (1, 3, "Fix it"));
}

#[test]
fn eyes_1_a_line_that_ends_like_the_one_before_is_read_as_strictly() {
    let line = |more: &str| {
        format!(r#"{{"v":1,"seq":1,"at":"x","loop":"a"{more},"event":{{"kind":"adopted"}},"state":{{"name":"n","stops":3,"owner":"s1"}}}}"#)
    };
    let good = line("");
    let wrong = [
        line(r#","state":{"stops":4}"#),
        line(r#","state":null"#),
        good.replace("\"v\"", ""),
        good.replacen('{', "", 1),
        good[40..].to_owned(),
    ];
    let others =
        [good.replace("}}", "} }"), good.replace("}}", r#"},"more":1}"#), good.replace(r#""v":1,"#, "").replace("}}", r#"},"v":1}"#)];
    let journal =
        [good.clone()].into_iter().chain(wrong.clone()).chain(others).chain([good.clone(), good.clone()]).collect::<Vec<_>>().join("\n");
    let told = History::of(journal.as_bytes());
    assert_eq!((told.records, told.unreadable), (6, wrong.len() as u64), "{journal}");
    assert_eq!((told.state.stops, told.state.name.as_deref(), told.holder()), (3, Some("n"), Holder::Session("s1")));
    let no_text = [good.as_bytes(), b"\n", &good.as_bytes()[..30], b"\xff", &good.as_bytes()[30..], b"\n", good.as_bytes()].concat();
    let told = History::of(&no_text);
    assert_eq!((told.records, told.unreadable, told.state.name.as_deref()), (2, 1, Some("n")));
}

#[test]
fn eyes_1_clocks_that_run_backwards_and_times_that_are_none_break_nothing() {
    let mut journal = Journal::new();
    journal.add(100, started(), json!({}));
    journal.stop(40, 1, (made(), "promise.unproven", goes_on(2)), json!([]), json!({ "iteration": 2 }));
    journal.lines[1]["at"] = json!("yesterday");
    journal.stop(i64::MAX / 2_000_000, 2, (made(), "promise.unproven", goes_on(3)), json!([]), json!({}));
    let told = journal.told();
    assert_eq!(told.rounds.len(), 2);
    assert!(told.rounds.iter().all(|iteration| iteration.began <= iteration.ended));
}

#[test]
fn eyes_2_a_loop_that_stands_there_again_is_not_over() {
    let mut journal = Journal::new();
    journal.add(0, started(), json!({}));
    journal.add(5, json!({ "kind": "cancelled", "by": "session", "iteration": 1 }), json!({ "ended": "cancelled" }));
    assert_eq!(journal.told().ended.map(|e| (e.ending, e.code)), Some((Ending::Cancelled, None)));
    journal.add(9, json!({ "kind": "resumed", "by": "session", "iteration": 1 }), json!({ "ended": null }));
    let told = journal.told();
    assert_eq!(told.ended, None);
    assert_eq!((told.timeline.total.work_ms, told.timeline.total.paused_ms), (5_000, 4_000), "nothing of the time is lost");
}

#[test]
fn eyes_2_each_session_is_named_once_where_it_came_last() {
    let line = |session: &str| {
        json!({ "v": 1, "seq": 1, "at": "2026-11-15T00:00:00.000Z", "loop": "main-1", "session": session, "event": { "kind": "adopted" }, "state": {} }).to_string()
    };
    let told = History::of(["a", "b", "b", "a", "c"].map(line).join("\n").as_bytes());
    assert_eq!(told.sessions, ["b", "a", "c"]);
}

fn broke(denied: &[(&str, &str)]) -> Value {
    let denied: Vec<Value> = denied.iter().map(|(rule, what)| json!({ "tool": "Bash", "what": what, "rule": rule })).collect();
    let (outcome, then) = (json!({ "outcome": "cut", "by": "time" }), json!({ "then": "judge" }));
    json!({ "kind": "broke", "iteration": 1, "attempt": 1, "outcome": outcome, "then": then, "work": { "denied": denied } })
}

#[test]
fn s4_6_what_was_missed_most_comes_first_and_an_earlier_run_does_not_count() {
    let mut journal = Journal::new();
    journal.add(0, broke(&[("Bash(make:*)", "make")]), json!({}));
    journal.add(0, json!({ "kind": "taken", "pid": 1 }), json!({}));
    journal.add(0, broke(&[("Edit", "a.rs"), ("Bash(npm test:*)", "npm test")]), json!({}));
    journal.add(0, broke(&[("Bash(npm test:*)", "npm test -- x")]), json!({}));
    let told = journal.told();
    let shown: Vec<String> = Denials::sorted(told.denied_in_run).iter().map(|d| format!("{} {} {}", d.rule, d.times, d.what)).collect();
    assert_eq!((told.unreadable, shown), (0, vec!["Bash(npm test:*) 2 npm test -- x".to_owned(), "Edit 1 a.rs".to_owned()]));
    assert_eq!(told.denied.len(), 3);
}

fn began(agent: &str, model: &str) -> Value {
    json!({ "kind": "began", "iteration": 1, "attempt": 1, "agent": agent, "model": model, "log": "l" })
}

fn worked(tokens: u64, usd_micros: u64) -> Value {
    json!({ "input": tokens, "usd_micros": usd_micros, "took_ms": 1 })
}

/// A run's session breaks; then the person's own session ends the iteration. Each has its share, and what the person's session used during the run is not the loop's.
#[test]
fn h8_each_agent_of_an_iteration_has_its_share() {
    let mut journal = Journal::new();
    let run = json!({ "runner": { "pid": 7, "mark": "m", "attempt": 1 } });
    journal.add(0, started(), json!({}));
    journal.add(1, json!({ "kind": "taken", "pid": 7 }), run);
    journal.add(2, began("codex", "gpt-5.5"), json!({}));
    let broke = json!({ "kind": "broke", "iteration": 1, "attempt": 1, "outcome": { "outcome": "interrupted" }, "then": { "then": "pause" }, "work": worked(100, 700) });
    journal.add(9, broke, json!({}));
    journal.add(10, json!({ "kind": "left", "why": "" }), json!({ "runner": null }));
    let goes_on = json!({ "loop": "goes-on", "iteration": 2 });
    let spent = json!({ "spending": { "usd_micros": 50 } });
    journal.add(11, json!({ "kind": "adopted" }), json!({}));
    journal.stop(20, 1, (json!({ "is": "none" }), "promise.missing", goes_on), json!([]), spent);
    let mut told = journal.told();
    assert!(told.has_many_agents() && told.has_own_sessions());
    let by: Vec<_> = told.rounds[0].workers().collect();
    assert_eq!(by, [("codex", Some("gpt-5.5")), ("claude", None)]);
    let rows =
        |told: &History| told.by_agent().iter().map(|row| (row.worker.agent.clone(), row.iterations, row.used.usd())).collect::<Vec<_>>();
    assert_eq!(rows(&told), [("codex".to_owned(), 0, 700), ("claude".to_owned(), 1, 50)]);
    assert_eq!(told.used().usd(), 750);
    // Its transcript tells more than the limit counted.
    let used = |seconds: i64| OwnUse {
        agent: FIRST_AGENT,
        at: 1_794_830_400_000 + seconds * 1000,
        model: Some("opus".into()),
        tokens: Tokens { input: 9, ..Tokens::default() },
        tool_calls: 1,
        usd_micros: Some(60),
        context: 9,
    };
    told.add_own_use(vec![used(5), used(15)]);
    assert_eq!(rows(&told), [("codex".to_owned(), 0, 700), ("claude".to_owned(), 1, 60)]);
    assert_eq!((told.used().usd(), told.rounds[0].model.as_deref()), (760, Some("opus")));
    // What has no known price is named, and is not in the money.
    told.add_own_use(vec![OwnUse { agent: "gemini", usd_micros: None, ..used(25) }]);
    assert_eq!((told.open.unpriced_tokens, told.open.usd_micros, told.used().usd()), (9, None, 760));
}

#[test]
fn h8_a_forged_journal_has_no_more_rows_than_a_page_can_show() {
    let mut journal = Journal::new();
    journal.add(0, started(), json!({}));
    for n in 0..3 * MOST {
        journal.add(1, began("codex", &format!("m{n}")), json!({}));
        journal.add(1, json!({ "kind": "broke", "iteration": 1, "attempt": 1, "outcome": { "outcome": "interrupted" }, "then": { "then": "pause" }, "work": worked(1, 1) }), json!({}));
    }
    let told = journal.told();
    assert_eq!((told.by_agent().len(), told.used().usd()), (MOST, 3 * MOST as u64));
    assert_eq!(told.by_agent().iter().map(|row| row.used.usd()).sum::<u64>(), 3 * MOST as u64);
}
