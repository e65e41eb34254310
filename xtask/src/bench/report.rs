//! From measured times to ratios, targets and a table. Only ratios within one run mean anything: times are those of one machine at one moment.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;

use crate::bench::cases::id;

/// What was measured of one case.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) case: &'static str,
    pub(super) p50_us: f64,
    pub(super) p95_us: f64,
    pub(super) runs: usize,
    pub(super) peak_kb: u64,
}

impl Measured {
    pub(super) fn of(case: &'static str, mut times: Vec<Duration>, peak_kb: u64) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).map_or(0.0, |t| t.as_secs_f64() * 1e6)
        };
        Measured { case, p50_us: at(50), p95_us: at(95), runs: times.len(), peak_kb }
    }
}

/// What a ratio shall be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// For information.
    Open,
}

/// One ratio and its target.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) what: String,
    pub(super) p50: f64,
    /// The slow ends of both, compared.
    pub(super) p95: Option<f64>,
    pub(super) unit: &'static str,
    pub(super) target: Target,
}

impl Check {
    pub(super) fn is_met(&self) -> bool {
        match self.target {
            Target::AtMost(limit) => self.p50 <= limit,
            Target::AtLeast(limit) => self.p50 >= limit,
            Target::Open => true,
        }
    }
}

/// What a ratio costs that may be missed, and why: by how the row begins. Counted with `strace`, `perf` and `callgrind`.
const REASONS: [(&str, &str); 7] = [
    (
        "no loop, project uses ralph",
        "Where ralph is used, a stop without a loop looks whether the session lost its loop or its list, whether this very stop ended the last loop, and whether a \
         line waits for the person: some 60 system calls more than in a project without ralph, and 9,000 instructions that are run once, from cold memory. \
         Without these looks a loop could vanish without a word.",
    ),
    (
        "loop goes on",
        "The floor copies what it has; ralph decides. It reads the event, the loop's file (twice: without the lock, and under it), the seal and the journal's end, \
         parses them, judges, and writes 1.9 KB of JSON. That is close to 50,000 different instructions, most of them run once and from cold memory, and some 150 system calls, \
         a third of them looks at whose folders these are. A transcript's end is found, read and parsed on top of that.",
    ),
    (
        "bash + jq against ralph, loop goes on",
        "The same as \"loop goes on\". A large part of a call is the start and the end of a process, which no faster hook would have less of; the script spends its time in some \
         30 processes, and gets faster with each version of jq.",
    ),
    (
        "gate, against",
        "The command itself is one part of it: the process is started in a group of its own, two threads read what it prints, and a log keeps it. Two journal lines with \
         their seals and the loop's file are written, and the settings are read again after it.",
    ),
    (
        "gate in git, verdict known",
        "Git believes its index; ralph does not, because an agent may write it. It lists and looks at all 200 files as git does, and then makes a digest of them all and \
         of the ignored ones beside them. On top of that comes the loop that goes on.",
    ),
    (
        "report",
        "Each of some 41,000 records is parsed as what it is and folded into the history, where the floor copies the file and looks for line ends. \
         The JSON has every iteration, span and measurement, 9 MB, and all of it is masked before it is printed. One pass, in pieces; the memory that stays is that of the history.",
    ),
    (
        "peak memory",
        "A call's own memory is 0.1 to 0.2 MB. All else are pages of the program's file, which the system has in memory once for all processes and maps in large pieces \
         wherever one function is run; how large depends on how the file came into memory.",
    ),
];

/// The reasons of those that are missed, as a Markdown list; empty: all are met.
pub(super) fn missed(checks: &[Check]) -> String {
    let missed: Vec<&str> = checks.iter().filter(|check| !check.is_met()).map(|check| check.what.as_str()).collect();
    let told = REASONS.iter().filter(|(begin, _)| missed.iter().any(|what| what.starts_with(begin)));
    let lines = told.map(|(begin, why)| format!("- *{begin}*: {why}\n")).collect::<Vec<_>>().concat();
    if lines.is_empty() { lines } else { format!("What is missed, what it costs and why:\n\n{lines}\n") }
}

