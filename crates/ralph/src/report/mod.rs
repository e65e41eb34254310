//! A loop's report: gathered once from the journal and from what is beside it, and drawn as a page, as Markdown or as JSON.

mod acceptance;
mod commands;
mod cost;
mod git_and_transcripts;
mod grouping;
mod html;
mod markdown;
mod needs_person;
mod sentence;
mod shared;
mod snapshots;

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use ralph_core::{
    gate::{Finding, Gate, Kind, Verdict},
    history::{GateHistory, History, Iteration, Took, Used},
    judge::session_outcome::Tokens,
    loops::{LoopFile, MAX_FILE_BYTES},
    money,
    report::{Acceptance, Changed, Figures, GateStory, IterationRow, Limits, Of, Report, Standing, Trouble, Unfinished, VERSION},
    text::time::Millis,
};
use ralph_engine::{
    gates::declared::{self, Declared},
    hosts::claude::variables,
    store::{journal, loops, project::Project},
    sys::{clock, env, files, secrets},
    view::{self, Status, View},
};

use crate::{exit::Failure, find_loop};
use snapshots::Snapshots;

pub(crate) use html::page;
pub(crate) use markdown::markdown;

/// Everything about the loop called `which`; without a name, about the one that people mean.
pub(crate) fn gather(project: &Project, which: Option<&str>) -> Result<Report, Failure> {
    let (view, mut history) = history(project, which)?;
    git_and_transcripts::add_used(project, &mut history, variables::config_folder());
    Ok(of(project, &view, &history, clock::now()))
}

/// The last findings of all gates that the loop has, and when they were made; gates that were never measured are named.
pub(crate) fn findings(project: &Project, which: Option<&str>) -> Result<(View, Millis, Vec<Finding>), Failure> {
    let (view, history) = history(project, which)?;
    let declared = loop_file(project, &view).map(|file| declared::of_loop(project, &file)).unwrap_or_default();
    let mut all: Vec<Finding> = history.findings().cloned().collect();
    let is_unmeasured = |gate: &&Gate| history.findings().all(|finding| finding.gate != gate.name);
    let unmeasured = acceptance::meant(&view, &declared).filter(is_unmeasured);
    all.extend(unmeasured.map(|gate| Finding { skipped: true, ..gate.finding(Verdict::Unknown, "not measured yet") }));
    let at = history.last_stop.as_ref().map(|stop| stop.at).or(history.last).unwrap_or(0);
    Ok((view, at, all))
}

/// A loop, and what its journal tells.
fn history(project: &Project, which: Option<&str>) -> Result<(View, History), Failure> {
    let view = find_loop::view(project, which).map_err(|failure| without_a_journal(project, which).unwrap_or(failure))?;
    let history = journal::whole_history(&view.journal).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => no_journal(&view.id, &view.journal),
        _ => Failure::new(format!("cannot read {}: {e}", view.journal.display())),
    })?;
    Ok((view, history))
}

/// Writes the page of a loop that ended, paused or parked, unless the person wants none. If it cannot be written, `ralph report` says why.
pub(crate) fn save_page(project: &Project, id: &str) {
    if env::wants_pages() {
        let _ = gather(project, Some(id)).and_then(|report| write_page(project, &report));
    }
}

/// Writes the page in ralph's own folder: the whole page or nothing, replacing whatever has its name.
pub(crate) fn write_page(project: &Project, report: &Report) -> Result<PathBuf, Failure> {
    let path = project.folder("reports")?.join(format!("{}.html", report.id));
    files::replace_private(&path, secrets::mask(&page(report)).as_bytes()).map_err(Failure::cannot_write(&path))?;
    Ok(path)
}

/// A loop that left its file and no journal.
fn without_a_journal(project: &Project, which: Option<&str>) -> Option<Failure> {
    let which = which?;
    let old = view::archive(project).into_iter().find(|old| old.id == which || old.name == which)?;
    Some(no_journal(&old.id, &project.journal(&old.id)))
}

