//! The verdict of all checks of a commit.

use std::collections::BTreeMap;

use super::{Outcome, PullRequest, Relation, State, View, commits, outcome, short, word};
use crate::{
    gate::Verdict,
    text::{
        opening,
        time::{Millis, in_words},
    },
};

/// So long after a head commit was first seen, checks may still appear.
const GRACE_MS: u64 = 120_000;

/// Checks that were all done within this time, on a commit that is hardly older, may not be all that will come.
const SETTLES_MS: u64 = 30_000;

/// So many are named.
const NAMED: usize = 5;

/// One check on a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    pub name: String,
    /// The workflow that it belongs to, where it belongs to one.
    pub workflow: Option<String>,
    pub word: Word,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub url: Option<String>,
    /// The job whose log can be asked for.
    pub job: Option<u64>,
    /// Whether the base branch requires it; `None`: not asked.
    pub required: Option<bool>,
}

/// The state of a check, in the words of the forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Passes(&'static str),
    Fails(&'static str),
    Runs(&'static str),
    /// A person has to approve it first.
    NeedsPerson,
    /// A word that ralph does not know.
    Strange(String),
}

impl Word {
    pub(super) fn of(said: &str) -> Self {
        match said.to_ascii_uppercase().as_str() {
            "SUCCESS" => Word::Passes("success"),
            "NEUTRAL" => Word::Passes("neutral"),
            "SKIPPED" => Word::Passes("skipped"),
            "FAILURE" => Word::Fails("failure"),
            "ERROR" => Word::Fails("error"),
            "TIMED_OUT" => Word::Fails("timed out"),
            "CANCELLED" => Word::Fails("cancelled"),
            "STARTUP_FAILURE" => Word::Fails("startup failure"),
            "STALE" => Word::Fails("stale"),
            "ACTION_REQUIRED" => Word::NeedsPerson,
            "QUEUED" => Word::Runs("queued"),
            "IN_PROGRESS" => Word::Runs("in progress"),
            "WAITING" => Word::Runs("waiting"),
            "PENDING" => Word::Runs("pending"),
            "REQUESTED" => Word::Runs("requested"),
            "EXPECTED" => Word::Runs("expected"),
            "" => Word::Strange("says nothing".to_owned()),
            _ => Word::Strange(format!("says \"{}\"", crate::text::opening(said, 40))),
        }
    }

    pub fn shown(&self) -> &str {
        match self {
            Word::Passes(word) | Word::Fails(word) | Word::Runs(word) => word,
            Word::NeedsPerson => "action required",
            Word::Strange(word) => word,
        }
    }

    pub fn verdict(&self) -> Verdict {
        match self {
            Word::Passes(_) => Verdict::Pass,
            Word::Fails(_) => Verdict::Fail,
            Word::Runs(_) => Verdict::Wait,
            Word::NeedsPerson | Word::Strange(_) => Verdict::Unknown,
        }
    }

    /// Of two that say when they began at the same time, the one with more to worry about counts.
    fn worry(&self) -> u8 {
        match self {
            Word::Passes(_) => 0,
            Word::Strange(_) => 1,
            Word::NeedsPerson => 2,
            Word::Fails(_) => 3,
            Word::Runs(_) => 4,
        }
    }
}

impl CheckRun {
    pub fn shown(&self) -> String {
        match &self.workflow {
            Some(workflow) if *workflow != self.name => format!("{workflow} / {}", self.name),
            _ => self.name.clone(),
        }
    }

    /// The number of the workflow's run, in the address of its page: `…/actions/runs/1/job/2`.
    fn run(&self) -> Option<u64> {
        let (_, rest) = self.url.as_deref()?.split_once("/actions/runs/")?;
        rest.split('/').next()?.parse().ok()
    }

    /// Whether it is another try of an older one. One push may start a workflow twice, for the branch and for the pull request: then both count.
    fn replaces(&self, older: &CheckRun) -> bool {
        let was_given_up = matches!(older.word, Word::Fails("cancelled" | "stale"));
        let has_not_begun = matches!(self.word, Word::Runs(_)) && self.started_at.is_none();
        let came_after = self.started_at.zip(older.ended_at).is_some_and(|(began, ended)| began >= ended);
        older.word.verdict() == Verdict::Pass || was_given_up || has_not_begun || came_after
    }

    /// A run that has not ended is newer than any that has.
    fn age(&self) -> (bool, Option<Millis>, u8) {
        (matches!(self.word, Word::Runs(_)), self.started_at, self.word.worry())
    }
}

/// The checks that count, by what they say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub passing: Vec<CheckRun>,
    pub failing: Vec<CheckRun>,
    pub running: Vec<CheckRun>,
    pub(crate) needing: Vec<CheckRun>,
    pub strange: Vec<CheckRun>,
    /// How many do not count.
    pub left_out: usize,
}