/// All ratios of the measured cases; a case that was left out has none.
pub(super) fn checks(all: &[Measured], largest: &str) -> Vec<Check> {
    use Target::{AtLeast, AtMost, Open};
    let large = format!("fallback, {largest}");
    let far = format!("fallback, {largest}, message 5 MB before the end");
    let ratios = [
        ("no loop", id::NO_LOOP, id::FLOOR_NO_LOOP, AtMost(1.12)),
        ("no loop, .claude exists", id::NO_LOOP_CLAUDE, id::FLOOR_NO_LOOP, AtMost(1.12)),
        ("no loop, project uses ralph (floor writes the log line too)", id::NO_LOOP_RALPH, id::FLOOR_NO_LOOP_LOG, AtMost(1.12)),
        ("loop goes on (floor: the same writes)", id::LOOP, id::FLOOR_SAME_WRITES, AtMost(1.25)),
        ("loop goes on (floor: temporary file, fdatasync, rename)", id::LOOP, id::FLOOR_RENAME_SYNC, Open),
        ("loop goes on (floor: temporary file, rename, no sync)", id::LOOP, id::FLOOR_RENAME, Open),
        ("loop goes on, with transcript (floor: the same writes)", id::LOOP_TRANSCRIPT, id::FLOOR_SAME_WRITES, AtMost(1.25)),
        ("fallback, 100 KB (floor: the same writes)", id::FALLBACK_SMALL, id::FLOOR_SAME_WRITES, Open),
        ("fallback, 10 MB against 100 KB", id::FALLBACK_MIDDLE, id::FALLBACK_SMALL, AtMost(1.15)),
        (&format!("{large} against 100 KB"), id::FALLBACK_LARGE, id::FALLBACK_SMALL, AtMost(1.15)),
        (&format!("{far} against 100 KB"), id::FALLBACK_FAR, id::FALLBACK_SMALL, AtMost(3.0)),
        ("bash + jq against ralph, no loop", id::BASH_IDLE, id::NO_LOOP, AtLeast(5.0)),
        ("bash + jq against ralph, loop goes on (both read 100 KB)", id::BASH_ACTIVE, id::FALLBACK_SMALL, AtLeast(100.0)),
        ("gate, against the command alone", id::GATE, id::COMMAND_ALONE, AtMost(5.0)),
        ("gate in git, verdict known, against git status alone", id::GATE_KNOWN, id::GIT_STATUS, AtMost(1.5)),
        ("gate in git, file changed, against git status alone", id::GATE_CHANGED, id::GIT_STATUS, AtMost(4.0)),
        ("bash + jq that runs the command, against gate", id::BASH_GATE, id::GATE, AtLeast(10.0)),
        ("run, five iterations, against the command alone", id::RUN, id::RUN_ALONE, Open),
        ("run, five iterations in git, no snapshots, against bash + jq", id::RUN_GIT, id::RUN_BASH, AtMost(0.35)),
        ("run, five iterations in git, against bash + jq", id::RUN_SNAPSHOTS, id::RUN_BASH, AtMost(0.35)),
        ("status line (floor: a hook without a loop)", id::STATUSLINE, id::FLOOR_NO_LOOP, AtMost(3.0)),
        ("status line, 10 MB of journal (floor: a hook without a loop)", id::STATUSLINE_LONG, id::FLOOR_NO_LOOP, AtMost(4.0)),
        ("status line, no loop (floor: a hook without a loop)", id::STATUSLINE_NONE, id::FLOOR_NO_LOOP, AtMost(1.5)),
        ("report, page, 10,000 iterations (floor: reading the journal)", id::REPORT_HTML, id::FLOOR_READ, AtMost(4.0)),
        ("report, JSON, 10,000 iterations (floor: reading the journal)", id::REPORT_JSON, id::FLOOR_READ, AtMost(4.0)),
        ("watch, first screen, 10,000 iterations (floor: reading the journal)", id::WATCH_FIRST, id::FLOOR_READ, AtMost(4.0)),
        ("watch, all of 10,000 iterations (floor: reading the journal)", id::WATCH_ALL, id::FLOOR_READ, AtMost(15.0)),
        ("cargo install: no loop", id::INSTALLED_NO_LOOP, id::FLOOR_NO_LOOP, AtMost(2.2)),
        ("cargo install: loop goes on (floor: the same writes)", id::INSTALLED_LOOP, id::FLOOR_SAME_WRITES, AtMost(2.5)),
    ];
    let mut checks: Vec<Check> =
        ratios.into_iter().filter_map(|(what, case, floor, target)| ratio(all, what, case, floor, target)).collect();
    checks.extend(memory(all));
    checks
}

