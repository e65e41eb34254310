//! Cancelling a loop. A cancel always wins: it needs no lock to take the file away, and the file is never put back.

use ralph_core::{journal::Event, judge::Ending, messages::Reader, text};

use crate::{
    ops::{Asker, Refusal, choose},
    store::{
        Error, archive, journal, last_ending, loops,
        project::Project,
        project_lock::{Locked, Loop},
        runner,
    },
    sys::clock,
};

#[derive(Debug)]
pub struct Cancelled {
    pub id: String,
    /// 0 where the file could not be read.
    pub iteration: u64,
    pub spent_ms: u64,
    /// Its session, if another one cancelled it.
    pub of_session: Option<String>,
    /// It has a feature folder instead of a file.
    pub(crate) is_folder: bool,
    /// Processes that a dead run had left, and that were ended.
    pub leftovers: usize,
}

impl Cancelled {
    pub fn line(&self, reader: Reader) -> String {
        let whose = self.of_session.as_deref().map(|s| format!(" of session {}", text::opening(s, 8))).unwrap_or_default();
        let leftovers = leftovers(self.leftovers);
        format!(
            "Ralph loop{whose} cancelled at iteration {} ({}). {}: {} brings it back.{leftovers}",
            self.iteration,
            ralph_core::text::time::in_words(self.spent_ms),
            if self.is_folder {
                "Its folder stays as it is, with `Status: CANCELLED` in progress.txt"
            } else {
                "It is kept in the archive"
            },
            reader.resume("")
        )
    }
}

/// A sentence about the processes that a dead run had left.
pub fn leftovers(ended: usize) -> String {
    match ended {
        0 => String::new(),
        1 => " 1 process that its `ralph run` had left running was ended.".to_owned(),
        n => format!(" {n} processes that its `ralph run` had left running were ended."),
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
        found = loops::reread(project, found)?.ok_or(Refusal::NoLoop)?;
    }
    let id = found.id();
    let state = journal::live_state(project, &found);
    let owner = found.session().or_else(|| state.owner.clone());
    let of_session = owner.filter(|owner| asker.session.as_ref().is_some_and(|s| s != owner));
    let iteration = found.parsed.as_ref().map_or(state.iteration, |f| f.iteration);
    let spent_ms = state.spent(clock::now());
    let mut cancelled = Cancelled { iteration, spent_ms, id, of_session, is_folder: found.is_folder(), leftovers: 0 };
    last_ending::note(project, &cancelled.id, asker.command.as_deref().unwrap_or_default(), None, &cancelled.line(asker.reader()));
    if !archive::end(project, &found, &cancelled.id, Ending::Cancelled)? {
        return Err(Refusal::NoLoop);
    }
    if let Some(locked) = &locked
        && let Ok(l) = locked.open(found)
    {
        record(locked, l, asker);
    }
    // Only now: the hook of a session that is ended earlier could still judge it.
    drop(locked);
    cancelled.leftovers = runner::end_what_a_dead_run_left(&state);
    Ok(cancelled)
}

/// Writes the cancel into the journal. A failure does not undo it.
fn record(locked: &Locked<'_>, mut l: Box<Loop>, asker: &Asker) {
    let now = clock::now();
    l.state.disarm(now);
    l.state.ended = Some(Ending::Cancelled);
    l.state.command.clone_from(&asker.command);
    let event = Event::Cancelled { by: asker.actor(), iteration: l.file.iteration };
    let _ = locked.record(&mut l, now, asker.session.as_deref(), event);
}
