//! Pausing a loop: the file says `active: false`, stops are allowed, nothing is counted.

use ralph_core::{
    front_matter::Value,
    journal::{Actor, Event},
};

use crate::{
    ops::{Asker, Refusal, choose},
    store::{
        Error,
        locked::{Locked, Loop},
        project::Project,
    },
    sys::clock,
};

/// Pauses the loop; returns its iteration and its limit.
pub fn pause(project: &Project, name: Option<&str>, why: &str, asker: &Asker) -> Result<(u64, u64), Refusal> {
    let chosen = choose(project, name, asker.session.as_deref())?;
    let locked = Locked::acquire(project)?;
    let found = crate::store::loops::read(project, &chosen.name)?.ok_or(Refusal::NoLoop)?;
    let mut l = locked.open(found).map_err(|f| unreadable(&f))?;
    l.state.command.clone_from(&asker.command);
    if l.file.active && !set_paused(&locked, &mut l, asker.session.as_deref(), asker.actor(), why)? {
        return Err(Refusal::NoLoop);
    }
    Ok((l.file.iteration, l.file.max_iterations))
}

/// Marks an open loop as paused. `false`: its file was deleted meanwhile.
pub fn set_paused(locked: &Locked<'_>, l: &mut Loop, session: Option<&str>, by: Actor, why: &str) -> Result<bool, Error> {
    if !locked.set(l, &[("active", Value::Plain("false"))])? {
        return Ok(false);
    }
    let now = clock::now();
    l.state.disarm(now);
    locked.record(l, now, session, Event::Paused { by, why: why.to_owned() })?;
    Ok(true)
}

pub(super) fn unreadable(found: &crate::store::loops::Found) -> Refusal {
    let problem = found.parsed.as_ref().err().map(ToString::to_string).unwrap_or_default();
    Refusal::Because(format!("{} cannot be read: {problem}. Mend it, or `ralph cancel` puts it aside", found.path.display()))
}
