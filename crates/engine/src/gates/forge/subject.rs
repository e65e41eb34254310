//! The subject of a loop's gates: the repositories that were there when it began, and the pull request since it was first seen.
//!
//! Kept in the user's state folder: merging with gh switches the checkout and deletes the branch, and an agent can give a remote another address.

use ralph_core::{
    gate::pull_request::{Checkout, PullRequest, Repository},
    text::time::Millis,
};
use serde::{Deserialize, Serialize};

use super::{Question, checkout};
use crate::store::project::Project;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    /// Where pull requests are looked for.
    pub(super) base: Option<Repository>,
    /// Where their branches may be.
    pub(super) repositories: Vec<Repository>,
    #[serde(default)]
    pub(super) number: Option<u64>,
    /// When the loop began, where that is known.
    #[serde(default)]
    pub(super) since: Option<Millis>,
}

/// The subjects of so many loops are kept.
const KEPT: usize = 200;

fn path(loop_id: &str) -> String {
    format!("subjects/{loop_id}.json")
}

fn kept(project: &Project, loop_id: &str) -> Option<Subject> {
    project.load::<Subject>(&path(loop_id)).filter(|subject| subject.base.is_some())
}

fn of_checkout(checkout: &Checkout) -> Subject {
    Subject { base: checkout.base(), repositories: checkout.repositories(), number: None, since: None }
}

/// The subject of a question: the loop's, else that of the checkout.
pub(super) fn of(question: &Question<'_>, checkout: &Checkout) -> Subject {
    question.of_loop.and_then(|id| kept(question.project, id)).unwrap_or_else(|| of_checkout(checkout))
}

/// Notes what a loop begins with, and when it began. If that fails, its first stop notes it.
pub(crate) fn note(project: &Project, loop_id: &str, since: Option<Millis>, until: std::time::Instant) {
    if kept(project, loop_id).is_none()
        && let Ok(checkout) = checkout::read(project.root(), until)
    {
        let subject = Subject { since, ..of_checkout(&checkout) };
        if subject.base.is_some() {
            write(project, loop_id, &subject);
        }
    }
}

/// Another loop begins that is called like a former one: it is about another pull request.
pub(crate) fn forget(project: &Project, loop_id: &str) {
    project.delete(&path(loop_id));
}

fn write(project: &Project, loop_id: &str, subject: &Subject) {
    project.save_one_of(&path(loop_id), subject, KEPT);
}

/// Remembers which pull request a loop is about.
pub(super) fn keep(question: &Question<'_>, subject: Subject, request: Option<&PullRequest>) {
    let Some(id) = question.of_loop.filter(|_| question.keeps) else { return };
    let now = Subject { number: request.map(|request| request.number).or(subject.number), ..subject };
    if kept(question.project, id).as_ref() != Some(&now) {
        write(question.project, id, &now);
    }
}