fn no_journal(id: &str, path: &Path) -> Failure {
    Failure::new(format!(
        "there is nothing to report about loop {id}: {} is not there. Nothing has happened to it yet, or its journal was removed",
        path.display()
    ))
}

/// Everything that a report is made of.
#[derive(Clone, Copy)]
struct Sources<'a> {
    project: &'a Project,
    view: &'a View,
    declared: &'a Declared,
    history: &'a History,
    snapshots: &'a Snapshots,
}

/// The report of a loop, from what its journal tells and what is beside it at `now`.
fn of(project: &Project, view: &View, history: &History, now: Millis) -> Report {
    let file = loop_file(project, view);
    let declared = file.as_ref().map(|file| declared::of_loop(project, file)).unwrap_or_default();
    let (changed, snapshots) = git_and_transcripts::changed(project, &view.id, history);
    let sources = Sources { project, view, declared: &declared, history, snapshots: &snapshots };
    let acceptance = acceptance::of(sources);
    // A loop that has ended, or was left behind, is told as of its last record.
    let goes_on = matches!(view.status, Status::Active | Status::Parked | Status::Waiting | Status::Paused | Status::Tracked);
    let until = if goes_on { now } else { history.last.unwrap_or(now) };
    let (spans, took) = history.timeline.until(until);
    let rounds = rounds(history, changed);
    let figures = figures(history, &acceptance, took, &rounds, until);
    let unfinished = unfinished(history, until);
    let left = git_and_transcripts::left(project, history);
    let agents = history.by_agent();
    let prompt = file.as_ref().map_or(&history.prompt, |file| &file.prompt);
    Report {
        v: VERSION,
        ralph: env!("CARGO_PKG_VERSION").to_owned(),
        written: now,
        journal: relative(project, &view.journal),
        project: project.root().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        id: view.id.clone(),
        name: view.name.clone(),
        status: serde_json::to_value(view.status).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default(),
        mood: sentence::mood(view),
        sentence: sentence::of(view, history, until),
        prompt: prompt.trim().to_owned(),
        started: history.started,
        last: history.last,
        ended: history.ended.map(|ended| ended.at),
        ending: history.ended.map(|ended| ended.ending),
        code: history.ended.and_then(|ended| ended.code),
        limits: Limits { iterations: view.max_iterations, ms: view.max_ms, usd_micros: money::of_dollars(view.max_usd) },
        cost: cost::of(&figures, &agents, unfinished.is_some()),
        agents,
        figures,
        needs: needs_person::of(sources, &acceptance, left.as_ref()),
        left,
        troubles: troubles(history),
        acceptance,
        spans,
        gates: history.gates.iter().filter(|gate| gate.last.kind != Kind::Config).map(gate).collect(),
        refused: history.refused.kept.clone(),
        notes: history.notes.kept.clone(),
        rounds,
        unfinished,
        ways: commands::of(sources),
    }
}

/// A path as people see it who stand in the project.
fn relative(project: &Project, path: &Path) -> String {
    path.strip_prefix(project.root()).unwrap_or(path).to_string_lossy().into_owned()
}

/// The loop's own file, or the one that it left in the archive.
fn loop_file(project: &Project, view: &View) -> Option<LoopFile> {
    if let Some(found) = loops::folder_of(project, &view.id) {
        return found.parsed.ok();
    }
    let archived = || view::archive(project).into_iter().find(|old| old.id == view.id).map(|old| old.path);
    LoopFile::parse(&files::read(&view.file.clone().or_else(archived)?, MAX_FILE_BYTES).ok()?).ok()
}

fn gate(gate: &GateHistory) -> GateStory {
    GateStory { name: gate.last.gate.clone(), kind: gate.last.kind, gone: gate.gone, marks: gate.marks.clone() }
}

