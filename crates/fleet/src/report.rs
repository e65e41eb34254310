//! What happened: for people in the morning, and for programs.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use ralph_core::{
    money,
    text::{clean, time::Millis},
};
use ralph_engine::sys::clock;
use serde_json::{Value, json};

use crate::{
    board::{Board, Card},
    history::{self, Attempt, Line, Phase, Span, time_in},
    problem::Result,
    records::State,
    screen::{self, Around, summary, word},
    settings::{Land, Place, Settings},
    store::Store,
};

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
    let (lines, around) = (history::read(&**store)?, Around::read(&**store, place)?);
    let mut out = summary(board);
    out.push('\n');
    out.push_str(&money(board, &around));
    if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
        let _ = write!(out, ", from {} to {}", clock::shortly(first.at), clock::shortly(last.at));
    }
    out.push('\n');
    let spans = history::spans(&lines, clock::now());
    let all = Scale::of(&lines);
    let mut cards: Vec<(&str, &Card)> = board.cards().collect();
    cards.sort_by_key(|(_, card)| (card.job.state != State::NeedsPerson, card.spec.number));
    for (id, card) in cards {
        let of_job = spans.get(id).map_or(&[][..], Vec::as_slice);
        job(board, id, card, place, of_job, all.as_ref(), &mut out);
    }
    if all.is_some() && !spans.is_empty() {
        let _ = write!(out, "\n\n          {WORK} an agent works  {QUEUE} proven  {LANDING} lands  {STILL} parked, or needs you");
    }
    for line in [backlog(board, &lines), flaky(&lines)].into_iter().flatten() {
        let _ = write!(out, "\n\n{line}");
    }
    for line in next(board, &around, settings) {
        let _ = write!(out, "\n\n{line}");
    }
    Ok(out)
}

/// What was spent, and what a job that landed cost.
pub(crate) fn money(board: &Board, around: &Around) -> String {
    let spent = around.ledger.spent_micros;
    let landed = board.cards().filter(|(_, card)| card.job.state == State::Landed).count() as u64;
    let mut words = format!("{} spent", money::shown(spent));
    if landed > 0 && spent > 0 {
        let _ = write!(words, ", {} for each job that landed", money::shown(spent / landed));
    }
    words
}

fn job(board: &Board, id: &str, card: &Card, place: &Place, spans: &[Span], scale: Option<&Scale>, out: &mut String) {
    let name = card.spec.item.as_deref().unwrap_or(id);
    let _ = write!(out, "\n{:<10}{}  {}", word(card.job.state), clean(name), clean(card.spec.task.lines().next().unwrap_or_default()));
    if let Some(scale) = scale.filter(|_| !spans.is_empty()) {
        let _ = write!(out, "\n          {}", scale.drawn(spans));
    }
    if card.job.iterations > 0 {
        let plural = if card.job.iterations == 1 { "" } else { "s" };
        let landing = span(time_in(spans, &[Phase::Queue, Phase::Landing]));
        let worked = span(time_in(spans, &[Phase::Work]));
        let _ = write!(out, "\n          {} iteration{plural}, {worked} of work, {landing} until it landed", card.job.iterations);
        let _ = if card.job.usd_micros > 0 { write!(out, ", {}", money::shown(card.job.usd_micros)) } else { Ok(()) };
    }
    let why = match card.job.state {
        _ if card.left_alone().is_some() => format!("left alone: {}", card.left_alone().unwrap_or_default()),
        State::Landed | State::Cancelled | State::Runs | State::Lands => String::new(),
        State::NeedsPerson => card.job.why.clone(),
        _ => screen::doing(board, id, card, place),
    };
    for line in why.lines().take(6) {
        let _ = write!(out, "\n          {}", clean(line));
    }
}

const WORK: char = '█';
const QUEUE: char = '░';
const LANDING: char = '▓';
const STILL: char = '·';

/// The time of the whole fleet, on a line of some columns.
struct Scale {
    from: Millis,
    to: Millis,
}

impl Scale {
    const COLUMNS: Millis = 60;

    fn of(lines: &[Line]) -> Option<Self> {
        let (from, to) = (lines.iter().map(|line| line.at).min()?, lines.iter().map(|line| line.at).max()?);
        (to > from).then_some(Scale { from, to })
    }

    /// A time line: in each column what took the most of it.
    fn drawn(&self, spans: &[Span]) -> String {
        let edge = |column: Millis| self.from + (self.to - self.from) * column / Self::COLUMNS;
        let line: String = (0..Self::COLUMNS)
            .map(|column| {
                let (from, to) = (edge(column), edge(column + 1));
                let inside = |span: &&Span| (span.to.min(to) - span.from.max(from)).max(0);
                let most = spans.iter().filter(|span| inside(span) > 0).max_by_key(inside);
                most.map_or(' ', |span| match span.phase {
                    Phase::Work => WORK,
                    Phase::Queue => QUEUE,
                    Phase::Landing => LANDING,
                    Phase::Parked | Phase::NeedsPerson => STILL,
                })
            })
            .collect();
        line.trim_end().to_owned()
    }
}

