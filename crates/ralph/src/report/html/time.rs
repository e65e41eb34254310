//! Where the time went: by the clock, and as a bar for each iteration.

use std::fmt::Write as _;

use ralph_core::{
    history::{Phase, Took},
    report::Report,
    text::{
        opening,
        time::{Millis, measured},
    },
};

use super::{
    escape::{moments, plain},
    section,
};
use crate::report::grouping::{Charted, charted, groups, label, size, slices, took};

/// How many bars are readable, and how many pieces of the clock's time.
const BARS: usize = 40;
const SLICES: usize = 200;

pub(super) fn shown(r: &Report) -> String {
    let charted = charted(r);
    if r.spans.is_empty() && charted.is_empty() {
        return section("hours", "Where the time went", "<p>Nothing has happened yet.</p>\n");
    }
    let body = format!("{}{}{}", legend(r.figures.took), ribbon(r), bars(&charted));
    section("hours", "Where the time went", &body)
}

/// The meaning of the colours, with the share of each.
fn legend(took: Took) -> String {
    let all = took.total().max(1);
    let mut out = String::from("<ul class=\"legend\">\n");
    for phase in Phase::ALL {
        let ms = took.of(phase);
        let share = match (ms, ms.saturating_mul(100) / all) {
            (0, _) => "none".to_owned(),
            // A share of some seconds says nothing.
            (ms, _) if all < 60_000 => measured(ms),
            (ms, 0) => format!("{}, <1 %", measured(ms)),
            (ms, part) => format!("{}, {part} %", measured(ms)),
        };
        let share = plain(&share);
        let _ = writeln!(
            out,
            "<li><span class=\"swatch {}\"></span>{} <span class=\"aside\">{share}</span></li>",
            phase.as_str(),
            phase.words()
        );
    }
    out.push_str("</ul>\n");
    out
}

/// The loop from its start to its end, by the clock.
fn ribbon(r: &Report) -> String {
    let slices = slices(&r.spans, SLICES);
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else { return String::new() };
    let (from, to) = (first.from, last.to);
    let told = moments(from, to);
    let mut out = format!(
        "<figure class=\"ribbon\"><figcaption>By the clock</figcaption>\n<div class=\"band\" role=\"img\" aria-label=\"From {} to {}: {}\">",
        told(from),
        told(to),
        plain(&r.figures.took.words())
    );
    let mut reached = from;
    for slice in &slices {
        gap(&mut out, reached, slice.from);
        let parts: String = Phase::ALL.iter().zip(slice.spent).filter(|(_, ms)| *ms > 0).map(|(phase, ms)| piece(*phase, ms)).collect();
        let _ = write!(out, "<span class=\"slice\" style=\"flex:{}\">{parts}</span>", (slice.to - slice.from).max(1));
        reached = slice.to;
    }
    out.push_str("</div>\n<div class=\"ticks\" aria-hidden=\"true\">");
    for at in [from, from + (to - from) / 2, to] {
        let _ = write!(out, "<span>{}</span>", told(at));
    }
    out.push_str("</div></figure>\n");
    out
}

/// Time that is not in the journal.
fn gap(out: &mut String, from: Millis, to: Millis) {
    if to > from {
        let _ = write!(out, "<span class=\"slice\" style=\"flex:{}\"></span>", to - from);
    }
}

fn piece(phase: Phase, ms: u64) -> String {
    format!("<span class=\"{}\" style=\"flex:{ms}\"></span>", phase.as_str())
}

/// One bar for each iteration, or for iterations that stand together.
fn bars(rounds: &[Charted]) -> String {
    if rounds.is_empty() {
        return "<p>There was no iteration.</p>\n".to_owned();
    }
    let groups = groups(rounds, BARS);
    let longest = groups.iter().map(|rows| took(rows).total()).max().unwrap_or(0).max(1);
    let each = size(rounds.len(), BARS);
    let caption =
        if each == 1 { "Iteration by iteration: how long each took".to_owned() } else { format!("Each bar stands for {each} iterations") };
    let mut out = format!("<figure class=\"bars\"><figcaption>{caption}</figcaption>\n");
    for rows in groups {
        let took = took(rows);
        let sum = took.total();
        #[expect(clippy::cast_precision_loss, reason = "a part of a bar")]
        let width = sum as f64 * 100.0 / longest as f64;
        let parts: String = Phase::ALL.into_iter().filter(|phase| took.of(*phase) > 0).map(|phase| piece(phase, took.of(phase))).collect();
        let item = match rows {
            [one] => one.item.as_deref().map(|item| format!("<span class=\"item\">{}</span>", plain(&opening(item, 16)))),
            _ => None,
        };
        let _ = writeln!(
            out,
            "<div class=\"bar\"><span class=\"n\">{}{}</span><div class=\"track\" role=\"img\" aria-label=\"Iteration {}: {}\">\
             <span class=\"band\" style=\"width:{width:.2}%\">{parts}</span></div><span>{}</span></div>",
            item.unwrap_or_default(),
            label(rows),
            label(rows),
            plain(&took.words()),
            measured(sum)
        );
    }
    out.push_str("</figure>\n");
    out
}
