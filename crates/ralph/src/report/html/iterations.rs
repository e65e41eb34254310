//! Claims that were refused, the table of iterations, and the ways on and back.

use std::fmt::Write as _;

use ralph_core::{
    history::Refused,
    report::{IterationRow, Report},
    text::opening,
};

use super::{
    count,
    escape::{moment_and_zone, plain, sentence},
    section,
};
use crate::report::shared::{self, Column, DASH};

/// How many refused claims are seen at once, and how many iterations are in the table.
const CLAIMS: usize = 5;
const ROUNDS: usize = 200;

pub(super) fn refused(r: &Report) -> String {
    if r.refused.is_empty() {
        return section("refused", "Claims that were refused", "<p>None.</p>\n");
    }
    let all: Vec<String> = r.refused.iter().rev().map(claim).collect();
    let (seen, rest) = all.split_at(all.len().min(CLAIMS));
    let mut body = format!(
        "<p>The agent said {} that it was done when it was not. The newest first.</p>\n<ol class=\"claims\">\n{}</ol>\n",
        if r.figures.refused == 1 { "once".to_owned() } else { format!("{} times", r.figures.refused) },
        seen.concat()
    );
    if !rest.is_empty() {
        let _ = write!(body, "<details><summary>{} more</summary>\n<ol class=\"claims\">\n{}</ol></details>\n", rest.len(), rest.concat());
    }
    section("refused", "Claims that were refused", &body)
}

fn claim(one: &Refused) -> String {
    let why = if one.why.is_empty() { "not proven".to_owned() } else { opening(&one.why, 600) };
    let said = if one.said.is_empty() { String::new() } else { format!("<blockquote>{}</blockquote>", plain(&opening(&one.said, 600))) };
    format!(
        "<li><p><strong>{}</strong></p><p class=\"evidence\"><span>iteration {}</span><span>stop {}</span><span>{}</span><span><code>{}</code></span></p>{said}</li>\n",
        sentence(&why),
        one.iteration,
        one.stop,
        moment_and_zone(one.at),
        one.code.as_str()
    )
}

/// The last iterations, the newest first.
pub(super) fn table(r: &Report) -> String {
    if r.rounds.is_empty() {
        return String::new();
    }
    let shown = &r.rounds[r.rounds.len().saturating_sub(ROUNDS)..];
    let before = (r.rounds.len() - shown.len()).checked_sub(1).map(|at| &r.rounds[at]);
    // Each iteration with the one before it.
    let rows = || shown.iter().zip(std::iter::once(before).chain(shown.iter().map(Some)));
    let columns: Vec<&Column> =
        shared::columns(r).iter().filter(|column| rows().any(|(row, before)| (column.cell)(row, before).is_some())).collect();
    let lines: Vec<String> = rows().map(|(row, before)| line(row, before, &columns)).collect();
    let heads = columns.iter().map(|column| format!("<th scope=\"col\" class=\"{}\">{}</th>", class(column), column.head));
    let body = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Iterations\"><table>\n<thead><tr><th scope=\"col\" class=\"n\">Iteration</th>{}\
         <th scope=\"col\">Decision</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        heads.collect::<String>(),
        lines.into_iter().rev().collect::<String>()
    );
    let heading = if shown.len() < r.rounds.len() {
        format!("The last {} of {}; the others are in ralph report --json", shown.len(), count(r.rounds.len() as u64, "iteration"))
    } else {
        "Every iteration, the newest first".to_owned()
    };
    section(
        "rounds",
        "Iterations",
        &format!("<details{}><summary>{heading}</summary>\n{body}</details>\n", if shown.len() <= 30 { " open" } else { "" }),
    )
}

fn class(column: &Column) -> &'static str {
    if column.is_number { "n" } else { "" }
}

fn line(row: &IterationRow, before: Option<&IterationRow>, columns: &[&Column]) -> String {
    let cell = |column: &&Column| {
        let shown = (column.cell)(row, before).map_or_else(|| DASH.to_owned(), |cell| plain(&opening(&cell, 60)));
        format!("<td class=\"{}\">{shown}</td>", class(column))
    };
    let claimed = if row.round.claimed { " <span class=\"aside\">claimed</span>" } else { "" };
    format!(
        "<tr><th scope=\"row\" class=\"n\">{}</th>{}<td><code>{}</code>{claimed}</td></tr>\n",
        row.round.iteration,
        columns.iter().map(cell).collect::<String>(),
        row.round.code.as_str()
    )
}

/// How to look again, to undo and to go on.
pub(super) fn ways(r: &Report) -> String {
    let mut body = String::from("<dl class=\"ways\">\n");
    for way in &r.ways {
        let _ = writeln!(body, "<div><dt>{}</dt><dd><code>{}</code></dd></div>", plain(&way.what), plain(&opening(&way.command, 300)));
    }
    body.push_str("</dl>\n");
    section("ways", shared::ways(r), &body)
}
