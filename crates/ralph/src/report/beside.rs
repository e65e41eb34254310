//! What the journal cannot hold: what sessions used that no runner counted, from their transcripts, and what iterations changed, from git.

use std::{path::PathBuf, time::Duration};

use ralph_core::{
    journal::history::{Chronicle, Used},
    report::{Changed, Left},
    text::{messages, time::Millis},
};
use ralph_engine::{
    hosts::claude::usage::{self, Spent},
    ops::changes::{self, By, Moment},
    store::project::Project,
};

/// So many files are named.
const NAMED: usize = 5;

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// So much of transcripts is read at most.
const MOST_BYTES: u64 = 2 << 30;

/// Adds to each iteration without a session of ralph's own what its agent's session used meanwhile.
pub(super) fn add_used(c: &mut Chronicle, claude_config: Option<PathBuf>) {
    let has_own = |used: &Used| used.sessions > 0;
    if c.rounds.iter().all(|round| has_own(&round.used)) && (has_own(&c.open) || c.working.is_some() || !c.rounds.is_empty()) {
        return;
    }
    let Some(config) = claude_config else { return };
    let mut spent: Vec<Spent> = Vec::new();
    let sessions = c.sessions.iter().map(String::as_str);
    usage::of_sessions(&config, sessions, c.started.unwrap_or(0), MOST_BYTES, |one| spent.push(*one));
    if spent.is_empty() {
        return;
    }
    // The transcript tells all; what was counted against a limit is a part of it.
    let counted = c.rounds.iter_mut().map(|round| &mut round.used).chain([&mut c.open]);
    counted.filter(|used| !has_own(used)).for_each(|used| (used.usd_micros, used.estimated) = (0, true));
    for one in spent.iter().filter(|one| c.ended.is_none_or(|ended| one.amount.at <= ended.at)) {
        let at = c.rounds.partition_point(|round| round.ended < one.amount.at);
        let used = c.rounds.get_mut(at).map_or(&mut c.open, |round| &mut round.used);
        if !has_own(used) {
            used.tokens = used.tokens.plus(one.amount.tokens);
            used.usd_micros = used.usd_micros.saturating_add(one.amount.usd_micros);
            used.tool_calls = used.tool_calls.saturating_add(one.amount.tool_calls);
            let of_the_session = one.amount.context.filter(|_| !one.of_subagent);
            used.context = used.context.max(of_the_session.unwrap_or(0));
        }
    }
}

/// What is in no commit now. The hook draws this page when a loop ends, so git may not take long.
pub(super) fn left(project: &Project, c: &Chronicle) -> Option<Left> {
    let left = changes::left(project, c.started.unwrap_or(0), PATIENCE)?;
    let named = left.files.iter().take(NAMED).map(|path| messages::opening(path, 120)).collect();
    Some(Left { files: left.files.len() as u64, named, stashes: left.stashes })
}

/// What each iteration changed; `None` where nobody can tell.
pub(super) fn changed(project: &Project, id: &str, c: &Chronicle) -> Vec<Option<Changed>> {
    let moment = |iteration: u64, at: Millis, head: Option<&String>| Moment { iteration, at, head: head.cloned() };
    let ends: Vec<Moment> = c.rounds.iter().map(|round| moment(round.iteration, round.ended, round.head.as_ref())).collect();
    let found = changes::of_rounds(project, id, &moment(0, c.started.unwrap_or(0), None), &ends, PATIENCE);
    let is_known = found.problems.is_empty();
    let round = |round: &changes::Round| {
        let size = round.size.unwrap_or_default();
        let only_commits = round.by != By::Snapshots;
        let changed = Changed { commits: round.commits.len() as u64, added_lines: size.added, removed_lines: size.removed, only_commits };
        (round.size.is_some() || !round.commits.is_empty() || is_known).then_some(changed)
    };
    found.rounds.iter().map(round).collect()
}
