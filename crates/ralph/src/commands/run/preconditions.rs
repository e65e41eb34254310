//! Before anything is written: is there a loop to run, and is this a folder to run it in?

use ralph_engine::{
    ops::{self, Refusal},
    run::preflight::{self, Weight},
    store::{loops, project::Project},
    view,
};

use super::{Request, Subject};
use crate::{
    exit::{BLOCKED, Failure},
    find_loop,
};

pub(super) fn look(project: &Project, request: &Request, warn: &impl Fn(String)) -> Result<(), Failure> {
    // A working tree is made beside the files, in a repository.
    if request.sessions.worktree.is_some() {
        return Ok(());
    }
    refuse_where_nothing_is(project, request)?;
    match preflight::ground(project, !request.sessions.no_snapshots) {
        Some(remark) if remark.weight == Weight::Refusal => Err(Failure::coded(BLOCKED, remark.text)),
        remark => {
            remark.map(|remark| remark.text).into_iter().for_each(warn);
            Ok(())
        }
    }
}

/// Without a loop to continue, problems of the client do not matter.
fn refuse_where_nothing_is(project: &Project, request: &Request) -> Result<(), Failure> {
    let Subject::Again(wanted) = &request.subject else { return Ok(()) };
    let is_none = matches!(ops::choose(project, wanted.which.as_deref(), None), Err(Refusal::NoLoop | Refusal::NoSuch { .. }));
    if is_none && view::ended(project).is_empty() && view::archive(project).is_empty() && loops::of_folder(project).is_none() {
        let none = || if request.is_bare { without_a_task(Failure::no_loop()) } else { Failure::no_loop() };
        return Err(wanted.which.as_deref().map_or_else(none, find_loop::no_such));
    }
    Ok(())
}

/// `ralph run` alone may have meant a new loop.
pub(super) fn without_a_task(mut failure: Failure) -> Failure {
    failure.message = format!("a task is missing: `ralph run \"…\"` starts a loop with one ({})", failure.message);
    failure
}
