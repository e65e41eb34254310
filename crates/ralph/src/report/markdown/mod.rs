//! The report in short, as Markdown for a pull request or the summary of a CI run.

mod escape;

use std::fmt::Write as _;

use ralph_core::{
    history::Mark,
    report::{Acceptance, Evidence, Report, Standing},
    text::time::{self as clock, Millis, measured},
};

use crate::{
    journal_lines::{in_thousands, when},
    report::shared::{self, Column, DASH, lines, money},
};
use escape::{code, plain, sentence};

/// GitHub takes 65,536 characters; what follows a part that is left out has to fit as well.
const MOST: usize = 58_000;

/// So many of each are listed.
const ACCEPTANCE: usize = 60;
const GATES: usize = 20;
const CLAIMS: usize = 10;
const ROUNDS: usize = 30;

/// The whole text. A part that would make it too long is left out, and that is said.
pub(crate) fn markdown(r: &Report) -> String {
    let parts = [head(r), needs(r), acceptance(r), agents(r), time(r), gates(r), refused(r), rounds(r), ways(r)];
    let foot = foot(r);
    let mut out = String::new();
    let mut left_out = 0;
    for part in parts {
        if out.len() + part.len() + foot.len() <= MOST { out.push_str(&part) } else { left_out += 1 }
    }
    if left_out > 0 {
        let _ = writeln!(out, "_Parts that are too long for here: {left_out}. `ralph report` writes them all._\n");
    }
    out + &foot
}

fn head(r: &Report) -> String {
    let f = &r.figures;
    let verified = if f.wanted == 0 { "–".to_owned() } else { f.verified_in_words() };
    let tokens = f.used.tokens.map_or_else(|| "not known".to_owned(), |tokens| in_thousands(tokens.total()));
    let changed = f.changed.map_or_else(|| "– | –".to_owned(), |c| format!("{} | {}", c.commits, lines(c)));
    let (spent, cost) = (measured(f.spent_ms), f.used.usd_micros);
    let rounds = match (r.unfinished, r.ended) {
        (None, _) => f.rounds.to_string(),
        (Some(_), Some(_)) => format!("{} and one cut off", f.rounds),
        (Some(_), None) => format!("{} and one not over", f.rounds),
    };
    let cost = match cost {
        None => "not known".to_owned(),
        Some(0) if f.rounds == 0 => "$0".to_owned(),
        Some(spent) => money(spent, f.used.estimated),
    };
    format!(
        "### {} Ralph loop {}: {}\n\n**{}**\n\n> {}\n\n| Verified | Iterations | Time | Tokens | Cost | Commits | Lines |\n|--:|--:|--:|--:|--:|--:|--:|\n\
         | {verified} | {rounds} | {spent} | {tokens} | {cost} | {changed} |\n\n{}\n\n",
        r.mood.mark(),
        code(&r.id, 80),
        r.status.replace('-', " "),
        sentence(&r.sentence, 1_000),
        sentence(&r.prompt, 300),
        sentence(&r.cost.words, 400),
    )
}

fn needs(r: &Report) -> String {
    if r.needs.is_empty() {
        return "**Nothing needs a person.**\n\n".to_owned();
    }
    let mut out = "#### What needs a person\n\n".to_owned();
    for need in &r.needs {
        let _ = writeln!(out, "- **{}**: {}", need.about.words(), sentence(&need.what, 800));
        for how in &need.how {
            let _ = writeln!(out, "  - {}", sentence(how, 500));
        }
    }
    out + "\n"
}

fn acceptance(r: &Report) -> String {
    if r.acceptance.is_empty() {
        return "Nothing had to hold: this loop has no promise, no gate and no list.\n\n".to_owned();
    }
    let mut sorted: Vec<&Acceptance> = r.acceptance.iter().collect();
    sorted.sort_by_key(|one| one.standing == Standing::Proven);
    let mut out = "#### What had to hold, and what proves it\n\n| | | Standing | Evidence |\n|---|---|---|---|\n".to_owned();
    for one in sorted.iter().take(ACCEPTANCE) {
        let title = one.title.as_deref().map(|title| format!(" {}", plain(title, 120))).unwrap_or_default();
        let evidence = one.evidence.as_ref().map(|e| evidence(e, shared::took(one))).unwrap_or_default();
        let (name, what) = (code(&one.name, 80), sentence(shared::found(one), 200));
        let _ = writeln!(out, "| {} | {name}{title} | {}: {what} | {evidence} |", one.standing.mark(), one.standing.words());
    }
    if sorted.len() > ACCEPTANCE {
        let _ = writeln!(out, "\nAnd {} more.", sorted.len() - ACCEPTANCE);
    }
    out + "\n"
}

