//! Resuming a loop at the iteration where it was: a paused one, one that was left behind, or one from the archive.

use std::path::{Path, PathBuf};

use ralph_core::{
    gate::list::List,
    journal::{Event, Parked, Spending},
    judge::{Ending, session_outcome::Tokens},
    loops::{LoopFile, LoopSettings, MAX_FILE_BYTES, Value},
    messages, money, text,
};

use crate::{
    ops::{Asker, Refusal, choose, unreadable},
    store::{
        Error,
        journal::{self, owner_may_live},
        last_ending,
        loops::{self, LoopOnDisk, Storage},
        project::Project,
        project_lock::{Locked, Loop},
        seal, waiter,
    },
    sys::{clock, files},
    view::{self, Archived, Status},
};

#[derive(Debug, Clone, Default)]
pub struct Request {
    /// A loop's name or id; without it, the only live loop, else the one that ended last.
    pub which: Option<String>,
    /// New limits; [`LoopSettings::only_for_a_new_loop`] says what cannot be changed here.
    pub settings: LoopSettings,
    /// The session that gets the loop.
    pub session: Option<String>,
    /// A loop that was in `ralph run` may go to a session, too: to the one that is named, or to the next one that stops.
    pub to_a_session: bool,
    /// A loop that is complete is started again.
    pub again: bool,
    /// For `ralph run`: iterations that changed nothing still count, and a wait goes on. A resume by hand begins both again.
    pub goes_on: bool,
}

/// The loop that is armed again.
#[derive(Debug)]
pub struct Resumed {
    pub id: String,
    pub file: LoopFile,
    /// Where its task is; `None`: in a feature folder.
    pub path: Option<PathBuf>,
    /// Its session; `None`: the next one that stops in this project.
    pub owner: Option<String>,
    /// It was active all the time, and nothing had to change.
    pub was_active: bool,
    /// Edits of its file, which count now.
    pub edits: Vec<String>,
    /// The run that was to end after its iteration, and goes on now.
    pub runner_pid: Option<u32>,
}

pub fn resume(project: &Project, request: &Request, asker: &Asker) -> Result<Resumed, Refusal> {
    // Taking the lock makes ralph's folder: not where there is nothing to resume.
    if !project.is_in_use() && live(project, request, asker)?.is_none() && ended_folder(project, request.which.as_deref()).is_none() {
        archived(project, request.which.as_deref())?;
    }
    let locked = Locked::acquire(project)?;
    match live(project, request, asker)? {
        Some(found) => {
            let l = locked.open(found).map_err(|f| unreadable(&f))?;
            arm(&locked, l, request, asker)
        }
        None => {
            if let Some(found) = ended_folder(project, request.which.as_deref()) {
                return take_up(&locked, found, request, asker);
            }
            let Archived { path, name, id, .. } = archived(project, request.which.as_deref())?;
            let bytes = files::read(&path, MAX_FILE_BYTES).map_err(Error::io("read", &path))?;
            let parsed = LoopFile::parse(&bytes);
            let candidate = LoopOnDisk { name: name.clone(), path: path.clone(), bytes, parsed, storage: Storage::File, known_as: None };
            // The archive is in the project: the file's name there and ralph's own copy say which loop it is, not the file.
            let candidate = if seal::is_known(project, &id) { candidate.known_as(&id) } else { candidate };
            let l = locked.open_ended(candidate).map_err(|f| unreadable(&f))?;
            // Refuse before the file moves.
            refuse_what_is_done(&l, request)?;
            refuse_a_runs(project, &l, request, asker)?;
            check_limits(&l, request)?;
            let found = locked
                .bring_back(&path, &name, &id)?
                .ok_or_else(|| Refusal::Because(format!("a loop called \"{name}\" is in this project already")))?;
            let l = locked.open_ended(found).map_err(|f| unreadable(&f))?;
            arm(&locked, l, request, asker).map(|resumed| Resumed { was_active: false, ..resumed })
        }
    }
}

