//! Pausing a loop: the file says `active: false`, stops are allowed, nothing is counted.

use ralph_core::{
    journal::{Actor, Event},
    loops::Value,
};

use crate::{
    ops::{Asker, Refusal, choose, open},
    store::{
        Error, journal,
        project::Project,
        project_lock::{Locked, Loop},
        runner,
    },
    sys::clock,
};

#[derive(Debug)]
pub struct Paused {
    pub id: String,
    pub iteration: u64,
    pub max_iterations: u64,
    /// It was paused before.
    pub already: bool,
    /// `ralph run` has it, or had it last.
    pub by_run: bool,
    /// The run that ends after its iteration.
    pub runner_pid: Option<u32>,
    /// Processes that a dead run had left, and that were ended.
    pub leftovers: usize,
}

pub fn pause(project: &Project, name: Option<&str>, asker: &Asker) -> Result<Paused, Refusal> {
    let (locked, mut l) = open(project, choose(project, name, asker.session.as_deref())?)?;
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
pub(crate) fn set_paused(locked: &Locked<'_>, l: &mut Loop, session: Option<&str>, by: Actor, why: &str) -> Result<bool, Error> {
    if !locked.set(l, &[("active", Value::Plain("false"))])? {
        return Ok(false);
    }
    let now = clock::now();
    // The agent of a run works on until its iteration ends, and its time counts.
    if journal::runner_of(&l.state).is_none() || l.state.parked.is_some() {
        l.state.disarm(now);
    }
    l.state.parked = None;
    locked.record(l, now, session, Event::Paused { by, why: why.to_owned() })?;
    Ok(true)
}
