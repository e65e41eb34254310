//! Finds the loop of a session: without the lock, so that a session without a loop leaves no trace.

use std::path::Path;

use ralph_core::{
    journal::{Actor, Event, Runner, State},
    judge::Reason,
    loops::file_of,
    text,
};

use crate::{
    git::tracked,
    hosts::Client,
    store::{
        Error, feature_folder, journal,
        loops::{self, LoopOnDisk, Storage},
        project::Project,
        project_lock::{Locked, Loop},
    },
    sys::{clock, env},
};

/// The loop that a session finds in its project when it stops.
pub(crate) enum Selected {
    /// Its own loop.
    Own(Box<LoopOnDisk>),
    /// A loop without an owner.
    Adoptable(Box<LoopOnDisk>),
    /// A file that cannot be read, and that belongs to no other session.
    Corrupt(Box<LoopOnDisk>),
    /// Nothing to judge, and why.
    Nothing(Reason),
}

/// The session's own loop comes first, then one to adopt; a file that git tracks has no owner until a person resumes it.
pub(crate) fn select(project: &Project, session: &str) -> Selected {
    let mut best = Selected::Nothing(Reason::LOOP_NONE);
    for found in loops::all(project) {
        let candidate = classify(project, found, session);
        if rank(&candidate) > rank(&best) {
            best = candidate;
        }
    }
    best
}

/// A loop that was selected, under the lock: read again, because a cancel or another hook may have been faster. `None`: it is gone,
/// cannot be read, or belongs to a run that did not start this session.
pub(crate) fn under_lock(project: &Project, seen: LoopOnDisk) -> Result<Option<(Locked<'_>, Box<Loop>)>, Error> {
    let locked = Locked::acquire(project)?;
    let l = loops::reread(project, seen)?.and_then(|found| locked.open(found).ok());
    Ok(l.filter(|l| !is_carried_elsewhere(&l.state)).map(|l| (locked, l)))
}

/// Whether a living run has the loop, and this process is neither that run nor part of one of its sessions.
pub(crate) fn is_carried_elsewhere(state: &State) -> bool {
    let is_ours = |runner: &Runner| runner.pid == std::process::id() || env::run_mark().is_some_and(|mark| mark == runner.mark);
    journal::runner_of(state).is_some_and(|runner| !is_ours(runner))
}

/// Gives a loop without an owner to the first session that stops in the project; its file is not touched.
pub(crate) fn adopt(locked: &Locked<'_>, l: &mut Loop, session: &str, client: Client) -> Result<(), Error> {
    let now = clock::now();
    if l.is_new {
        let file = if l.found.is_folder() { feature_folder::LIST.to_owned() } else { file_of(&l.found.name) };
        let event = Event::Started { file, by: Actor::File, prompt: text::opening(&l.file.prompt, 200) };
        locked.record(l, now, None, event)?;
    }
    l.state.owner = Some(session.to_owned());
    l.state.client_pid = client.pid();
    l.state.host = client.host.in_journal();
    l.state.released = false;
    l.state.left_behind = false;
    l.state.arm(now);
    locked.project.introduce();
    locked.record(l, now, Some(session), Event::Adopted)
}

fn rank(selected: &Selected) -> u8 {
    match selected {
        Selected::Own(_) => 6,
        Selected::Adoptable(_) => 5,
        Selected::Corrupt(_) => 4,
        Selected::Nothing(Reason::LOOP_TRACKED) => 3,
        Selected::Nothing(Reason::LOOP_PAUSED) => 2,
        Selected::Nothing(Reason::SESSION_OTHER) => 1,
        Selected::Nothing(_) => 0,
    }
}

fn classify(project: &Project, found: LoopOnDisk, session: &str) -> Selected {
    let state = || journal::live_state(project, &found);
    let (owner, released) = match found.session() {
        Some(owner) => (Some(owner), false),
        None => {
            let state = state();
            (state.owner, state.released)
        }
    };
    match (owner, &found.parsed) {
        (Some(owner), Ok(_)) if owner == session => Selected::Own(Box::new(found)),
        (Some(owner), _) if owner != session => Selected::Nothing(Reason::SESSION_OTHER),
        (None, Ok(file)) if !file.active => Selected::Nothing(Reason::LOOP_PAUSED),
        (None, _) if is_unreleased_checkout(project, &found, released) => Selected::Nothing(Reason::LOOP_TRACKED),
        (None, Ok(_)) => Selected::Adoptable(Box::new(found)),
        (_, Err(_)) => Selected::Corrupt(Box::new(found)),
        (Some(_), Ok(_)) => Selected::Nothing(Reason::SESSION_OTHER),
    }
}

/// Whether a file without an owner came with the repository: git tracks it, and no person has released it. A checkout can even bring a journal that
/// says that a person did, so a journal that git tracks counts for nothing.
pub(crate) fn is_unreleased_checkout(project: &Project, found: &LoopOnDisk, released: bool) -> bool {
    let is_tracked = |path: &Path| tracked::is_tracked(project.root(), path) != Some(false);
    // A feature folder may be outside of the project, where a person's variable says, and in another repository or in none.
    let elsewhere = match &found.storage {
        Storage::Folder(folder) if !folder.dir.starts_with(project.root()) => Some(&folder.dir),
        _ => None,
    };
    let came_along = elsewhere.map_or_else(|| is_tracked(&found.path), |dir| tracked::is_tracked(dir, &found.path) != Some(false));
    came_along && (!released || is_tracked(&project.journal(&found.id())))
}