/// The live loop that is meant, if there is one.
fn live(project: &Project, request: &Request, asker: &Asker) -> Result<Option<LoopOnDisk>, Refusal> {
    match request.which.as_deref() {
        None => match choose(project, None, asker.session.as_deref()) {
            Ok(found) => Ok(Some(found)),
            Err(Refusal::NoLoop) => Ok(None),
            Err(e) => Err(e),
        },
        Some(which) => Ok(loops::known(project).into_iter().find(|f| f.name == which || f.id() == which)),
    }
}

/// The loop of a feature folder that has ended, if it is meant: by name, or as the one that ended last.
fn ended_folder(project: &Project, which: Option<&str>) -> Option<LoopOnDisk> {
    let found = loops::of_folder(project)?;
    let is_last = || {
        let at = seal::last(project, &found.id()).map(|r| r.at).unwrap_or_default();
        view::archive(project).first().is_none_or(|last| last.ended_at <= at)
    };
    let is_meant = which.map_or_else(is_last, |which| which == found.name || which == found.id());
    is_meant.then_some(found)
}

/// Goes on with a feature folder, unless there is nothing left to do in it.
fn take_up(locked: &Locked<'_>, found: LoopOnDisk, request: &Request, asker: &Asker) -> Result<Resumed, Refusal> {
    if List::parse(&found.bytes).is_ok_and(|list| list.open().next().is_none()) {
        return Err(Refusal::Because(format!("every feature in {} passes: there is nothing to go on with", found.path.display())));
    }
    let l = locked.open_ended(found).map_err(|f| unreadable(&f))?;
    arm(locked, l, request, asker).map(|resumed| Resumed { was_active: false, ..resumed })
}

/// The archived loop that is meant: by id, by name, or the one that ended last.
fn archived(project: &Project, which: Option<&str>) -> Result<Archived, Refusal> {
    // One that ralph does not know may have come with the repository: it has to be named.
    // A hook that was killed between the end of a loop and its line has left the mark of the ending.
    let is_known = |id: &str| seal::is_known(project, id) || last_ending::read(project).is_some_and(|ended| ended.loop_id == id);
    let is_meant = |a: &Archived| which.map_or_else(|| is_known(&a.id), |which| a.id == which || a.name == which);
    let found = view::archive(project).into_iter().find(is_meant);
    let gone =
        view::ended(project).into_iter().find(|v| v.status == Status::Gone && which.is_none_or(|which| v.id == which || v.name == which));
    match (found, gone) {
        (Some(found), Some(gone)) if which.is_none() && gone.last_event_at.as_deref() > Some(found.ended_at.as_str()) => {
            Err(deleted(&gone))
        }
        (Some(found), _) => Ok(found),
        (None, Some(gone)) => Err(deleted(&gone)),
        (None, None) => Err(match which {
            None => Refusal::NoLoop,
            Some(which) => {
                Refusal::Because(format!("there is no loop \"{}\"; `ralph status --all` shows all loops", text::opening(which, 64)))
            }
        }),
    }
}

/// Refuses, so that no older loop is resumed instead of the deleted one.
fn deleted(gone: &view::View) -> Refusal {
    Refusal::Because(format!(
        "the file of {} was deleted; .ralph/backup/{}.md has the version before its last change. `ralph status --all` shows the loops that can be resumed",
        gone.id, gone.name
    ))
}

/// A complete loop is started again only with `--again`.
fn refuse_what_is_done(l: &Loop, request: &Request) -> Result<(), Refusal> {
    if l.state.ended != Some(Ending::Complete) || request.again {
        return Ok(());
    }
    let iterations = text::iterations(l.file.iteration);
    Err(Refusal::Because(format!(
        "the loop {} is complete after {iterations}, so there is nothing to go on with: --again starts it again",
        text::clean(&l.id)
    )))
}

