//! Handing a loop to `ralph run`, and taking it back.

use ralph_core::{
    journal::{Event, Runner},
    judge::session_outcome::Failures,
    loops::{LoopFile, Value},
    text,
};

use crate::{
    ops::{
        Asker, Refusal, choose, open,
        resume::{self, resume},
    },
    stop::find::is_unreleased_checkout,
    store::{
        Error,
        journal::{self, owner_may_live},
        loops::{self, LoopOnDisk},
        project::Project,
        project_lock::{Locked, Loop},
        runner,
    },
    sys::clock,
};

/// A loop that this run has now.
#[derive(Debug)]
pub(crate) struct Taken {
    pub found: LoopOnDisk,
    pub file: LoopFile,
    /// The mark of the run before, which was interrupted: processes of it may still run.
    pub dead: Option<String>,
    /// How it goes on, in words; `None`: it begins.
    pub picked_up: Option<String>,
    /// The session of the iteration that was interrupted.
    pub unfinished: Option<String>,
}

/// The loop that is meant, resumed if it has ended or is paused, with its new limits.
pub(crate) fn bring(project: &Project, request: &resume::Request) -> Result<LoopOnDisk, Refusal> {
    let chosen = match choose(project, request.which.as_deref(), None) {
        // It may be in the archive.
        Err(Refusal::NoSuch { .. } | Refusal::NoLoop) => None,
        other => Some(other?),
    };
    let rests = |found: &LoopOnDisk| found.parsed.as_ref().is_ok_and(|file| !file.active);
    if let Some(found) = &chosen {
        refuse_anothers(project, found)?;
    }
    match chosen {
        Some(found) if !rests(&found) && request.settings.limits().next().is_none() => Ok(found),
        _ => {
            let request = resume::Request { goes_on: true, ..request.clone() };
            let resumed = resume(project, &request, &Asker::default())?;
            loops::known(project).into_iter().find(|found| found.id() == resumed.id).ok_or(Refusal::NoLoop)
        }
    }
}

/// Refuses a loop that a session works on (another run holds its lock), and one that came with a checkout and was not released.
fn refuse_anothers(project: &Project, found: &LoopOnDisk) -> Result<(), Refusal> {
    let (_locked, l) = open(project, found.clone())?;
    // A loop that was worked on here before is known.
    let is_known = l.state.released || l.state.stops > 0 || l.state.runner.is_some();
    if l.owner().is_none() && is_unreleased_checkout(project, &l.found, is_known) {
        return Err(Refusal::Because(format!(
            "the loop {} came with the repository, and you may not have written its task: read {}; `ralph resume` releases it, then `ralph run --continue` works on it",
            text::clean(&l.id),
            l.found.path.display()
        )));
    }
    let is_a_sessions = l.file.active && l.state.runner.is_none() && l.owner().is_some() && owner_may_live(&l.state);
    if !is_a_sessions {
        return Ok(());
    }
    Err(Refusal::Because(format!(
        "session {} works on this loop. `ralph pause` first, or end that session; then `ralph run --continue` goes on with it",
        text::opening(l.owner().unwrap_or_default(), 8)
    )))
}

