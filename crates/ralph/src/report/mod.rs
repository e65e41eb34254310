//! A loop's report: gathered once from the journal and from what is beside it, and drawn as a page, as Markdown or as JSON.

mod acceptance;
mod beside;
mod cost;
mod html;
mod kept;
mod markdown;
mod needs;
mod sentence;
mod thinned;
mod ways;

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use ralph_core::{
    gate::{Finding, Gate, Kind, Verdict},
    journal::history::{Chronicle, Round, Story, Took},
    loops::{LoopFile, MAX_FILE_BYTES},
    money::{self, Micros},
    report::{Acceptance, Changed, Figures, GateStory, Limits, Of, Report, RoundRow, Standing, Trouble, VERSION},
    text::time::Millis,
};
use ralph_engine::{
    gates::declared,
    store::{journal, loops, project::Project},
    sys::{clock, env, files, secrets},
    view::{self, Status, View},
};

use crate::{exit::Failure, find_loop, text::in_thousands};
use kept::Files;

pub(crate) use html::page;
pub(crate) use markdown::markdown;

/// Everything about the loop called `which`; without it about the one that people mean.
pub(crate) fn gather(project: &Project, which: Option<&str>) -> Result<Report, Failure> {
    let (view, mut chronicle) = chronicle(project, which)?;
    beside::add_used(&mut chronicle, env::claude_config());
    Ok(of(project, &view, &chronicle, clock::now()))
}

/// What was found last, of all gates that the loop has, and when; those that nobody has measured yet are named.
pub(crate) fn findings(project: &Project, which: Option<&str>) -> Result<(View, Millis, Vec<Finding>), Failure> {
    let (view, chronicle) = chronicle(project, which)?;
    let declared = loop_file(project, &view).map(|file| declared::of_loop(project, &file)).unwrap_or_default();
    let mut all: Vec<Finding> = chronicle.findings().cloned().collect();
    let is_untold = |gate: &&Gate| chronicle.proofs.gates.iter().all(|story| story.gone || story.last.gate != gate.name);
    let unmeasured = acceptance::meant(&view, &declared).filter(is_untold);
    all.extend(unmeasured.map(|gate| Finding { skipped: true, ..gate.finding(Verdict::Unknown, "not measured yet") }));
    let at = chronicle.last_stop.as_ref().map(|stop| stop.at).or(chronicle.last).unwrap_or(0);
    Ok((view, at, all))
}

/// Where a loop stands, and what its journal tells.
pub(crate) fn chronicle(project: &Project, which: Option<&str>) -> Result<(View, Chronicle), Failure> {
    let view = find_loop::view(project, which).map_err(|failure| without_a_journal(project, which).unwrap_or(failure))?;
    let bytes = journal::read(&view.journal).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => no_journal(&view.id, &view.journal),
        _ => Failure::new(format!("cannot read {}: {e}", view.journal.display())),
    })?;
    Ok((view, Chronicle::of(&bytes)))
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
    view::archive(project)
        .into_iter()
        .find(|old| old.id == which || old.name == which)
        .map(|old| no_journal(&old.id, &project.journal(&old.id)))
}

fn no_journal(id: &str, path: &Path) -> Failure {
    Failure::new(format!(
        "there is nothing to report about loop {id}: {} is not there. Nothing has happened to it yet, or somebody removed its journal",
        path.display()
    ))
}