/// A loop that was in `ralph run` has no session: the next one that stops here may be about something else.
fn refuse_a_runs(project: &Project, l: &Loop, request: &Request, asker: &Asker) -> Result<(), Refusal> {
    let is_asked_for = request.goes_on || request.to_a_session || request.session.is_some() || asker.session.is_some();
    // A wait is ended by a person's word, wherever the loop goes on then.
    if is_asked_for || l.state.parked.is_some() || !journal::history(&project.journal(&l.id)).by_run {
        return Ok(());
    }
    let named = if l.found.name == "main" { String::new() } else { format!(" {}", l.found.name) };
    Err(Refusal::Because(format!(
        "this loop was in `ralph run`: `ralph run --continue{named}` goes on with it. `ralph resume{named} --session` hands it to the next session that stops here instead"
    )))
}

/// Takes back the pause of a run that works on its last iteration: it goes on.
fn unpause(locked: &Locked<'_>, mut l: Box<Loop>, runner_pid: u32, asker: &Asker) -> Result<Resumed, Refusal> {
    if !locked.set(&mut l, &[("active", Value::Plain("true"))])? {
        return Err(Refusal::NoLoop);
    }
    let now = clock::now();
    l.state.arm(now);
    l.state.command.clone_from(&asker.command);
    let event = Event::Resumed { by: asker.actor(), iteration: l.file.iteration };
    locked.record(&mut l, now, None, event)?;
    let owner = l.owner().map(str::to_owned);
    let path = l.found.file_of_task().map(Path::to_owned);
    Ok(Resumed { id: l.id, file: l.file, path, owner, was_active: false, edits: Vec::new(), runner_pid: Some(runner_pid) })
}

/// A loop at its limit would end again at its first stop.
fn check_limits(l: &Loop, request: &Request) -> Result<(), Refusal> {
    let max = request.settings.max_iterations.unwrap_or(l.file.max_iterations());
    // A run that ended between two iterations has not begun the one that the loop is at.
    let is_to_come = request.goes_on && l.state.ended.is_none();
    if max > 0 && (l.file.iteration > max || l.file.iteration == max && !is_to_come) {
        return Err(Refusal::Because(format!(
            "the loop is at iteration {}: give it more with --max-iterations {}",
            text::of_limit(l.file.iteration, max),
            l.file.iteration.saturating_add(max.max(1))
        )));
    }
    let spent = l.state.spent(clock::now());
    if request.settings.max_hours.is_none() && l.file.max_millis() > 0 && spent >= l.file.max_millis() {
        return Err(Refusal::Because(format!(
            "the loop has used up its time ({}): give it more with --hours H",
            ralph_core::text::time::in_words(spent)
        )));
    }
    let (spent, max) = (l.state.spending.as_ref().map_or(0, |s| s.usd_micros), l.file.max_usd_micros());
    if request.settings.max_usd.is_none() && max > 0 && spent >= max {
        return Err(Refusal::Because(format!(
            "the loop has used up its money ({}): give it more with --usd {}",
            messages::spent_of(spent, max),
            money::in_dollars(max)
        )));
    }
    let (used, max) = (l.state.tokens.total(), l.file.max_tokens());
    if request.settings.max_tokens.is_none() && max > 0 && used >= max {
        return Err(Refusal::Because(format!("the loop has used up its tokens ({used} of {max}): give it more with --tokens {max}")));
    }
    Ok(())
}

