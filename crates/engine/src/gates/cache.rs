//! Verdicts of commands on trees: an unchanged tree is not tested again.
//!
//! A failure may have had its cause outside of the tree, so it is believed for a while only: a stale failure must not hold a loop for ever.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::{
    gate::{Command, End, Finding, Measured, Run, Verdict, test_results::TestResults},
    text::time::Millis,
};
use serde::{Deserialize, Serialize};

use crate::{
    gates::Context,
    git::Repository,
    store::{project::Project, repository_state::RepositoryState},
    sys::{clock, digest, env},
};

/// How long a failure is believed at least; a long run's is believed for three times as long as it took.
const FAILURE_MS: u64 = 600_000;

/// So many verdicts are kept.
const KEPT: usize = 200;

/// How long git may look for the first commits of a repository; without them nothing is shared.
const PATIENCE: Duration = Duration::from_secs(20);

/// A verdict that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    at: Millis,
    /// The loop whose stop it was measured for; empty: none.
    #[serde(default)]
    about: String,
    finding: Finding,
    tests: Option<TestResults>,
    end: Option<End>,
}

/// The key of a verdict.
pub(super) struct Key(String);

impl Key {
    pub(super) fn of(gate: &str, command: &Command, fingerprint: &str) -> Self {
        let (form, words) = match &command.run {
            Run::Shell(line) => ("shell", vec![line.clone()]),
            Run::Argv(words) => ("argv", words.clone()),
        };
        // A list in JSON: no two different ones look alike.
        let parts = serde_json::json!([2, gate, form, words, command.folder, command.env, command.junit, fingerprint]);
        Key(digest::short(parts.to_string().as_bytes()))
    }

    /// The same verdict for every clone: the folder's path does not matter, the tools do.
    fn in_any_clone(&self, below: &Path) -> Self {
        let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        let path: Vec<PathBuf> = env::search_path();
        let tools: Vec<&[u8]> = path.iter().map(|folder| folder.as_os_str().as_encoded_bytes()).collect();
        let parts = serde_json::json!([1, self.0, below.as_os_str().as_encoded_bytes(), tools, system, machine]);
        Key(digest::short(parts.to_string().as_bytes()))
    }

    fn path(&self) -> String {
        format!("verdicts/{}", self.0)
    }
}

/// The verdict on this tree, if it is still believed and counts in this measurement.
pub(super) fn find_for(ctx: &Context<'_>, key: &Key) -> Option<Finding> {
    let counts = |kept: &Kept| {
        let is_own = |since| kept.about == ctx.about && kept.at >= since;
        kept.finding.verdict != Verdict::Pass || ctx.since.is_none_or(is_own)
    };
    believed(ctx.project, ctx.project.load(&key.path()).filter(counts)?)
}

/// The verdict on this tree, if it is still believed.
pub(super) fn find(project: &Project, key: &Key) -> Option<Finding> {
    believed(project, project.load(&key.path())?)
}

fn believed(project: &Project, kept: Kept) -> Option<Finding> {
    let age = u64::try_from(clock::now() - kept.at).ok()?;
    let believed = kept.finding.verdict == Verdict::Pass || age < FAILURE_MS.max(kept.finding.took_ms.saturating_mul(3));
    let log = kept.finding.log.clone().filter(|log| project.root().join(log).exists());
    let measured = Some(Measured { at: kept.at, shown: clock::shortly(kept.at) });
    believed.then_some(Finding { cached: true, measured, log, tests: kept.tests, end: kept.end, ..kept.finding })
}

/// A pass on this tree in any clone of the repository. It ends no loop: that has to be measured for the loop itself.
pub(super) fn find_in_clones(ctx: &Context<'_>, key: &Key) -> Option<Finding> {
    let (state, below) = of_repository(ctx).filter(|_| ctx.since.is_none())?;
    let kept: Kept = state.load(&key.in_any_clone(&below).path())?;
    believed(ctx.project, kept).filter(|finding| finding.verdict == Verdict::Pass)
}

/// Keeps a plain pass for all clones: a flake, or a failure, may have had its cause in this one.
pub(super) fn keep_for_clones(ctx: &Context<'_>, key: &Key, finding: &Finding) {
    if finding.verdict != Verdict::Pass || finding.flaky {
        return;
    }
    let Some((state, below)) = of_repository(ctx) else { return };
    // The log stays in this clone.
    let finding = Finding { log: None, ..finding.clone() };
    let kept = Kept { at: clock::now(), about: String::new(), tests: finding.tests.clone(), end: finding.end, finding };
    state.save_one_of(&key.in_any_clone(&below).path(), &kept, KEPT);
}

/// The state that the clones of this repository share, and where the tree is within it.
fn of_repository<'c>(ctx: &Context<'c>) -> Option<(RepositoryState<'c>, PathBuf)> {
    let repository = Repository::of(&Project::at(ctx.tree), ctx.time_left().min(PATIENCE)).ok()??;
    let id = repository.id().ok()??;
    Some((RepositoryState { project: ctx.project, id }, repository.below.clone()))
}

/// Keeps a verdict. One that cannot be kept is measured again, and nothing else.
pub(super) fn keep(ctx: &Context<'_>, key: &Key, finding: &Finding) {
    // What a person measures by hand, or another loop, ends no loop.
    let about = if ctx.since.is_some() { ctx.about.to_owned() } else { String::new() };
    let tests = finding.tests.clone();
    let kept = Kept { at: clock::now(), about, finding: finding.clone(), tests, end: finding.end };
    ctx.project.save_one_of(&key.path(), &kept, KEPT);
}

/// An unproven report that it passes: if it is known to fail, it is measured once more.
pub(super) fn doubt(project: &Project, key: &Key) {
    if find(project, key).is_some_and(|known| known.verdict == Verdict::Fail) {
        project.delete(&key.path());
    }
}
