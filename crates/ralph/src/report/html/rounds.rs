//! Claims that were refused, the table of iterations, and the ways on and back.

use std::fmt::Write as _;

use ralph_core::{
    report::{Report, RoundRow},
    text::{messages::opening, time::in_words},
};

use super::{
    count, joined, section,
    text::{moment, plain},
};
use crate::{
    report::{lines, money},
    text::in_thousands,
};

/// So many refused claims stand in the open; so many iterations stand in the table.
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

fn claim(one: &ralph_core::journal::history::Refused) -> String {
    let why = if one.why.is_empty() { "not proven".to_owned() } else { opening(&one.why, 600) };
    let said = if one.said.is_empty() { String::new() } else { format!("<blockquote>{}</blockquote>", plain(&opening(&one.said, 600))) };
    format!(
        "<li><p><strong>{}</strong></p><p class=\"evidence\"><span>iteration {}</span><span>stop {}</span><span>{} UTC</span><span><code>{}</code></span></p>{said}</li>\n",
        plain(&why),
        one.iteration,
        one.stop,
        moment(one.at),
        one.code.as_str()
    )
}

/// The last iterations, the newest first.
pub(super) fn table(r: &Report) -> String {
    if r.rounds.is_empty() {
        return String::new();
    }
    let shown = &r.rounds[r.rounds.len().saturating_sub(ROUNDS)..];
    let columns = Columns {
        item: shown.iter().any(|row| row.round.item.is_some()),
        tools: shown.iter().any(|row| row.round.used.tool_calls > 0),
        used: shown.iter().any(|row| row.round.used.tokens.total() > 0 || row.round.used.usd_micros > 0),
        changed: shown.iter().any(|row| row.changed.is_some()),
        gates: shown.iter().any(|row| row.gates_known > 0),
    };
    let before = r.rounds.len().checked_sub(ROUNDS + 1).and_then(|at| r.rounds.get(at));
    let mut rows: Vec<String> = Vec::new();
    let mut last = before;
    for row in shown {
        rows.push(line(row, last, &columns));
        last = Some(row);
    }
    rows.reverse();
    let body = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Rounds\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        columns.heads(),
        rows.concat()
    );
    let heading = if shown.len() < r.rounds.len() {
        format!("The last {} of {}; the others are in ralph report --json", shown.len(), count(r.rounds.len() as u64, "iteration"))
    } else {
        "Every iteration, the newest first".to_owned()
    };
    section(
        "rounds",
        "Rounds",
        &format!("<details{}><summary>{heading}</summary>\n{body}</details>\n", if shown.len() <= 30 { " open" } else { "" }),
    )
}

/// Columns that have anything in them.
struct Columns {
    item: bool,
    tools: bool,
    used: bool,
    changed: bool,
    gates: bool,
}

impl Columns {
    fn heads(&self) -> String {
        let all = [
            (true, "Round", "n"),
            (self.item, "Item", ""),
            (true, "Time", "n"),
            (self.tools, "Tools", "n"),
            (self.used, "Tokens", "n"),
            (self.used, "Cost", "n"),
            (self.changed, "Commits", "n"),
            (self.changed, "Lines", "n"),
            (self.gates, "Gates held", "n"),
            (true, "Ruling", ""),
        ];
        joined(
            all.iter()
                .filter(|(is_shown, ..)| *is_shown)
                .map(|(_, head, class)| format!("<th scope=\"col\" class=\"{class}\">{head}</th>")),
        )
    }
}

fn line(row: &RoundRow, before: Option<&RoundRow>, columns: &Columns) -> String {
    let (round, used) = (&row.round, &row.round.used);
    let held = match before.filter(|before| before.gates_known > 0) {
        Some(before) if before.gates_held != row.gates_held => format!("{} → {} of {}", before.gates_held, row.gates_held, row.gates_known),
        _ if row.gates_known == 0 => "–".to_owned(),
        _ => format!("{} of {}", row.gates_held, row.gates_known),
    };
    let changed = row.changed.map(|changed| (changed.commits.to_string(), lines(changed)));
    let (commits, size) = changed.unwrap_or_else(|| ("–".to_owned(), "–".to_owned()));
    let tokens = if used.tokens.total() == 0 { "–".to_owned() } else { in_thousands(used.tokens.total()) };
    let claimed = if round.claimed { " <span class=\"aside\">claimed</span>" } else { "" };
    let item = round.item.as_deref().map_or_else(|| "–".to_owned(), |item| plain(&opening(item, 60)));
    let cells = [
        (columns.item, item, ""),
        (true, in_words(round.took_ms()), "n"),
        (columns.tools, used.known_tool_calls().map_or_else(|| "–".to_owned(), |calls| calls.to_string()), "n"),
        (columns.used, tokens, "n"),
        (columns.used, money(used.usd_micros, false), "n"),
        (columns.changed, commits, "n"),
        (columns.changed, size, "n"),
        (columns.gates, held, "n"),
        (true, format!("<code>{}</code>{claimed}", round.code.as_str()), ""),
    ];
    let cells =
        joined(cells.iter().filter(|(is_shown, ..)| *is_shown).map(|(_, cell, class)| format!("<td class=\"{class}\">{cell}</td>")));
    format!("<tr><th scope=\"row\" class=\"n\">{}</th>{cells}</tr>\n", round.iteration)
}

/// How to look again, to undo and to go on.
pub(super) fn ways(r: &Report) -> String {
    let mut body = String::from("<dl class=\"ways\">\n");
    for way in &r.ways {
        let _ = writeln!(body, "<div><dt>{}</dt><dd><code>{}</code></dd></div>", plain(&way.what), plain(&opening(&way.command, 300)));
    }
    body.push_str("</dl>\n");
    section("ways", "Look again, undo, go on", &body)
}
