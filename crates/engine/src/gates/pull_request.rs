//! The gates that a forge decides: a pull request is open, its checks are green, it is merged.

mod logs;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{
        Check, Ci, Finding, Gate, Merge, PullRequest, Stage, Verdict,
        pull_request::{CheckRun, Outcome, State, Trouble, View},
    },
    text::time::millis,
};

use crate::{
    gates::{
        BY_HAND, Context,
        durations::Time,
        forge::{self, Question},
        tree::Patterns,
    },
    sys::env,
};

/// With less time left there is no point in asking.
const WORTH_ASKING: Duration = Duration::from_millis(500);

/// One look at the forge, for all gates of one measurement.
#[derive(Default)]
pub struct Memo(Mutex<Option<Result<View, Trouble>>>);

/// Whether ralph may merge now, where it is the one who does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merges {
    Now,
    NotYet,
}

/// Whether a gate asks for the merge, which comes after everything else.
pub(super) fn is_about_the_merge(gate: &Gate) -> bool {
    matches!(gate.check, Check::PullRequest(PullRequest { must_be: Stage::Merged, .. }))
}

/// The finding about a merge that no person has allowed.
pub(super) fn untrusted(gate: &Gate) -> Finding {
    // Only the project's settings can ask for it, wherever the gate is declared.
    let what = "nothing is merged, because ralph.toml, which says `merge = \"ralph\"`, is not trusted, or has changed since it was";
    Finding { needs: Some("`ralph trust` shows what it asks for".to_owned()), ..gate.finding(Verdict::Unknown, what) }
}

/// Measures a gate; `gates` are all that apply.
pub(super) fn measure(gate: &Gate, gates: &[Gate], merges: Merges, ctx: &Context<'_>) -> Finding {
    if env::is_within_gate() {
        return gate.finding(Verdict::Unknown, "not asked: gates do not run gates");
    }
    if ctx.time_left() < WORTH_ASKING {
        return gate.finding(Verdict::Wait, "not asked: the hook's time was used up before its turn came");
    }
    ctx.watch.begins(gate, Time { limit: ctx.time_left(), usual: None });
    let begun = Instant::now();
    let finding = match &gate.check {
        Check::Ci(check) => measure_ci(gate, check, ctx),
        Check::PullRequest(request) => measure_request(gate, request, gates, merges, ctx),
        _ => gate.finding(Verdict::Unknown, "nothing of it is at GitHub"),
    };
    let finding = if ctx.is_cancelled() {
        gate.finding(Verdict::Unknown, "not asked: the result is not wanted any more")
    } else {
        Finding { took_ms: millis(begun.elapsed()), ..finding }
    };
    ctx.watch.ended(&finding);
    finding
}

impl Context<'_> {
    fn question(&self) -> Question<'_> {
        Question {
            project: self.project,
            tree: self.tree,
            of_loop: Some(self.about).filter(|about| *about != BY_HAND),
            keeps: self.keeps,
            until: self.until,
            cancelled: self.cancelled,
        }
    }

    /// The forge's answer, asked for once.
    fn look(&self) -> MutexGuard<'_, Option<Result<View, Trouble>>> {
        let mut seen = self.forge.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_none() {
            *seen = Some(forge::look(&self.question()));
        }
        seen
    }

    /// Something changed on the forge, or may have.
    fn forget_forge(&self) {
        *self.forge.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn seen<T>(&self, then: impl FnOnce(&mut View) -> Result<T, Trouble>) -> Result<T, Trouble> {
        match &mut *self.look() {
            Some(Ok(view)) => then(view),
            Some(Err(trouble)) => Err(trouble.clone()),
            None => Err(Trouble::passing("the forge was not asked")),
        }
    }
}

fn told(gate: &Gate, outcome: Result<Outcome, Trouble>) -> Finding {
    match outcome {
        Ok(Outcome { verdict, what, next, needs, .. }) => Finding { next, needs, ..gate.finding(verdict, what) },
        Err(trouble) if trouble.is_passing => gate.finding(Verdict::Wait, format!("{}; ralph tries again", trouble.what)),
        Err(trouble) => Finding { needs: trouble.needs, ..gate.finding(Verdict::Unknown, trouble.what) },
    }
}

fn measure_ci(gate: &Gate, check: &Ci, ctx: &Context<'_>) -> Finding {
    let outcome = ctx.seen(|view| {
        require(check, view, &ctx.question())?;
        Ok(weigh(check, view))
    });
    let (failing, repository) = match &outcome {
        Ok(outcome) => (outcome.failing.clone(), ctx.seen(|view| Ok(view.repository.clone())).ok()),
        Err(_) => (Vec::new(), None),
    };
    let finding = told(gate, outcome);
    match repository.filter(|_| !failing.is_empty()) {
        Some(repository) => logs::add(finding, &failing, &ctx.question().asking(&repository), ctx),
        None => finding,
    }
}

