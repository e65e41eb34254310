//! Which loop it is, how it stands, and what only a person can do about it.

use ralph_core::{
    history::Ended,
    judge::{Code, Ending},
    messages::ends_on,
    text::{clean, count, iterations, of_limit, opening, time::in_words},
};
use ralph_engine::view::{Carrier, Status, View};
use ratatui::style::Style;

use crate::{
    advice,
    journal_lines::short,
    ui,
    watch::draw::{
        BAD, BOLD, DIM, GOOD, PLAIN, Part, Scene, WARN,
        row::{Row, paragraph, parts},
    },
};

/// So much of what strangers wrote is shown of it.
const WORDS: usize = 300;

pub(super) fn part(scene: &Scene<'_>) -> Part {
    let view = scene.view;
    let (mark, style) = if view.doubtful { ("!", WARN) } else { mark(view.status) };
    let row = Row::new(scene.width).add(mark, style).gap(1);
    let state = view.stands();
    // The state is what people look for: the name gives way.
    let room = row.left().saturating_sub(crate::term::width::columns(state) + 2);
    let row = row.add(&crate::term::width::cut(&clean(&view.id), room), BOLD).gap(2).add(state, style);
    let row = carried(view).into_iter().fold(row, |row, carried| row.whole(&format!(" · {carried}"), DIM));
    let mut lines = vec![row.right(&ui::path_from_home(&view.project), DIM).line()];
    let task = (!view.prompt.is_empty()).then(|| Row::new(scene.width).add("task ", DIM).add(&clean(&view.prompt), PLAIN).line());
    // Where there are few rows, its limits say how far it is.
    let second = Some(second(scene)).filter(|_| !scene.is_low || scene.followed.is_behind);
    lines.extend(second.into_iter().chain(task));
    let least = if scene.is_low && !scene.followed.is_behind { 1 } else { 2 };
    Part { lines, least, rank: 0, is_endless: false }
}

pub(super) fn mark(status: Status) -> (&'static str, Style) {
    match status {
        Status::Active => ("●", GOOD),
        Status::Waiting | Status::Parked => ("…", WARN),
        Status::Complete => ("✓", GOOD),
        Status::Failed | Status::Corrupt => ("✗", BAD),
        Status::Tracked | Status::Paused | Status::LeftBehind | Status::Capped | Status::Cancelled | Status::Gone => ("‖", WARN),
    }
}

fn carried(view: &View) -> Option<String> {
    match view.carrier {
        Carrier::Runner => view.carried(),
        Carrier::Session => Some(format!("session {}", clean(short(view.session.as_deref())))),
        Carrier::Nobody => None,
    }
}

