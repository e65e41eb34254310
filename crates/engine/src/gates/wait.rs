//! Waiting for gates that are decided elsewhere: ralph looks again now and then, so that no model has to.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::gate::{Finding, Gate, Verdict};

use crate::{
    gates::{Context, Want, measure},
    sys::wait,
};

/// How soon it is looked at again for the first time: right after a push much happens.
const SOON: Duration = Duration::from_secs(2);

/// How rarely at most.
const RARELY: Duration = Duration::from_mins(1);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// There is something new to judge.
    Decided,
    TimeOver,
    /// The result is not wanted any more.
    Cancelled,
}

/// Shows how a wait goes.
pub trait Onlooker {
    /// Nothing is done for so long; then it is looked at again.
    fn pauses(&self, pause: Duration);
    /// The findings of a look at the gates that are waited for.
    fn found(&self, findings: &[Finding]);
}

/// The pauses between two looks, each half as long again as the one before, however often the wait is interrupted.
pub struct Pauses {
    next: Duration,
    onlooker: Option<Arc<dyn Onlooker>>,
}

impl Default for Pauses {
    fn default() -> Self {
        Pauses { next: SOON, onlooker: None }
    }
}

impl Pauses {
    pub fn seen_by(onlooker: Arc<dyn Onlooker>) -> Self {
        Pauses { onlooker: Some(onlooker), ..Pauses::default() }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 3 / 2).min(RARELY);
        pause
    }

    fn tell(&self, what: impl Fn(&dyn Onlooker)) {
        if let Some(onlooker) = &self.onlooker {
            what(&**onlooker);
        }
    }
}

/// The gates that these findings, one for each of them, call waiting.
pub fn waiting<'g>(gates: &'g [Gate], findings: &[Finding]) -> Vec<&'g Gate> {
    let waits = |gate: &&Gate| findings.iter().any(|f| f.gate == gate.name && f.verdict == Verdict::Wait);
    gates.iter().filter(waits).collect()
}

/// Waits until a gate that waited does so no more, or `over` says that there is something else to judge. Nothing is run for it but these gates; where
/// there are none, there is something else.
pub fn until_decided<'a>(
    gates: &[&Gate],
    until: Instant,
    pauses: &mut Pauses,
    context: impl Fn() -> Context<'a>,
    cancelled: &dyn Fn() -> bool,
    over: &dyn Fn() -> bool,
) -> Waited {
    let gates: Vec<Gate> = gates.iter().copied().cloned().collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let pause = pauses.next();
        pauses.tell(|onlooker| onlooker.pauses(pause.min(left)));
        if wait::poll(pause.min(left), wait::INTERRUPT, || cancelled().then_some(())).is_some() {
            return Waited::Cancelled;
        }
        if gates.is_empty() || over() {
            return Waited::Decided;
        }
        if pause >= left {
            return Waited::TimeOver;
        }
        let found = measure(&gates, Want::Everything, &context());
        if cancelled() {
            return Waited::Cancelled;
        }
        pauses.tell(|onlooker| onlooker.found(&found));
        if found.iter().any(|finding| finding.verdict != Verdict::Wait) {
            return Waited::Decided;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_5_it_looks_ever_more_rarely_and_at_least_once_a_minute() {
        let mut pauses = Pauses::default();
        let first: Vec<u64> = (0..4).map(|_| pauses.next().as_secs()).collect();
        assert_eq!(first, [2, 3, 4, 6]);
        assert_eq!((0..20).map(|_| pauses.next()).last(), Some(RARELY));
    }
}
