//! Findings about a pull request: whether it is open, whether it is merged, and what to do about it.

use super::{CheckRun, PullRequest, Relation, State, View, commits, word};
use crate::{gate::Verdict, text::opening};

/// A verdict with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// One line.
    pub what: String,
    /// Advice for the agent.
    pub next: Option<String>,
    /// The action that only a person can take.
    pub needs: Option<String>,
    /// The checks whose logs tell more.
    pub failing: Vec<CheckRun>,
}

impl Outcome {
    fn new(verdict: Verdict, what: String) -> Self {
        Outcome { verdict, what, next: None, needs: None, failing: Vec::new() }
    }

    pub fn passes(what: String) -> Self {
        Outcome::new(Verdict::Pass, what)
    }

    pub fn fails(what: String, next: impl Into<String>) -> Self {
        Outcome { next: Some(next.into()), ..Outcome::new(Verdict::Fail, what) }
    }

    pub fn waits(what: String) -> Self {
        Outcome::new(Verdict::Wait, what)
    }

    pub fn unknown(what: String) -> Self {
        Outcome::new(Verdict::Unknown, what)
    }

    pub fn needs(what: String, needs: String) -> Self {
        Outcome { needs: Some(needs), ..Outcome::unknown(what) }
    }
}

impl View {
    /// Whether a pull request is open, or was and is merged.
    pub fn open(&self) -> Outcome {
        match existing(self) {
            Err(outcome) => outcome,
            Ok(request) => {
                let draft = if request.is_draft && request.state == State::Open { " as a draft" } else { "" };
                Outcome::passes(format!("#{} is {}{draft} ({})", request.number, request.state.as_str(), request.url))
            }
        }
    }

    /// The same, and whether all that was committed here is in it.
    pub fn proposed(&self) -> Outcome {
        let opened = self.open();
        let missing = match (&self.request, self.relation) {
            (Some(request), Relation::Ahead(ahead) | Relation::Diverged { ahead, .. }) if request.state == State::Open => {
                Some((request, ahead))
            }
            _ => None,
        };
        let Some((request, ahead)) = missing.filter(|_| opened.verdict == Verdict::Pass) else { return opened };
        let next = if matches!(self.relation, Relation::Ahead(_)) {
            "Push: `git push`."
        } else {
            "Bring them together and push: `git pull --rebase`, then `git push`."
        };
        Outcome::fails(format!("{} not pushed, and so not in #{}", commits(ahead), request.number), next)
    }

    /// A finding if it goes to the wrong branch.
    pub fn astray(&self, base: Option<&str>) -> Option<Outcome> {
        let request = existing(self).ok()?;
        let base = base.filter(|base| *base != request.base)?;
        let number = request.number;
        let next = match request.state {
            State::Open => format!("`gh pr edit {number} --base {}`.", word(base)),
            State::Merged | State::Closed => format!("Open another one that goes there: {}.", create(self)),
        };
        let verb = if request.state == State::Open { "goes" } else { "went" };
        Some(Outcome::fails(format!("#{number} {verb} to {}, and must go to {}", request.base, opening(base, 100)), next))
    }

    /// Whether it is merged.
    pub fn merged(&self) -> Outcome {
        let request = match existing(self) {
            Err(outcome) => return outcome,
            Ok(request) => request,
        };
        let number = request.number;
        if request.state == State::Merged {
            return Outcome::passes(format!("#{number} is merged into {}", request.base));
        }
        if request.has_conflicts {
            return Outcome::fails(format!("#{number} is not merged, and has conflicts with {}", request.base), resolve(self, request));
        }
        if request.lacks_review {
            return Outcome::waits(format!("#{number} waits for a review, which {} asks for ({})", request.base, request.url));
        }
        let ready = if request.is_draft { format!("It is a draft: `gh pr ready {number}`. ") } else { String::new() };
        Outcome::fails(format!("#{number} is not merged yet"), format!("{ready}Merge it: `{}`.", merge_line(number)))
    }
}

fn merge_line(number: u64) -> String {
    format!("gh pr merge {number} --squash --delete-branch")
}

pub(super) fn resolve(view: &View, request: &PullRequest) -> String {
    format!(
        "Merge {base} into the branch, resolve the conflicts and push: `git pull --no-rebase {remote} {base}`.",
        base = word(&request.base),
        remote = word(view.checkout.push_remote())
    )
}

/// The pull request, unless there is none, or one that was given up.
pub(super) fn existing(view: &View) -> Result<&PullRequest, Outcome> {
    let Some(request) = &view.request else { return Err(none(view)) };
    match request.state {
        State::Closed => Err(Outcome::fails(
            format!("#{} was closed and not merged", request.number),
            format!("Open it again, `gh pr reopen {}`, or open another one: {}.", request.number, create(view)),
        )),
        State::Open | State::Merged => Ok(request),
    }
}

fn none(view: &View) -> Outcome {
    let checkout = &view.checkout;
    let repository = format!("{}/{}", view.repository.owner, view.repository.name);
    match (checkout.work_branch(), &checkout.branch) {
        (Some(branch), _) => {
            let past = match view.past {
                Some((number, State::Merged)) => format!(": #{number} was merged before the commits here"),
                Some((number, _)) => format!(": #{number} was closed before the commits here"),
                None => String::new(),
            };
            Outcome::fails(format!("there is no pull request for {branch} in {repository}{past}"), format!("Open one: {}.", create(view)))
        }
        (None, Some(branch)) => Outcome::fails(
            format!("{branch} is checked out, and a pull request comes from a branch of its own"),
            format!(
                "Begin one for the work, `git switch -c NAME`, and open a pull request: `git push -u {} NAME`, then `gh pr create`.",
                word(checkout.push_remote())
            ),
        ),
        (None, None) => Outcome::fails(
            "no branch is checked out, so there is no telling which pull request is meant".to_owned(),
            "Check out the branch of the work: `git switch NAME`, or `git switch -c NAME` for a new one.",
        ),
    }
}

fn create(view: &View) -> String {
    let branch = view.checkout.branch.as_deref().map_or("NAME".to_owned(), word);
    format!("`git push -u {} {branch}`, then `gh pr create`", word(view.checkout.push_remote()))
}
