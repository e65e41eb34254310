//! The forge: where pull requests and their checks are. That is GitHub, asked through the `gh` that people have (`github.rs`).

mod checkout;
mod first_seen;
mod github;
mod subject;

pub(crate) use github::{job_log, mark_required, merge};
pub(crate) use subject::{forget as forget_subject, note as note_subject};

use std::{
    path::Path,
    time::{Duration, Instant},
};

use ralph_core::gate::pull_request::{Checkout, PullRequest, Relation, Repository, Trouble, View, Wanted};

use self::subject::Subject;
use crate::store::project::Project;

/// The longest wait for one answer of a forge.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of a branch's pull requests that are asked for, and the number if all of those are strangers'.
const FEW: usize = 20;
const MANY: usize = 200;

/// How a forge is asked.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// The project's folder: a program in it is never taken for the forge's.
    pub folder: &'a Path,
    pub repository: &'a Repository,
    pub until: Instant,
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Asking<'_> {
    fn limit(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now()).min(PATIENCE)
    }
}

/// Who asks, and for what.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub project: &'a Project,
    /// The working tree.
    pub tree: &'a Path,
    /// A loop keeps to its pull request.
    pub of_loop: Option<&'a str>,
    /// The answer may be believed later.
    pub keeps: bool,
    pub until: Instant,
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Question<'a> {
    pub(crate) fn asking(&self, repository: &'a Repository) -> Asking<'a> {
        Asking { folder: self.tree, repository, until: self.until, cancelled: self.cancelled }
    }
}

/// Looks at the checkout and at the forge.
pub(crate) fn look(question: &Question<'_>) -> Result<View, Trouble> {
    let checkout = checkout::read(question.tree, question.until)?;
    let subject = subject::of(question, &checkout);
    let repository = subject.base.clone().ok_or_else(|| no_remote(&checkout))?;
    supported(&repository)?;
    let asking = question.asking(&repository);
    let branch = checkout.work_branch();
    let mut requests = branch.map(|branch| of_branch(&asking, branch, &subject)).transpose()?.unwrap_or_default();
    if let Some(kept) = subject.number.filter(|kept| !requests.iter().any(|request| request.number == *kept)) {
        requests.push(github::by_number(&asking, kept)?);
    }
    let wanted = Wanted { branch, ours: &subject.repositories, kept: subject.number, since: subject.since };
    let compare = |commit: &str| checkout.head.as_deref().map_or(Relation::NotHere, |head| checkout::compare(question, head, commit));
    let mut choice = wanted.choose(&requests, compare);
    if let Some(request) = choice.request.as_mut().filter(|request| request.checks.len() >= PullRequest::MOST_CHECKS) {
        // There may be more of them than such a list holds.
        *request = github::by_number(&asking, request.number)?;
    }
    let seen_for_ms = choice.request.as_ref().map_or(0, |request| first_seen::of(question, &request.head));
    subject::keep(question, subject, choice.request.as_ref());
    let mut checkout = checkout;
    checkout.changed = checkout::changed(question);
    Ok(View {
        repository,
        checkout,
        request: choice.request,
        relation: choice.relation,
        others: choice.others,
        past: choice.past,
        seen_for_ms,
    })
}

/// The pull requests of a branch. Strangers can open any number of them from branches of the same name; they must not hide ours.
fn of_branch(asking: &Asking<'_>, branch: &str, subject: &Subject) -> Result<Vec<PullRequest>, Trouble> {
    let found = github::of_branch(asking, branch, FEW)?;
    let is_ours = |request: &PullRequest| request.repository.as_ref().is_some_and(|repository| subject.repositories.contains(repository));
    let is_enough = found.len() < FEW || found.iter().any(is_ours);
    if is_enough { Ok(found) } else { github::of_branch(asking, branch, MANY) }
}

/// Whether a repository is on GitHub, as far as its address tells.
fn supported(repository: &Repository) -> Result<(), Trouble> {
    match repository.other_forge() {
        None => Ok(()),
        Some(other) => Err(Trouble::lasting(
            format!("{repository} is on {other}, and ralph knows only GitHub so far"),
            "take the gates `pr` and `ci` out, or push to GitHub",
        )),
    }
}

fn no_remote(checkout: &Checkout) -> Trouble {
    let is_bare = checkout.remotes.is_empty();
    let what = if is_bare { "this repository has no remote" } else { "no remote of this repository leads to GitHub" };
    Trouble::lasting(what, "add one: `git remote add origin URL`")
}

/// Why gates about pull requests cannot be asked here. Asks nothing over the network.
pub fn trouble(project: &Project) -> Option<Trouble> {
    obstacle(project).or_else(|| not_signed_in(project))
}

/// Why there can be no pull request here at all. Asks nothing over the network.
pub(crate) fn obstacle(project: &Project) -> Option<Trouble> {
    let until = Instant::now() + PATIENCE;
    let base = match checkout::read(project.root(), until) {
        Ok(checkout) => checkout.base().ok_or_else(|| no_remote(&checkout)),
        Err(trouble) => Err(trouble),
    };
    match base.and_then(|base| supported(&base)) {
        Ok(()) => github::program(project.root()).err(),
        Err(trouble) => Some(trouble),
    }
}

/// The remedy if gh has no token for the forge. Whether the token is good only the network knows.
fn not_signed_in(project: &Project) -> Option<Trouble> {
    let until = Instant::now() + PATIENCE;
    let base = checkout::read(project.root(), until).ok()?.base()?;
    let asking = Asking { folder: project.root(), repository: &base, until, cancelled: &|| false };
    github::has_token(&asking).err()
}
