//! Facts that the journal does not hold: the usage of sessions that no run counted, from their transcripts, and the changes of iterations, from git.

use std::{path::PathBuf, time::Duration};

use ralph_core::{
    history::{History, Used},
    report::{Changed, Left},
    text::{self, time::Millis},
};
use ralph_engine::{
    hosts::claude::usage::{self, Spent},
    ops::changes::{self, By, Moment},
    store::project::Project,
};

use super::snapshots::Snapshots;

/// How many files are named.
const NAMED: usize = 5;

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of transcripts is read at most.
const MOST_BYTES: u64 = 2 << 30;

/// Adds to each iteration without a session of ralph's own what its agent's session used meanwhile.
pub(super) fn add_used(history: &mut History, claude_config: Option<PathBuf>) {
    let has_own = |used: &Used| used.sessions > 0;
    if history.rounds.iter().all(|iteration| has_own(&iteration.used))
        && (has_own(&history.open) || history.working.is_some() || !history.rounds.is_empty())
    {
        return;
    }
    let Some(config) = claude_config else { return };
    let mut spent: Vec<Spent> = Vec::new();
    let sessions = history.sessions.iter().map(String::as_str);
    usage::of_sessions(&config, sessions, history.started.unwrap_or(0), MOST_BYTES, |one| spent.push(*one));
    if spent.is_empty() {
        return;
    }
    // The transcript tells all; what was counted against a limit is a part of it.
    let counted = history.rounds.iter_mut().map(|iteration| &mut iteration.used).chain([&mut history.open]);
    counted.filter(|used| !has_own(used)).for_each(|used| (used.usd_micros, used.estimated) = (None, true));
    for one in spent.iter().filter(|one| history.ended.is_none_or(|ended| one.amount.at <= ended.at)) {
        let at = history.rounds.partition_point(|iteration| iteration.ended < one.amount.at);
        let used = history.rounds.get_mut(at).map_or(&mut history.open, |iteration| &mut iteration.used);
        if !has_own(used) {
            used.add(one.amount.tokens, one.amount.tool_calls, one.amount.usd_micros);
            let of_the_session = one.amount.context.filter(|_| !one.of_subagent);
            used.context = used.context.max(of_the_session.unwrap_or(0));
        }
    }
}

/// Work that is in no commit now. The hook draws the page when a loop ends, so git may not take long.
pub(super) fn left(project: &Project, history: &History) -> Option<Left> {
    let left = changes::left(project, history.started.unwrap_or(0), PATIENCE)?;
    let named = left.files.iter().take(NAMED).map(|path| text::opening(path, 120)).collect();
    Some(Left { files: left.files.len() as u64, named, stashes: left.stashes })
}

/// The changes of each iteration, `None` where they are not known; and the files of the iterations, which git is asked for at the same time.
pub(super) fn changed(project: &Project, id: &str, history: &History) -> (Vec<Option<Changed>>, Snapshots) {
    let moment = |iteration: u64, at: Millis, head: Option<&String>| Moment { iteration, at, head: head.cloned() };
    let ends: Vec<Moment> = history.rounds.iter().map(|round| moment(round.iteration, round.ended, round.head.as_ref())).collect();
    let found = changes::of_iterations(project, id, &moment(0, history.started.unwrap_or(0), None), &ends, PATIENCE);
    let is_known = found.problems.is_empty();
    let round = |round: &changes::Iteration| {
        let size = round.size.unwrap_or_default();
        let only_commits = round.by != By::Snapshots;
        let changed = Changed { commits: round.commits.len() as u64, added_lines: size.added, removed_lines: size.removed, only_commits };
        (round.size.is_some() || !round.commits.is_empty() || is_known).then_some(changed)
    };
    let changed = found.rounds.iter().map(round).collect();
    (changed, Snapshots { kept: found.snapshots, all_committed: found.all_committed })
}
