//! Iteration over iteration: how long, how many tokens, how much money, how much changed. Small drawings of one size, to be compared with each other.

use std::fmt::Write as _;

use ralph_core::{
    report::{Changed, Report},
    text::time::measured,
};

use super::{escape::plain, section};
use crate::{
    journal_lines::in_thousands,
    report::{
        grouping::{Charted, charted, groups, label, size},
        shared::money,
    },
};

/// More bars than this cannot be told apart.
const BARS: usize = 100;

/// The drawing, in its own units: the plot between a line of text above and one below.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 118.0;
const TOP: f64 = 18.0;
const FLOOR: f64 = 98.0;

/// Something that each iteration has a number for.
struct Plot<'a> {
    title: &'a str,
    /// The whole of it, in words.
    sum: String,
    class: &'a str,
    /// Per group of iterations: upwards, and downwards where there are two.
    values: Vec<(f64, f64)>,
    shown: &'a dyn Fn(f64) -> String,
}

pub(super) fn shown(r: &Report) -> String {
    let charted = charted(r);
    if charted.is_empty() {
        return String::new();
    }
    let groups = groups(&charted, BARS);
    let each = size(charted.len(), BARS);
    let mut body = String::new();
    if each > 1 {
        let _ = writeln!(body, "<p class=\"aside\">Each bar is the mean of {each} iterations.</p>");
    }
    body.push_str("<div class=\"plots\">\n");
    for plot in plots(r, &groups) {
        body.push_str(&drawn(&plot, &groups));
    }
    body.push_str("</div>\n");
    body.push_str(&missing(r));
    section("plots", "Iteration over iteration", &body)
}

fn plots<'a>(r: &Report, groups: &[&[Charted]]) -> Vec<Plot<'a>> {
    let f = &r.figures;
    let of = |value: &dyn Fn(&Charted) -> u64| -> Vec<(f64, f64)> { groups.iter().map(|rows| (mean(rows, value), 0.0)).collect() };
    let mut all = vec![Plot {
        title: "Duration, without waiting",
        sum: format!("{} of work and gates in all", measured(f.took.work_ms.saturating_add(f.took.gates_ms))),
        class: "a",
        values: of(&|row| row.took.work_ms.saturating_add(row.took.gates_ms)),
        shown: &|ms| measured(whole(ms)),
    }];
    if let Some(t) = f.used.tokens {
        let sum = format!("{} in all, {} of them read from cache", in_thousands(t.total()), in_thousands(t.cache_read));
        all.push(Plot { title: "Tokens", sum, class: "b", values: of(&|row| row.used.total_tokens()), shown: &|n| in_thousands(whole(n)) });
    }
    if f.used.usd() > 0 {
        let sum = format!("{} in all", money(f.used.usd(), f.used.estimated));
        all.push(Plot { title: "Cost", sum, class: "c", values: of(&|row| row.used.usd()), shown: &|n| money(whole(n).max(1), false) });
    }
    if let Some(changed) = f.changed {
        let line = |pick: fn(Changed) -> u64| move |row: &Charted| row.changed.map_or(0, pick);
        if changed.lines().is_some() {
            let (added, removed) = (line(|c| c.added_lines), line(|c| c.removed_lines));
            let values = groups.iter().map(|rows| (mean(rows, &added), mean(rows, &removed))).collect();
            let sum = format!("{} added, {} removed in all", in_thousands(changed.added_lines), in_thousands(changed.removed_lines));
            all.push(Plot { title: "Changed lines", sum, class: "d", values, shown: &|n| in_thousands(whole(n)) });
        }
        if changed.commits > 0 {
            let commits = line(|c| c.commits);
            let sum = format!("{} in all", changed.commits);
            all.push(Plot { title: "Commits", sum, class: "e", values: of(&commits), shown: &|n| tenths(n) });
        }
    }
    all
}