/// Since when, how far, and what ends it.
fn second(scene: &Scene<'_>) -> ratatui::text::Line<'static> {
    let (view, history) = (scene.view, scene.history());
    let iteration = format!("iteration {}", of_limit(view.iteration, view.max_iterations));
    let started = history.started.map(|at| format!("started {}", scene.ago(at)));
    let end = view.file.is_some().then(|| format!("ends on {}", ends_on(view.completion_promise.as_deref(), !view.gates.is_empty())));
    let reading = scene.followed.is_behind.then(|| format!("reading the journal: {}", count(history.records, "line", "lines")));
    let all = [reading, Some(iteration), end, started];
    parts(Row::new(scene.width), all.into_iter().flatten().map(|text| (clean(&text), DIM))).line()
}

/// Lines that need attention: how it ended and what to type then, why it rests, what was denied, what looks odd.
pub(super) fn needs(scene: &Scene<'_>) -> Part {
    let mut lines = Vec::new();
    for (text, style) in all_needs(scene) {
        lines.extend(paragraph(&opening(&text, WORDS), scene.width, 3, style));
    }
    Part { lines, least: if scene.is_low { 1 } else { 2 }, rank: 1, is_endless: false }
}

fn all_needs(scene: &Scene<'_>) -> Vec<(String, Style)> {
    let (view, history) = (scene.view, scene.history());
    let mut all: Vec<(String, Style)> = Vec::new();
    if view.file.is_none() && !scene.followed.is_behind {
        all.extend(ending(scene, history.ended));
    }
    if let Some(problem) = &view.problem {
        all.push((format!("the loop file cannot be read: {problem}"), BAD));
    }
    if let Some(why) = &view.why {
        all.push((why.clone(), WARN));
    }
    if let Some(step) = advice::step(view).filter(|_| view.status != Status::Parked) {
        all.push((format!("next: {step}"), PLAIN));
    }
    all.extend(gates_in_need(view).map(|text| (text, WARN)));
    all.extend(history.suspicions.iter().take(3).map(|what| (format!("looks as if the proof was weakened: {what}"), WARN)));
    if !view.denied.is_empty() {
        let rules: Vec<String> = view.denied.iter().take(4).map(|denied| format!("{} ×{}", denied.rule, denied.times)).collect();
        all.push((format!("denied, with no person to ask: {}", rules.join(", ")), WARN));
    }
    all.extend(view.warnings.iter().take(2).map(|warning| (warning.clone(), WARN)));
    if history.unreadable > 0 {
        all.push((format!("{} of the journal cannot be read", count(history.unreadable, "line", "lines")), WARN));
    }
    all.extend(view.notes.iter().map(|note| match note.told_in {
        Some(iteration) => (format!("note {} was delivered in iteration {iteration}: {}", note.id, note.text), DIM),
        None => (format!("note {} waits for the next prompt: {}", note.id, note.text), PLAIN),
    }));
    all
}

/// Steps about gates that only a person can take; gates with the same step are named together.
fn gates_in_need(view: &View) -> impl Iterator<Item = String> {
    let mut needs: Vec<(&str, Vec<&str>)> = Vec::new();
    for (gate, need) in view.gates.iter().filter_map(|gate| Some((gate.name.as_str(), gate.needs.as_deref()?))) {
        match needs.iter_mut().find(|(known, _)| *known == need) {
            Some((_, gates)) => gates.push(gate),
            None => needs.push((need, vec![gate])),
        }
    }
    needs.into_iter().map(|(need, gates)| format!("{}: a person is needed: {need}", gates.join(", ")))
}

/// How it ended, why, and what to type next.
fn ending(scene: &Scene<'_>, ended: Option<Ended>) -> Vec<(String, Style)> {
    let rounds = iterations(scene.history().rounds.len() as u64);
    let took = in_words(scene.view.spent_ms);
    let Some(ended) = ended else {
        let gone = "its file is gone, and no ending is written down: it was removed".to_owned();
        let name = if ralph_core::loops::is_name(&scene.view.name) { &scene.view.name } else { "main" };
        return vec![(gone, WARN), (format!("next: .ralph/backup/{name}.md has the version before its last change"), PLAIN)];
    };
    let at = scene.ago(ended.at);
    // The ruling that ended it says it best, and mostly what to type, too.
    let by_ruling = scene.followed.rulings.back().filter(|ruled| Some(ruled.code) == ended.code).map(|ruled| ruled.words.clone());
    let style = if ended.ending == Ending::Complete { GOOD } else { WARN };
    let how = by_ruling.unwrap_or_else(|| format!("{} after {rounds} ({took})", ended.ending.as_str()));
    let next = after(scene, ended).map(|next| (format!("next: {next}"), PLAIN));
    std::iter::once((format!("{how} ({at})"), style)).chain(next).collect()
}

fn after(scene: &Scene<'_>, ended: Ended) -> Option<String> {
    let goes_on = || format!("`{}` goes on", advice::command(scene.view, scene.history()));
    let text = match (ended.ending, ended.code) {
        (Ending::Complete, _) if scene.history().snapshots.is_empty() => "`ralph report` tells how it came about",
        (Ending::Complete, _) => "`ralph report` tells how it came about, `ralph diff` what changed",
        (Ending::Capped, Some(Code::LimitIterations | Code::LimitTime | Code::LimitCost | Code::LimitTokens)) => return None,
        (Ending::Capped | Ending::Cancelled, _) if advice::was_run(scene.view, scene.history()) => return Some(goes_on()),
        (Ending::Capped, _) => "`ralph resume` goes on, with a new limit",
        (Ending::Cancelled, _) => "`ralph resume` (or r) brings it back",
        (Ending::Failed, _) => "`ralph log` says why; fix the file in .ralph/archive, then `ralph resume`",
    };
    Some(text.to_owned())
}
