//! A round that had a session of its own: its runner reports it, and the same gates, judge and journal rule on it as on a stop.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use ralph_core::{
    attempt::{Failures, Work},
    gate::Verdict,
    journal::State,
    judge::{Evidence, Next, Ruling},
    limits::{self, ToolUse},
    loops::LoopFile,
};

use crate::{
    gates::{Context, usual::Time},
    hook::{
        Call, proof,
        select::under_lock,
        standstill,
        stop::{end_if_done, rule_on_round},
    },
    hosts::claude::{event::Event, registration::Invocation},
    store::{Error, loops::Found, project::Project},
    sys::process,
};

/// Hears which gate's command begins, and how long that takes.
pub type Checking = Arc<dyn Fn(&str, Time) + Send + Sync>;

/// What a runner heard of a session until it stopped.
pub struct Report {
    /// What the session was told: an agent that only repeats it claims nothing.
    pub prompt: String,
    /// The agent's last message.
    pub text: Option<String>,
    pub tools: ToolUse,
    pub work: Work,
    /// No session was started yet.
    pub before_the_first: bool,
    /// Asked again and again: whether the ruling is still wanted.
    pub wanted: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Asked again and again: whether what is decided elsewhere is waited for; otherwise the loop is parked.
    pub waits: Arc<dyn Fn() -> bool + Send + Sync>,
    pub checking: Checking,
}

impl Report {
    /// The rules that would have allowed what was denied, each once.
    pub(super) fn denied(&self) -> Vec<String> {
        let mut rules: Vec<String> = self.work.denied.iter().map(|denied| denied.rule.clone()).collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

/// How a round was ruled on.
#[derive(Debug)]
pub struct Ruled {
    pub ruling: Ruling,
    pub evidence: Evidence,
    /// The person's line.
    pub line: Option<String>,
    /// The loop after it.
    pub file: LoopFile,
    pub state: State,
}

/// Rules on a round of `session`, which takes no longer than `patience`. `None`: the loop is gone, or is not this session's any more.
pub fn rule(project: &Project, found: &Found, session: &str, report: Report, patience: Duration) -> Result<Option<Ruled>, Error> {
    let call = Call {
        event: Event::of_stop(session, report.text.as_deref()),
        project: project.clone(),
        client: None,
        limit: super::limit_for(patience),
        invocation: Invocation::default(),
        parent: process::parent_pid(),
        unused: AtomicBool::new(false),
        round: Some(report),
    };
    let _turn = proof::turn(&call, found)?;
    let Some((locked, l)) = under_lock(project, found.clone())? else { return Ok(None) };
    if l.owner() != Some(session) {
        return Ok(None);
    }
    let is_first = call.round.as_ref().is_some_and(|round| round.before_the_first);
    let ruled = if is_first { end_if_done(&call, locked, l)? } else { rule_on_round(&call, locked, l)? };
    let Some((l, ruled)) = ruled else { return Ok(None) };
    let line = match ruled.ruling.next {
        Next::GoesOn { .. } => ralph_core::unproven::for_person(&ruled.gathered.evidence).filter(|line| !line.is_empty()),
        _ => ruled.note,
    };
    let line = ruled.more.into_iter().chain(line).reduce(|all, one| format!("{all}\n{one}"));
    Ok(Some(Ruled { ruling: ruled.ruling, evidence: ruled.gathered.evidence, line, file: l.file, state: l.state }))
}

/// The commit and a fingerprint of all files, to tell whether a session changed anything. `None`: it cannot be told.
pub fn tree(project: &Project, loop_id: &str, limit: Duration) -> Option<String> {
    standstill::tree(&Context::new(project, loop_id, limit))
}

/// What the next round has to know of this one besides.
pub(super) fn remember(state: &mut State, evidence: &Evidence, ruling: &Ruling) {
    state.failures = Failures::default();
    match (&mut state.runner, ruling.next) {
        (Some(runner), Next::GoesOn { .. } | Next::Stays | Next::Parks) => {
            runner.attempt = 0;
            runner.inner = 0;
        }
        (runner, _) => *runner = None,
    }
    let passing = evidence.gates.iter().filter(|f| f.verdict == Verdict::Pass).count() as u64;
    let held = passing.saturating_add(evidence.gates.iter().filter_map(|f| f.tally).map(|tally| tally.done).sum());
    let fails = evidence.gates.iter().any(|f| f.verdict == Verdict::Fail) || evidence.stalled_rounds > 0;
    let goes_on = matches!(ruling.next, Next::GoesOn { .. });
    state.failing.rounds = if goes_on { limits::count_failing(state.failing.rounds, fails, state.failing.held, held) } else { 0 };
    state.failing.held = held;
    // Told, and ruled on: a note that came meanwhile has its turn in the next round.
    if !matches!(ruling.next, Next::Stays) {
        state.notes.retain(|note| note.told_in.is_none());
    }
}