/// The report of a loop, from what its journal tells and what is beside it at `now`.
pub(crate) fn of(project: &Project, view: &View, chronicle: &Chronicle, now: Millis) -> Report {
    let file = loop_file(project, view);
    let declared = file.as_ref().map(|file| declared::of_loop(project, file)).unwrap_or_default();
    let files = Files::of(project, &view.id);
    let acceptance = acceptance::of(acceptance::Of { project, view, declared: &declared, chronicle, files: &files });
    // Of a loop that nobody carries, nobody knows what happened since.
    let is_carried = matches!(view.status, Status::Active | Status::Parked | Status::Waiting | Status::Paused | Status::Tracked);
    let until = if is_carried { now } else { chronicle.last.unwrap_or(now) };
    let (spans, took) = chronicle.hours.until(until);
    let rounds = rounds(chronicle, beside::changed(project, &view.id, chronicle));
    let figures = figures(chronicle, &acceptance, took, &rounds, until);
    let left = beside::left(project, chronicle);
    let prompt = file.as_ref().map_or(&chronicle.prompt, |file| &file.prompt);
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
        sentence: sentence::of(view, chronicle, until),
        prompt: prompt.trim().to_owned(),
        started: chronicle.started,
        last: chronicle.last,
        ended: chronicle.ended.map(|ended| ended.at),
        ending: chronicle.ended.map(|ended| ended.ending),
        code: chronicle.ended.and_then(|ended| ended.code),
        limits: Limits { iterations: view.max_iterations, ms: view.max_ms, usd_micros: money::of_dollars(view.max_usd) },
        cost: cost::of(&figures),
        figures,
        needs: needs::of(project, view, &declared, chronicle, &acceptance, left.as_ref()),
        left,
        troubles: troubles(chronicle),
        acceptance,
        spans,
        gates: chronicle.proofs.gates.iter().filter(|story| story.last.kind != Kind::Config).map(gate).collect(),
        refused: chronicle.refused.kept.clone(),
        notes: chronicle.notes.kept.clone(),
        rounds,
        ways: ways::of(view, chronicle, &files),
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

fn gate(story: &Story) -> GateStory {
    GateStory { name: story.last.gate.clone(), kind: story.last.kind, gone: story.gone, marks: story.marks.clone() }
}

/// Each iteration with how many gates held after it.
fn rounds(chronicle: &Chronicle, changed: Vec<Option<Changed>>) -> Vec<RoundRow> {
    let mut reached = vec![0; chronicle.proofs.gates.len()];
    let settings = chronicle.proofs.gates.iter().filter(|story| story.last.kind == Kind::Config);
    let broken: HashSet<u64> = settings.flat_map(|s| &s.marks).filter(|m| m.verdict != Verdict::Pass).map(|m| m.stop).collect();
    let mut row = |(round, changed): (&Round, Option<Changed>)| {
        let (mut held, mut known) = (0, 0);
        // Where the gates could not be read, nobody knows what those hold that were measured before.
        let is_broken = broken.contains(&round.stop);
        let gates = chronicle.proofs.gates.iter().zip(&mut reached);
        for (story, at) in gates.filter(|(story, _)| story.last.kind != Kind::Config) {
            while story.marks.get(*at).is_some_and(|mark| mark.stop <= round.stop) {
                *at += 1;
            }
            let last = at.checked_sub(1).and_then(|last| story.marks.get(last));
            if let Some(mark) = last.filter(|mark| !is_broken || mark.stop == round.stop) {
                known += 1;
                held += u64::from(mark.verdict == Verdict::Pass);
            }
        }
        RoundRow { round: round.clone(), changed, gates_held: held, gates_known: known }
    };
    chronicle.rounds.iter().zip(changed).map(&mut row).collect()
}

fn figures(c: &Chronicle, acceptance: &[Acceptance], took: Took, rounds: &[RoundRow], until: Millis) -> Figures {
    let counted = || acceptance.iter().filter(|one| one.of != Of::Promise);
    let ended = c.ended.map_or(until, |ended| ended.at);
    Figures {
        iteration: c.state.iteration,
        rounds: rounds.len() as u64,
        stops: c.state.stops,
        elapsed_ms: c.started.map_or(0, |started| u64::try_from(ended - started).unwrap_or(0)),
        took,
        used: c.used(),
        wanted: counted().count() as u64,
        verified: counted().filter(|one| one.standing == Standing::Proven).count() as u64,
        by_mark: counted().filter(|one| one.is_by_mark_alone()).count() as u64,
        changed: rounds.iter().filter_map(|row| row.changed).reduce(Changed::plus),
        refused: c.refused.count,
        notes: c.notes.count,
        unreadable_lines: c.unreadable,
    }
}

/// Alike ones together, in the order in which they first came.
fn troubles(chronicle: &Chronicle) -> Vec<Trouble> {
    let mut all: Vec<Trouble> = Vec::new();
    for said in &chronicle.troubles.kept {
        match all.iter_mut().find(|known| known.what == said.what) {
            Some(known) => (known.times, known.at, known.iteration) = (known.times + 1, said.at, said.iteration),
            None => all.push(Trouble { what: said.what.clone(), times: 1, at: said.at, iteration: said.iteration }),
        }
    }
    all
}

/// `+12 −3`, or a dash where nobody knows.
fn lines(changed: Changed) -> String {
    let shown = |(added, removed)| format!("+{} −{}", in_thousands(added), in_thousands(removed));
    changed.lines().map_or_else(|| "–".to_owned(), shown)
}

/// `$0.42`, `about $0.42`, or a dash where nobody knows.
fn money(spent: Micros, estimated: bool) -> String {
    match spent {
        0 => "–".to_owned(),
        _ if estimated => format!("about {}", money::shown(spent)),
        _ => money::shown(spent).to_string(),
    }
}
