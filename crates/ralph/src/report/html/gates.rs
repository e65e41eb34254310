//! Each gate over time: a mark for every measurement, and how many tests failed, old ones and new ones.

use std::fmt::Write as _;

use ralph_core::{
    gate::{TestCounts, Verdict},
    history::Mark,
    report::{GateStory, Report},
    text::{opening, time::measured},
};

use super::{
    count,
    escape::{moment_in_title, plain},
    section,
};
use crate::report::{grouping::size, shared};

/// How many marks are in a row at most, and how many gates are shown.
const COLUMNS: usize = 40;
const GATES: usize = 100;

pub(super) fn shown(r: &Report) -> String {
    if r.gates.is_empty() {
        return section("gates", "Gates over time", "<p>No gate was ever measured.</p>\n");
    }
    let mut body = String::from(
        "<ul class=\"legend\"><li><span class=\"m pass\">✓</span>passes</li><li><span class=\"m fail\">✗</span>fails</li>\
         <li><span class=\"m wait\">…</span>waits</li><li><span class=\"m unknown\">?</span>could not be measured</li>\
         <li><span class=\"m pass cached\">✓</span>outlined: not run again, the files were the same</li>\
         <li><span class=\"m none\"></span>empty: not measured at that stop</li></ul>\n",
    );
    let stops = Stops::of(&r.gates);
    let each = match stops.each {
        1 => "One mark for each stop of the agent, from the first to the last.".to_owned(),
        each => format!("One mark for every {each} stops of the agent, from the first to the last: the worst of them."),
    };
    let _ = writeln!(body, "<p class=\"aside\">{each}</p>");
    r.gates.iter().take(GATES).for_each(|gate| body.push_str(&strip(gate, stops)));
    if r.gates.len() > GATES {
        let _ = writeln!(body, "<p class=\"aside\">And {} more, in <code>ralph report --json</code>.</p>", r.gates.len() - GATES);
    }
    section("gates", "Gates over time", &body)
}

/// The stops that are shown: up to which one, and how many stand together.
#[derive(Clone, Copy)]
struct Stops {
    last: u64,
    each: u64,
}

impl Stops {
    fn of(gates: &[GateStory]) -> Self {
        let last = gates.iter().filter_map(|gate| gate.marks.last()).map(|mark| mark.stop).max().unwrap_or(0).max(1);
        let each = size(usize::try_from(last).unwrap_or(usize::MAX), COLUMNS) as u64;
        Stops { last, each }
    }

    /// The marks of each column, the first stop first. What was measured before the first stop stands in the first one.
    fn columns(self, marks: &[Mark]) -> Vec<&[Mark]> {
        let end = |n: u64| marks.partition_point(|mark| mark.stop <= n);
        (0..self.last.div_ceil(self.each)).map(|n| &marks[if n == 0 { 0 } else { end(n * self.each) }..end((n + 1) * self.each)]).collect()
    }
}

fn strip(gate: &GateStory, stops: Stops) -> String {
    let word = |mark: Option<&Mark>| mark.map_or("unknown", |mark| mark.verdict.as_str());
    let (first, last) = (word(gate.marks.first()), word(gate.marks.last()));
    let (ran, cached) = shared::measurements(&gate.marks);
    let told = match ran {
        0 => format!("not run: {last} before, and the files are the same"),
        1 => format!("measured once: {last}"),
        n => format!("measured {n} times: first {first}, last {last}"),
    };
    let told = if ran > 0 && cached > 0 { format!("{told}; {} not run again", count(cached as u64, "time")) } else { told };
    let gone = if gate.gone { "; not asked for any more" } else { "" };
    let mut out = format!(
        "<div class=\"gate\"><h3>{} <span class=\"aside\">{told}{gone}</span></h3><div class=\"strip\" role=\"img\" aria-label=\"{told}\">",
        plain(&opening(&gate.name, 120))
    );
    for marks in stops.columns(&gate.marks) {
        match marks.iter().max_by_key(|mark| badness(mark)) {
            Some(worst) => {
                let (class, glyph) = (worst.verdict.as_str(), worst.verdict.mark());
                let cached = if marks.iter().all(|mark| mark.cached) { " cached" } else { "" };
                let _ = write!(out, "<span class=\"m {class}{cached}\" title=\"{}\">{glyph}</span>", plain(&title(worst)));
            }
            None => out.push_str("<span class=\"m none\"></span>"),
        }
    }
    out.push_str("</div>");
    out.push_str(&failures(&gate.marks, stops));
    out.push_str("</div>\n");
    out
}

fn badness(mark: &Mark) -> u8 {
    match mark.verdict {
        Verdict::Pass => 0,
        Verdict::Wait => 1,
        Verdict::Unknown => 2,
        Verdict::Fail => 3,
    }
}

fn title(mark: &Mark) -> String {
    let took = if mark.took_ms > 0 { format!(", took {}", measured(mark.took_ms)) } else { String::new() };
    let cached = if mark.cached { ", not run again" } else { "" };
    let tests = mark.counts.map(|counts| format!(", {}", in_words_of(counts))).unwrap_or_default();
    format!("stop {}, {}: {}{tests}{took}{cached}", mark.stop, moment_in_title(mark.at), mark.verdict.as_str())
}

fn in_words_of(counts: TestCounts) -> String {
    let old = counts.old.map(|old| format!(", {old} of them from before")).unwrap_or_default();
    format!("{} of {} fail{old}", counts.failed, count(counts.total, "test"))
}

/// Failing tests as bars under the marks: new ones on top of those that were there when the loop began.
fn failures(marks: &[Mark], stops: Stops) -> String {
    let counted = || marks.iter().filter_map(|mark| mark.counts);
    let most = counted().map(|counts| counts.failed).max().unwrap_or(0);
    let (Some(first), Some(last)) = (counted().next(), counted().next_back()) else { return String::new() };
    if most == 0 {
        return String::new();
    }
    let old = |counts: &TestCounts| counts.old.unwrap_or(0).min(counts.failed);
    let striped = if counted().any(|counts| old(&counts) > 0) { "; striped: they failed before the loop began" } else { "" };
    let mut out = format!(
        "<figure class=\"failures\"><div class=\"columns\" role=\"img\" aria-label=\"Failing tests: {} at first, {} at last\">",
        first.failed, last.failed
    );
    for marks in stops.columns(marks) {
        let worst = marks.iter().filter_map(|mark| mark.counts).max_by_key(|counts| counts.failed);
        let Some(counts) = worst else {
            out.push_str("<span class=\"column\"></span>");
            continue;
        };
        let part = |n: u64| n.saturating_mul(100) / most.max(1);
        let (new, old) = (part(counts.failed - old(&counts)), part(old(&counts)));
        let _ = write!(
            out,
            "<span class=\"column\" title=\"{}\"><span class=\"new\" style=\"height:{new}%\"></span><span class=\"old\" style=\"height:{old}%\"></span></span>",
            in_words_of(counts)
        );
    }
    let _ = write!(
        out,
        "</div><figcaption class=\"aside\">Failing tests: {} at first, {} at last, {most} at most{striped}</figcaption></figure>",
        first.failed, last.failed
    );
    out
}
