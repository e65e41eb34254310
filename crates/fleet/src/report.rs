//! What happened: for people in the morning, for programs, and for Prometheus.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use ralph_core::{
    money,
    text::{clean, time::Millis},
};
use ralph_engine::sys::clock;
use serde::Deserialize;
use serde_json::json;

use crate::{
    board::{Board, Card},
    fleet::LOG,
    problem::Result,
    records::State,
    screen::{Around, summary, word},
    settings::{Land, Place, Settings},
    store::Store,
};

/// A line of the log.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    at: Millis,
    job: String,
    event: String,
    #[serde(default)]
    worker: Option<String>,
    #[serde(default)]
    text: String,
}

fn log(store: &dyn Store) -> Result<Vec<Line>> {
    Ok(store.read_log(LOG)?.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// A line of the log, for a person who looks on.
pub fn told(line: &str) -> Option<String> {
    let line: Line = serde_json::from_str(line).ok()?;
    let mut told = format!("{}  {:<12} {}", clock::shortly(line.at), line.event, line.job);
    if let Some(worker) = line.worker.filter(|_| line.event == "began") {
        let _ = write!(told, " ({worker})");
    }
    if let Some(first) = line.text.lines().next().filter(|text| !text.is_empty()) {
        let _ = write!(told, ": {}", clean(first));
    }
    Some(told)
}

/// How long each job was in an agent's hands, and how long it waited to land.
fn times(lines: &[Line]) -> BTreeMap<&str, (Millis, Millis)> {
    let mut times: BTreeMap<&str, (Millis, Millis)> = BTreeMap::new();
    let mut since: BTreeMap<&str, (Millis, bool)> = BTreeMap::new();
    for line in lines {
        if let Some((began, works)) = since.remove(line.job.as_str()) {
            let time = times.entry(&line.job).or_default();
            let part = if works { &mut time.0 } else { &mut time.1 };
            *part += line.at - began;
        }
        match line.event.as_str() {
            "began" | "iteration" => since.insert(&line.job, (line.at, true)),
            "proven" | "landing" | "flaky" => since.insert(&line.job, (line.at, false)),
            _ => None,
        };
    }
    times
}

fn span(ms: Millis) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// The morning page.
pub fn text(board: &Board, store: &Arc<dyn Store>, place: &Place, settings: &Settings) -> Result<String> {
    let (lines, around) = (log(&**store)?, Around::read(&**store, place)?);
    let times = times(&lines);
    let mut out = summary(board);
    let landed = board.cards().filter(|(_, card)| card.job.state == State::Landed).count();
    let ledger = &around.ledger;
    let _ = write!(out, "\n{} spent", money::shown(ledger.spent_micros));
    if landed > 0 && ledger.spent_micros > 0 {
        let _ = write!(out, ", {} for each job that landed", money::shown(ledger.spent_micros / landed as u64));
    }
    if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
        let _ = write!(out, ", from {} to {}", clock::shortly(first.at), clock::shortly(last.at));
    }
    out.push('\n');
    let mut cards: Vec<(&str, &Card)> = board.cards().collect();
    cards.sort_by_key(|(_, card)| (card.job.state != State::NeedsPerson, card.spec.number));
    for (id, card) in cards {
        let (worked, landing) = times.get(id).copied().unwrap_or_default();
        let name = card.spec.item.as_deref().unwrap_or(id);
        let _ = write!(out, "\n{:<10}{}  {}", word(card.job.state), clean(name), clean(card.spec.task.lines().next().unwrap_or_default()));
        if card.job.iterations > 0 {
            let plural = if card.job.iterations == 1 { "" } else { "s" };
            let _ = write!(
                out,
                "\n          {} iteration{plural}, {} of work, {} until it landed",
                card.job.iterations,
                span(worked),
                span(landing)
            );
            let _ = if card.job.usd_micros > 0 { write!(out, ", {}", money::shown(card.job.usd_micros)) } else { Ok(()) };
        }
        if let Some(why) = card.left_alone() {
            let _ = write!(out, "\n          left alone: {}", clean(why));
        }
        for line in card.job.why.lines().take(6).filter(|_| !matches!(card.job.state, State::Landed)) {
            let _ = write!(out, "\n          {}", clean(line));
        }
    }
    flaky(&lines, &mut out);
    next(board, &around, settings, landed, &mut out);
    Ok(out)
}

fn flaky(lines: &[Line], out: &mut String) {
    let mut tests: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.event == "flaky") {
        *tests.entry(line.text.lines().next().unwrap_or_default()).or_default() += 1;
    }
    if !tests.is_empty() {
        out.push_str("\n\nFailed once and passed when tried again:");
        for (test, times) in tests {
            let _ = write!(out, "\n  {times} × {}", clean(test));
        }
    }
}

