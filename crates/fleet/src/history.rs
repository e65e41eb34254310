//! What the log says: when each job was worked on, waited and landed, and what each attempt cost.

use std::{collections::BTreeMap, fmt::Write as _};

use ralph_core::text::{clean, time::Millis};
use ralph_engine::sys::clock;
use serde::{Deserialize, Serialize};

use crate::{fleet::LOG, problem::Result, store::Store};

/// A line of the log.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Line {
    pub at: Millis,
    pub job: String,
    pub event: String,
    #[serde(default)]
    pub token: u64,
    #[serde(default)]
    pub worker: Option<String>,
    /// Of the job, since it began.
    #[serde(default)]
    pub iterations: u64,
    #[serde(default)]
    pub usd_micros: u64,
    #[serde(default)]
    pub text: String,
}

pub(crate) fn read(store: &dyn Store) -> Result<Vec<Line>> {
    read_since(store, &mut 0)
}

/// The lines that came since, as [`Store::log_since`] counts them.
pub(crate) fn read_since(store: &dyn Store, from: &mut u64) -> Result<Vec<Line>> {
    Ok(store.log_since(LOG, from)?.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// A line for a person who looks on.
pub(crate) fn told(line: &Line) -> String {
    let mut told = format!("{}  {:<12} {}", clock::shortly(line.at), line.event, line.job);
    if let Some(worker) = line.worker.as_ref().filter(|_| line.event == "began") {
        let _ = write!(told, " ({worker})");
    }
    if let Some(first) = line.text.lines().next().filter(|text| !text.is_empty()) {
        let _ = write!(told, ": {}", clean(first));
    }
    told
}

/// What a job did for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// In an agent's hands, with its gates.
    Work,
    /// Proven, and not landed yet.
    Queue,
    /// In the lander's hands.
    Landing,
    Parked,
    NeedsPerson,
}

impl Phase {
    /// What begins with an event. `None`: the job only waits for a worker, or is over.
    fn after(event: &str) -> Option<Self> {
        Some(match event {
            "began" | "iteration" => Phase::Work,
            "proven" => Phase::Queue,
            "landing" | "flaky" => Phase::Landing,
            "parked" => Phase::Parked,
            "needs-person" => Phase::NeedsPerson,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Span {
    pub phase: Phase,
    pub from: Millis,
    /// For one that goes on, the time of the reading.
    pub to: Millis,
}

/// The time lines of all jobs, until `now`.
pub(crate) fn spans(lines: &[Line], now: Millis) -> BTreeMap<&str, Vec<Span>> {
    let mut spans: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.event != "lost") {
        let of_job = spans.entry(&line.job).or_default();
        let phase = Phase::after(&line.event);
        if let Some(last) = of_job.last_mut().filter(|last| last.to == Millis::MAX) {
            if phase == Some(last.phase) {
                continue;
            }
            // Clocks of several machines differ.
            last.to = line.at.max(last.from);
        }
        if let Some(phase) = phase {
            of_job.push(Span { phase, from: line.at, to: Millis::MAX });
        }
    }
    for last in spans.values_mut().filter_map(|spans| spans.last_mut()) {
        last.to = last.to.min(now.max(last.from));
    }
    spans
}

/// How long a job was in one of these phases.
pub(crate) fn time_in(spans: &[Span], phases: &[Phase]) -> Millis {
    spans.iter().filter(|span| phases.contains(&span.phase)).map(|span| span.to - span.from).sum()
}

/// What one claim of a job brought, and what it cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub token: u64,
    pub worker: Option<String>,
    pub iterations: u64,
    pub usd_micros: u64,
}

/// The attempts of each job, in their order: those in which an iteration was finished.
pub(crate) fn attempts(lines: &[Line]) -> BTreeMap<&str, Vec<Attempt>> {
    let mut attempts: BTreeMap<&str, Vec<Attempt>> = BTreeMap::new();
    let mut before: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.event == "iteration") {
        let (iterations, usd) = before.insert(&line.job, (line.iterations, line.usd_micros)).unwrap_or_default();
        let of_job = attempts.entry(&line.job).or_default();
        if of_job.last().is_none_or(|last| last.token != line.token) {
            of_job.push(Attempt { token: line.token, worker: line.worker.clone(), ..Attempt::default() });
        }
        if let Some(last) = of_job.last_mut() {
            last.iterations += line.iterations.saturating_sub(iterations);
            last.usd_micros += line.usd_micros.saturating_sub(usd);
        }
    }
    attempts
}

/// Gates that failed once and then passed, with how often.
pub(crate) fn flaky(lines: &[Line]) -> BTreeMap<&str, usize> {
    let mut gates = BTreeMap::new();
    for line in lines.iter().filter(|line| line.event == "flaky") {
        *gates.entry(line.text.lines().next().unwrap_or_default()).or_default() += 1;
    }
    gates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: Millis, event: &str, token: u64, (iterations, usd_micros): (u64, u64)) -> Line {
        let worker = Some(format!("w{token}"));
        Line { at, job: "a".to_owned(), event: event.to_owned(), token, worker, iterations, usd_micros, text: "gate\nmore".to_owned() }
    }

    #[test]
    fn f6_a_time_line_has_what_a_job_did_and_for_how_long() {
        let lines = [
            line(10, "began", 1, (0, 0)),
            line(20, "iteration", 1, (1, 5)),
            line(25, "lost", 9, (0, 0)),
            line(30, "given-back", 1, (1, 5)),
            line(50, "began", 2, (1, 5)),
            line(60, "iteration", 2, (3, 25)),
            line(60, "proven", 2, (3, 25)),
            line(55, "landing", 3, (3, 25)),
            line(70, "flaky", 3, (3, 25)),
        ];
        let spans = spans(&lines, 90);
        let shown: Vec<_> = spans["a"].iter().map(|span| (span.phase, span.from, span.to)).collect();
        assert_eq!(shown, [(Phase::Work, 10, 30), (Phase::Work, 50, 60), (Phase::Queue, 60, 60), (Phase::Landing, 55, 90)]);
        assert_eq!((time_in(&spans["a"], &[Phase::Work]), time_in(&spans["a"], &[Phase::Queue, Phase::Landing])), (30, 35));
        let attempts = attempts(&lines);
        let shown: Vec<_> = attempts["a"].iter().map(|a| (a.token, a.worker.as_deref(), a.iterations, a.usd_micros)).collect();
        assert_eq!(shown, [(1, Some("w1"), 1, 5), (2, Some("w2"), 2, 20)]);
        assert_eq!(flaky(&lines)["gate"], 1);
    }
}
