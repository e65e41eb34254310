//! Forges: where pull requests and their checks are. GitHub is asked through the `gh` that people have; another one needs another [`Forge`].

mod checkout;
mod github;
mod sightings;
mod subject;

pub use subject::{forget as forget_subject, note as note_subject};

use std::{
    path::Path,
    time::{Duration, Instant},
};

use ralph_core::gate::{
    output::Stream,
    pull_request::{self, Checkout, PullRequest, Relation, Repository, Trouble, View, Wanted},
};

use self::subject::Subject;
use crate::store::project::Project;

/// Longer than this nobody waits for one answer of a forge.
const PATIENCE: Duration = Duration::from_secs(30);

/// So many pull requests of a branch are asked for, and so many where all of those are strangers'.
const FEW: usize = 20;
const MANY: usize = 200;

/// What can be asked of a forge.
pub trait Forge {
    /// The newest pull requests whose head branch has this name, in any state, whoever's branch it is.
    fn of_branch(&self, asking: &Asking<'_>, branch: &str, most: usize) -> Result<Vec<PullRequest>, Trouble>;

    fn by_number(&self, asking: &Asking<'_>, number: u64) -> Result<PullRequest, Trouble>;

    /// Marks the checks that the base branch requires.
    fn mark_required(&self, asking: &Asking<'_>, request: &mut PullRequest) -> Result<(), Trouble>;

    /// What a job of the forge's own CI wrote, piece by piece.
    fn job_log(&self, asking: &Asking<'_>, job: u64, sink: Sink) -> Result<(), Trouble>;

    /// Merges this very head commit as one commit, and deletes the branch on the forge.
    fn merge(&self, asking: &Asking<'_>, request: &PullRequest) -> Result<(), Trouble>;
}

/// Who hears a log.
pub type Sink = Box<dyn FnMut(Stream, &[u8]) + Send>;

/// How a forge is asked.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
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
pub struct Question<'a> {
    pub project: &'a Project,
    /// Where the work lies.
    pub tree: &'a Path,
    /// The loop, where there is one: it keeps to its pull request.
    pub of_loop: Option<&'a str>,
    /// What is seen may be believed later.
    pub keeps: bool,
    pub until: Instant,
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Question<'a> {
    pub fn asking(&self, repository: &'a Repository) -> Asking<'a> {
        Asking { folder: self.tree, repository, until: self.until, cancelled: self.cancelled }
    }
}

/// Looks at the checkout and at the forge: all that is known about the pull request.
pub fn look(question: &Question<'_>) -> Result<View, Trouble> {
    let checkout = checkout::read(question.tree, question.until)?;
    let subject = subject::of(question, &checkout);
    let repository = subject.base.clone().ok_or_else(|| no_remote(&checkout))?;
    let forge = of(&repository)?;
    let asking = question.asking(&repository);
    let branch = checkout.work_branch();
    let mut requests = branch.map(|branch| of_branch(&*forge, &asking, branch, &subject)).transpose()?.unwrap_or_default();
    if let Some(kept) = subject.number.filter(|kept| !requests.iter().any(|request| request.number == *kept)) {
        requests.push(forge.by_number(&asking, kept)?);
    }
    let wanted = Wanted { branch, ours: &subject.repositories, kept: subject.number, since: subject.since };
    let compare = |commit: &str| checkout.head.as_deref().map_or(Relation::NotHere, |head| checkout::compare(question, head, commit));
    let mut choice = pull_request::choose(&requests, wanted, compare);
    if let Some(request) = choice.request.as_mut().filter(|request| request.checks.len() >= pull_request::MOST_CHECKS) {
        // There may be more of them than such a list holds.
        *request = forge.by_number(&asking, request.number)?;
    }
    let seen_for_ms = choice.request.as_ref().map_or(0, |request| sightings::of(question, &request.head));
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
fn of_branch(forge: &dyn Forge, asking: &Asking<'_>, branch: &str, subject: &Subject) -> Result<Vec<PullRequest>, Trouble> {
    let found = forge.of_branch(asking, branch, FEW)?;
    let is_ours = |request: &PullRequest| request.repository.as_ref().is_some_and(|repository| subject.repositories.contains(repository));
    let is_enough = found.len() < FEW || found.iter().any(is_ours);
    if is_enough { Ok(found) } else { forge.of_branch(asking, branch, MANY) }
}

/// The forge that a repository lies on.
pub fn of(repository: &Repository) -> Result<Box<dyn Forge>, Trouble> {
    match repository.other_forge() {
        None => Ok(Box::new(github::GitHub)),
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

/// Why no pull request can be had here at all: nothing of it is asked over the network.
pub fn obstacle(project: &Project) -> Option<Trouble> {
    let until = Instant::now() + PATIENCE;
    let base = match checkout::read(project.root(), until) {
        Ok(checkout) => checkout.base().ok_or_else(|| no_remote(&checkout)),
        Err(trouble) => Err(trouble),
    };
    match base.and_then(|base| of(&base)) {
        Ok(_) => github::program(project.root()).err(),
        Err(trouble) => Some(trouble),
    }
}

/// Whether gh has no token for the forge; what that takes. Whether the token is good only the network knows.
pub fn not_signed_in(project: &Project) -> Option<Trouble> {
    let until = Instant::now() + PATIENCE;
    let base = checkout::read(project.root(), until).ok()?.base()?;
    let asking = Asking { folder: project.root(), repository: &base, until, cancelled: &|| false };
    github::has_token(&asking).err()
}
