//! Finds the commit or snapshot that has the files that a gate was measured on: the commit that was checked out need not.

use std::collections::HashSet;

use ralph_core::{
    history::{History, Iteration},
    report::Evidence,
    text::time::Millis,
};
use ralph_engine::git::snapshots::Snapshot;

/// The files of a loop's iterations, as far as git still has them.
#[derive(Default)]
pub(super) struct Snapshots {
    pub(super) kept: Vec<Snapshot>,
    pub(super) all_committed: HashSet<String>,
}

impl Snapshots {
    /// Whether the files after this iteration can be had; 0 is the moment before the first one.
    pub(super) fn has(&self, round: u64) -> bool {
        self.kept.iter().any(|snapshot| snapshot.iteration() == Some(round))
    }

    /// Evidence with the files as they were at a stop. What a person measured at another time was measured on other files.
    pub(super) fn at(&self, c: &History, stop: u64, at: Millis) -> Evidence {
        let iteration = c.rounds.get(c.rounds.partition_point(|iteration| iteration.stop < stop));
        let Some(iteration) = iteration.filter(|iteration| iteration.stop == stop && iteration.ended == at) else {
            return Evidence::default();
        };
        let Some(kept) =
            self.kept.iter().find(|snapshot| snapshot.iteration() == Some(iteration.iteration) && is_of(snapshot, iteration, c))
        else {
            // A stop that ends a loop is recorded with the tree of the iteration before.
            return Evidence { commit: iteration.head.clone().filter(|_| iteration.sent_back), ..Evidence::default() };
        };
        Evidence {
            commit: kept.head.clone(),
            uncommitted: Some(!self.all_committed.contains(&kept.commit)),
            kept_as: Some(kept.reference.clone()),
            ..Evidence::default()
        }
    }
}

/// An iteration that was done again has other files under its number. After the end of a loop nothing is written into its journal.
fn is_of(snapshot: &Snapshot, round: &Iteration, c: &History) -> bool {
    match c.snapshots.iter().find(|known| known.commit == snapshot.commit) {
        Some(known) => known.stop == round.stop,
        None => c.ended.is_some_and(|ended| ended.at == round.ended),
    }
}
