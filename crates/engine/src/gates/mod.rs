//! Gates: measuring what must hold. Effects, bounded by a time budget; what is found is judged elsewhere.

mod baseline;
pub mod begin;
mod cache;
pub mod command;
pub mod declared;
pub mod features;
pub mod file;
pub mod guard;
mod logs;
pub mod markers;
mod proven;
pub mod tree;

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{Check, Finding, Gate, Verdict},
    output::Stream,
};

use crate::{store::project::Project, sys::signals};

/// What measuring needs to know.
pub struct Context<'a> {
    /// Where ralph's own files lie.
    pub project: &'a Project,
    /// Where commands run: the project's root, or a subagent's worktree.
    pub tree: &'a Path,
    /// A loop's id, or whatever else asked.
    pub about: &'a str,
    /// The agent's last message.
    pub message: &'a str,
    /// The end of the time budget.
    pub until: Instant,
    /// Whether anybody still wants to know.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    pub watch: Arc<dyn Watch>,
    /// What was found before on the same tree is not believed.
    pub again: bool,
    /// Further commands are run after one has failed.
    pub keep_going: bool,
    /// What is found is believed later. Not what is measured in an agent's own shell, which has whatever programs the agent put on its path.
    pub keeps: bool,
    pub fingerprint: Memo,
}

/// The tree's fingerprint, once somebody asked for it.
#[derive(Default)]
pub struct Memo(Mutex<Known>);

#[derive(Default)]
enum Known {
    #[default]
    NotAsked,
    CannotTell,
    Is(String),
}

impl<'a> Context<'a> {
    /// A measurement in the project itself that nobody watches or cancels.
    pub fn new(project: &'a Project, about: &'a str, budget: Duration) -> Self {
        Context {
            project,
            tree: project.root(),
            about,
            message: "",
            until: Instant::now() + budget,
            cancelled: &|| false,
            watch: Arc::new(Unwatched),
            again: false,
            keep_going: false,
            keeps: true,
            fingerprint: Memo::default(),
        }
    }

    /// The tree's fingerprint, asked for once between two commands that run.
    fn fingerprint(&self) -> Option<String> {
        let mut known = self.fingerprint.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*known, Known::NotAsked) {
            let fingerprint = tree::fingerprint_within(self.tree, self.time_left());
            *known = fingerprint.map_or(Known::CannotTell, Known::Is);
        }
        match &*known {
            Known::Is(fingerprint) => Some(fingerprint.clone()),
            _ => None,
        }
    }

    /// Something ran that may have changed the tree.
    fn forget_fingerprint(&self) {
        *self.fingerprint.0.lock().unwrap_or_else(PoisonError::into_inner) = Known::NotAsked;
    }

    /// Whether nobody wants to know any more, or this process was asked to end.
    fn is_cancelled(&self) -> bool {
        signals::asked_to_end() || (self.cancelled)()
    }

    fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// Who wants to see how it goes. Called from several threads.
pub trait Watch: Send + Sync {
    fn begins(&self, _gate: &Gate, _limit: Duration) {}
    fn says(&self, _gate: &str, _stream: Stream, _bytes: &[u8]) {}
    fn ended(&self, _finding: &Finding) {}
}

/// Nobody does.
pub struct Unwatched;

impl Watch for Unwatched {}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Everything,
    /// What costs next to nothing, and what shall be measured at every stop.
    Cheap,
}

/// Measures gates: one finding for each, in their order. What costs nothing goes first, so that a missing file is not told after a long test run.
pub fn measure(gates: &[Gate], want: Want, ctx: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Option<Finding>> = gates.iter().map(|gate| cheap(gate, gates, want, ctx)).collect();
    let mut failing = findings.iter().flatten().find(|f| f.verdict == Verdict::Fail).map(|f| f.gate.clone());
    let mut at = 0;
    while at < gates.len() {
        if findings[at].is_some() {
            at += 1;
            continue;
        }
        let together = neighbours(&gates[at..], &findings[at..]);
        let group = &gates[at..at + together];
        let found = match &failing {
            Some(first) if !ctx.keep_going => group.iter().map(|gate| not_run(gate, first)).collect(),
            _ => run_group(group, ctx),
        };
        failing = failing.or_else(|| found.iter().find(|f| f.verdict != Verdict::Pass).map(|f| f.gate.clone()));
        for finding in found {
            findings[at] = Some(finding);
            at += 1;
        }
    }
    findings.into_iter().flatten().collect()
}

/// Whether a gate has a command that nobody trusts.
pub fn is_untrusted(gate: &Gate) -> bool {
    matches!(gate.check, Check::Command(_)) && !gate.trusted
}

/// The finding about such a gate.
pub fn untrusted(gate: &Gate) -> Finding {
    command::untrusted(gate)
}

/// Findings of gates that are not measured at all.
pub fn unasked(gates: &[Gate]) -> Vec<Finding> {
    gates.iter().map(|gate| Finding { skipped: true, ..gate.finding(Verdict::Unknown, "not asked") }).collect()
}

/// The finding of a gate that is no command, or whose turn it is not; `None`: it has to be run.
fn cheap(gate: &Gate, gates: &[Gate], want: Want, ctx: &Context<'_>) -> Option<Finding> {
    match &gate.check {
        _ if is_untrusted(gate) => Some(untrusted(gate)),
        Check::Command(_) if want == Want::Cheap && !gate.every_stop => {
            Some(Finding { skipped: true, ..gate.finding(Verdict::Unknown, "not asked, because nothing was claimed") })
        }
        Check::Command(_) => None,
        Check::File(check) => Some(file::measure(gate, check, gates, ctx)),
        Check::Features(check) => Some(features::measure(gate, check, want, ctx)),
        Check::Markers(check) => Some(markers::measure(gate, check, ctx)),
    }
}

fn not_run(gate: &Gate, first: &str) -> Finding {
    Finding { skipped: true, ..gate.finding(Verdict::Unknown, format!("not run, because \"{first}\" does not hold")) }
}

/// How many gates from the first on run at the same time: one, or a row of those that allow it.
fn neighbours(gates: &[Gate], findings: &[Option<Finding>]) -> usize {
    let may = |gate: &Gate| matches!(&gate.check, Check::Command(command) if command.parallel);
    let row = gates.iter().zip(findings).take_while(|(gate, finding)| may(gate) && finding.is_none()).count();
    row.max(1)
}

fn run_group(gates: &[Gate], ctx: &Context<'_>) -> Vec<Finding> {
    let one = |gate: &Gate| match &gate.check {
        Check::Command(command) => command::run(gate, command, ctx),
        _ => gate.finding(Verdict::Unknown, "not a command"),
    };
    if let [gate] = gates {
        return vec![one(gate)];
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = gates.iter().map(|gate| (gate, scope.spawn(|| one(gate)))).collect();
        running
            .into_iter()
            .map(|(gate, thread)| thread.join().unwrap_or_else(|_| gate.finding(Verdict::Unknown, "ralph failed while it ran")))
            .collect()
    })
}