/// Each iteration with how many gates held after it.
fn rounds(history: &History, changed: Vec<Option<Changed>>) -> Vec<IterationRow> {
    let (settings, gates): (Vec<_>, Vec<_>) = history.gates.iter().partition(|gate| gate.last.kind == Kind::Config);
    let broken: HashSet<u64> = settings.iter().flat_map(|s| &s.marks).filter(|m| m.verdict != Verdict::Pass).map(|m| m.stop).collect();
    // How many marks of each gate are of this iteration or an earlier one.
    let mut reached = vec![0; gates.len()];
    let mut row = |(round, changed): (&Iteration, Option<Changed>)| {
        let (mut held, mut known) = (0, 0);
        // Where the settings could not be read, what the gates found before is not known to hold.
        let is_broken = broken.contains(&round.stop);
        for (gate, reached) in gates.iter().zip(&mut reached) {
            while gate.marks.get(*reached).is_some_and(|mark| mark.stop <= round.stop) {
                *reached += 1;
            }
            let last = reached.checked_sub(1).and_then(|last| gate.marks.get(last));
            if let Some(mark) = last.filter(|mark| !is_broken || mark.stop == round.stop) {
                known += 1;
                held += u64::from(mark.verdict == Verdict::Pass);
            }
        }
        IterationRow { round: round.clone(), changed, gates_held: held, gates_known: known }
    };
    history.rounds.iter().zip(changed).map(&mut row).collect()
}

/// The iteration that no stop ended.
fn unfinished(history: &History, until: Millis) -> Option<Unfinished> {
    let (took, used) = (history.timeline.open_until(until), history.open);
    let has_begun = used.sessions > 0 || used.tokens.is_some() || took.work_ms >= 1_000;
    has_begun.then_some(Unfinished { iteration: history.state.iteration, took, used })
}

/// Usage and changes of a loop whose gates held before any session was started: none, and that is known.
fn nothing_done(history: &History) -> Option<(Used, Changed)> {
    let is_nothing = history.rounds.is_empty() && history.last_stop.as_ref().is_some_and(|stop| stop.evidence.before_the_first);
    let used = Used { tool_calls: Some(0), tokens: Some(Tokens::default()), usd_micros: Some(0), ..Used::default() };
    is_nothing.then_some((used, Changed::default()))
}

fn figures(history: &History, acceptance: &[Acceptance], took: Took, rounds: &[IterationRow], until: Millis) -> Figures {
    let counted = || acceptance.iter().filter(|one| one.of != Of::Promise);
    let ended = history.ended.map_or(until, |ended| ended.at);
    let changed = rounds.iter().filter_map(|row| row.changed).reduce(Changed::plus);
    let (used, changed) = nothing_done(history).map_or_else(|| (history.used(), changed), |(used, changed)| (used, Some(changed)));
    Figures {
        iteration: history.state.iteration,
        rounds: rounds.len() as u64,
        stops: history.state.stops,
        elapsed_ms: history.started.map_or(0, |started| u64::try_from(ended - started).unwrap_or(0)),
        spent_ms: history.state.spent(until),
        took,
        used,
        wanted: counted().count() as u64,
        verified: counted().filter(|one| one.standing == Standing::Proven).count() as u64,
        by_mark: counted().filter(|one| one.is_by_mark_alone()).count() as u64,
        changed,
        refused: history.refused.count,
        notes: history.notes.count,
        unreadable_lines: history.unreadable,
    }
}

/// Equal ones together, in the order in which they first came.
fn troubles(history: &History) -> Vec<Trouble> {
    let mut all: Vec<Trouble> = Vec::new();
    for said in &history.troubles.kept {
        match all.iter_mut().find(|known| known.what == said.what) {
            Some(known) => (known.times, known.at, known.iteration) = (known.times + 1, said.at, said.iteration),
            None => all.push(Trouble { what: said.what.clone(), times: 1, at: said.at, iteration: said.iteration }),
        }
    }
    all
}
