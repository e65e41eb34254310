//! Gates: measure what must hold, within a time budget. The findings are judged elsewhere.

mod baseline;
pub(crate) mod cache;
pub(crate) mod command;
mod committed;
pub mod declared;
pub mod durations;
pub mod features;
pub(crate) mod file;
pub mod forge;
pub mod guard;
mod junit_files;
mod logs;
pub(crate) mod loop_start;
pub(crate) mod markers;
mod proven_items;
pub(crate) mod pull_request;
pub mod tree;
mod turns;
pub mod wait;

use std::{
    cell::OnceCell,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{Check, Finding, Gate, Stream, Verdict, test_results::TestResults},
    text::{Secrets, time::Millis},
};

use crate::{
    gates::{durations::Time, tree::Tree},
    store::project::Project,
    sys::{secrets, signals},
};

/// The circumstances of a measurement.
pub struct Context<'a> {
    /// Where ralph's own files are.
    pub project: &'a Project,
    /// Where commands run: the project's root, or a subagent's worktree.
    pub tree: &'a Path,
    /// A loop's id, or whatever else asked.
    pub about: &'a str,
    /// The agent's last message.
    pub message: &'a str,
    /// The end of the time budget.
    pub until: Instant,
    /// Whether the result is not wanted any more.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    pub watch: Arc<dyn Watch>,
    /// Earlier findings on the same tree do not count.
    pub again: bool,
    /// A pass ends a loop, so it counts only if it was measured for this loop, and not before this moment. `None`: any pass counts.
    pub since: Option<Millis>,
    /// Further commands are run after one has failed.
    pub keep_going: bool,
    /// The findings count later. Not those from an agent's own shell, where the agent may have put other programs on the path.
    pub keeps: bool,
    /// A stop is judged that says that the work is done: what a gate does besides looking is done now.
    pub acts: bool,
    pub memo: Memo,
    pub forge: pull_request::Memo,
}

/// `about` of gates that are measured without a loop.
pub const BY_HAND: &str = "gate";

/// The tree's files and their fingerprint, once they were looked at.
#[derive(Default)]
pub struct Memo(Mutex<Known>);

#[derive(Default)]
struct Known {
    files: OnceCell<Option<Arc<Tree>>>,
    fingerprint: OnceCell<Option<String>>,
    ignored: OnceCell<Option<String>>,
}

