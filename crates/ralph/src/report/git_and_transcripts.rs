//! Facts that the journal does not hold: the usage of sessions that no run counted, from their transcripts, and the changes of iterations, from git.

use std::{path::PathBuf, time::Duration};

use ralph_core::{
    history::{FIRST_AGENT, History, OwnUse},
    report::{Changed, Left},
    text::{self, time::Millis},
};
use ralph_engine::{
    gates::declared,
    hosts::{Host, claude::Spent, prices::Prices},
    ops::changes::{self, By, Changes, Moment},
    store::project::Project,
};

use super::snapshots::Snapshots;

/// How many files are named.
const NAMED: usize = 5;

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of transcripts is read at most.
const MOST_BYTES: u64 = 2 << 30;

/// Adds what sessions that ralph did not start used for the loop.
pub(super) fn add_used(project: &Project, history: &mut History, claude_config: Option<PathBuf>) {
    if !history.has_own_sessions() {
        return;
    }
    let mut used: Vec<OwnUse> = Vec::new();
    let (sessions, since) = (|| history.sessions.iter().map(String::as_str), history.started.unwrap_or(0));
    if let Some(config) = claude_config {
        Spent::of_sessions(&config, sessions(), since, MOST_BYTES, |one| used.push(own_use(one)));
    }
    let mut prices = None;
    for host in history.own_agents().into_iter().filter_map(Host::by_name).filter(|host| !host.is_claude()) {
        used.extend(host.own_use(sessions(), since, prices.get_or_insert_with(|| own_prices(project))));
    }
    history.add_own_use(used);
}

/// The prices that a person wrote down. What counts money is believed from a trusted file only.
fn own_prices(project: &Project) -> Prices {
    match declared::config_of_runs(project) {
        Some(Ok((config, trust))) if trust.is_trusted() => Prices(config.run.prices),
        _ => Prices::default(),
    }
}

fn own_use(Spent { amount, of_subagent }: Spent) -> OwnUse {
    OwnUse {
        agent: FIRST_AGENT,
        at: amount.at,
        tokens: amount.tokens,
        tool_calls: amount.tool_calls,
        usd_micros: Some(amount.usd_micros),
        context: amount.context.filter(|_| !of_subagent).unwrap_or(0),
        model: amount.model,
    }
}

/// Work that is in no commit now. The hook draws the page when a loop ends, so git may not take long.
pub(super) fn left(project: &Project, history: &History) -> Option<Left> {
    let left = changes::Left::of(project, history.started.unwrap_or(0), PATIENCE)?;
    let named = left.files.iter().take(NAMED).map(|path| text::opening(path, 120)).collect();
    Some(Left { files: left.files.len() as u64, named, stashes: left.stashes })
}

/// The changes of each iteration, `None` where they are not known; and the files of the iterations, which git is asked for at the same time.
pub(super) fn changed(project: &Project, id: &str, history: &History) -> (Vec<Option<Changed>>, Snapshots) {
    let moment = |iteration: u64, at: Millis, head: Option<&String>| Moment { iteration, at, head: head.cloned() };
    let ends: Vec<Moment> = history.rounds.iter().map(|round| moment(round.iteration, round.ended, round.head.as_ref())).collect();
    let found = Changes::of_iterations(project, id, &moment(0, history.started.unwrap_or(0), None), &ends, PATIENCE);
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