fn evidence(e: &Evidence, took_ms: Option<u64>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(e.command.as_deref().map(|command| code(command, 120)));
    parts.extend(e.stop.map(|stop| format!("stop {stop}")));
    parts.extend(e.at.map(moment));
    parts.extend(took_ms.map(measured));
    parts.extend(shared::files(e).map(|words| sentence(&words, 300)));
    parts.join(", ")
}

/// Who did what, where there is more than one.
fn agents(r: &Report) -> String {
    let rows = shared::agents(r);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!("#### Who did what\n\n| {} |\n|---|---|--:|--:|--:|\n", shared::AGENT_HEADS.join(" | "));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.map(|cell| plain(&cell, 80)).join(" | "));
    }
    out + "\n"
}

fn moment(at: Millis) -> String {
    when(&clock::format(at))
}

fn time(r: &Report) -> String {
    let took = r.figures.took.words();
    if took.is_empty() { took } else { format!("**Time:** {took}.\n\n") }
}

fn gates(r: &Report) -> String {
    if r.gates.is_empty() {
        return String::new();
    }
    let mut out = "#### Gates over time\n\n| Gate | First | Last | Measured | Failing tests |\n|---|---|---|--:|---|\n".to_owned();
    for gate in r.gates.iter().take(GATES) {
        let word = |mark: Option<&Mark>| mark.map_or("–", |mark| mark.verdict.as_str());
        let counts: Vec<_> = gate.marks.iter().filter_map(|mark| mark.counts).collect();
        let failing = match (counts.first(), counts.last()) {
            (Some(first), Some(last)) => {
                let old = last.old.filter(|old| *old > 0).map(|old| format!(" ({old} from before)")).unwrap_or_default();
                format!("{} → {}{old}", first.failed, last.failed)
            }
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {failing} |",
            code(&gate.name, 80),
            word(gate.marks.first()),
            word(gate.marks.last()),
            shared::measurements(&gate.marks).0
        );
    }
    out + "\n"
}

fn refused(r: &Report) -> String {
    if r.refused.is_empty() {
        return String::new();
    }
    let mut out = format!("<details><summary>Claims that were refused: {}</summary>\n\n", r.figures.refused);
    for one in r.refused.iter().rev().take(CLAIMS) {
        let _ = writeln!(out, "- Iteration {}, stop {}, `{}`: {}", one.iteration, one.stop, one.code.as_str(), sentence(&one.why, 300));
        if !one.said.is_empty() {
            let _ = writeln!(out, "  > {}", plain(&one.said, 300));
        }
    }
    out + "\n</details>\n\n"
}

fn rounds(r: &Report) -> String {
    if r.rounds.is_empty() {
        return String::new();
    }
    let shown = &r.rounds[r.rounds.len().saturating_sub(ROUNDS)..];
    let which = if shown.len() < r.rounds.len() {
        format!("The last {} of {} iterations", shown.len(), r.rounds.len())
    } else {
        "Iterations".to_owned()
    };
    let columns = shared::columns(r);
    let heads: String = columns.iter().flat_map(|column| [" ", column.head, " |"]).collect();
    let marks: String = columns.iter().map(|column| if column.is_number { "--:|" } else { "---|" }).collect();
    let mut out = format!("<details><summary>{which}</summary>\n\n| Iteration |{heads} Decision |\n|--:|{marks}---|\n");
    for at in (r.rounds.len() - shown.len()..r.rounds.len()).rev() {
        let (row, before) = (&r.rounds[at], at.checked_sub(1).map(|before| &r.rounds[before]));
        let cell = |column: &Column| match (column.cell)(row, before) {
            None => DASH.to_owned(),
            Some(number) if column.is_number => number,
            Some(text) => plain(&text, 60),
        };
        let cells: String = columns.iter().flat_map(|column| [" ".to_owned(), cell(column), " |".to_owned()]).collect();
        let _ = writeln!(out, "| {} |{cells} `{}` |", row.round.iteration, row.round.code.as_str());
    }
    out + "\n</details>\n\n"
}

fn ways(r: &Report) -> String {
    let list: Vec<String> = r.ways.iter().map(|way| format!("- {}: {}\n", plain(&way.what, 200), code(&way.command, 300))).collect();
    format!("<details><summary>{}</summary>\n\n{}\n</details>\n\n", shared::ways(r), list.concat())
}

fn foot(r: &Report) -> String {
    format!("<sub>ralph {}, {}, from {}</sub>\n", r.ralph, moment(r.written), code(&r.journal, 200))
}