impl<'a> Context<'a> {
    /// A measurement in the project itself, without a watcher and without a way to cancel it.
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
            since: None,
            keep_going: false,
            keeps: true,
            acts: false,
            memo: Memo::default(),
            forge: pull_request::Memo::default(),
        }
    }

    /// The tree's files, looked at once between two commands that run.
    pub(crate) fn files(&self) -> Option<Arc<Tree>> {
        self.files_in(&self.known())
    }

    /// The tree's fingerprint, made once between two commands that run.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        let known = self.known();
        known.fingerprint.get_or_init(|| self.files_in(&known)?.fingerprint(Some(self.project), |_| true)).clone()
    }

    /// What a verdict belongs to: the tree's fingerprint, and that of the ignored files that a command may read.
    pub(crate) fn verdict_fingerprint(&self) -> Option<String> {
        let work = self.fingerprint()?;
        let known = self.known();
        let ignored = known.ignored.get_or_init(|| self.files_in(&known)?.ignored_fingerprint(Some(self.project))).clone()?;
        Some(format!("{work} {ignored}"))
    }

    /// The tree's fingerprint, if it was made since the last command ran.
    pub(crate) fn known_fingerprint(&self) -> Option<String> {
        self.known().fingerprint.get().cloned().flatten()
    }

    fn files_in(&self, known: &Known) -> Option<Arc<Tree>> {
        let look = || Tree::of(self.tree, self.time_left().min(tree::PATIENCE)).map(Arc::new);
        known.files.get_or_init(look).clone()
    }

    /// Something ran that may have changed the tree.
    fn forget_files(&self) {
        *self.known() = Known::default();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.memo.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the result is not wanted any more, or this process was asked to end.
    fn is_cancelled(&self) -> bool {
        signals::asked_to_end() || (self.cancelled)()
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// Watches a measurement. Called from several threads.
pub trait Watch: Send + Sync {
    fn begins(&self, _gate: &Gate, _time: Time) {}
    fn says(&self, _gate: &str, _stream: Stream, _bytes: &[u8]) {}
    fn ended(&self, _finding: &Finding) {}
}

/// No watcher.
pub struct Unwatched;

impl Watch for Unwatched {}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Everything,
    /// Gates that cost next to nothing, and those that ask for every stop.
    Cheap,
}

/// Measures gates: one finding for each, in their order. What costs nothing goes first, so that a missing file is not told after a long test run; a merge goes
/// last, because nothing is merged that does not hold.
pub fn measure(gates: &[Gate], want: Want, ctx: &Context<'_>) -> Vec<Finding> {
    let seen: Vec<Seen> = gates.iter().map(|gate| look(gate, gates, want, ctx)).collect();
    let failing = (0..gates.len()).filter(|at| seen[*at].fails()).collect();
    let mut measuring = Measuring { gates, seen, failing, ctx };
    measuring.run();
    measuring.merge();
    let findings = measuring.seen.into_iter().filter_map(|seen| seen.finding);
    findings.zip(gates).map(|(finding, gate)| masked(with_next(finding, gate), secrets::own())).collect()
}

/// One measurement.
struct Measuring<'a, 'c> {
    gates: &'a [Gate],
    /// One for each gate.
    seen: Vec<Seen>,
    /// The gates that do not hold, in the order in which that was found.
    failing: Vec<usize>,
    ctx: &'a Context<'c>,
}

impl Measuring<'_, '_> {
    /// Runs what has to be run, up to the first that does not hold.
    fn run(&mut self) {
        let mut at = 0;
        while at < self.gates.len() {
            if !self.seen[at].runs || pull_request::is_about_the_merge(&self.gates[at]) {
                at += 1;
                continue;
            }
            let group = at..at + neighbours(&self.gates[at..], &self.seen[at..]);
            // What a list says about itself does not keep its own items from being looked at.
            let first = self.failing.iter().find(|n| **n != at).filter(|_| !self.ctx.keep_going);
            let found: Vec<Finding> = match first {
                Some(first) => group.clone().map(|at| self.not_run(at, *first)).collect(),
                None => run_group(&self.gates[group.clone()], self.gates, self.ctx),
            };
            for (at, finding) in group.clone().zip(found) {
                self.note(at, finding);
            }
            at = group.end;
        }
    }

    /// Asks for the merges, or makes them.
    fn merge(&mut self) {
        let gates = self.gates;
        for at in (0..gates.len()).filter(|at| pull_request::is_about_the_merge(&gates[*at])) {
            let gate = &gates[at];
            let finding = match self.failing.first() {
                _ if !self.seen[at].runs => continue,
                Some(first) => self.not_run(at, *first),
                None if is_untrusted(gate) => untrusted(gate),
                None => {
                    let mut known = self.seen.iter().filter_map(|seen| seen.finding.as_ref());
                    let all_hold = known.all(|finding| finding.verdict == Verdict::Pass);
                    let merges = if self.ctx.acts && all_hold { pull_request::Merges::Now } else { pull_request::Merges::NotYet };
                    pull_request::measure(gate, gates, merges, self.ctx)
                }
            };
            self.note(at, finding);
        }
    }

    fn note(&mut self, at: usize, finding: Finding) {
        if finding.verdict != Verdict::Pass && !finding.skipped {
            self.failing.push(at);
        }
        self.seen[at].finding = Some(finding);
    }

    /// A gate that is not run, because of what was found about another one. What it fails by at a look stays.
    fn not_run(&self, at: usize, first: usize) -> Finding {
        let known = self.seen[at].finding.as_ref();
        if let Some(finding) = known.filter(|finding| finding.verdict == Verdict::Fail) {
            return finding.clone();
        }
        let waits = self.seen[first].finding.as_ref().is_some_and(|finding| finding.verdict == Verdict::Wait);
        let why = format!("not run, because \"{}\" {}", self.gates[first].name, if waits { "waits" } else { "does not hold" });
        let tally = known.and_then(|finding| finding.tally);
        Finding { skipped: true, tally, ..self.gates[at].finding(Verdict::Unknown, why) }
    }
}

/// A finding without secrets. The verdict was made before, of what really was there.
fn masked(finding: Finding, secrets: &Secrets) -> Finding {
    let mask = |text: String| secrets.mask(&text).into_owned();
    let tests = finding.tests.map(|tests| TestResults { failed: tests.failed.into_iter().map(mask).collect(), ..tests });
    Finding { what: mask(finding.what), detail: mask(finding.detail), needs: finding.needs.map(mask), tests, ..finding }
}

/// Adds the gate's own advice, if measuring found nothing better.
fn with_next(finding: Finding, gate: &Gate) -> Finding {
    let next = finding.next.or_else(|| gate.next.clone().filter(|_| finding.verdict == Verdict::Fail && !finding.skipped));
    Finding { next, ..finding }
}

/// A gate before anything is run.
struct Seen {
    finding: Option<Finding>,
    /// Whether something has to be run for it.
    runs: bool,
}

impl Seen {
    fn fails(&self) -> bool {
        self.finding.as_ref().is_some_and(|finding| finding.verdict == Verdict::Fail)
    }
}

/// Whether a gate acts, by a command or by a merge, and is not trusted.
pub fn is_untrusted(gate: &Gate) -> bool {
    gate.acts() && !gate.trusted
}

/// The finding about such a gate.
pub fn untrusted(gate: &Gate) -> Finding {
    if matches!(gate.check, Check::PullRequest(_)) { pull_request::untrusted(gate) } else { command::untrusted(gate) }
}

/// Findings of gates that are not measured at all.
pub(crate) fn unasked(gates: &[Gate]) -> Vec<Finding> {
    gates.iter().map(|gate| Finding { skipped: true, ..gate.finding(Verdict::Unknown, "not asked") }).collect()
}

/// A look at a gate that runs nothing.
fn look(gate: &Gate, gates: &[Gate], want: Want, ctx: &Context<'_>) -> Seen {
    let known = |finding: Finding| Seen { finding: Some(finding), runs: false };
    match &gate.check {
        // Whether a merge is allowed is no question before everything else holds.
        _ if is_untrusted(gate) && !pull_request::is_about_the_merge(gate) => known(untrusted(gate)),
        Check::Command(_) | Check::Committed | Check::PullRequest(_) | Check::Ci(_) if want == Want::Cheap && !gate.every_stop => {
            known(Finding { skipped: true, ..gate.finding(Verdict::Unknown, "not measured: a claim that counts asks for it") })
        }
        Check::Command(_) | Check::PullRequest(_) | Check::Ci(_) => Seen { finding: None, runs: true },
        Check::File(check) => known(file::measure(gate, check, gates, ctx)),
        Check::Features(check) => {
            let (finding, is_due) = features::look(gate, check, ctx);
            Seen { finding: Some(finding), runs: is_due && want == Want::Everything }
        }
        Check::Markers(check) => known(markers::measure(gate, check, ctx)),
        Check::Committed => known(committed::measure(gate, gates, ctx)),
    }
}

/// How many gates from the first on run at the same time: one, or a row of those that allow it.
fn neighbours(gates: &[Gate], seen: &[Seen]) -> usize {
    let may = |gate: &Gate| matches!(&gate.check, Check::Command(command) if command.parallel);
    let row = gates.iter().zip(seen).take_while(|(gate, seen)| may(gate) && seen.runs).count();
    row.max(1)
}

fn run_group(group: &[Gate], gates: &[Gate], ctx: &Context<'_>) -> Vec<Finding> {
    let one = |gate: &Gate| match &gate.check {
        Check::Command(command) => command::run(gate, command, ctx),
        Check::Features(check) => features::measure(gate, check, ctx),
        Check::PullRequest(_) | Check::Ci(_) => pull_request::measure(gate, gates, pull_request::Merges::NotYet, ctx),
        Check::File(_) | Check::Markers(_) | Check::Committed => gate.finding(Verdict::Unknown, "nothing of it can be run"),
    };
    if let [gate] = group {
        return vec![one(gate)];
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = group.iter().map(|gate| (gate, scope.spawn(|| one(gate)))).collect();
        running
            .into_iter()
            .map(|(gate, thread)| thread.join().unwrap_or_else(|_| gate.finding(Verdict::Unknown, "ralph failed while it ran")))
            .collect()
    })
}
