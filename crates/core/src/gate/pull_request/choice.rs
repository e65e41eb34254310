//! Which pull request is meant, of those that a forge names for a branch.

use super::{PullRequest, Relation, Repository, State};
use crate::text::time::Millis;

/// The clocks of a forge and of a person's machine differ by no more than this.
const CLOCKS_DIFFER_MS: Millis = 600_000;

/// The facts that decide between them.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The branch that is worked on; `None`: the default branch or none is checked out.
    pub branch: Option<&'a str>,
    /// The repositories that are ours: a stranger's branch may have the same name.
    pub ours: &'a [Repository],
    /// The one that the loop has been about so far.
    pub kept: Option<u64>,
    /// When the loop began.
    pub since: Option<Millis>,
}

/// The one that is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    pub request: Option<PullRequest>,
    pub relation: Relation,
    pub others: Vec<u64>,
    pub past: Option<(u64, State)>,
}

impl Wanted<'_> {
    /// Chooses. An open one of the branch wins, the newest if there are several; else the one that is known from before; else the newest ended one, if it holds
    /// all that is checked out. `relation` compares the checkout with a commit.
    ///
    /// A pull request that ended before the loop began proves nothing about the loop; nor does one that was open before it on another branch than that of the known
    /// one: checking out a finished branch is not doing the work.
    pub fn choose(self, requests: &[PullRequest], relation: impl Fn(&str) -> Relation) -> Choice {
        let is_ours = |request: &&PullRequest| request.repository.as_ref().is_some_and(|repository| self.ours.contains(repository));
        let is_of_branch = |request: &&PullRequest| self.branch.is_some_and(|branch| request.branch == branch);
        let kept = requests.iter().find(|request| Some(request.number) == self.kept);
        let is_before = |at: Option<Millis>| at.zip(self.since).is_some_and(|(at, since)| at < since.saturating_sub(CLOCKS_DIFFER_MS));
        let is_elsewhere = |request: &PullRequest| kept.is_some_and(|kept| kept.branch != request.branch) && is_before(request.created_at);
        let is_another = |request: &&&PullRequest| {
            Some(request.number) != self.kept
                && if request.state == State::Open { is_elsewhere(request) } else { is_before(request.ended_at) }
        };
        let all: Vec<&PullRequest> = requests.iter().filter(is_of_branch).filter(is_ours).collect();
        let mut own: Vec<&PullRequest> = all.iter().filter(|request| !is_another(request)).copied().collect();
        own.sort_by_key(|request| std::cmp::Reverse((request.created_at, request.number)));
        let mut open = own.iter().filter(|request| request.state == State::Open);
        if let Some(request) = open.next() {
            let others = open.map(|other| other.number).collect();
            return Choice { request: Some((*request).clone()), relation: relation(&request.head), others, past: None };
        }
        let Some(request) = kept.or(own.first().copied()) else {
            let past = all.iter().filter(|request| request.state != State::Open).max_by_key(|request| (request.created_at, request.number));
            return Choice { past: past.map(|request| (request.number, request.state)), ..Choice::default() };
        };
        let at_hand = |relation| Choice { request: Some(request.clone()), relation, ..Choice::default() };
        if !is_of_branch(&request) {
            return at_hand(Relation::Elsewhere);
        }
        let relation = relation(&request.head);
        let is_left_behind = match relation {
            Relation::Ahead(_) | Relation::Diverged { .. } => true,
            Relation::NotHere => kept.is_none(),
            Relation::Same | Relation::Behind(_) | Relation::Elsewhere => false,
        };
        if request.state != State::Open && is_left_behind {
            return Choice { past: Some((request.number, request.state)), ..Choice::default() };
        }
        at_hand(relation)
    }
}
