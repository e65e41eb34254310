//! The top of the page (how it ended, the figures, what needs a person), what it cost, and the foot.

use std::fmt::Write as _;

use ralph_core::{
    report::{Figures, Mood, Report},
    text::{
        opening,
        time::{self as clock, measured},
    },
};

use super::{
    count,
    escape::{lines, moment_and_zone, moments, plain, sentence, zone_at},
    section,
};
use crate::{
    journal_lines::in_thousands,
    report::shared::{self, DASH, money},
};

/// How much of a prompt is seen at once, and how much at all.
const PROMPT: usize = 400;
const PROMPT_AT_MOST: usize = 20_000;

pub(super) fn header(r: &Report) -> String {
    let mood = match r.mood {
        Mood::Good => "good",
        Mood::Going => "going",
        Mood::Held => "held",
        Mood::Bad => "bad",
    };
    let times = match (r.started, r.ended) {
        (Some(started), Some(ended)) => {
            let told = moments(started, ended);
            let marked = |at| format!("<time datetime=\"{}\">{}</time>", clock::format(at), told(at));
            format!("{} to {} {}", marked(started), marked(ended), zone_at(ended))
        }
        (Some(started), None) => format!("since {}, as of {}", moment_and_zone(started), moment_and_zone(r.written)),
        _ => format!("as of {}", moment_and_zone(r.written)),
    };
    format!(
        "<header class=\"{mood}\">\n<p class=\"over\"><span class=\"badge\"><span aria-hidden=\"true\">{}</span> {}</span> \
         <span>{}</span> <span>{}</span> <span>{times}</span></p>\n<h1>{}</h1>\n{}{}</header>\n",
        r.mood.mark(),
        plain(&r.status.replace('-', " ")),
        plain(&opening(&r.project, 80)),
        plain(&opening(&r.id, 80)),
        sentence(&said(&r.sentence)),
        prompt(&r.prompt),
        figures(r)
    )
}

/// A promise is read more easily in quotes than in tags.
fn said(text: &str) -> String {
    text.replace("<promise>", "“").replace("</promise>", "”")
}

fn prompt(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let short = opening(text, PROMPT);
    let is_whole = text.chars().count() <= PROMPT && text.lines().count() <= 1;
    let shown = format!("<p class=\"prompt\"><span class=\"label\">Task</span> {}</p>\n", sentence(&short));
    if is_whole {
        return shown;
    }
    let bounded: String = text.chars().take(PROMPT_AT_MOST).collect();
    let cut = if bounded.len() < text.len() { "\n… (more in the loop file)" } else { "" };
    format!("{shown}<details class=\"whole\"><summary>The whole task</summary>\n<pre>{}{cut}</pre></details>\n", lines(&bounded))
}

fn figures(r: &Report) -> String {
    let f = &r.figures;
    let limit = if r.limits.iterations > 0 { format!(", limit {}", r.limits.iterations) } else { String::new() };
    let more = match (r.unfinished, r.ended) {
        (None, _) => "",
        (Some(_), Some(_)) => ", and one that was cut off",
        (Some(_), None) => ", and one that is not over",
    };
    let rounds = (f.rounds.to_string(), format!("{}{more}{limit}", if f.rounds == 1 { "iteration" } else { "iterations" }));
    let time = (measured(f.spent_ms), format!("spent, {} of it work{}", measured(f.took.work_ms), by_the_clock(f)));
    let verified = match f.wanted {
        0 => (DASH.to_owned(), "nothing to verify".to_owned()),
        _ => match f.verified_in_words().split_once(", ") {
            Some((done, how)) => (done.to_owned(), format!("verified, {how}")),
            None => (f.verified_in_words(), "verified".to_owned()),
        },
    };
    let tokens = match f.used.tokens {
        None => (DASH.to_owned(), "tokens not known".to_owned()),
        Some(tokens) => (in_thousands(tokens.total()), format!("tokens, {} of them output", in_thousands(tokens.output))),
    };
    let cost = match f.used.usd() {
        0 if f.used.usd_micros.is_some() && f.rounds == 0 => ("$0".to_owned(), "cost".to_owned()),
        0 => (DASH.to_owned(), "cost not known".to_owned()),
        spent => (money(spent, false), if f.used.estimated { "cost, estimated" } else { "cost" }.to_owned()),
    };
    let tiles = [verified, rounds, time, tokens, cost, changes(f)];
    let mut out = String::from("<dl class=\"figures\">\n");
    for (value, label) in tiles {
        let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", plain(&label), plain(&value));
    }
    out.push_str("</dl>\n");
    out
}

