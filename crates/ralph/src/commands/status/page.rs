//! One loop on one screen: what needs a person first, then how far it is, then the rest.

use ralph_core::{
    history::Denials,
    messages::ends_on,
    money::{self, Micros},
    text::{clean, iterations, opening, time::in_words},
};
use ralph_engine::{
    hosts::Advice,
    store::project::Project,
    view::{
        Carrier, GateView, Status, View, Waiter, Waits,
        activity::{Doing, Source},
    },
};

use crate::{
    advice, agent_names,
    journal_lines::{in_thousands, short, when},
    term::bar,
    term::bar::Lasting,
    term::width::{columns, cut},
    ui,
};

/// More notes than this are for `ralph steer --list`.
const NOTES: usize = 3;

pub(super) fn show(v: &View) {
    let status = match v.status {
        Status::Complete if v.doubtful => ui::warn(v.stands()),
        Status::Active if v.interrupted.is_some() => ui::warn(v.stands()),
        Status::Active | Status::Waiting | Status::Complete => ui::good(v.stands()),
        Status::Corrupt | Status::Failed => ui::bad(v.stands()),
        _ => ui::warn(v.stands()),
    };
    ui::paragraph(format!("{}  {status}", ui::bold(clean(&v.id))), 2);
    what_is_the_matter(v);
    limits(v);
    ui::field("ends on", ends_on(v.completion_promise.as_deref(), !v.gates.is_empty()));
    let widest = v.gates.iter().map(|gate| columns(&clean(&gate.name))).max().unwrap_or(0).min(30);
    v.gates.iter().for_each(|one| gate(one, widest));
    trouble(v);
    if let Some(agent) = v.agent.as_deref().filter(|_| v.many_agents) {
        ui::field("agent", agent_names::with_model(agent, v.model.as_deref()));
    }
    if v.is_live() {
        ui::field("session", session(v));
    }
    if let Some(pid) = v.runner_pid {
        ui::field("run", format!("`ralph run`, pid {pid}"));
    }
    if let Some(code) = &v.last_code {
        ui::field("last stop", format!("{code} (`ralph explain` says more)"));
    }
    if let Some(at) = v.last_event_at.as_deref().filter(|_| v.file.is_none()) {
        ui::field("ended", when(at));
    }
    ui::excerpt("prompt", &v.prompt);
}

/// Why it does not go on, and what to do.
fn what_is_the_matter(v: &View) {
    if let Some(problem) = &v.problem {
        ui::field("problem", problem);
    }
    if let Some(why) = &v.why {
        ui::field("why", why);
    }
    if let Some(waits) = &v.waits {
        ui::field("waits", waiting(waits));
    }
    if let Some(next) = advice::step(v) {
        ui::field("next", next);
    }
    if let Some(c) = &v.checking {
        ui::field("checking", format!("{}: {}", c.gate, Lasting { passed: c.for_ms, usual: c.usual_ms, limit: c.limit_ms }.words()));
    }
}

fn waiting(waits: &Waits) -> String {
    let what = if waits.by == Waiter::Person { waits.words() } else { waits.what.clone() };
    let until = waits.until.as_deref().map(|until| format!("until {}, ", when(until))).unwrap_or_default();
    format!("for {what} ({until}{} so far)", in_words(waits.for_ms))
}

