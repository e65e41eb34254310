//! Pausing a loop: the file says `active: false`, stops are allowed, nothing is counted.

use ralph_core::{
    journal::{Actor, Event},
    loops::Value,
};

use crate::{
    ops::{Asker, Refusal, choose},
    store::{
        Error, journal, loops,
        project::Project,
        project_lock::{Locked, Loop},
        runner,
    },
    sys::clock,
};

/// The loop that is paused.
#[derive(Debug)]
pub struct Paused {
    pub id: String,
    pub iteration: u64,
    pub max_iterations: u64,
    /// It was paused before.
    pub already: bool,
    /// A runner carries it, or carried it last.
    pub by_run: bool,
    /// The runner that ends after its round.
    pub runner_pid: Option<u32>,
    /// Processes that its dead runner had left running, and that were ended.
    pub leftovers: usize,
}

pub fn pause(project: &Project, name: Option<&str>, asker: &Asker) -> Result<Paused, Refusal> {
    let chosen = choose(project, name, asker.session.as_deref())?;
    let locked = Locked::acquire(project)?;
    let found = loops::reread(project, chosen)?.ok_or(Refusal::NoLoop)?;
    let mut l = locked.open(found).map_err(|f| unreadable(&f))?;
    l.state.command.clone_from(&asker.command);
    let already = !l.file.active;
    if !already && !set_paused(&locked, &mut l, asker.session.as_deref(), asker.actor(), "")? {
        return Err(Refusal::NoLoop);
    }
    drop(locked);
    let runner_pid = journal::runner_of(&l.state).map(|runner| runner.pid);
    let by_run = l.state.runner.is_some() || (already && journal::history(&project.journal(&l.id)).by_run);
    let leftovers = runner::end_what_a_dead_run_left(&l.state);
    let (iteration, max_iterations) = (l.file.iteration, l.file.max_iterations());
    Ok(Paused { id: l.id, iteration, max_iterations, already, by_run, runner_pid, leftovers })
}

/// Marks an open loop as paused. `false`: its file was deleted meanwhile.
pub fn set_paused(locked: &Locked<'_>, l: &mut Loop, session: Option<&str>, by: Actor, why: &str) -> Result<bool, Error> {
    if !locked.set(l, &[("active", Value::Plain("false"))])? {
        return Ok(false);
    }
    let now = clock::now();
    l.state.disarm(now);
    l.state.parked = None;
    locked.record(l, now, session, Event::Paused { by, why: why.to_owned() })?;
    Ok(true)
}

pub(super) fn unreadable(found: &loops::LoopOnDisk) -> Refusal {
    let problem = found.parsed.as_ref().err().map(ToString::to_string).unwrap_or_default();
    Refusal::Because(format!("{} cannot be read: {problem}. Fix it and try again", found.path.display()))
}