/// The sentence above tells the time that was spent. Pauses and waits make it longer by the clock.
fn by_the_clock(f: &Figures) -> String {
    let is_longer = f.elapsed_ms.saturating_sub(f.spent_ms) > f.spent_ms / 20 + 1_000;
    if is_longer { format!(", {} by the clock", measured(f.elapsed_ms)) } else { String::new() }
}

fn changes(f: &Figures) -> (String, String) {
    match f.changed {
        None => (DASH.to_owned(), "commits not known".to_owned()),
        Some(changed) => {
            let commits = if changed.commits == 1 { "commit" } else { "commits" };
            let size = changed.lines().map_or_else(|| "lines not known".to_owned(), |_| format!("{} lines", shared::lines(changed)));
            (changed.commits.to_string(), format!("{commits}, {size}"))
        }
    }
}

/// The steps for a person, and the problems on the way.
pub(super) fn needs(r: &Report) -> String {
    let mut body = String::new();
    if r.needs.is_empty() {
        body.push_str("<p class=\"nothing\"><span aria-hidden=\"true\">✓</span> Nothing does.</p>\n");
    } else {
        body.push_str("<ul class=\"needs\">\n");
        for need in &r.needs {
            let _ = write!(body, "<li><h3>{}</h3><p>{}</p>", need.about.words(), sentence(&opening(&need.what, 1_500)));
            for how in &need.how {
                let _ = write!(body, "<p class=\"how\"><span aria-hidden=\"true\">→</span> {}</p>", sentence(&opening(how, 1_000)));
            }
            body.push_str("</li>\n");
        }
        body.push_str("</ul>\n");
    }
    if !r.troubles.is_empty() {
        let times: u64 = r.troubles.iter().map(|trouble| trouble.times).sum();
        let _ = writeln!(body, "<details><summary>Trouble on the way: {}</summary>\n<ul class=\"troubles\">", count(times, "time"));
        for trouble in r.troubles.iter().rev().take(50) {
            let often = if trouble.times > 1 { format!(" ({} times, last)", trouble.times) } else { String::new() };
            let _ = writeln!(
                body,
                "<li>{}{often} in iteration {}, {}</li>",
                sentence(&opening(&trouble.what, 600)),
                trouble.iteration,
                moment_and_zone(trouble.at)
            );
        }
        body.push_str("</ul></details>\n");
    }
    section("needs", "What needs a person", &body)
}

/// The cost of what is verified.
pub(super) fn cost(r: &Report) -> String {
    section("cost", "What it cost", &format!("<p class=\"lead\">{}</p>\n{}", sentence(&r.cost.words), agents(r)))
}

/// Who did what, where there is more than one.
fn agents(r: &Report) -> String {
    let rows = shared::agents(r);
    if rows.is_empty() {
        return String::new();
    }
    let joined = |parts: Vec<String>| parts.concat();
    let heads = joined(shared::AGENT_HEADS.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect());
    let cells = |row: &[String; 5]| joined(row.iter().map(|cell| format!("<td>{}</td>", plain(&opening(cell, 80)))).collect());
    let rows = joined(rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row))).collect());
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Who did what\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

pub(super) fn footer(r: &Report) -> String {
    let state = if r.ended.is_some() { "" } else { " The loop has not ended: this is how it stood then." };
    format!(
        "<footer><p>Written {} by ralph {} from <code>{}</code>.{state} All times are {}.</p></footer>\n",
        moment_and_zone(r.written),
        plain(&r.ralph),
        plain(&opening(&r.journal, 300)),
        zone_of(r)
    )
}

/// The zone of the page's times: two names where summer time began or ended meanwhile.
fn zone_of(r: &Report) -> String {
    let (last, first) = (zone_at(r.written), r.started.map(zone_at));
    match first.filter(|first| *first != last) {
        Some(first) => format!("{first} or {last}"),
        None => last,
    }
}
