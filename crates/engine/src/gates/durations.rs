//! How long a gate's command usually takes, to show while it runs. Decides nothing.

use std::time::Duration;

use ralph_core::gate::{Command, Finding, Verdict};

use crate::{
    store::project::Project,
    sys::{digest, secrets},
};

/// So many runs are remembered of each command.
const RUNS: usize = 5;

/// So many commands are.
const KEPT: usize = 200;

/// The time of a command that ends at once, in milliseconds. Five of these are enough to know it.
const SHORT: u64 = 1_000;

/// How long a command may take, and how long it usually does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    pub limit: Duration,
    /// `None`: it has never ended by itself here.
    pub usual: Option<Duration>,
}

/// A command as journals and screens have it.
pub fn shown(command: &Command) -> String {
    secrets::opening(&command.run.shown(), 200)
}

/// The middle one of the last runs of this gate with this command, by how long they took.
pub(crate) fn usual_ms(project: &Project, gate: &str, shown: &str) -> Option<u64> {
    middle(&project.load::<Vec<u64>>(&path(gate, shown))?)
}

fn middle(took: &[u64]) -> Option<u64> {
    let mut took = took.to_vec();
    took.sort_unstable();
    took.get(took.len() / 2).copied()
}

/// Remembers how long a run took that ended by itself.
pub(super) fn note(project: &Project, shown: &str, finding: &Finding) {
    if !matches!(finding.verdict, Verdict::Pass | Verdict::Fail) {
        return;
    }
    let path = path(&finding.gate, shown);
    let mut took: Vec<u64> = project.load(&path).unwrap_or_default();
    if took.len() == RUNS && took.iter().chain([&finding.took_ms]).all(|ms| *ms < SHORT) {
        return;
    }
    took.push(finding.took_ms);
    took.drain(..took.len().saturating_sub(RUNS));
    project.save_one_of(&path, &took, KEPT);
}

/// A file for each command: they run at the same time.
fn path(gate: &str, shown: &str) -> String {
    let parts = serde_json::json!([gate, shown]);
    format!("took/{}", digest::short(parts.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use ralph_core::gate::Kind;

    use super::*;
    use crate::sys::temp_dir::Scratch;

    fn took(ms: u64, verdict: Verdict) -> Finding {
        Finding { took_ms: ms, ..Finding::new("tests", Kind::Command, verdict, "") }
    }

    #[test]
    fn eyes_5_the_middle_of_the_last_runs_is_what_is_usual() {
        let scratch = Scratch::create("ralph-usual-", false).unwrap();
        let root = scratch.path().join("project");
        std::fs::create_dir(&root).unwrap();
        let project = Project::with_state(&root, &scratch.path().join("state"));
        let usual = || usual_ms(&project, "tests", "make test");
        assert_eq!(usual(), None);
        note(&project, "make test", &took(90_000, Verdict::Unknown));
        assert_eq!(usual(), None, "what was ended by others tells nothing");
        for ms in [1, 1, 40_000, 41_000, 300_000, 39_000, 2_000] {
            note(&project, "make test", &took(ms, Verdict::Pass));
        }
        assert_eq!(usual(), Some(40_000), "the oldest are forgotten, the odd ones do not count");
        assert_eq!(usual_ms(&project, "tests", "make other"), None, "another command takes another time");
        assert_eq!(usual_ms(&Project::with_state(&root, &root.join("state")), "tests", "make test"), None);
    }
}