impl Standing {
    /// Sorts checks: of those with the same workflow and name, the newest one counts; of those that ran side by side, the one that does not pass.
    fn of(checks: &[CheckRun], counts: impl Fn(&CheckRun) -> bool) -> Self {
        let mut newest: BTreeMap<(&Option<String>, &str), &CheckRun> = BTreeMap::new();
        for check in checks {
            let known = newest.entry((&check.workflow, &check.name)).or_insert(check);
            let (newer, older) = if check.age() > known.age() { (check, *known) } else { (*known, check) };
            *known = if newer.replaces(older) { newer } else { older };
        }
        let mut standing = Standing::default();
        // In the order of the forge, which is that of the page.
        for check in
            checks.iter().filter(|check| newest.get(&(&check.workflow, check.name.as_str())).is_some_and(|n| std::ptr::eq(*n, *check)))
        {
            let list = match &check.word {
                _ if !counts(check) => {
                    standing.left_out += 1;
                    continue;
                }
                Word::Passes(_) => &mut standing.passing,
                Word::Fails(_) => &mut standing.failing,
                Word::Runs(_) => &mut standing.running,
                Word::NeedsPerson => &mut standing.needing,
                Word::Strange(_) => &mut standing.strange,
            };
            list.push(check.clone());
        }
        standing
    }
}

impl PullRequest {
    /// Whether nothing but green is among its checks. `counts`: which of them do.
    pub fn is_green(&self, counts: impl Fn(&CheckRun) -> bool) -> bool {
        Standing::of(&self.checks, counts).is_green()
    }
}

impl Standing {
    fn total(&self) -> usize {
        self.passing.len() + self.failing.len() + self.running.len() + self.needing.len() + self.strange.len()
    }

    /// Whether anything but green is there.
    fn is_green(&self) -> bool {
        self.total() == self.passing.len()
    }

    /// Between the first start and the last end of all that is done.
    fn span_ms(&self) -> u64 {
        let starts = self.passing.iter().filter_map(|check| check.started_at);
        let ends = self.passing.iter().filter_map(|check| check.ended_at.or(check.started_at));
        match (starts.min(), ends.max()) {
            (Some(first), Some(last)) => u64::try_from(last.saturating_sub(first)).unwrap_or(0),
            _ => 0,
        }
    }

