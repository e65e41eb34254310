//! Which commit has the files that a gate was measured on: the one that was checked out need not.

use std::{collections::HashSet, time::Duration};

use ralph_core::{
    journal::history::{Chronicle, Round},
    report::Evidence,
    text::time::Millis,
};
use ralph_engine::{
    snapshots::{self, Snapshot},
    store::project::Project,
};

use crate::text::short;

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The files of a loop's iterations, as far as git still has them.
#[derive(Default)]
pub(super) struct Files {
    kept: Vec<Snapshot>,
    all_committed: HashSet<String>,
}

impl Files {
    pub(super) fn of(project: &Project, id: &str) -> Self {
        let kept = snapshots::of_loop(project, id, PATIENCE).unwrap_or_default();
        let all_committed =
            if kept.is_empty() { HashSet::new() } else { snapshots::all_committed(project, &kept, PATIENCE).unwrap_or_default() };
        Files { kept, all_committed }
    }

    /// Whether the files after this iteration can be had; 0 is the moment before the first one.
    pub(super) fn has(&self, round: u64) -> bool {
        self.kept.iter().any(|snapshot| snapshot.round() == Some(round))
    }

    /// What is known about the files at a stop. What a person measured at another time was measured on other files.
    pub(super) fn at(&self, c: &Chronicle, stop: u64, at: Millis) -> Evidence {
        let round = c.rounds.get(c.rounds.partition_point(|round| round.stop < stop));
        let Some(round) = round.filter(|round| round.stop == stop && round.ended == at) else { return Evidence::default() };
        let Some(kept) = self.kept.iter().find(|snapshot| snapshot.round() == Some(round.iteration) && is_of(snapshot, round, c)) else {
            // A stop that ends a loop is written down with the tree of the round before.
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

/// An iteration that was done again has other files under its number. After the end of a loop nobody writes into its journal.
fn is_of(snapshot: &Snapshot, round: &Round, c: &Chronicle) -> bool {
    match c.snapshots.iter().find(|known| known.commit == snapshot.commit) {
        Some(known) => known.stop == round.stop,
        None => c.ended.is_some_and(|ended| ended.at == round.ended),
    }
}

/// Where the files are, in words with what can be typed between back quotes.
pub(super) fn words(e: &Evidence) -> Option<String> {
    let quoted = |text: &str| format!("`{}`", text.replace('`', ""));
    let commit = e.commit.as_deref().map(|commit| quoted(short(Some(commit))));
    match (commit, e.uncommitted, e.kept_as.as_deref()) {
        (Some(commit), Some(false), _) => Some(format!("commit {commit}")),
        (Some(commit), _, Some(kept)) => Some(format!("files kept as {}, on top of commit {commit}", quoted(kept))),
        (Some(commit), _, None) => Some(format!("on top of commit {commit}")),
        (None, _, Some(kept)) => Some(format!("files kept as {}", quoted(kept))),
        (None, _, None) => None,
    }
}