fn arm(locked: &Locked<'_>, mut l: Box<Loop>, request: &Request, asker: &Asker) -> Result<Resumed, Refusal> {
    if let Some(pid) = journal::runner_of(&l.state).map(|runner| runner.pid).filter(|pid| *pid != std::process::id()) {
        let is_for_the_run = asker.session.is_none() && request.session.is_none() && !request.to_a_session && !request.goes_on;
        if !l.file.active && is_for_the_run && request.settings.limits().next().is_none() {
            return unpause(locked, l, pid, asker);
        }
        return Err(Refusal::Because(format!(
            "`ralph run` (pid {pid}) works on this loop: Ctrl-C there, or `ralph pause`, ends the run after its iteration; then it can be resumed"
        )));
    }
    refuse_a_runs(locked.project, &l, request, asker)?;
    let mut edits = l.accept_edits();
    edits.extend(l.found.known_as.as_ref().map(|_| "loop_id (it is what it was again)".to_owned()));
    check_limits(&l, request)?;
    l.stop_clock_if_abandoned();
    let before = l.owner().map(str::to_owned);
    let asked = request.session.clone().or_else(|| asker.session.clone());
    let owner = asked.or_else(|| before.clone().filter(|_| owner_may_live(&l.state)));
    let was_active = l.file.active && l.state.ended.is_none() && owner == before && owner.is_some();
    let limits: Vec<(&str, String)> = request.settings.limits().collect();
    let mut values: Vec<(&str, Value<'_>)> = Vec::new();
    // A file without the key is active already; nothing is added to it for saying so.
    if !l.file.active {
        values.push(("active", Value::Plain("true")));
    }
    values.extend(limits.iter().map(|(key, value)| (*key, Value::Plain(value))));
    let named = l.found.known_as.take();
    values.extend(named.as_deref().map(|id| ("loop_id", Value::Text(id))));
    if l.file.session_id.is_some() && l.file.session_id != owner {
        values.push(("session_id", owner.as_deref().map_or(Value::Plain("null"), Value::Text)));
    }
    if !values.is_empty() && !locked.set(&mut l, &values)? {
        return Err(Refusal::NoLoop);
    }
    let now = clock::now();
    if request.settings.max_hours.is_some() {
        l.state.disarm(now);
        l.state.spent_ms = 0;
    }
    if request.settings.max_tokens.is_some() {
        l.state.tokens = Tokens::default();
    }
    match &mut l.state.spending {
        spending if request.settings.max_usd.is_some() => *spending = Some(Spending::since(now)),
        // Spending during the pause is the person's own.
        Some(spending) if !was_active => spending.since = now,
        _ => {}
    }
    // A loop that waits for a session does not age. What was interrupted before this moment is over.
    if owner.is_some() {
        l.state.disarm(now);
        l.state.arm(now);
    }
    l.state.owner = if l.file.session_id.is_some() { None } else { owner.clone() };
    l.state.released = owner.is_none();
    l.state.left_behind = false;
    l.state.runner = None;
    l.state.ended = None;
    l.state.doubtful = false;
    l.state.last = None;
    // A session that is woken by its background process still is.
    let is_woken = was_active && asker.session != owner && waiter::of(locked.project, &l.id).is_some();
    let is_kept = |parked: &Parked| is_woken || (request.goes_on && parked.until.is_some());
    l.state.parked = l.state.parked.filter(is_kept);
    if !request.goes_on {
        l.state.idle_rounds = 0;
    }
    if !request.goes_on || request.settings.stall_rounds.is_some() {
        l.state.standstill = None;
    }
    l.state.command.clone_from(&asker.command);
    l.state.client_pid =
        if owner.is_some() && asker.session == owner { asker.client_pid } else { l.state.client_pid.filter(|_| owner == before) };
    l.state.refused.clear();
    l.state.blocked_rounds = 0;
    if !edits.is_empty() {
        locked.record(&mut l, now, owner.as_deref(), Event::Edited { changes: edits.clone(), refused: Vec::new() })?;
    }
    let event = Event::Resumed { by: asker.actor(), iteration: l.file.iteration };
    locked.record(&mut l, now, owner.as_deref(), event)?;
    let path = l.found.file_of_task().map(Path::to_owned);
    Ok(Resumed { id: l.id, file: l.file, path, owner, was_active, edits, runner_pid: None })
}
