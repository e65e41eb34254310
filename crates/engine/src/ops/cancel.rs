//! Cancelling a loop. A cancel always wins: it needs no lock to take the file away, and nobody puts it back.

use ralph_core::{journal::Event, judge::Ending};

use crate::{
    ops::{Asker, Refusal, choose},
    store::{
        Error, ending,
        ending::LastEnding,
        locked::{Locked, archive},
        loops::{self, Found},
        project::Project,
    },
    sys::clock,
};

/// The loop that was cancelled.
#[derive(Debug)]
pub struct Cancelled {
    pub id: String,
    /// 0 where the file could not be read.
    pub iteration: u64,
    pub spent_ms: u64,
}

impl Cancelled {
    pub fn line(&self) -> String {
        let rounds = if self.iteration == 1 { "1 iteration".to_owned() } else { format!("{} iterations", self.iteration) };
        format!(
            "Ralph loop cancelled after {rounds} ({}). It is kept in the archive: `ralph resume` brings it back.",
            ralph_core::time::in_words(self.spent_ms)
        )
    }
}

pub fn cancel(project: &Project, name: Option<&str>, asker: &Asker) -> Result<Cancelled, Refusal> {
    let mut found = choose(project, name, asker.session.as_deref())?;
    let locked = match Locked::acquire(project) {
        Ok(locked) => Some(locked),
        Err(Error::Busy) => None,
        Err(e) => return Err(e.into()),
    };
    if locked.is_some() {
        // A hook may have counted an iteration meanwhile.
        found = loops::read(project, &found.name)?.ok_or(Refusal::NoLoop)?;
    }
    let id = found.id();
    if !archive(project, &found, &id)? {
        return Err(Refusal::NoLoop);
    }
    let cancelled = match &locked {
        Some(locked) => note(locked, found, id, asker),
        None => Cancelled { iteration: found.parsed.as_ref().map_or(0, |f| f.iteration), id, spent_ms: 0 },
    };
    let mark = LastEnding {
        loop_id: cancelled.id.clone(),
        session: asker.session.clone(),
        cause: asker.command.clone().unwrap_or_default(),
        uptime_ms: clock::uptime_ms(),
        line: cancelled.line(),
    };
    // The loop is cancelled whether or not this can be noted.
    let _ = ending::write(project, &mark);
    Ok(cancelled)
}

fn note(locked: &Locked<'_>, found: Found, id: String, asker: &Asker) -> Cancelled {
    let Ok(mut l) = locked.open(found) else { return Cancelled { id, iteration: 0, spent_ms: 0 } };
    let now = clock::now();
    l.state.disarm(now);
    l.state.ended = Some(Ending::Cancelled);
    l.state.command.clone_from(&asker.command);
    let (iteration, spent_ms) = (l.file.iteration, l.state.spent_ms);
    let event = Event::Cancelled { by: asker.actor(), iteration };
    let _ = locked.record(&mut l, now, asker.session.as_deref(), event);
    Cancelled { id, iteration, spent_ms }
}
