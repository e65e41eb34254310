//! Which loop a session has, in the user's state folder: a session that loses its loop without a person's act is told so.
//!
//! One small file for each session, found by the session's id alone: a stop in a project without a loop looks for it and at nothing else.

use std::{
    fs::{self, DirBuilder},
    path::{Path, PathBuf},
};

use ralph_core::{journal::State, loops::is_loop_id};

use crate::{
    store::{private, project::Project, project_lock::Loop, seal},
    sys::files,
};

/// A path, a name and an id.
const MAX_BYTES: usize = 16 << 10;

/// So many are kept; a session that never stops again leaves its file.
const KEPT: usize = 500;

/// A loop that a session had and has no more.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost {
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

/// Notes who has the loop, where that is another session than before.
pub(super) fn follow(project: &Project, l: &mut Loop) {
    // A list that is taken away is noticed by its own look.
    let is_held = l.state.ended.is_none() && l.state.runner.is_none() && !l.found.is_folder();
    let now = if is_held { l.owner().map(str::to_owned) } else { None };
    if l.holder == now {
        return;
    }
    if let Some(before) = &l.holder {
        forget(project, before);
    }
    if let Some(session) = &now {
        note(project, session, &Lost { id: l.id.clone(), name: l.found.name.clone() });
    }
    l.holder = now;
}

/// The loop that ralph wrote down as this session's, and that it does not have any more: nobody told ralph why. Asked once for each such loop.
pub fn lost(project: &Project, session: &str) -> Option<Lost> {
    let path = path(project, session)?;
    let bytes = files::read(&path, MAX_BYTES).ok()?;
    let mut lines = std::str::from_utf8(&bytes).ok()?.lines();
    let lost = Lost { id: lines.next()?.to_owned(), name: lines.next()?.to_owned() };
    if lines.next()? != project.root().to_string_lossy() || !private::is_own_folder(path.parent()?) {
        return None;
    }
    let _ = fs::remove_file(path);
    // Another loop of that name is not this one come back.
    let state = seal::living(project, &lost.name, &lost.id)?.state;
    (holder(&state).as_deref() == Some(session)).then_some(lost)
}

fn note(project: &Project, session: &str, loop_of: &Lost) {
    let Some(path) = path(project, session).filter(|_| project.may_keep()) else { return };
    let mut builder = DirBuilder::new();
    private::for_me_alone(builder.recursive(true));
    if path.parent().is_some_and(|folder| private::is_own_folder(folder) || builder.create(folder).is_ok()) {
        let text = format!("{}\n{}\n{}\n", loop_of.id, loop_of.name, project.root().to_string_lossy());
        // Without it a lost loop is not told.
        let _ = files::replace_private(&path, text.as_bytes());
        files::prune_beside(&path, KEPT);
    }
}

fn forget(project: &Project, session: &str) {
    let _ = path(project, session).map(fs::remove_file);
}

/// A session can have any name; only a plain one can be that of a file.
fn path(project: &Project, session: &str) -> Option<PathBuf> {
    is_loop_id(session).then(|| project.state().map(|state| state.join(Path::new("sessions")).join(session)))?
}
