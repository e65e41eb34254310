//! What each gate found over time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    gate::{Finding, Kind, TestCounts, Verdict},
    text::time::Millis,
};

/// So many names of gates and items are remembered with what ran for them.
const MOST_RAN: usize = 2_000;

/// More gates than this are not told of.
const MOST_GATES: usize = 500;

/// The gates of a loop, in the order in which they were first measured.
#[derive(Debug, Clone, Default)]
pub struct Proofs {
    pub gates: Vec<Story>,
    /// What ran last for a gate, or for an item of a list, by its name.
    pub ran: BTreeMap<String, Ran>,
}

/// A command that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub command: String,
    pub at: Millis,
    /// The stops that were ruled on by then.
    pub stops: u64,
}

/// One gate.
#[derive(Debug, Clone)]
pub struct Story {
    /// What was found last.
    pub last: Finding,
    /// When that was, and at which stop.
    pub at: Millis,
    pub stop: u64,
    /// Measured whenever it was its turn, the oldest first.
    pub marks: Vec<Mark>,
    /// It is not one of the loop's gates any more: the last full measurement did not have it.
    pub gone: bool,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    pub stop: u64,
    pub at: Millis,
    pub verdict: Verdict,
    pub took_ms: u64,
    /// Nothing was run: the verdict on the same tree.
    pub cached: bool,
    /// How many tests failed, where the command told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<TestCounts>,
}

impl Proofs {
    /// What a stop found, or a person by hand. The guard's finding is there or not, at a stop that asked for proof.
    pub(super) fn measured(&mut self, at: Millis, stop: u64, findings: &[Finding], of_stop: bool) {
        let is_full = of_stop && findings.iter().any(|finding| !finding.skipped);
        for story in self.gates.iter_mut().filter(|_| is_full) {
            story.gone = !findings.iter().any(|finding| finding.gate == story.last.gate);
        }
        for finding in findings.iter().filter(|finding| !finding.skipped).take(MOST_GATES) {
            let mark =
                Mark { stop, at, verdict: finding.verdict, took_ms: finding.took_ms, cached: finding.cached, counts: finding.counts };
            let at_most = self.gates.len() >= MOST_GATES;
            match self.gates.iter_mut().find(|story| story.last.gate == finding.gate) {
                Some(story) => {
                    story.last.clone_from(finding);
                    (story.at, story.stop, story.gone) = (at, stop, false);
                    story.marks.push(mark);
                }
                // No loop has so many, and each is looked for at every stop.
                None if at_most => {}
                None => self.gates.push(Story { last: finding.clone(), at, stop, marks: vec![mark], gone: false }),
            }
        }
    }

    /// A command begins to run.
    pub(super) fn runs(&mut self, gate: String, ran: Ran) {
        if self.ran.len() < MOST_RAN || self.ran.contains_key(&gate) {
            self.ran.insert(gate, ran);
        }
    }

    /// What was found last, of the gates that there still are.
    pub fn last(&self) -> impl Iterator<Item = &Finding> {
        self.gates.iter().filter(|story| !story.gone).map(|story| &story.last)
    }
}

impl Story {
    /// When it failed, or could not be measured, and passed next: the moments at which work was done.
    pub fn mended(&self) -> impl Iterator<Item = &Mark> {
        self.marks.windows(2).filter(|pair| pair[0].verdict != Verdict::Pass && pair[1].verdict == Verdict::Pass).map(|pair| &pair[1])
    }

    /// How long its command took when it was last run.
    pub fn usual_ms(&self) -> Option<u64> {
        let ran = |mark: &&Mark| !mark.cached && mark.took_ms > 0 && matches!(mark.verdict, Verdict::Pass | Verdict::Fail);
        self.marks.iter().rev().find(ran).map(|mark| mark.took_ms)
    }

    pub fn is_guard(&self) -> bool {
        self.last.kind == Kind::Guard
    }
}
