//! The changes of each iteration of a loop, asked of git: its commits, and how much is different after it.
//!
//! Git is asked a handful of times, however many iterations there are, and for a bounded time; what could not be had is said. Nothing of the repository is run or changed.

mod history;
mod sizes;
mod uncommitted;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use ralph_core::text::time::Millis;
use serde::Serialize;

use crate::{
    git::{
        Repository,
        head::is_id,
        snapshots::{self, Snapshot},
    },
    store::project::Project,
};
use history::History;
use sizes::{Pair, Sizes};
pub use uncommitted::Left;

/// The beginning of a loop, or the end of one of its iterations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moment {
    /// The iteration that ended; 0 at the beginning.
    pub iteration: u64,
    pub at: Millis,
    /// The commit that was checked out, where that is known.
    pub head: Option<String>,
}

/// The changes of all iterations.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Changes {
    /// One for each end that was asked for.
    pub rounds: Vec<Iteration>,
    /// The parts that could not be found out, in words.
    pub problems: Vec<String>,
    /// The files that were kept: those of the rounds in order, then the others.
    #[serde(skip)]
    pub snapshots: Vec<Snapshot>,
    /// The commits of those of them that have the very files of the commit that was checked out: nothing was left uncommitted.
    #[serde(skip)]
    pub all_committed: HashSet<String>,
}

/// The changes of one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Iteration {
    /// The oldest first.
    pub commits: Vec<Commit>,
    /// `None`: not known.
    pub size: Option<Size>,
    pub by: By,
}

/// Where the size of an iteration's change is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The files before and after the iteration, committed or not.
    Snapshots,
    /// The commits before and after it.
    Heads,
    /// The sum of its commits.
    #[default]
    Commits,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub hash: String,
    /// The first line of its message, short and clean.
    pub subject: String,
    /// When the work was done, and when it was committed, as git has it.
    pub(crate) authored: Millis,
    pub committed: Millis,
    /// `None`: not known. Of a merge nothing is its own.
    pub size: Option<Size>,
}

/// How much is different. Ralph's own files do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Size {
    pub files: u64,
    /// Lines; files that are no text have none.
    pub added: u64,
    pub removed: u64,
}

impl Size {
    fn plus(self, other: Size) -> Self {
        Size {
            files: self.files.saturating_add(other.files),
            added: self.added.saturating_add(other.added),
            removed: self.removed.saturating_add(other.removed),
        }
    }
}

impl Changes {
    /// The changes of the iterations that ended at `ends`, in their order. For a loop that goes on, now may be the last end.
    pub fn of_iterations(project: &Project, loop_id: &str, begun: &Moment, ends: &[Moment], limit: Duration) -> Changes {
        let mut changes = Changes { rounds: vec![Iteration::default(); ends.len()], ..Changes::default() };
        match Repository::of(project, limit) {
            Ok(Some(repository)) => {
                let known = Known::of(&repository, loop_id, begun, ends, &mut changes);
                known.fill(&repository, &mut changes);
            }
            Ok(None) => changes.problems.push("there is no git repository here".to_owned()),
            Err(problem) => changes.problems.push(problem.to_string()),
        }
        changes
    }
}

/// The commits and trees at the beginning and the ends, before git counts anything. In all lists the beginning is the first.
struct Known {
    times: Vec<Millis>,
    heads: Vec<Option<String>>,
    snapshots: Vec<Option<Snapshot>>,
}

impl Known {
    fn of(repository: &Repository, loop_id: &str, begun: &Moment, ends: &[Moment], changes: &mut Changes) -> Self {
        match snapshots::list(repository, loop_id) {
            Ok(all) => changes.snapshots = all,
            Err(problem) => changes.problems.push(format!("the snapshots are not known: {problem}")),
        }
        let by_iteration = changes.snapshots.iter().filter_map(|snapshot| Some((snapshot.iteration()?, snapshot.clone())));
        let mut by_iteration: HashMap<u64, Snapshot> = by_iteration.collect();
        let moments: Vec<&Moment> = [begun].into_iter().chain(ends).collect();
        // An iteration that was done twice has the snapshot of its last time.
        let mut snapshots: Vec<Option<Snapshot>> = moments.iter().rev().map(|moment| by_iteration.remove(&moment.iteration)).collect();
        snapshots.reverse();
        let of_snapshot = |snapshot: &Option<Snapshot>| snapshot.as_ref()?.head.clone();
        let heads = moments.iter().zip(&snapshots).map(|(moment, snapshot)| of_snapshot(snapshot).or_else(|| moment.head.clone()));
        let heads = heads.map(|head| head.filter(|head| is_id(head))).collect();
        // A clock that was set back takes no iteration its time.
        let mut latest = Millis::MIN;
        let times = moments.iter().map(|moment| {
            latest = latest.max(moment.at);
            latest
        });
        Known { times: times.collect(), heads, snapshots }
    }

