//! What failed when the loop began: the old failures of its commands.

use std::fs;

use ralph_core::{
    gate::{End, Finding, Verdict},
    test_results::TestResults,
};
use serde::{Deserialize, Serialize};

use crate::{store::project::Project, sys::files};

/// More than this is no list of failures.
const MAX_BYTES: usize = 16 << 20;

/// What a command did when the loop began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    gate: String,
    pub(super) failed: bool,
    /// Which tests, where the command told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tests: Option<TestResults>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<End>,
}

fn path(loop_id: &str) -> String {
    format!("baseline/{loop_id}.failures.jsonl")
}

pub(super) fn forget(project: &Project, loop_id: &str) {
    let _ = project.kept(&path(loop_id)).map(fs::remove_file);
}

fn lines(project: &Project, loop_id: &str) -> Vec<u8> {
    project.kept(&path(loop_id)).and_then(|path| files::read(&path, MAX_BYTES).ok()).unwrap_or_default()
}

/// What a gate's command did when the loop began, if that is known.
pub(super) fn of(project: &Project, loop_id: &str, gate: &str) -> Option<Before> {
    lines(project, loop_id)
        .split(|b| *b == b'\n')
        .filter_map(|line| serde_json::from_slice::<Before>(line).ok())
        .find(|before| before.gate == gate)
}

/// Notes it. Only the first word about a gate counts, and only one that says something.
pub(super) fn note(project: &Project, loop_id: &str, gate: &str, finding: &Finding) {
    if !matches!(finding.verdict, Verdict::Pass | Verdict::Fail) || of(project, loop_id, gate).is_some() {
        return;
    }
    let before = Before { gate: gate.to_owned(), failed: finding.verdict == Verdict::Fail, tests: finding.tests.clone(), end: finding.end };
    let (Ok(path), Ok(line)) = (project.keep(&path(loop_id)), serde_json::to_vec(&before)) else { return };
    // Without it all failures count as new.
    let _ = files::replace_private(&path, &[lines(project, loop_id), line, b"\n".to_vec()].concat());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ralph_core::gate::Kind;

    use super::*;
    use crate::sys::scratch::Scratch;

    #[test]
    fn the_first_word_counts() {
        let scratch = Scratch::create("ralph-baseline-", false).unwrap();
        let project = Project::with_state(scratch.path().join("project"), &scratch.path().join("state"));
        let found = |verdict| Finding::new("tests", Kind::Command, verdict, "");
        assert_eq!(of(&project, "a", "tests"), None);
        note(&project, "a", "tests", &found(Verdict::Unknown));
        assert_eq!(of(&project, "a", "tests"), None, "nothing was measured");
        let tests = TestResults { passed: 3, ignored: 0, failed: BTreeSet::from(["x::y".to_owned()]) };
        note(&project, "a", "tests", &Finding { tests: Some(tests.clone()), ..found(Verdict::Fail) });
        note(&project, "a", "tests", &found(Verdict::Pass));
        note(&project, "a", "lint", &found(Verdict::Pass));
        let before = of(&project, "a", "tests").unwrap();
        assert_eq!((before.failed, before.tests), (true, Some(tests)));
        assert!(!of(&project, "a", "lint").unwrap().failed);
        assert_eq!(of(&project, "b", "tests"), None, "another loop");
    }
}
