//! Each gate over time.

use serde::Serialize;

use super::History;
use crate::{
    gate::{Finding, TestCounts, Verdict},
    text::time::Millis,
};

/// How many names of gates and items are kept with the command that ran for them.
const MOST_RAN: usize = 2_000;

/// How many gates are kept.
const MOST_GATES: usize = 500;

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
pub struct GateHistory {
    /// The last finding.
    pub last: Finding,
    /// When that was, and at which stop.
    pub at: Millis,
    pub stop: u64,
    /// Every measurement, the oldest first.
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

impl History {
    /// Adds the findings of a stop, or of a person's own measurement.
    pub(super) fn measured(&mut self, at: Millis, stop: u64, findings: &[Finding], of_stop: bool) {
        let is_full = of_stop && findings.iter().any(|finding| !finding.skipped);
        for gate in self.gates.iter_mut().filter(|_| is_full) {
            gate.gone = !findings.iter().any(|finding| finding.gate == gate.last.gate);
        }
        for finding in findings.iter().filter(|finding| !finding.skipped).take(MOST_GATES) {
            let mark =
                Mark { stop, at, verdict: finding.verdict, took_ms: finding.took_ms, cached: finding.cached, counts: finding.counts };
            let at_most = self.gates.len() >= MOST_GATES;
            match self.gates.iter_mut().find(|gate| gate.last.gate == finding.gate) {
                Some(gate) => {
                    gate.last.clone_from(finding);
                    (gate.at, gate.stop, gate.gone) = (at, stop, false);
                    gate.marks.push(mark);
                }
                // No loop has so many, and each is looked up at every stop.
                None if at_most => {}
                None => self.gates.push(GateHistory { last: finding.clone(), at, stop, marks: vec![mark], gone: false }),
            }
        }
    }

    /// A command begins to run.
    pub(super) fn runs(&mut self, gate: String, ran: Ran) {
        if self.ran.len() < MOST_RAN || self.ran.contains_key(&gate) {
            self.ran.insert(gate, ran);
        }
    }

    /// The last findings of the gates that the loop still has, those of a person's own measurements included.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.gates.iter().filter(|gate| !gate.gone).map(|gate| &gate.last)
    }
}

impl GateHistory {
    /// How long its command took when it was last run.
    pub fn usual_ms(&self) -> Option<u64> {
        let ran = |mark: &&Mark| !mark.cached && mark.took_ms > 0 && matches!(mark.verdict, Verdict::Pass | Verdict::Fail);
        self.marks.iter().rev().find(ran).map(|mark| mark.took_ms)
    }
}