/// The use of each limit, with bars below each other.
#[expect(clippy::cast_precision_loss, reason = "cells of a bar")]
fn limits(v: &View) {
    let of = |limit: bool, text: String| if limit { format!("of {text}") } else { "no limit".to_owned() };
    let reached = if v.had_nothing_to_do { 0 } else { v.iteration };
    let mut all = vec![
        (
            "iteration",
            format!("{reached} ({})", of(v.max_iterations > 0, v.max_iterations.to_string())),
            reached as f64,
            v.max_iterations as f64,
        ),
        ("time", format!("{} ({})", in_words(v.spent_ms), of(v.max_ms > 0, in_words(v.max_ms))), v.spent_ms as f64, v.max_ms as f64),
    ];
    if let Some(money) = v.money() {
        let running = running(v).map(|used| format!(", and about {} in the session that runs", money::shown(used))).unwrap_or_default();
        let money = format!("{money}{running}");
        all.push(("money", money, v.spent_usd.unwrap_or(0.0), v.max_usd));
    }
    if v.tokens > 0 || v.max_tokens > 0 {
        let text = match v.uncounted_tokens() {
            Some(uncounted) => format!("{uncounted} (limit {})", in_thousands(v.max_tokens)),
            None => format!("{} ({})", in_thousands(v.tokens), of(v.max_tokens > 0, in_thousands(v.max_tokens))),
        };
        all.push(("tokens", text, v.tokens as f64, v.max_tokens as f64));
    }
    if let Some(context) = v.context.filter(|_| v.max_context > 0) {
        all.push(("context", format!("{context} % (of {} %)", v.max_context), context as f64, v.max_context as f64));
    }
    let widest = all.iter().map(|(_, text, ..)| columns(text)).max().unwrap_or(0);
    for (label, text, spent, most) in all {
        let bar = bar::beside(widest, spent, most);
        let pad = if bar.is_empty() { 0 } else { widest - columns(&text) };
        ui::field_with(label, text, &format!("{}{bar}", " ".repeat(pad)));
    }
}

/// The cost so far of the session that a run has started, which counts when it ends.
fn running(v: &View) -> Option<Micros> {
    if v.carrier != Carrier::Runner || v.waits.is_some() {
        return None;
    }
    let mut doing = Doing::new(Source::of_loop(&Project::at(&v.project), v)?);
    doing.look();
    doing.used().filter(|used| used.usd_micros > 0 && !doing.is_over()).map(|used| used.usd_micros)
}

fn trouble(v: &View) {
    if v.idle_rounds > 0 {
        ui::field("idle", format!("{} without any tool call", iterations(v.idle_rounds)));
    }
    if v.stalled_rounds > 0 {
        let of = if v.stall_limit > 0 { format!(" (of {})", v.stall_limit) } else { String::new() };
        ui::field("standstill", format!("{} changed nothing{of}", iterations(v.stalled_rounds)));
    }
    for note in v.notes.iter().take(NOTES) {
        let fate =
            note.told_in.map_or_else(|| "waits for the next prompt".to_owned(), |iteration| format!("delivered in iteration {iteration}"));
        ui::field("note", format!("{}: {} ({fate})", note.id, opening(&note.text, 100)));
    }
    if v.notes.len() > NOTES {
        ui::field("note", format!("{} more: `ralph steer --list` shows them", v.notes.len() - NOTES));
    }
    if !v.denied.is_empty() {
        ui::field("denied", denied(&v.denied, v.agent.as_deref()));
    }
    for warning in &v.warnings {
        ui::field("warning", warning);
    }
}

/// `tests  fail: 2 of 14 failed`; on a terminal in one line, `ralph explain` has the rest.
fn gate(gate: &GateView, widest: usize) {
    let name = cut(&clean(&gate.name), widest);
    let pad = " ".repeat(widest.saturating_sub(columns(&name)));
    let verdict = gate.verdict.map(|verdict| (verdict, format!("{}: ", verdict.as_str())));
    let taken = ui::VALUE + widest + 2 + verdict.as_ref().map_or(0, |(_, word)| word.len());
    let what = clean(&gate.what);
    let what = ui::width().map_or(what.clone(), |width| cut(&what, width.saturating_sub(taken).max(12)));
    let verdict = verdict.map(|(verdict, word)| ui::judged(verdict, word)).unwrap_or_default();
    ui::drawn("gate", &format!("{name}{pad}  {verdict}{what}"));
}

fn session(v: &View) -> &str {
    match v.session.as_deref() {
        Some(session) => short(Some(session)),
        None if v.status == Status::Tracked => "none, until `ralph resume`",
        None if v.by_run => "none: with `ralph run` each iteration has its own",
        None => "none yet: the first one that stops here",
    }
}

/// The calls that were denied, as rules that would allow them.
fn denied(all: &[Denials], agent: Option<&str>) -> String {
    const SHOWN: usize = 5;
    let rules: Vec<String> = all.iter().take(SHOWN).map(|denied| format!("{} ×{}", opening(&denied.rule, 80), denied.times)).collect();
    let more = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    format!("{}{more}: {}", rules.join(", "), Advice::of(agent).allow)
}
