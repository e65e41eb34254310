//! The acceptance criteria, and their proofs.

use std::fmt::Write as _;

use ralph_core::{
    report::{Acceptance, Evidence, Of, Report, Standing},
    text::{opening, time::measured},
};

use super::{
    escape::{moment_and_zone, plain, sentence},
    section,
};
use crate::report::shared;

/// How many are seen at once, and how many more can be opened.
const SEEN: usize = 40;
const MOST: usize = 1_000;

pub(super) fn shown(r: &Report) -> String {
    let (promise, rest): (Vec<&Acceptance>, Vec<&Acceptance>) = r.acceptance.iter().partition(|one| one.of == Of::Promise);
    let (proven, open): (Vec<&Acceptance>, Vec<&Acceptance>) = rest.iter().partition(|one| one.standing == Standing::Proven);
    let mut body = if promise.is_empty() { String::new() } else { listed(&promise) };
    if r.acceptance.is_empty() {
        body.push_str(
            "<p>Nothing had to hold: this loop has no promise, no gate and no list. So it is unknown whether its work is done.</p>\n",
        );
    }
    if !open.is_empty() {
        let _ = writeln!(body, "<h3>Without proof: {}</h3>", open.len());
        body.push_str(&listed(&open));
    }
    if !proven.is_empty() {
        let _ = writeln!(body, "<h3>Proven: {}</h3>", proven.len());
        body.push_str(&listed(&proven));
    }
    section("proof", "What had to hold, and what proves it", &body)
}

fn listed(all: &[&Acceptance]) -> String {
    let list = |some: &[&Acceptance]| format!("<ul class=\"proof\">\n{}</ul>\n", some.iter().map(|one| item(one)).collect::<String>());
    let (seen, rest) = all.split_at(all.len().min(SEEN));
    let rest = &rest[..rest.len().min(MOST)];
    let mut out = list(seen);
    if !rest.is_empty() {
        let _ = write!(out, "<details><summary>{} more</summary>\n{}</details>\n", rest.len(), list(rest));
    }
    if all.len() > SEEN + MOST {
        let _ = writeln!(out, "<p class=\"aside\">And {} more, in <code>ralph report --json</code>.</p>", all.len() - SEEN - MOST);
    }
    out
}

fn item(one: &Acceptance) -> String {
    let of = match one.of {
        Of::Promise => "promise",
        Of::Gate => "gate",
        Of::Item => "item",
    };
    let list = one.list.as_deref().map(|list| format!(" of {}", plain(&opening(list, 200)))).unwrap_or_default();
    let title = one.title.as_deref().map(|title| format!(" <span class=\"title\">{}</span>", plain(title))).unwrap_or_default();
    let evidence = one.evidence.as_ref().map(|e| evidence(e, shared::took(one))).unwrap_or_default();
    format!(
        "<li class=\"{}\"><span class=\"mark\" aria-hidden=\"true\">{}</span><div><p class=\"name\"><span><strong>{}</strong>{title}</span>\
         <span class=\"aside\">{of}{list}</span></p><p class=\"evidence\"><span class=\"standing\">{}</span><span class=\"what\">{}</span>{evidence}</p></div></li>\n",
        one.standing.as_str(),
        one.standing.mark(),
        plain(&opening(&one.name, 200)),
        one.standing.words(),
        sentence(&opening(shared::found(one), 600))
    )
}

/// The command, when it ran, at which stop, for how long, and where its output is.
fn evidence(e: &Evidence, took_ms: Option<u64>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(e.command.as_deref().map(|command| format!("<code>{}</code>", plain(&opening(command, 300)))));
    parts.extend(e.at.map(moment_and_zone));
    parts.extend(e.stop.map(|stop| format!("stop {stop}")));
    parts.extend(took_ms.map(|ms| format!("took {}", measured(ms))));
    parts.extend(e.cached.then(|| "not run again: the files were the same".to_owned()));
    parts.extend(e.flaky.then(|| "passed when it was tried again".to_owned()));
    parts.extend(shared::files(e).map(|words| sentence(&words)));
    parts.extend(e.log.as_deref().map(|log| format!("output in <code>{}</code>", plain(&opening(log, 300)))));
    parts.iter().flat_map(|part| ["<span>", part, "</span>"]).collect()
}
