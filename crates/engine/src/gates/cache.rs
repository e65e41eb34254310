//! Verdicts of commands on trees: an unchanged tree is not tested again.
//!
//! A failure may have had its cause outside of the tree, so it is believed for a while only: nobody shall be held for ever by what is no longer true.

use ralph_core::{
    gate::{Command, End, Finding, Run, Verdict, test_results::TestResults},
    text::time::Millis,
};
use serde::{Deserialize, Serialize};

use crate::{
    store::project::Project,
    sys::{clock, digest},
};

/// How long a failure is believed at least; a long run's is believed for three times as long as it took.
const FAILURE_MS: u64 = 600_000;

/// So many verdicts are kept.
const KEPT: usize = 200;

/// A verdict that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    at: Millis,
    finding: Finding,
    tests: Option<TestResults>,
    end: Option<End>,
}

/// What a verdict belongs to.
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

    fn path(&self) -> String {
        format!("verdicts/{}", self.0)
    }
}

/// The verdict on this tree, if it is still believed.
pub(super) fn find(project: &Project, key: &Key) -> Option<Finding> {
    let kept: Kept = project.load(&key.path())?;
    let age = u64::try_from(clock::now() - kept.at).ok()?;
    let believed = kept.finding.verdict == Verdict::Pass || age < FAILURE_MS.max(kept.finding.took_ms.saturating_mul(3));
    let log = kept.finding.log.clone().filter(|log| project.root().join(log).exists());
    believed.then_some(Finding { cached: true, log, tests: kept.tests, end: kept.end, ..kept.finding })
}

/// Keeps a verdict. One that cannot be kept is measured again, and nothing else.
pub(super) fn keep(project: &Project, key: &Key, finding: &Finding) {
    let kept = Kept { at: clock::now(), finding: finding.clone(), tests: finding.tests.clone(), end: finding.end };
    project.save_one_of(&key.path(), &kept, KEPT);
}

/// Somebody whose word does not count says that it passes: if it is known to fail, that is measured once more.
pub(super) fn doubt(project: &Project, key: &Key) {
    if find(project, key).is_some_and(|known| known.verdict == Verdict::Fail) {
        project.delete(&key.path());
    }
}