    fn fill(mut self, repository: &Repository, changes: &mut Changes) {
        let of_snapshots = changes.snapshots.iter().filter_map(|snapshot| snapshot.head.as_deref());
        let history = match History::read(repository, &mut self.heads, of_snapshots, self.times[0]) {
            Ok(history) => history,
            Err(problem) => {
                changes.problems.push(format!("the commits are not known: {problem}"));
                History::default()
            }
        };
        let is_committed = |snapshot: &&Snapshot| snapshot.head.as_ref().and_then(|head| history.trees.get(head)) == Some(&snapshot.tree);
        changes.all_committed = changes.snapshots.iter().filter(is_committed).map(|snapshot| snapshot.commit.clone()).collect();
        let rounds = history.rounds(&self.times, &self.heads);
        let pairs = self.pairs(&history);
        let mut sizes = Sizes::default();
        // What iterations changed first: of the time, the single commits get what is left.
        let wanted: Vec<Pair> = pairs.iter().flatten().map(|(pair, _)| pair.clone()).collect();
        let single = rounds.iter().flatten().map(|n| &history.commits[*n]).filter(|commit| !commit.is_cut_off());
        let single: Vec<Pair> = single.map(|commit| Pair::Commit(commit.hash.clone())).collect();
        for (what, wanted) in [("rounds", wanted), ("commits", single)] {
            if let Err(problem) = sizes.count(repository, &wanted) {
                changes.problems.push(format!("how much some {what} changed is not known: {problem}"));
            }
        }
        for (n, iteration) in changes.rounds.iter_mut().enumerate() {
            iteration.commits = rounds[n].iter().map(|at| history.commits[*at].told(&sizes)).collect();
            let of_commits =
                || iteration.commits.iter().map(|commit| commit.size).try_fold(Size::default(), |sum, size| Some(sum.plus(size?)));
            (iteration.size, iteration.by) = match &pairs[n] {
                Some((pair, by)) => (sizes.of(pair), *by),
                None if history.is_known => (of_commits(), By::Commits),
                None => (None, By::Commits),
            };
        }
    }

    /// The trees to compare for each iteration, where more is known than its commits.
    fn pairs(&self, history: &History) -> Vec<Option<(Pair, By)>> {
        let pair = |n: usize| {
            let trees =
                |before: &Option<Snapshot>, after: &Option<Snapshot>| Some(Pair::trees(&before.as_ref()?.tree, &after.as_ref()?.tree));
            let of_snapshots = trees(&self.snapshots[n], &self.snapshots[n + 1]).map(|pair| (pair, By::Snapshots));
            let head = |n: usize| history.trees.get(self.heads[n].as_ref()?);
            of_snapshots.or_else(|| Some((Pair::trees(head(n)?, head(n + 1)?), By::Heads)))
        };
        (0..self.times.len() - 1).map(pair).collect()
    }
}

impl History {
    /// The commits of each iteration, the oldest first: those that its end can see and no earlier one could. Where an iteration's end is not known, the time tells.
    fn rounds(&self, times: &[Millis], heads: &[Option<String>]) -> Vec<Vec<usize>> {
        let ends = &times[1..];
        let by_hash: HashMap<&str, usize> = self.commits.iter().enumerate().map(|(n, commit)| (commit.hash.as_str(), n)).collect();
        let by_time = |n: usize| ends.partition_point(|end| *end < self.commits[n].committed);
        let mut rounds: Vec<Vec<usize>> = vec![Vec::new(); ends.len()];
        let mut seen: HashSet<usize> = HashSet::new();
        let mut first = 0;
        for (iteration, head) in heads.iter().skip(1).enumerate().filter_map(|(iteration, head)| Some((iteration, head.as_deref()?))) {
            let mut left: Vec<usize> = by_hash.get(head).copied().into_iter().collect();
            while let Some(n) = left.pop() {
                if seen.insert(n) {
                    rounds[by_time(n).clamp(first, iteration)].push(n);
                    left.extend(self.commits[n].parents.iter().filter_map(|parent| by_hash.get(parent.as_str())));
                }
            }
            first = iteration + 1;
        }
        for n in (0..self.commits.len()).filter(|n| !seen.contains(n)) {
            if let Some(iteration) = rounds.get_mut(by_time(n)) {
                iteration.push(n);
            }
        }
        // Git tells the newest first.
        for iteration in &mut rounds {
            iteration.sort_by_key(|n| (self.commits[*n].committed, std::cmp::Reverse(*n)));
        }
        rounds
    }
}

#[cfg(test)]
mod tests;
