//! Pull requests as a forge tells of them, and what follows: which one is meant, what its checks say, how far the work is.
//!
//! All of it is pure; asking the forge and the checkout is the engine's part.

mod choice;
mod ci;
mod job_log;
mod outcome;
mod phase;
mod read;
mod remote;
mod trouble;

#[cfg(test)]
mod tests;

pub use choice::Wanted;
pub use ci::CheckRun;
use ci::Word;
pub use job_log::JobLog;
pub use outcome::Outcome;
pub use phase::{Phase, Told};
pub use remote::{Checkout, Remote, Repository};
pub use trouble::Trouble;

use serde::Serialize;

use crate::text::{opening, time::Millis};

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub state: State,
    pub is_draft: bool,
    /// The commit that it asks to merge.
    pub head: String,
    /// Its branch, and the repository of that branch; `None`: the repository is gone.
    pub branch: String,
    pub repository: Option<Repository>,
    /// The branch that it should go to.
    pub base: String,
    pub url: String,
    pub title: String,
    pub created_at: Option<Millis>,
    /// When it was closed or merged.
    pub ended_at: Option<Millis>,
    pub has_conflicts: bool,
    /// The base branch asks for a review that is not there.
    pub(crate) lacks_review: bool,
    pub checks: Vec<CheckRun>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Open,
    Closed,
    Merged,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Closed => "closed",
            State::Merged => "merged",
        }
    }
}

/// The checkout, compared with the head of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Relation {
    Same,
    /// So many commits are only here.
    Ahead(u64),
    /// So many commits are missing here.
    Behind(u64),
    Diverged {
        ahead: u64,
        behind: u64,
    },
    /// The commit is not known here.
    NotHere,
    /// Another branch is checked out, so there is nothing to compare.
    #[default]
    Elsewhere,
}

/// All that is known about the pull request of a checkout.
#[derive(Debug, Clone)]
pub struct View {
    /// Where pull requests are looked for.
    pub repository: Repository,
    pub checkout: Checkout,
    pub request: Option<PullRequest>,
    pub relation: Relation,
    /// Further open ones of the same branch.
    pub others: Vec<u64>,
    /// An ended one of the branch; the checkout has commits that are not in it.
    pub past: Option<(u64, State)>,
    /// For how long ralph has known the head commit.
    pub seen_for_ms: u64,
}

/// A commit as people write it.
fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

/// A name of a branch or a remote in a line for the shell. Git allows names that a shell would run.
fn word(name: &str) -> String {
    let name = opening(name, 200);
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@#=,%".contains(c);
    if name.chars().all(is_plain) { name } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// `1 commit is`, `3 commits are`.
fn commits(n: u64) -> String {
    crate::text::count(n, "commit is", "commits are")
}
