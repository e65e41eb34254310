//! How far the work is on its way through a pull request (S2-1).

use serde::Serialize;

use super::{CheckRun, Outcome, Relation, State, Trouble, View, short};
use crate::gate::Verdict;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// No pull request yet.
    P0,
    /// A pull request that needs work.
    P1,
    /// The checks have not decided.
    Pending,
    /// Green, or merged.
    P2,
    Unknown,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::P0 => "p0",
            Phase::P1 => "p1",
            Phase::Pending => "pending",
            Phase::P2 => "p2",
            Phase::Unknown => "unknown",
        }
    }

    /// In words; `state` is that of the pull request, if there is one.
    pub fn shown(self, state: Option<State>) -> &'static str {
        match self {
            Phase::P0 if state == Some(State::Closed) => "the pull request was closed",
            Phase::P0 => "no pull request yet",
            Phase::P1 => "the pull request needs work",
            Phase::Pending => "CI has not decided yet",
            Phase::P2 if state == Some(State::Merged) => "the pull request is merged",
            Phase::P2 => "CI is green",
            Phase::Unknown => "could not check",
        }
    }
}

/// A phase, why, and what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub phase: Phase,
    pub evidence: Vec<String>,
    pub next: Option<String>,
}

impl View {
    /// The phase of a checkout. `counts`: which checks do.
    pub fn phase(&self, counts: impl Fn(&CheckRun) -> bool, may_have_none: bool) -> Told {
        let opened = self.open();
        let mut evidence = vec![opened.what];
        let Some(request) = self.request.as_ref().filter(|request| request.state != State::Closed) else {
            evidence.extend(uncommitted(self));
            return Told { phase: Phase::P0, evidence, next: opened.next };
        };
        let checked = self.ci(counts, may_have_none);
        if !self.others.is_empty() {
            let others: Vec<String> = self.others.iter().map(|number| format!("#{number}")).collect();
            evidence.push(format!("further open ones of the branch: {}; the newest counts", others.join(", ")));
        }
        if self.relation == Relation::Elsewhere {
            let here = self.checkout.branch.as_deref().map_or("no branch".to_owned(), |branch| format!("the branch {branch}"));
            evidence.push(format!("{here} is checked out, and the pull request is of {}", request.branch));
        }
        evidence.push(checked.what.clone());
        evidence.extend(uncommitted(self));
        if request.state == State::Merged {
            return Told { phase: Phase::P2, evidence, next: checked.next };
        }
        let (phase, next) = match checked.verdict {
            Verdict::Fail => (Phase::P1, checked.next),
            Verdict::Wait => (Phase::Pending, Some("Wait for the checks.".to_owned())),
            Verdict::Unknown => (Phase::Unknown, checked.needs.or(checked.next).map(as_sentence)),
            Verdict::Pass => {
                let Outcome { what, next, .. } = self.merged();
                evidence.push(what);
                (Phase::P2, next)
            }
        };
        Told { phase, evidence, next }
    }
}

impl Told {
    /// Nothing can be told, and why.
    pub fn of_trouble(trouble: &Trouble) -> Told {
        let next = trouble.needs.clone().map(as_sentence).or_else(|| trouble.is_passing.then(|| "Try again in a while.".to_owned()));
        Told { phase: Phase::Unknown, evidence: vec![trouble.what.clone()], next }
    }
}

fn as_sentence(text: String) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => format!("{}{}{}", first.to_uppercase(), rest.as_str(), if text.ends_with(['.', '!', '?']) { "" } else { "." }),
        None => text,
    }
}

/// Changes that are in no commit, and so in no pull request.
fn uncommitted(view: &View) -> Option<String> {
    let head = view.checkout.head.as_deref().map(short).unwrap_or_default();
    match view.checkout.changed {
        0 => None,
        1 => Some(format!("1 changed file is not committed (on {head})")),
        n => Some(format!("{n} changed files are not committed (on {head})")),
    }
}