fn ratio(all: &[Measured], what: &str, case: &str, floor: &str, target: Target) -> Option<Check> {
    let find = |name: &str| all.iter().find(|m| m.case == name);
    let (case, floor) = (find(case)?, find(floor)?);
    Some(Check { what: what.to_owned(), p50: case.p50_us / floor.p50_us, p95: Some(case.p95_us / floor.p95_us), unit: "×", target })
}

/// The peak memory of the calls that have a target, in MB.
fn memory(all: &[Measured]) -> impl Iterator<Item = Check> {
    let of = |(case, limit): (&str, f64)| {
        let measured = all.iter().find(|m| m.case == case)?;
        #[expect(clippy::cast_precision_loss, reason = "kilobytes of a small program")]
        let megabytes = measured.peak_kb as f64 / 1024.0;
        Some(Check { what: format!("peak memory, {case}"), p50: megabytes, p95: None, unit: "MB", target: Target::AtMost(limit) })
    };
    [(id::NO_LOOP, 3.0), (id::LOOP, 4.0), (id::GATE, 4.5)].into_iter().filter_map(of)
}

/// The ratios as a Markdown table.
pub(super) fn ratio_table(checks: &[Check]) -> String {
    let rows = checks.iter().map(|c| {
        let (target, verdict) = match c.target {
            Target::AtMost(limit) => (format!("≤ {limit}"), if c.is_met() { "met" } else { "MISSED" }),
            Target::AtLeast(limit) => (format!("≥ {limit}"), if c.is_met() { "met" } else { "MISSED" }),
            Target::Open => (String::new(), ""),
        };
        let p95 = c.p95.map(|p| format!("{p:.2} ×")).unwrap_or_default();
        [c.what.clone(), format!("{:.2} {}", c.p50, c.unit), p95, target, verdict.to_owned()]
    });
    table(["ratio", "p50", "p95", "target", ""], &rows.collect::<Vec<_>>())
}

/// Times and memory of every case as a Markdown table.
pub(super) fn case_table(all: &[Measured]) -> String {
    let rows = all.iter().map(|m| {
        [m.case.to_owned(), format!("{:.0} µs", m.p50_us), format!("{:.0} µs", m.p95_us), format!("{} KB", m.peak_kb), m.runs.to_string()]
    });
    table(["case", "p50", "p95", "peak memory", "runs"], &rows.collect::<Vec<_>>())
}

fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).chain([head[column].len(), 3]).max().unwrap_or(3);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let mut out = line(head.to_vec());
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    let _ = writeln!(out, "| {} |", rule.join(" | "));
    for row in rows {
        out.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_from_the_sorted_times() {
        let measured = Measured::of("x", (1..=100).rev().map(Duration::from_micros).collect(), 0);
        assert!((measured.p50_us - 51.0).abs() < 1e-6, "{measured:?}");
        assert!((measured.p95_us - 96.0).abs() < 1e-6, "{measured:?}");
    }

    #[test]
    fn a_case_that_was_left_out_has_no_ratio() {
        let all = [
            Measured { case: id::NO_LOOP, p50_us: 12.0, p95_us: 30.0, runs: 1, peak_kb: 2048 },
            Measured { case: id::FLOOR_NO_LOOP, p50_us: 10.0, p95_us: 20.0, runs: 1, peak_kb: 600 },
        ];
        let checks = checks(&all, "1 GB");
        assert_eq!(
            checks.iter().map(|c| (c.what.as_str(), c.is_met())).collect::<Vec<_>>(),
            [("no loop", false), ("peak memory, no loop", true)]
        );
        assert!(ratio_table(&checks).contains("| 1.20 × "), "{}", ratio_table(&checks));
        assert_eq!(missed(&checks), "", "nothing is known about this one");
    }

    #[test]
    fn what_is_missed_has_its_reason() {
        let check = |what: &str, p50| Check { what: what.to_owned(), p50, p95: None, unit: "×", target: Target::AtMost(1.0) };
        let told = missed(&[check("report, page, 10,000 iterations", 2.0), check("gate, against the command alone", 0.5)]);
        assert!(told.contains("- *report*: ") && !told.contains("gate, against"), "{told}");
    }
}