/// What is still open, and how long that takes at the pace so far.
pub(crate) fn backlog(board: &Board, lines: &[Line]) -> Option<String> {
    let open = |state: State| board.cards().filter(|(_, card)| card.job.state == state).count();
    let (waits, parked) = (open(State::Waits), open(State::Parked));
    if waits + parked == 0 {
        return None;
    }
    let for_others = board.cards().filter(|(_, card)| card.job.state == State::Waits && board.waits_for(card).next().is_some()).count();
    let mut words = format!("Backlog: {waits} {}", if waits == 1 { "waits" } else { "wait" });
    match for_others {
        0 => {}
        _ if for_others == waits => words.push_str(" for others to land"),
        _ => {
            let _ = write!(words, ", {for_others} of them for others to land");
        }
    }
    if parked > 0 {
        let _ = write!(words, "; {parked} parked");
    }
    let landings: Vec<Millis> = lines.iter().filter(|line| line.event == "landed").map(|line| line.at).collect();
    if let (Some(first), Some(last), count @ 1..) = (lines.first(), landings.last(), landings.len()) {
        let pace = (last - first.at) / Millis::try_from(count).unwrap_or(Millis::MAX);
        let rest = pace.saturating_mul(Millis::try_from(waits + parked).unwrap_or(Millis::MAX));
        let _ = write!(words, ". One landed every {}: at that pace the rest takes {}", span(pace), span(rest));
    }
    Some(words)
}

fn flaky(lines: &[Line]) -> Option<String> {
    let gates = history::flaky(lines);
    let rows: Vec<String> = gates.iter().map(|(gate, times)| format!("\n  {times} × {}", clean(gate))).collect();
    (!rows.is_empty()).then(|| format!("Failed once and passed when tried again:{}", rows.concat()))
}

/// What to do next.
pub(crate) fn next(board: &Board, around: &Around, settings: &Settings) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(trouble) = &around.trouble {
        lines.push(format!("Landing waits: {}", clean(trouble)));
    }
    if board.cards().any(|(_, card)| card.job.state == State::NeedsPerson) {
        lines.push(
            "What needs you: see to it, then `ralph fleet release JOB` and `ralph fleet run`, or `ralph fleet cancel JOB`.".to_owned(),
        );
    }
    if settings.review && board.cards().any(|(_, card)| card.is_waiting_for_review()) {
        lines.push("Look at what is proven (`git log refs/ralph-fleet/…` in the fleet's repository), then `ralph fleet land JOB` or `ralph fleet back JOB \"why\"`.".to_owned());
    }
    lines.extend(bring(board, settings).map(|line| format!("To bring the work into {}: {line}", settings.base)));
    lines
}

/// The line that brings the work into the person's branch.
pub(crate) fn bring(board: &Board, settings: &Settings) -> Option<String> {
    let has_landed = board.cards().any(|(_, card)| card.job.state == State::Landed);
    let line = || format!("git switch {} && git merge --ff-only {}", settings.base, settings.target);
    (has_landed && settings.land == Land::Branch).then(line)
}

/// Everything, for programs.
pub fn json(board: &Board, store: &Arc<dyn Store>, place: &Place, settings: &Settings) -> Result<String> {
    let (lines, around) = (history::read(&**store)?, Around::read(&**store, place)?);
    let (spans, attempts) = (history::spans(&lines, clock::now()), history::attempts(&lines));
    let jobs: Vec<_> = board
        .cards()
        .map(|(id, card)| {
            let spans = spans.get(id).map_or(&[][..], Vec::as_slice);
            let (worked, landing) = (time_in(spans, &[Phase::Work]), time_in(spans, &[Phase::Queue, Phase::Landing]));
            let attempts: Vec<_> = attempts.get(id).into_iter().flatten().map(attempt).collect();
            json!({
                "id": id, "item": card.spec.item, "task": card.spec.task, "state": card.job.state, "why": card.job.why, "iterations": card.job.iterations,
                "usd": money::in_dollars(card.job.usd_micros), "tokens": card.job.tokens, "commit": card.job.commit, "token": card.job.token, "worker": card.job.worker,
                "returns": card.job.returns, "worked_ms": worked, "landing_ms": landing, "waits_for": board.waits_for(card).collect::<Vec<_>>(),
                "sealed": card.left_alone(), "time_line": spans, "attempts": attempts,
            })
        })
        .collect();
    let flaky: Vec<_> =
        lines.iter().filter(|line| line.event == "flaky").map(|line| json!({ "job": line.job, "gate": line.text })).collect();
    let whole = json!({
        "fleet": place.id, "list": settings.list, "base": settings.base, "target": settings.target, "wish": board.want.wish,
        "usd": money::in_dollars(around.ledger.spent_micros), "usd_limit": money::in_dollars(around.ledger.limit_micros), "landing_waits": around.trouble,
        "jobs": jobs, "flaky": flaky, "workers": workers(&attempts),
    });
    Ok(serde_json::to_string_pretty(&whole).unwrap_or_default())
}

fn attempt(attempt: &Attempt) -> Value {
    json!({
        "token": attempt.token, "worker": attempt.worker, "iterations": attempt.iterations, "usd": money::in_dollars(attempt.usd_micros),
    })
}

/// What each worker did and spent.
fn workers(attempts: &BTreeMap<&str, Vec<Attempt>>) -> BTreeMap<String, Value> {
    let mut workers: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for attempt in attempts.values().flatten() {
        let sum = workers.entry(attempt.worker.clone().unwrap_or_default()).or_default();
        *sum = (sum.0 + attempt.iterations, sum.1 + attempt.usd_micros);
    }
    workers.into_iter().map(|(name, (n, usd))| (name, json!({ "iterations": n, "usd": money::in_dollars(usd) }))).collect()
}