/// Makes this run the loop's.
pub(crate) fn take(project: &Project, found: LoopOnDisk, mark: &str, inner_limit: u64) -> Result<Taken, Refusal> {
    let (locked, mut l) = open(project, found)?;
    // The lock is not enough: its file can be removed.
    if let Some(alive) = journal::runner_of(&l.state).filter(|runner| runner.pid != std::process::id()) {
        return Err(carried(Some(alive.pid)));
    }
    let edits = l.accept_edits();
    let told_edits = (!edits.is_empty()).then(|| format!("its file was edited, and that counts now: {}", edits.join(", ")));
    l.state.refused.clear();
    l.stop_clock_if_abandoned();
    let before = l.state.runner.take();
    let was_at_work = before.as_ref().is_some_and(|runner| runner.attempt > 0);
    // The end of an iteration changes the file first, and then writes the journal's line: the run may have died in between.
    let unfinished = l.state.owner.clone().filter(|_| was_at_work && l.file.iteration <= l.state.iteration);
    let unwritten = (was_at_work && unfinished.is_none()).then_some(l.state.iteration);
    let from = l.owner().filter(|_| before.is_none()).map(str::to_owned);
    let picked_up = picked_up(&l, unfinished.is_some());
    let mut values = Vec::new();
    if !l.file.active {
        values.push(("active", Value::Plain("true")));
    }
    if l.file.session_id.is_some() {
        values.push(("session_id", Value::Plain("null")));
    }
    if !values.is_empty() && !locked.set(&mut l, &values)? {
        return Err(Refusal::NoLoop);
    }
    let now = clock::now();
    let attempt = before.as_ref().filter(|_| unfinished.is_some()).map_or(0, |runner| runner.attempt);
    let this = Runner { attempt, ..runner::this(mark, inner_limit) };
    l.state.client_pid = Some(this.pid);
    l.state.runner = Some(this);
    l.state.owner = Some(mark.to_owned());
    l.state.released = false;
    l.state.left_behind = false;
    // A limit of the account that has not reset yet still counts.
    l.state.parked = l.state.parked.filter(|parked| parked.until.is_some_and(|until| until > now));
    l.state.failures = Failures::default();
    l.state.arm(now);
    if !edits.is_empty() {
        locked.record(&mut l, now, None, Event::Edited { changes: edits, refused: Vec::new() })?;
    }
    let event = Event::Taken { pid: std::process::id(), from, unfinished: unfinished.is_some().then_some(l.file.iteration), unwritten };
    locked.record(&mut l, now, None, event)?;
    project.introduce();
    let picked_up = match (picked_up, told_edits) {
        (picked_up, None) => picked_up,
        (None, Some(edits)) => Some(edits),
        (Some(picked_up), Some(edits)) => Some(format!("{picked_up}; {edits}")),
    };
    let dead = before.map(|runner| runner.mark);
    let found = LoopOnDisk { parsed: Ok(l.file.clone()), ..l.found };
    Ok(Taken { file: l.file, found, dead, picked_up, unfinished })
}

pub(crate) fn carried(pid: Option<u32>) -> Refusal {
    let who = pid.map_or_else(|| "another `ralph run`".to_owned(), |pid| format!("`ralph run` (pid {pid})"));
    Refusal::Because(format!(
        "{who} has this loop already: `ralph status` shows it, Ctrl-C there or `ralph pause` ends it after its iteration"
    ))
}

fn picked_up(l: &Loop, unfinished: bool) -> Option<String> {
    let iteration = text::of_limit(l.file.iteration, l.file.max_iterations());
    match (unfinished, l.owner()) {
        (true, _) => Some(format!("iteration {iteration} was interrupted; it begins again")),
        (false, Some(owner)) if l.state.runner.is_none() => {
            Some(format!("goes on at iteration {iteration}, from session {}", text::opening(owner, 8)))
        }
        _ if l.state.stops > 0 => Some(format!("goes on at iteration {iteration}")),
        _ => None,
    }
}

/// Gives the loop back, paused. A loop that has ended, that another run has taken, or that was given back already is left as it is.
pub(crate) fn leave(project: &Project, found: &LoopOnDisk, mark: &str, why: &str) -> Result<(), Error> {
    let locked = Locked::acquire(project)?;
    let id = found.id();
    let Some(found) = loops::reread(project, found.clone())? else { return Ok(()) };
    let Ok(mut l) = locked.open(found) else { return Ok(()) };
    let is_anothers = l.state.runner.as_ref().is_some_and(|runner| runner.mark != mark);
    let is_given_back = l.state.runner.is_none() && l.state.owner.is_none() && !l.file.active;
    if l.id != id || is_anothers || is_given_back {
        return Ok(());
    }
    give_back(&locked, &mut l, why)
}

/// Gives the loop back under the lock under which that was decided: nobody resumes it in between, and believes that the run goes on.
pub(crate) fn give_back(locked: &Locked<'_>, l: &mut Loop, why: &str) -> Result<(), Error> {
    if l.file.active && !locked.set(l, &[("active", Value::Plain("false"))])? {
        return Ok(());
    }
    let now = clock::now();
    l.state.disarm(now);
    l.state.runner = None;
    l.state.owner = None;
    l.state.client_pid = None;
    locked.record(l, now, None, Event::Left { why: why.to_owned() })
}