/// The parts that could not be drawn, and why.
fn missing(r: &Report) -> String {
    let f = &r.figures;
    let mut not: Vec<&str> = Vec::new();
    if f.used.tokens.is_none() {
        not.push("tokens");
    }
    if f.used.usd() == 0 {
        not.push("cost");
    }
    match f.changed {
        None => not.push("changed lines and commits"),
        Some(changed) if changed.lines().is_none() => not.push("changed lines"),
        Some(_) => {}
    }
    match not.as_slice() {
        [] => String::new(),
        not => format!("<p class=\"aside\">Not known for these iterations: {}.</p>\n", not.join(", ")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "heights of bars")]
fn mean(rows: &[Charted], value: &dyn Fn(&Charted) -> u64) -> f64 {
    rows.iter().map(|row| value(row) as f64).sum::<f64>() / rows.len().max(1) as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
fn whole(n: f64) -> u64 {
    n.round() as u64
}

fn tenths(n: f64) -> String {
    if n.fract() < 0.05 { format!("{n:.0}") } else { format!("{n:.1}") }
}

fn drawn(plot: &Plot<'_>, groups: &[&[Charted]]) -> String {
    let up = plot.values.iter().map(|(up, _)| *up).fold(0.0, f64::max);
    let down = plot.values.iter().map(|(_, down)| *down).fold(0.0, f64::max);
    let range = (up + down).max(f64::MIN_POSITIVE);
    let (high, zero) = (FLOOR - TOP, TOP + (FLOOR - TOP) * up / range);
    let highest = if down > 0.0 { format!("{} added at most", (plot.shown)(up)) } else { (plot.shown)(up) };
    let (first, last) = (groups.first().map(|rows| label(rows)), groups.last().map(|rows| label(rows)));
    let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
    let mut out = format!(
        "<figure class=\"plot\"><figcaption><strong>{}</strong> <span class=\"aside\">{}</span></figcaption>\n\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" class=\"{}\"><title>{} for each iteration, the highest: {highest}</title>\
         <text x=\"0\" y=\"12\">{highest}</text><line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{TOP}\" y2=\"{TOP}\"/>",
        plot.title,
        plain(&plot.sum),
        plot.class,
        plot.title,
    );
    #[expect(clippy::cast_precision_loss, reason = "at most a hundred")]
    let step = WIDTH / groups.len().max(4) as f64;
    let gap = if step > 6.0 { 2.0 } else { step * 0.2 };
    for (n, ((up, down), rows)) in plot.values.iter().zip(groups).enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "at most a hundred")]
        let x = n as f64 * step;
        let (above, below) = (high * up / range, high * down / range);
        let beside = if down > &0.0 { format!(" / {}", (plot.shown)(*down)) } else { String::new() };
        let _ = write!(out, "<g><title>iteration {}: {}{beside}</title>", label(rows), (plot.shown)(*up));
        bar(&mut out, "up", (x, step - gap), (zero - above, above));
        bar(&mut out, "down", (x, step - gap), (zero, below));
        out.push_str("</g>");
    }
    let _ = write!(
        out,
        "<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{zero:.1}\" y2=\"{zero:.1}\"/><text x=\"0\" y=\"113\">iteration {first}</text>"
    );
    if groups.len() > 1 {
        #[expect(clippy::cast_precision_loss, reason = "at most a hundred")]
        let end = groups.len() as f64 * step - gap;
        let _ = write!(out, "<text x=\"{end:.1}\" y=\"113\" text-anchor=\"end\">{last}</text>");
    }
    if down > 0.0 {
        let _ = write!(out, "<text x=\"{WIDTH}\" y=\"12\" text-anchor=\"end\">{} removed at most</text>", (plot.shown)(down));
    }
    out.push_str("</svg></figure>\n");
    out
}

/// Something that is there can be seen.
fn bar(out: &mut String, class: &str, (x, width): (f64, f64), (y, height): (f64, f64)) {
    if height > 0.0 {
        let (y, height) = if height < 1.0 && class == "up" { (y - 1.0 + height, 1.0) } else { (y, height.max(1.0)) };
        let _ = write!(out, "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>");
    }
}
