//! The loop of each session, in the user's state folder: a session that loses its loop without a person's act is told so.
//!
//! One small file for each session, found by the session's id alone: a stop in a project without a loop looks for it and at nothing else.

use std::{fs, path::PathBuf};

use ralph_core::{journal::State, loops::is_loop_id};

use crate::{
    store::{private, project::Project, project_lock::Loop, seal},
    sys::files,
};

/// A path, a name and an id.
const MAX_BYTES: usize = 16 << 10;

/// A session that never stops again leaves its file.
const KEPT: usize = 500;

/// A loop that a session had and has no more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub id: String,
    pub name: String,
}

/// The session that has a loop, as ralph last wrote it down; sessions of a run come and go.
pub(super) fn holder(state: &State) -> Option<String> {
    if state.ended.is_some() || state.runner.is_some() {
        return None;
    }
    state.terms.as_ref().and_then(|terms| terms.session.clone()).or_else(|| state.owner.clone())
}

/// Notes which session has the loop, if that has changed.
pub(super) fn follow(project: &Project, l: &mut Loop) {
    // A feature folder notices by itself that its list is gone.
    let is_held = l.state.ended.is_none() && l.state.runner.is_none() && !l.found.is_folder();
    let now = if is_held { l.owner().map(str::to_owned) } else { None };
    if l.holder == now {
        return;
    }
    if let Some(file) = l.holder.as_deref().and_then(|before| path(project, before)) {
        let _ = fs::remove_file(file);
    }
    if let Some(session) = &now {
        note(project, session, l);
    }
    l.holder = now;
}

/// The loop that this session has, as it was noted, and the root of its project.
fn noted(project: &Project, session: &str) -> Option<(Lost, String)> {
    let path = path(project, session)?;
    let bytes = files::read(&path, MAX_BYTES).ok()?;
    let mut lines = std::str::from_utf8(&bytes).ok()?.lines();
    let of_loop = Lost { id: lines.next()?.to_owned(), name: lines.next()?.to_owned() };
    let root = lines.next()?.to_owned();
    private::is_own_folder(path.parent()?).then_some((of_loop, root))
}

/// The project in which this session has a loop; `beside` is any project of the same user.
pub(super) fn root_of(beside: &Project, session: &str) -> Option<PathBuf> {
    noted(beside, session).map(|(_, root)| PathBuf::from(root))
}

/// The loop that this session had, and lost without a word to ralph. Each such loop is returned once.
pub(crate) fn lost(project: &Project, session: &str) -> Option<Lost> {
    let (lost, _) = noted(project, session).filter(|(_, root)| **root == *project.root().to_string_lossy())?;
    let _ = fs::remove_file(path(project, session)?);
    // Another loop of that name is not this one come back.
    let state = seal::living(project, &lost.name, &lost.id)?.state;
    (holder(&state).as_deref() == Some(session)).then_some(lost)
}

/// Without the note the session is not told of a lost loop, and nothing else.
fn note(project: &Project, session: &str, l: &Loop) {
    let Some(path) = path(project, session).filter(|_| project.keeps_state()) else { return };
    if path.parent().is_some_and(|folder| private::is_own_folder(folder) || files::make_folder(folder).is_ok()) {
        let text = format!("{}\n{}\n{}\n", l.id, l.found.name, project.root().to_string_lossy());
        let _ = files::replace_private(&path, text.as_bytes());
        files::prune_beside(&path, KEPT);
    }
}

/// A session can have any id; only a plain one can be the name of a file.
fn path(project: &Project, session: &str) -> Option<PathBuf> {
    is_loop_id(session).then(|| Some(project.state()?.join("sessions").join(session)))?
}
