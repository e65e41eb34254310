//! The report in short, as Markdown for a pull request or the summary of a CI run.

mod text;

use std::fmt::Write as _;

use ralph_core::{
    journal::history::Phase,
    report::{Acceptance, Evidence, Mood, Report, RoundRow, Standing},
    text::time::{self, Millis, in_words},
};

use crate::{
    report::{kept, lines, money},
    text::{in_thousands, when},
};
use text::{code, plain, sentence};

/// GitHub takes 65,536 characters; what follows a part that is left out has to fit as well.
const MOST: usize = 58_000;

/// So many of each are listed.
const ACCEPTANCE: usize = 60;
const GATES: usize = 20;
const CLAIMS: usize = 10;
const ROUNDS: usize = 30;

/// The whole text. A part that would make it too long is left out, and that is said.
pub(crate) fn markdown(r: &Report) -> String {
    let parts = [head(r), needs(r), acceptance(r), hours(r), gates(r), refused(r), rounds(r), ways(r)];
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
    let mark = match r.mood {
        Mood::Good => "✓",
        Mood::Going => "▶",
        Mood::Held => "‖",
        Mood::Bad => "✗",
    };
    let f = &r.figures;
    let verified = if f.wanted == 0 { "–".to_owned() } else { f.verified_in_words() };
    let tokens = f.used.known_tokens().map_or_else(|| "not known".to_owned(), |tokens| in_thousands(tokens.total()));
    let changed = f.changed.map_or_else(|| "– | –".to_owned(), |c| format!("{} | {}", c.commits, lines(c)));
    let (rounds, elapsed, cost) = (f.rounds, in_words(f.elapsed_ms), f.used.known_usd());
    let cost = cost.map_or_else(|| "not known".to_owned(), |spent| money(spent, f.used.estimated));
    format!(
        "### {mark} Ralph loop {}: {}\n\n**{}**\n\n> {}\n\n| Verified | Iterations | Time | Tokens | Cost | Commits | Lines |\n|--:|--:|--:|--:|--:|--:|--:|\n\
         | {verified} | {rounds} | {elapsed} | {tokens} | {cost} | {changed} |\n\n{}\n\n",
        code(&r.id, 80),
        r.status.replace('-', " "),
        sentence(&r.sentence, 1_000),
        plain(&r.prompt, 300),
        plain(&r.cost.words, 400),
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
        let mark = match one.standing {
            Standing::Proven => "✓",
            Standing::Fails => "✗",
            Standing::Claimed => "!",
            Standing::Open => "○",
            Standing::Waits => "…",
            Standing::Unknown => "?",
        };
        let title = one.title.as_deref().map(|title| format!(" {}", plain(title, 120))).unwrap_or_default();
        let evidence = one.evidence.as_ref().map(evidence).unwrap_or_default();
        let _ =
            writeln!(out, "| {mark} | {}{title} | {}: {} | {evidence} |", code(&one.name, 80), one.standing.words(), plain(&one.what, 200));
    }
    if sorted.len() > ACCEPTANCE {
        let _ = writeln!(out, "\nAnd {} more.", sorted.len() - ACCEPTANCE);
    }
    out + "\n"
}

fn evidence(e: &Evidence) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(e.command.as_deref().map(|command| code(command, 120)));
    parts.extend(e.stop.map(|stop| format!("stop {stop}")));
    parts.extend(e.at.map(moment));
    parts.extend(e.took_ms.map(in_words));
    parts.extend(kept::words(e).map(|words| sentence(&words, 300)));
    parts.join(", ")
}

fn moment(at: Millis) -> String {
    when(&time::format(at))
}

fn hours(r: &Report) -> String {
    let took = r.figures.took;
    let parts: Vec<String> = Phase::ALL
        .into_iter()
        .filter(|phase| took.of(*phase) > 0)
        .map(|phase| format!("{} {}", in_words(took.of(phase)), phase.words()))
        .collect();
    if parts.is_empty() { String::new() } else { format!("**Time:** {}.\n\n", parts.join(", ")) }
}

fn gates(r: &Report) -> String {
    if r.gates.is_empty() {
        return String::new();
    }
    let mut out = "#### Gates over time\n\n| Gate | First | Last | Measured | Failing tests |\n|---|---|---|--:|---|\n".to_owned();
    for gate in r.gates.iter().take(GATES) {
        let word = |mark: Option<&ralph_core::journal::history::Mark>| mark.map_or("–", |mark| mark.verdict.as_str());
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
            gate.marks.len()
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
        let _ = writeln!(out, "- Iteration {}, stop {}, `{}`: {}", one.iteration, one.stop, one.code.as_str(), plain(&one.why, 300));
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
    let mut out = format!(
        "<details><summary>{which}</summary>\n\n| Iteration | Item | Time | Tools | Tokens | Cost | Commits | Lines | Gates held | Ruling |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|--:|---|\n"
    );
    shown.iter().rev().for_each(|row| out.push_str(&line(row)));
    out + "\n</details>\n\n"
}

fn line(row: &RoundRow) -> String {
    let (round, used) = (&row.round, &row.round.used);
    let changed = row.changed.map_or_else(|| "– | –".to_owned(), |c| format!("{} | {}", c.commits, lines(c)));
    format!(
        "| {} | {} | {} | {} | {} | {} | {changed} | {} | `{}` |\n",
        round.iteration,
        round.item.as_deref().map(|item| plain(item, 60)).unwrap_or_default(),
        in_words(round.took_ms()),
        used.known_tool_calls().map_or_else(|| "–".to_owned(), |calls| calls.to_string()),
        used.known_tokens().map_or_else(|| "–".to_owned(), |tokens| in_thousands(tokens.total())),
        money(used.usd_micros, false),
        if row.gates_known == 0 { "–".to_owned() } else { format!("{} of {}", row.gates_held, row.gates_known) },
        round.code.as_str()
    )
}

fn ways(r: &Report) -> String {
    let list: Vec<String> = r.ways.iter().map(|way| format!("- {}: {}\n", plain(&way.what, 200), code(&way.command, 300))).collect();
    format!("<details><summary>Look again, undo, go on</summary>\n\n{}\n</details>\n\n", list.concat())
}

fn foot(r: &Report) -> String {
    format!("<sub>ralph {}, {}, from {}</sub>\n", r.ralph, moment(r.written), code(&r.journal, 200))
}