    /// `3 pass, 1 still runs`, without what is told apart.
    fn others(&self) -> String {
        let count = |list: &Vec<CheckRun>, one: &str, more: &str| match list.len() {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {more}")),
        };
        let parts = [count(&self.passing, "passes", "pass"), count(&self.running, "still runs", "still run")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Advice about red checks. A cancelled check or one that took too long may not be the work's fault, and then another commit would not help.
fn remedy(failing: &[CheckRun]) -> String {
    let is_no_verdict = |check: &CheckRun| matches!(check.word, Word::Fails("cancelled" | "timed out" | "stale" | "startup failure"));
    match failing.iter().find_map(CheckRun::run).filter(|_| failing.iter().all(is_no_verdict)) {
        Some(run) => format!("If it is not the work's fault, run it again: `gh run rerun {run} --failed`. Else fix it, commit and push."),
        None => "Fix it, commit and push.".to_owned(),
    }
}

/// `build (failure), lint (timed out) and 3 more`.
fn named(checks: &[CheckRun]) -> String {
    let names: Vec<String> = checks.iter().take(NAMED).map(|check| format!("{} ({})", check.shown(), check.word.shown())).collect();
    let more = if checks.len() > NAMED { format!(" and {} more", checks.len() - NAMED) } else { String::new() };
    format!("{}{more}", names.join(", "))
}

impl View {
    /// Whether the checks on the head commit are green. `counts`: which of them do.
    pub fn ci(&self, counts: impl Fn(&CheckRun) -> bool, may_have_none: bool) -> Outcome {
        let request = match outcome::existing(self) {
            Ok(request) => request,
            Err(outcome) => return outcome,
        };
        if let Some(outcome) = not_in_step(self, request) {
            return outcome;
        }
        let standing = Standing::of(&request.checks, counts);
        let head = short(&request.head);
        let others = standing.others();
        let others = if others.is_empty() { others } else { format!("; {others}") };
        if !standing.failing.is_empty() {
            let what = format!("CI fails on {head}: {}{others}", named(&standing.failing));
            let next = match request.state {
                State::Merged => "It is merged already: fix it in a new branch, with a pull request of its own.",
                _ => &remedy(&standing.failing),
            };
            return Outcome { failing: standing.failing, ..Outcome::fails(what, next) };
        }
        if let Some(check) = standing.needing.first() {
            let page = check.url.as_deref().unwrap_or(&request.url);
            let what = format!("CI on {head} needs an approval: {}{others}", named(&standing.needing));
            return Outcome::needs(what, format!("approve it on {page}"));
        }
        if !standing.running.is_empty() {
            let what = match standing.passing.len() {
                0 => format!("CI runs on {head}: {}", named(&standing.running)),
                n => format!("CI runs on {head}: {}; {n} of {} pass", named(&standing.running), standing.total()),
            };
            return Outcome::waits(what);
        }
        if !standing.strange.is_empty() {
            return Outcome::unknown(format!("CI on {head} says what ralph does not know: {}{others}", named(&standing.strange)));
        }
        if standing.total() == 0 {
            return without_checks(self, request, standing.left_out, may_have_none);
        }
        // Merging at once makes nothing come sooner.
        if self.seen_for_ms < SETTLES_MS && standing.span_ms() < SETTLES_MS {
            return Outcome::waits(format!(
                "CI is green on {head} so far ({others}); more checks may still appear",
                others = standing.others()
            ));
        }
        Outcome::passes(match standing.passing.len() {
            1 => format!("CI is green on {head}: {}", named(&standing.passing)),
            n => format!("CI is green on {head}: {n} checks pass"),
        })
    }
}

/// Checks are about the head commit of the pull request: the checkout must be at that commit.
fn not_in_step(view: &View, request: &PullRequest) -> Option<Outcome> {
    if request.state == State::Merged {
        return None;
    }
    let head = short(&request.head);
    let remote = view.checkout.push_remote();
    match view.relation {
        Relation::Same => None,
        Relation::Elsewhere => {
            let here = view.checkout.branch.as_deref().map_or("no branch".to_owned(), |branch| opening(branch, 100));
            let branch = opening(&request.branch, 100);
            Some(Outcome::fails(
                format!("#{} is of {branch}, and {here} is checked out: commits in it may not be pushed", request.number),
                format!("Go back to it: `git switch {}`.", word(&request.branch)),
            ))
        }
        Relation::Ahead(n) => {
            let them = if n == 1 { "it" } else { "them" };
            Some(Outcome::fails(format!("{} not pushed, so CI has not seen {them}", commits(n)), "Push: `git push`."))
        }
        Relation::Behind(n) => Some(Outcome::fails(
            format!("{} missing here: the head of #{} is {head}", commits(n), request.number),
            "Get what is missing: `git pull`.",
        )),
        Relation::Diverged { ahead, behind } => Some(Outcome::fails(
            format!("{} not pushed, and {} missing here: the head of #{} is {head}", commits(ahead), commits(behind), request.number),
            "Bring them together and push: `git pull --rebase`, then `git push`.",
        )),
        Relation::NotHere => Some(Outcome::fails(
            format!("the head of #{} is {head}, which is not known here: it moved meanwhile", request.number),
            format!("Get it: `git pull {} {}`.", word(remote), word(&request.branch)),
        )),
    }
}

/// Right after a push that is usual; for ever it is not.
fn without_checks(view: &View, request: &PullRequest, left_out: usize, may_have_none: bool) -> Outcome {
    let head = short(&request.head);
    if request.has_conflicts && request.state == State::Open && left_out == 0 {
        return Outcome::fails(
            format!("no check runs on {head}, because #{} has conflicts with {}", request.number, request.base),
            outcome::resolve(view, request),
        );
    }
    let what = match left_out {
        0 => format!("no check reports on {head}"),
        1 => format!("no check that counts reports on {head} (1 other does)"),
        n => format!("no check that counts reports on {head} ({n} others do)"),
    };
    if view.seen_for_ms < GRACE_MS {
        return Outcome::waits(format!("{what} yet; ralph gives them {}", in_words(GRACE_MS)));
    }
    if may_have_none {
        return Outcome::passes(format!("{what}, and none is asked for"));
    }
    Outcome::needs(what, "look why no workflow ran; if there is no CI, `no_checks = \"pass\"` under [pr] in ralph.toml says so".to_owned())
}
