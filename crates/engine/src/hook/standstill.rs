//! Whether a round changed anything: the commit, the files, and what the gates found.
//!
//! A runner looks after every round, and so does a hook where the loop says how many rounds may change nothing. Otherwise the hook looks once in a few rounds: that
//! is enough to see that nothing changes at all, and costs the stops between nothing.

use std::time::Duration;

use ralph_core::{
    judge::Evidence,
    limits::{Standstill, ToolUse},
};

use crate::{
    gates::{Context, tree::PATIENCE},
    git::head,
    hook::{
        Call,
        evidence::Gathered,
        proof::{self, Measured, Waiting},
    },
    store::{
        Error,
        locked::{Locked, Loop},
    },
};

/// The commit and a fingerprint of all files, with the one that measuring made if it did. `None`: it cannot be told.
pub(super) fn tree(ctx: &Context<'_>) -> Option<String> {
    let fingerprint = ctx.fingerprint()?;
    // Outside of a repository, and in one without any commit, there is none.
    let commit = head::around(ctx.tree, ctx.time_left().min(PATIENCE)).unwrap_or_default();
    Some(format!("{commit} {fingerprint}"))
}

/// So long the hook looks at the files where nobody asked for it.
const BRIEFLY: Duration = Duration::from_secs(2);

/// Whether the files are to be looked at for this stop.
pub(super) fn is_due(call: &Call, l: &Loop) -> bool {
    let is_asked = call.stall_limit(&l.file) > 0 && call.is_ruled_on(&l.file);
    is_asked && (!call.looks_now_and_then(&l.file) || Standstill::is_look_due(l.state.standstill.as_ref()))
}

/// Looks at the tree of a loop that has nothing to prove, without the lock, because that may take long. `None`: there is nothing left to answer.
pub(super) fn look<'p>(call: &'p Call, locked: Locked<'p>, l: Loop) -> Result<Option<(Locked<'p>, Loop, Measured)>, Error> {
    drop(locked);
    let time = if call.looks_now_and_then(&l.file) { call.time_left().min(BRIEFLY) } else { call.time_left() };
    let tree = tree(&Context::new(&call.project, &l.id, time));
    Ok(proof::again(call, l.found, Waiting::Here)?.map(|(locked, l)| (locked, l, Measured::of_tree(tree))))
}

/// Counts the rounds that changed nothing. A stop at which ralph waits for others ends no round.
pub(super) fn count(call: &Call, gathered: &mut Gathered, l: &Loop, tree: Option<&str>) {
    let evidence: &mut Evidence = &mut gathered.evidence;
    evidence.stall_limit = call.stall_limit(&l.file);
    if evidence.stall_limit == 0 || !call.is_ruled_on(&l.file) {
        return;
    }
    let before = l.state.standstill.as_ref();
    gathered.standstill = if evidence.waits() {
        before.cloned()
    } else if call.looks_now_and_then(&l.file) {
        let looked = Standstill::is_look_due(before);
        Some(Standstill::now_and_then(before, looked, tree, &evidence.gates, evidence.tools == ToolUse::None))
    } else {
        Standstill::after(before, tree, &evidence.gates)
    };
    evidence.stalled_rounds = gathered.standstill.as_ref().map_or(0, |standstill| standstill.rounds);
    // Where tools are not seen, a round that changed something was not idle, whatever was said.
    let has_changed = before.is_some() && gathered.standstill.is_some() && evidence.stalled_rounds == 0;
    if call.round.is_some() && evidence.tools == ToolUse::Unknown && has_changed {
        evidence.idle_rounds = 0;
    }
    evidence.swings = gathered.standstill.as_ref().map_or(0, Standstill::swings);
}