/// Asks which checks are required, where that makes a difference.
pub(crate) fn require(check: &Ci, view: &mut View, question: &Question<'_>) -> Result<(), Trouble> {
    let repository = view.repository.clone();
    let Some(request) = view.request.as_mut().filter(|_| check.required_only) else { return Ok(()) };
    let is_asked = request.checks.iter().any(|check| check.required.is_some());
    if is_asked || request.is_green(|run| !is_ignored(check, run)) {
        return Ok(());
    }
    forge::mark_required(&question.asking(&repository), request)
}

/// The verdict on the checks that count.
pub(crate) fn weigh(check: &Ci, view: &View) -> Outcome {
    view.ci(|run| counts(check, run), check.may_have_none)
}

/// Whether a check counts.
pub(crate) fn counts(check: &Ci, run: &CheckRun) -> bool {
    let is_optional = check.required_only && run.required == Some(false);
    !is_ignored(check, run) && !is_optional
}

fn is_ignored(check: &Ci, run: &CheckRun) -> bool {
    // Where there are no patterns, all would be selected. A broken one ignores nothing.
    let selects = |patterns: Patterns| patterns.select(&run.name) || patterns.select(&run.shown().replace(" / ", "/"));
    !check.ignore.is_empty() && Patterns::new(&check.ignore).is_ok_and(selects)
}

fn measure_request(gate: &Gate, request: &PullRequest, gates: &[Gate], merges: Merges, ctx: &Context<'_>) -> Finding {
    if let Ok(Some(astray)) = ctx.seen(|view| Ok(view.astray(request.base.as_deref()))) {
        return told(gate, Ok(astray));
    }
    match (request.must_be, request.merge) {
        (Stage::Open, _) => told(gate, ctx.seen(|view| Ok(view.proposed()))),
        (Stage::Merged, Merge::Agent) => told(gate, ctx.seen(|view| Ok(view.merged()))),
        (Stage::Merged, Merge::Ralph) => merge(gate, gates, merges, ctx),
    }
}

/// Merges, once everything else holds and the agent says that it is done.
fn merge(gate: &Gate, gates: &[Gate], merges: Merges, ctx: &Context<'_>) -> Finding {
    let outcome = ctx.seen(|view| Ok(view.merged()));
    let is_ready = |view: &mut View| {
        let request = view.request.as_ref().filter(|request| request.state == State::Open && !request.is_draft && !request.has_conflicts);
        Ok(request.cloned().map(|request| (request, view.repository.clone())))
    };
    let ready = ctx.seen(is_ready).ok().flatten().filter(|_| outcome.as_ref().is_ok_and(|outcome| outcome.verdict == Verdict::Fail));
    let Some((request, repository)) = ready else { return told(gate, outcome) };
    if merges == Merges::NotYet {
        let what = format!("#{} is not merged yet: ralph merges it once the work is said to be done", request.number);
        return Finding { next: Some("Say that it is done.".to_owned()), ..gate.finding(Verdict::Fail, what) };
    }
    // Where no gate asks for green checks, the merge does.
    if !gates.iter().any(|gate| matches!(gate.check, Check::Ci(_))) {
        let all = Ci { required_only: false, ignore: Vec::new(), may_have_none: true };
        let checked = ctx.seen(|view| Ok(weigh(&all, view)));
        if !checked.as_ref().is_ok_and(|outcome| outcome.verdict == Verdict::Pass) {
            return told(gate, checked);
        }
    }
    if ctx.is_cancelled() {
        return gate.finding(Verdict::Unknown, "not merged: the result is not wanted any more");
    }
    let question = ctx.question();
    let merged = forge::merge(&question.asking(&repository), &request);
    ctx.forget_forge();
    if let Err(trouble) = merged {
        let what = format!("#{} could not be merged: {}", request.number, trouble.what);
        return told(gate, Err(Trouble { what, ..trouble }));
    }
    let again = ctx.seen(|view| Ok(view.merged()));
    match again {
        Ok(Outcome { verdict: Verdict::Pass, what, .. }) => gate.finding(Verdict::Pass, format!("{what}, by ralph")),
        Ok(_) => gate.finding(Verdict::Wait, format!("#{} was handed over to be merged, and is not yet", request.number)),
        trouble => told(gate, trouble),
    }
}
