//! The phase of a pull request, for people and programs.

use std::time::{Duration, Instant};

use ralph_core::{
    config::PullRequests,
    gate::{
        Check, Ci, Gate,
        pull_request::{CheckRun, Phase, State, Told, View},
    },
    text::clean,
};
use serde::Serialize;

use crate::{
    gates::{
        declared::{self, Declared},
        forge::{self, Question},
        pull_request as gate,
    },
    hosts,
    store::{loops::LoopOnDisk, project::Project},
};

/// The phase and its evidence; the JSON of `ralph pr --json`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub phase: Phase,
    pub evidence: Vec<String>,
    pub next: Option<String>,
    /// The loop that this is about.
    #[serde(rename = "loop")]
    pub of_loop: Option<String>,
    /// Where pull requests are looked for: `github.com/owner/name`.
    pub repository: Option<String>,
    /// The branch that is checked out here.
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub pull_request: Option<Request>,
    pub checks: Vec<OneCheck>,
}

#[derive(Debug, Serialize)]
pub struct Request {
    pub number: u64,
    /// `open`, `closed` or `merged`.
    pub state: State,
    pub draft: bool,
    pub title: String,
    pub url: String,
    pub branch: String,
    pub base: String,
    /// Its head commit.
    pub commit: String,
}

#[derive(Debug, Serialize)]
pub struct OneCheck {
    pub name: String,
    pub workflow: Option<String>,
    /// `pass`, `fail`, `wait` or `unknown`.
    pub verdict: &'static str,
    /// In the words of the forge.
    pub says: String,
    /// Whether it counts.
    pub counts: bool,
    pub url: Option<String>,
}

/// The loop that the phase is about, with its gates; `None`: it has nothing to do with a pull request, and was not named.
pub fn subject(project: &Project, found: &LoopOnDisk, is_named: bool) -> Option<(String, Declared)> {
    let declared = found.parsed.as_ref().map(|file| declared::of_loop(project, file)).unwrap_or_default();
    (is_named || declared.gates.iter().any(Gate::is_decided_elsewhere)).then(|| (found.id(), declared))
}

/// The longest wait for the phase when a loop starts.
const AT_THE_START: Duration = Duration::from_secs(10);

/// A line for the start of a loop; `None`: it has nothing to do with a pull request. From then on the loop keeps to the pull request that is found.
pub(crate) fn at_the_start(project: &Project, loop_id: &str, declared: &Declared, cancelled: &(dyn Fn() -> bool + Sync)) -> Option<String> {
    if !declared.gates.iter().any(Gate::is_decided_elsewhere) {
        return None;
    }
    let report = tell(project, Some(&(loop_id.to_owned(), declared.clone())), AT_THE_START, cancelled);
    let why = report.evidence.last().map(|why| format!(": {}", clean(why))).unwrap_or_default();
    Some(format!("phase {}{why}", report.phase.as_str()))
}

/// The rules for checks: those of the loop's own gate, else of `[pr]` in `ralph.toml`.
fn rules(project: &Project, declared: Option<&Declared>) -> Ci {
    let of_gate = |gate: &Gate| if let Check::Ci(check) = &gate.check { Some(check.clone()) } else { None };
    let of_loop = declared.and_then(|declared| declared.gates.iter().find_map(of_gate));
    of_loop.unwrap_or_else(|| match declared::config(project) {
        Some(Ok((config, _))) => config.gates.iter().find_map(of_gate).unwrap_or_else(|| config.pull_requests.ci()),
        _ => PullRequests::default().ci(),
    })
}

/// Tells the phase, within this time.
pub fn tell(project: &Project, subject: Option<&(String, Declared)>, time: Duration, cancelled: &(dyn Fn() -> bool + Sync)) -> Report {
    let of_loop = subject.map(|(id, _)| id.as_str());
    let rules = rules(project, subject.map(|(_, declared)| declared));
    let keeps = hosts::of_an_agent().is_none();
    let question = Question { project, tree: project.root(), of_loop, keeps, until: Instant::now() + time, cancelled };
    let looked = forge::look(&question).and_then(|mut view| {
        gate::require(&rules, &mut view, &question)?;
        Ok(view)
    });
    let (told, view) = match looked {
        Ok(view) => (view.phase(|run| gate::counts(&rules, run), rules.may_have_none), Some(view)),
        Err(trouble) => (Told::of_trouble(&trouble), None),
    };
    report(told, view.as_ref(), &rules, of_loop)
}

fn report(told: Told, view: Option<&View>, rules: &Ci, of_loop: Option<&str>) -> Report {
    let check = |run: &CheckRun| OneCheck {
        name: run.name.clone(),
        workflow: run.workflow.clone(),
        verdict: run.word.verdict().as_str(),
        says: run.word.shown().to_owned(),
        counts: gate::counts(rules, run),
        url: run.url.clone(),
    };
    let request = view.and_then(|view| view.request.as_ref());
    Report {
        phase: told.phase,
        evidence: told.evidence,
        next: told.next,
        of_loop: of_loop.map(str::to_owned),
        repository: view.map(|view| view.repository.to_string()),
        branch: view.and_then(|view| view.checkout.branch.clone()),
        commit: view.and_then(|view| view.checkout.head.clone()),
        pull_request: request.map(|request| Request {
            number: request.number,
            state: request.state,
            draft: request.is_draft,
            title: request.title.clone(),
            url: request.url.clone(),
            branch: request.branch.clone(),
            base: request.base.clone(),
            commit: request.head.clone(),
        }),
        checks: request.map(|request| request.checks.iter().map(check).collect()).unwrap_or_default(),
    }
}
