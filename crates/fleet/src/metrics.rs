//! A fleet in the text format of Prometheus: a file that a node exporter's textfile collector picks up. Nothing is sent.

use std::fmt::Write as _;

use ralph_core::{
    money,
    text::{clean, time::Millis},
};
use ralph_engine::sys::clock;

use crate::{
    board::Board,
    history::{self, Line, Phase},
    problem::Result,
    records::{State, Wish},
    screen::{self, Around},
    settings::Place,
    store::Store,
};

/// What the figures are made of.
struct Known<'a> {
    board: &'a Board,
    around: Around,
    lines: Vec<Line>,
    now: Millis,
}

/// A family: its name, its type, its help, and its samples.
type Family = (&'static str, &'static str, &'static str, fn(&Known<'_>) -> Vec<Sample>);

/// A label of its own, and a value.
type Sample = (Option<(&'static str, String)>, f64);

const GAUGE: &str = "gauge";
const COUNTER: &str = "counter";

const FAMILIES: &[Family] = &[
    ("ralph_fleet_jobs", GAUGE, "Jobs by state.", jobs),
    ("ralph_fleet_jobs_held_back", GAUGE, "Jobs that wait for others to land.", |known| {
        let waits = known.board.cards().filter(|(_, card)| card.job.state == State::Waits && known.board.waits_for(card).next().is_some());
        plain(waits.count())
    }),
    ("ralph_fleet_paused", GAUGE, "1 while all is paused.", |known| plain(usize::from(known.board.want.wish == Wish::Pause))),
    ("ralph_fleet_landing_blocked", GAUGE, "1 while something keeps all jobs from landing.", |known| {
        plain(usize::from(known.around.trouble.is_some()))
    }),
    ("ralph_fleet_cost_dollars_total", COUNTER, "Dollars spent.", |known| dollars(known.around.ledger.spent_micros)),
    ("ralph_fleet_reserved_dollars", GAUGE, "Dollars set aside for sessions that run.", |known| {
        dollars(known.around.ledger.reserved.values().sum())
    }),
    ("ralph_fleet_cost_dollars_limit", GAUGE, "Dollars that may be spent; absent without a limit.", |known| {
        if known.around.ledger.limit_micros > 0 { dollars(known.around.ledger.limit_micros) } else { Vec::new() }
    }),
    ("ralph_fleet_iterations_total", COUNTER, "Iterations of all jobs.", |known| {
        sum(known.board.cards().map(|(_, card)| card.job.iterations))
    }),
    ("ralph_fleet_tokens_total", COUNTER, "Tokens of all jobs.", |known| sum(known.board.cards().map(|(_, card)| card.job.tokens))),
    ("ralph_fleet_returns_total", COUNTER, "How often landing sent a job back.", |known| {
        sum(known.board.cards().map(|(_, card)| u64::from(card.job.returns)))
    }),
    ("ralph_fleet_seconds_total", COUNTER, "Time of all jobs by what it was spent on.", seconds),
    ("ralph_fleet_flaky_total", COUNTER, "How often a gate failed and passed when it was tried again.", |known| {
        let gates = history::flaky(&known.lines);
        gates.iter().map(|(gate, times)| (Some(("gate", clean(gate))), number(*times))).collect()
    }),
];

pub(crate) fn text(board: &Board, store: &dyn Store, place: &Place) -> Result<String> {
    let known = Known { board, around: Around::read(store, place)?, lines: history::read(store)?, now: clock::now() };
    let fleet = escaped(&place.id);
    let mut out = String::new();
    for (family, kind, help, samples) in FAMILIES {
        let samples = samples(&known);
        if samples.is_empty() {
            continue;
        }
        let _ = writeln!(out, "# HELP {family} {help}\n# TYPE {family} {kind}");
        for (label, value) in samples {
            let own = label.map(|(name, value)| format!(",{name}=\"{}\"", escaped(&value))).unwrap_or_default();
            let _ = writeln!(out, "{family}{{fleet=\"{fleet}\"{own}}} {value}");
        }
    }
    Ok(out)
}

fn jobs(known: &Known<'_>) -> Vec<Sample> {
    screen::STATES
        .map(|state| {
            let count = known.board.cards().filter(|(_, card)| card.job.state == state).count();
            (Some(("state", screen::word(state).to_owned())), number(count))
        })
        .to_vec()
}

fn seconds(known: &Known<'_>) -> Vec<Sample> {
    let spans = history::spans(&known.lines, known.now);
    [
        (Phase::Work, "work"),
        (Phase::Queue, "queue"),
        (Phase::Landing, "landing"),
        (Phase::Parked, "parked"),
        (Phase::NeedsPerson, "needs-person"),
    ]
    .map(|(phase, name)| {
        let ms: Millis = spans.values().map(|spans| history::time_in(spans, &[phase])).sum();
        (Some(("phase", name.to_owned())), number(usize::try_from(ms).unwrap_or(0)) / 1e3)
    })
    .to_vec()
}

fn plain(value: usize) -> Vec<Sample> {
    vec![(None, number(value))]
}

fn sum(values: impl Iterator<Item = u64>) -> Vec<Sample> {
    plain(usize::try_from(values.sum::<u64>()).unwrap_or(usize::MAX))
}

fn dollars(micros: u64) -> Vec<Sample> {
    vec![(None, money::in_dollars(micros))]
}

#[expect(clippy::cast_precision_loss, reason = "figures are far below 2^52")]
fn number(value: usize) -> f64 {
    value as f64
}

/// A value of a label, as the format has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
