//! Finds the commit or snapshot that has the files that a gate was measured on: the commit that was checked out need not.

use std::{collections::HashSet, time::Duration};

use ralph_core::{
    history::{History, Round},
    report::Evidence,
    text::time::Millis,
};
use ralph_engine::{
    snapshots::{self, Snapshot},
    store::project::Project,
};

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The files of a loop's iterations, as far as git still has them.
#[derive(Default)]
pub(super) struct Snapshots {
    kept: Vec<Snapshot>,
    all_committed: HashSet<String>,
}

impl Snapshots {
    pub(super) fn of(project: &Project, id: &str) -> Self {
        let kept = snapshots::of_loop(project, id, PATIENCE).unwrap_or_default();
        let all_committed =
            if kept.is_empty() { HashSet::new() } else { snapshots::all_committed(project, &kept, PATIENCE).unwrap_or_default() };
        Snapshots { kept, all_committed }
    }

    /// Whether the files after this iteration can be had; 0 is the moment before the first one.
    pub(super) fn has(&self, round: u64) -> bool {
        self.kept.iter().any(|snapshot| snapshot.round() == Some(round))
    }

    /// Evidence with the files as they were at a stop. What a person measured at another time was measured on other files.
    pub(super) fn at(&self, c: &History, stop: u64, at: Millis) -> Evidence {
        let round = c.rounds.get(c.rounds.partition_point(|round| round.stop < stop));
        let Some(round) = round.filter(|round| round.stop == stop && round.ended == at) else { return Evidence::default() };
        let Some(kept) = self.kept.iter().find(|snapshot| snapshot.round() == Some(round.iteration) && is_of(snapshot, round, c)) else {
            // A stop that ends a loop is recorded with the tree of the iteration before.
            return Evidence { commit: round.head.clone().filter(|_| round.sent_back), ..Evidence::default() };
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
fn is_of(snapshot: &Snapshot, round: &Round, c: &History) -> bool {
    match c.snapshots.iter().find(|known| known.commit == snapshot.commit) {
        Some(known) => known.stop == round.stop,
        None => c.ended.is_some_and(|ended| ended.at == round.ended),
    }
}
