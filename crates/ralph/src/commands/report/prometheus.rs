//! Loops in the text format of Prometheus: a file that a node exporter's textfile collector, a Grafana agent or an OpenTelemetry collector picks up.
//!
//! Nothing is served and nothing is sent. The agent's own client can report its sessions by OpenTelemetry; this is what only ralph knows.

use std::fmt::Write;

use ralph_core::{
    history::Phase,
    money::{self, Micros},
    report::{GateStory, Report, Standing},
    text::{is_unseen, time::Millis},
};

/// A loop, and the folder that it works in.
pub(super) struct Subject<'a> {
    pub report: &'a Report,
    pub folder: &'a str,
}

/// A family: its name, its type, its help, and its samples.
type Family = (&'static str, &'static str, &'static str, fn(&Report) -> Vec<Sample>);

/// Labels of its own, and a value.
type Sample = (Vec<(&'static str, String)>, f64);

/// All families of all loops; each family once, as the format asks.
pub(super) fn text(subjects: &[Subject<'_>]) -> String {
    let mut out = String::new();
    for (family, kind, help, samples_of) in FAMILIES {
        let mut samples = String::new();
        for subject in subjects {
            for (labels, value) in samples_of(subject.report) {
                let own = labels.iter().fold(String::new(), |own, (name, value)| format!("{own},{name}=\"{}\"", escaped(value)));
                let (folder, name, id) = (escaped(subject.folder), escaped(&subject.report.name), escaped(&subject.report.id));
                let _ = writeln!(samples, "{family}{{project=\"{folder}\",name=\"{name}\",loop=\"{id}\"{own}}} {value}");
            }
        }
        if !samples.is_empty() {
            let _ = write!(out, "# HELP {family} {help}\n# TYPE {family} {kind}\n{samples}");
        }
    }
    out
}

const GAUGE: &str = "gauge";
const COUNTER: &str = "counter";

const FAMILIES: &[Family] = &[
    ("ralph_loop_status", GAUGE, "1 for the status that the loop has.", |r| vec![(vec![("status", r.status.clone())], 1.0)]),
    ("ralph_loop_iteration", GAUGE, "The iteration that the loop is in.", |r| plain(r.figures.iteration)),
    ("ralph_loop_iterations_limit", GAUGE, "The iteration after which the loop ends; absent without a limit.", |r| {
        limit(r.limits.iterations)
    }),
    ("ralph_loop_stops_total", COUNTER, "Stops that were decided.", |r| plain(r.figures.stops)),
    ("ralph_loop_claims_refused_total", COUNTER, "Claims of the agent that did not end the loop.", |r| plain(r.figures.refused)),
    ("ralph_loop_seconds_total", COUNTER, "Time by what it was spent on.", phases),
    ("ralph_loop_seconds_limit", GAUGE, "The time that the loop may work; absent without a limit.", |r| {
        limit(r.limits.ms).into_iter().map(|(labels, ms)| (labels, ms / 1e3)).collect()
    }),
    ("ralph_loop_cost_dollars_total", COUNTER, "What the loop has cost, as far as it is known; absent where it is not.", |r| {
        dollars(r.figures.used.usd_micros)
    }),
    ("ralph_loop_cost_dollars_limit", GAUGE, "What the loop may cost; absent without a limit.", |r| {
        dollars(Some(r.limits.usd_micros).filter(|limit| *limit > 0))
    }),
    ("ralph_loop_tokens_total", COUNTER, "Tokens by kind, as far as they are known; absent where they are not.", tokens),
    ("ralph_loop_acceptance_items", GAUGE, "What has to hold before the loop may end, by how far it is proven.", standings),
    ("ralph_gate_verdict", GAUGE, "1 for what was last found of the gate.", gates),
    ("ralph_gate_duration_seconds", GAUGE, "How long the gate took when it was last run.", durations),
    ("ralph_loop_needs_person", GAUGE, "How many things only a person can do or decide.", |r| plain(r.needs.len() as u64)),
    ("ralph_loop_last_event_timestamp_seconds", GAUGE, "When something last happened to the loop.", |r| {
        r.last.map(|at| (Vec::new(), seconds(at))).into_iter().collect()
    }),
];

fn dollars(usd: Option<Micros>) -> Vec<Sample> {
    usd.map(|usd| (Vec::new(), money::in_dollars(usd))).into_iter().collect()
}

fn plain(n: u64) -> Vec<Sample> {
    vec![(Vec::new(), number(n))]
}

/// 0 means that there is none.
fn limit(n: u64) -> Vec<Sample> {
    if n == 0 { Vec::new() } else { plain(n) }
}

fn phases(report: &Report) -> Vec<Sample> {
    Phase::ALL.map(|phase| (vec![("phase", phase.as_str().to_owned())], number(report.figures.took.of(phase)) / 1e3)).into()
}

fn tokens(report: &Report) -> Vec<Sample> {
    let Some(tokens) = report.figures.used.tokens else { return Vec::new() };
    let kinds =
        [("input", tokens.input), ("output", tokens.output), ("cache_read", tokens.cache_read), ("cache_written", tokens.cache_written)];
    kinds.map(|(kind, n)| (vec![("kind", kind.to_owned())], number(n))).into()
}

fn standings(report: &Report) -> Vec<Sample> {
    let count = |standing: Standing| report.acceptance.iter().filter(|one| one.standing == standing).count();
    let of = |standing: Standing| (vec![("standing", standing.as_str().to_owned())], number(count(standing) as u64));
    Standing::ALL.map(of).into()
}

fn gates(report: &Report) -> Vec<Sample> {
    let last = report.gates.iter().filter(|gate| !gate.gone).filter_map(|gate| Some((gate, gate.marks.last()?)));
    last.map(|(gate, mark)| (vec![("gate", gate.name.clone()), ("verdict", mark.verdict.as_str().to_owned())], 1.0)).collect()
}

fn durations(report: &Report) -> Vec<Sample> {
    let ran = |gate: &GateStory| gate.marks.iter().rev().find(|mark| !mark.cached && mark.took_ms > 0).map(|mark| mark.took_ms);
    let there = report.gates.iter().filter(|gate| !gate.gone);
    there.filter_map(|gate| Some((vec![("gate", gate.name.clone())], number(ran(gate)?) / 1e3))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "the format has no other numbers")]
fn number(n: u64) -> f64 {
    n as f64
}

fn seconds(at: Millis) -> f64 {
    number(u64::try_from(at).unwrap_or(0)) / 1e3
}

/// A label's value: text of any origin. Invisible characters are spelled out, so that two names that look alike stay two.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c if c.is_control() || is_unseen(c) => {
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
