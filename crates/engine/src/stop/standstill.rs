//! Whether an iteration changed anything: the commit, the files, and what the gates found.
//!
//! A run looks after every iteration, and so does a hook where the loop sets `stall_rounds`. Otherwise the hook looks once in a few iterations: that
//! is enough to see that nothing changes at all, and costs the stops between nothing.

use std::time::Duration;

use ralph_core::judge::{Evidence, Standstill, ToolUse};

use super::Stop;
use crate::{
    gates::{Context, tree::PATIENCE},
    git::head,
    store::{project::Project, project_lock::Loop},
};

/// The commit and a fingerprint of all files, to tell whether a session changed anything. `None`: it cannot be told.
pub fn tree(project: &Project, loop_id: &str, limit: Duration) -> Option<String> {
    of(&Context::new(project, loop_id, limit))
}

/// The same, with the fingerprint that measuring made if it did. `None`: it cannot be told.
pub(super) fn of(ctx: &Context<'_>) -> Option<String> {
    let fingerprint = ctx.fingerprint()?;
    // Outside of a repository, and in one without any commit, there is none.
    let commit = head::around(ctx.tree, ctx.time_left().min(PATIENCE)).unwrap_or_default();
    Some(format!("{commit} {fingerprint}"))
}

/// For how long the hook looks at the files where the loop does not ask for it.
const BRIEFLY: Duration = Duration::from_secs(2);

/// Whether to look at the files for this stop.
pub(super) fn is_due(stop: &Stop<'_>, l: &Loop) -> bool {
    let is_asked = stop.stall_limit(&l.file) > 0 && stop.counts(&l.file);
    is_asked && (!stop.looks_now_and_then(&l.file) || Standstill::is_look_due(l.state.standstill.as_ref()))
}

/// The tree of a loop that has nothing to prove.
pub(super) fn look(stop: &Stop<'_>, l: &Loop) -> Option<String> {
    let left = stop.deadline.time_left();
    tree(stop.project, &l.id, if stop.looks_now_and_then(&l.file) { left.min(BRIEFLY) } else { left })
}

/// Counts the iterations that changed nothing. A stop at which ralph waits for others ends no iteration.
pub(super) fn count(stop: &Stop<'_>, evidence: &mut Evidence, l: &Loop, tree: Option<&str>) -> Option<Standstill> {
    if evidence.stall_limit == 0 || !stop.counts(&l.file) {
        return None;
    }
    let before = l.state.standstill.as_ref();
    let now = if evidence.waits() {
        before.cloned()
    } else if stop.looks_now_and_then(&l.file) {
        let looked = Standstill::is_look_due(before);
        Some(Standstill::now_and_then(before, looked, tree, &evidence.gates, evidence.tools == ToolUse::None))
    } else {
        Standstill::after(before, tree, &evidence.gates)
    };
    evidence.stalled_rounds = now.as_ref().map_or(0, |standstill| standstill.rounds);
    evidence.swings = now.as_ref().map_or(0, Standstill::swings);
    // Where tools are not seen, an iteration that changed something was not idle, whatever was said.
    let has_changed = before.is_some() && now.is_some() && evidence.stalled_rounds == 0;
    if stop.report().is_some() && evidence.tools == ToolUse::Unknown && has_changed {
        evidence.idle_rounds = 0;
    }
    now
}
