//! Records of a journal, one after the other, with the state that each of them carries.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A journal that is being written.
pub(super) struct Journal {
    id: String,
    now: i64,
    seq: u64,
    session: Option<String>,
    state: Value,
    text: String,
}

/// How a round ended.
pub(super) struct Stop<'a> {
    pub(super) iteration: u64,
    pub(super) claim: Value,
    pub(super) gates: Vec<Value>,
    pub(super) said: &'a str,
    pub(super) work: Value,
    pub(super) is_last: bool,
}

impl Journal {
    pub(super) fn begin(id: &str, now: i64, prompt: &str, runner: &Value) -> Self {
        let state = json!({ "name": "main", "stops": 0, "iteration": 1, "armed_since": now, "spent_ms": 0, "idle_rounds": 0, "gated": true, "runner": runner });
        let mut journal = Journal { id: id.to_owned(), now, seq: 0, session: None, state, text: String::new() };
        let prompt = prompt.split('\n').next().unwrap();
        journal.event(&json!({ "kind": "started", "file": ".claude/ralph-loop.local.md", "by": "command-line", "prompt": prompt }), None);
        journal.event(&json!({ "kind": "taken", "pid": runner["pid"] }), None);
        journal
    }

    pub(super) fn now(&self) -> i64 {
        self.now
    }

    pub(super) fn stops(&self) -> u64 {
        self.state["stops"].as_u64().unwrap()
    }

    pub(super) fn text(self) -> String {
        self.text
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += seconds * 1000;
    }

    /// How long the loop has been armed.
    pub(super) fn spent(&self) -> i64 {
        self.state["spent_ms"].as_i64().unwrap() + self.now - self.state["armed_since"].as_i64().unwrap_or(self.now)
    }

    /// Changes what this record and those after it carry.
    pub(super) fn state(&mut self, change: &Value) {
        for (key, value) in change.as_object().unwrap() {
            self.state[key] = value.clone();
        }
        self.state.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }

    pub(super) fn event(&mut self, event: &Value, change: Option<&Value>) {
        if let Some(change) = change {
            self.state(change);
        }
        self.seq += 1;
        // In the order in which ralph writes the fields.
        let session = self.session.as_ref().map(|session| format!("\"session\":{},", json!(session))).unwrap_or_default();
        let mut fields = event.as_object().unwrap().clone();
        let kind = fields.remove("kind").unwrap();
        let fields = Value::from(fields).to_string().replacen('{', if event.as_object().unwrap().len() > 1 { "," } else { "" }, 1);
        let _ = writeln!(
            self.text,
            "{{\"v\":1,\"seq\":{},\"at\":{},\"loop\":{},{session}\"event\":{{\"kind\":{kind}{fields},\"state\":{}}}",
            self.seq,
            json!(stamp(self.now)),
            json!(self.id),
            self.state
        );
    }

    pub(super) fn began(&mut self, iteration: u64, attempt: u64, item: &str) {
        self.session = Some(format!("{iteration:08x}-0000-4000-8000-{attempt:012x}"));
        self.state["owner"] = json!(self.session);
        self.state["runner"]["attempt"] = json!(attempt);
        let log = log(&self.id, iteration, attempt);
        let event = json!({ "kind": "began", "iteration": iteration, "attempt": attempt, "agent": "claude", "model": "claude-opus-5-5", "item": item, "log": log });
        self.event(&event, None);
    }

    /// A gate's command runs for so many seconds.
    pub(super) fn checks(&mut self, gate: &str, command: &str, seconds: i64) {
        self.event(&json!({ "kind": "checking", "gate": gate, "command": command, "limit_ms": 600_000 }), None);
        self.pass(seconds);
    }

    pub(super) fn stop(&mut self, stop: &Stop<'_>, head: &str) {
        let has_failed = stop.gates.iter().any(|gate| gate["verdict"] == "fail");
        let code = match (stop.is_last, stop.claim["is"].as_str()) {
            (true, _) => "promise.accepted",
            (_, Some("made")) if has_failed => "promise.unproven",
            (_, Some("refused")) => "promise.refused",
            _ => "promise.missing",
        };
        let (decision, next) = if stop.is_last {
            ("allow", json!({ "loop": "ends", "ending": "complete" }))
        } else {
            ("block", json!({ "loop": "goes-on", "iteration": stop.iteration + 1 }))
        };
        let spent = self.spent();
        let evidence = json!({
            "active": true, "iteration": stop.iteration, "max_iterations": if self.id == super::ID { 20 } else { 0 }, "promise": super::PROMISE, "claim": stop.claim,
            "message": { "from": "event" }, "queued_input": false, "background": [], "spent_ms": spent, "max_ms": 0, "tools": "used", "idle_rounds": 0,
            "idle_limit": 25, "idle_limit_from": "default", "fresh": true, "gates": stop.gates
        });
        let event = json!({
            "kind": "stop", "evidence": evidence, "ruling": { "decision": decision, "code": code, "next": next }, "said": stop.said, "client": "2.1.325", "work": stop.work
        });
        let iteration = if stop.is_last { stop.iteration } else { stop.iteration + 1 };
        let tree = json!({ "tree": format!("{head} 0011223344556677"), "findings": {}, "rounds": 0 });
        let mut change = json!({ "stops": self.stops() + 1, "iteration": iteration, "standstill": tree });
        if stop.is_last {
            (change["ended"], change["armed_since"], change["spent_ms"]) = (json!("complete"), Value::Null, json!(spent));
        }
        self.event(&event, Some(&change));
    }

    /// The runner has nothing more to do.
    pub(super) fn ended(&mut self) {
        self.pass(1);
        self.event(&json!({ "kind": "left", "why": "" }), Some(&json!({ "runner": null })));
    }
}

/// Where all is kept that a session says.
pub(super) fn log(id: &str, iteration: u64, attempt: u64) -> String {
    format!(".ralph/rounds/{id}/{iteration:04}-{attempt}.jsonl")
}

/// Milliseconds since 1970 of a minute in UTC.
pub(super) fn at(year: i64, month: i64, day: i64, hour: i64, minute: i64) -> i64 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + hour) * 60 + minute) * 60_000
}

/// RFC 3339 in UTC.
pub(super) fn stamp(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1_000)
}
