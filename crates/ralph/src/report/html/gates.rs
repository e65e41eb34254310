//! Each gate over time: a mark for every measurement, and how many tests failed, old ones and new ones.

use std::fmt::Write as _;

use ralph_core::{
    chronicle::Mark,
    gate::{TestCounts, Verdict},
    report::{GateStory, Report},
    time::in_words,
    words::opening,
};

use super::{
    count, section,
    text::{moment_in_title, plain},
};
use crate::report::thinned::{groups, size};

/// So many marks stand in a row at most; so many gates are shown.
const MARKS: usize = 60;
const GATES: usize = 100;

pub(super) fn shown(r: &Report) -> String {
    if r.gates.is_empty() {
        return section("gates", "Gates over time", "<p>No gate was ever measured.</p>\n");
    }
    let mut body = String::from(
        "<ul class=\"legend\"><li><span class=\"m pass\">✓</span>passes</li><li><span class=\"m fail\">✗</span>fails</li>\
         <li><span class=\"m wait\">…</span>waits</li><li><span class=\"m unknown\">?</span>could not be measured</li>\
         <li><span class=\"m pass cached\">✓</span>outlined: not run again, no file had changed</li></ul>\n",
    );
    r.gates.iter().take(GATES).for_each(|gate| body.push_str(&strip(gate)));
    if r.gates.len() > GATES {
        let _ = writeln!(body, "<p class=\"aside\">And {} more, in <code>ralph report --json</code>.</p>", r.gates.len() - GATES);
    }
    section("gates", "Gates over time", &body)
}

fn strip(gate: &GateStory) -> String {
    let groups = groups(&gate.marks, MARKS);
    let each = size(gate.marks.len(), MARKS);
    let (first, last) = (gate.marks.first(), gate.marks.last());
    let word = |mark: Option<&Mark>| mark.map_or("unknown", |mark| mark.verdict.as_str());
    let told = match gate.marks.len() {
        1 => format!("measured once: {}", word(last)),
        n => format!("measured {n} times: first {}, last {}", word(first), word(last)),
    };
    let together = if each > 1 { format!("; a mark stands for {each}, and shows the worst of them") } else { String::new() };
    let gone = if gate.gone { "; not asked for any more" } else { "" };
    let mut out = format!(
        "<div class=\"gate\"><h3>{}</h3><p class=\"aside\">{told}{together}{gone}</p><div class=\"strip\" role=\"img\" aria-label=\"{told}\">",
        plain(&opening(&gate.name, 120))
    );
    for marks in groups {
        if let Some(worst) = marks.iter().max_by_key(|mark| badness(mark)) {
            let (class, glyph) = look(worst.verdict);
            let cached = if marks.iter().all(|mark| mark.cached) { " cached" } else { "" };
            let _ = write!(out, "<span class=\"m {class}{cached}\" title=\"{}\">{glyph}</span>", plain(&title(worst)));
        }
    }
    out.push_str("</div>");
    out.push_str(&failures(&gate.marks));
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

fn look(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("pass", "✓"),
        Verdict::Fail => ("fail", "✗"),
        Verdict::Wait => ("wait", "…"),
        Verdict::Unknown => ("unknown", "?"),
    }
}

fn title(mark: &Mark) -> String {
    let took = if mark.took_ms >= 1_000 { format!(", took {}", in_words(mark.took_ms)) } else { String::new() };
    let cached = if mark.cached { ", not run again" } else { "" };
    let tests = mark.counts.map(|counts| format!(", {}", in_words_of(counts))).unwrap_or_default();
    format!("stop {}, {}: {}{tests}{took}{cached}", mark.stop, moment_in_title(mark.at), mark.verdict.as_str())
}

fn in_words_of(counts: TestCounts) -> String {
    let old = counts.old.map(|old| format!(", {old} of them from before")).unwrap_or_default();
    format!("{} of {} fail{old}", counts.failed, count(counts.total, "test"))
}

/// Failing tests as bars: new ones on top of those that were there when the loop began.
fn failures(marks: &[Mark]) -> String {
    let counted: Vec<TestCounts> = marks.iter().filter_map(|mark| mark.counts).collect();
    let groups = groups(&counted, MARKS);
    let worst: Vec<TestCounts> = groups.iter().filter_map(|group| group.iter().max_by_key(|counts| counts.failed).copied()).collect();
    let most = worst.iter().map(|counts| counts.failed).max().unwrap_or(0);
    let (Some(first), Some(last)) = (counted.first(), counted.last()) else { return String::new() };
    if most == 0 {
        return String::new();
    }
    let old = |counts: &TestCounts| counts.old.unwrap_or(0).min(counts.failed);
    let mut out = format!(
        "<figure class=\"failures\"><figcaption class=\"aside\">Failing tests: {} at first, {} at last, {most} at most{}</figcaption>\
         <div class=\"columns\" role=\"img\" aria-label=\"Failing tests: {} at first, {} at last\">",
        first.failed,
        last.failed,
        if worst.iter().any(|counts| old(counts) > 0) { ". Striped: they failed before the loop began" } else { "" },
        first.failed,
        last.failed
    );
    for counts in &worst {
        let part = |n: u64| n.saturating_mul(100) / most.max(1);
        let (new, old) = (part(counts.failed - old(counts)), part(old(counts)));
        let _ = write!(
            out,
            "<span class=\"column\" title=\"{}\"><span class=\"new\" style=\"height:{new}%\"></span><span class=\"old\" style=\"height:{old}%\"></span></span>",
            in_words_of(*counts)
        );
    }
    out.push_str("</div></figure>");
    out
}