/// What to do next.
fn next(board: &Board, around: &Around, settings: &Settings, landed: usize, out: &mut String) {
    if let Some(trouble) = &around.trouble {
        let _ = write!(out, "\n\nLanding waits: {}", clean(trouble));
    }
    if board.cards().any(|(_, card)| card.job.state == State::NeedsPerson) {
        out.push_str("\n\nWhat needs you: see to it, then `ralph fleet release JOB` and `ralph fleet run`, or `ralph fleet cancel JOB`.");
    }
    if settings.review && board.cards().any(|(_, card)| card.is_waiting_for_review()) {
        out.push_str("\n\nLook at what is proven (`git log refs/ralph-fleet/…` in the fleet's repository), then `ralph fleet land JOB` or `ralph fleet back JOB \"why\"`.");
    }
    if landed > 0 && settings.land == Land::Branch {
        let _ = write!(
            out,
            "\n\nTo bring the work into {}: git switch {} && git merge --ff-only {}",
            settings.base, settings.base, settings.target
        );
    }
}

/// Everything, for programs.
pub fn json(board: &Board, store: &Arc<dyn Store>, place: &Place, settings: &Settings) -> Result<String> {
    let (lines, around) = (log(&**store)?, Around::read(&**store, place)?);
    let times = times(&lines);
    let jobs: Vec<_> = board
        .cards()
        .map(|(id, card)| {
            let (worked, landing) = times.get(id).copied().unwrap_or_default();
            json!({
                "id": id, "item": card.spec.item, "task": card.spec.task, "state": card.job.state, "why": card.job.why, "iterations": card.job.iterations,
                "usd": money::in_dollars(card.job.usd_micros), "tokens": card.job.tokens, "commit": card.job.commit, "token": card.job.token, "worker": card.job.worker,
                "returns": card.job.returns, "worked_ms": worked, "landing_ms": landing, "waits_for": board.waits_for(card).collect::<Vec<_>>(),
                "sealed": card.left_alone(),
            })
        })
        .collect();
    let flaky: Vec<_> =
        lines.iter().filter(|line| line.event == "flaky").map(|line| json!({ "job": line.job, "gate": line.text })).collect();
    let whole = json!({
        "fleet": place.id, "list": settings.list, "base": settings.base, "target": settings.target, "wish": board.want.wish,
        "usd": money::in_dollars(around.ledger.spent_micros), "usd_limit": money::in_dollars(around.ledger.limit_micros), "landing_waits": around.trouble,
        "jobs": jobs, "flaky": flaky,
    });
    Ok(serde_json::to_string_pretty(&whole).unwrap_or_default())
}

/// Prometheus' text format.
pub fn metrics(board: &Board, store: &Arc<dyn Store>, place: &Place) -> Result<String> {
    let around = Around::read(&**store, place)?;
    let fleet = &place.id;
    let mut out = String::from("# HELP ralph_fleet_jobs Jobs by state.\n# TYPE ralph_fleet_jobs gauge\n");
    for state in
        [State::Waits, State::Runs, State::Parked, State::Proven, State::Lands, State::Landed, State::NeedsPerson, State::Cancelled]
    {
        let n = board.cards().filter(|(_, card)| card.job.state == state).count();
        let _ = writeln!(out, "ralph_fleet_jobs{{fleet=\"{fleet}\",state=\"{}\"}} {n}", word(state));
    }
    let figures = [
        ("spent_usd_total", "counter", "Dollars spent.", money::in_dollars(around.ledger.spent_micros).to_string()),
        (
            "reserved_usd",
            "gauge",
            "Dollars set aside for sessions that run.",
            money::in_dollars(around.ledger.reserved.values().sum()).to_string(),
        ),
        (
            "iterations_total",
            "counter",
            "Iterations of all jobs.",
            board.cards().map(|(_, card)| card.job.iterations).sum::<u64>().to_string(),
        ),
        (
            "returns_total",
            "counter",
            "Jobs that landing sent back.",
            board.cards().map(|(_, card)| u64::from(card.job.returns)).sum::<u64>().to_string(),
        ),
        (
            "flaky_total",
            "counter",
            "Gates that failed once and then passed.",
            log(&**store)?.iter().filter(|line| line.event == "flaky").count().to_string(),
        ),
    ];
    for (name, kind, about, value) in figures {
        let _ = write!(
            out,
            "# HELP ralph_fleet_{name} {about}\n# TYPE ralph_fleet_{name} {kind}\nralph_fleet_{name}{{fleet=\"{fleet}\"}} {value}\n"
        );
    }
    Ok(out)
}
