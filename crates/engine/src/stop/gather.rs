//! Gathers the evidence of one stop, complete: what was heard, what was measured, and how far the loop is.

use ralph_core::{
    gate::{Proof, Tally},
    journal::{Items, Spending, State},
    judge::{self, Claim, Evidence, IdleLimitFrom, Message, Repeated, Standstill, ToolUse},
    text::time::Millis,
};

use super::{
    Stop,
    hear::{self, Heard},
    measure::Measured,
    notes, spending, standstill,
};
use crate::{hosts::transcript, store::project_lock::Loop};

/// Evidence, and what the next stop is compared with.
pub(crate) struct Gathered {
    pub evidence: Evidence,
    pub heard: Heard,
    /// Iterations in a row without any tool call, whatever the host counts.
    pub idle_rounds: u64,
    /// How often the session is sent back in this turn if it is now.
    pub turn_blocks: u64,
    /// Since when nothing has changed, where that is counted.
    pub standstill: Option<Standstill>,
    /// Which failure was found, and how often in a row.
    pub failure: Option<Repeated>,
    pub items: Option<Items>,
    pub spending: Option<Spending>,
}

/// Changes nothing: the result holds what the loop has to remember.
pub(super) fn gather(stop: &Stop<'_>, l: &Loop, heard: Heard, measured: Measured, now: Millis) -> Gathered {
    let report = stop.report();
    let spending = spending::count(stop, l, now);
    let items = items(&measured, &l.state, stop.session);
    let tallies = || measured.findings.iter().filter_map(|finding| finding.tally);
    let own_limit = idle_limit(stop, l);
    let blocked = Claim::blocked(&heard.text);
    let (context, max_context) = context(stop, l);
    let (tools, idle_rounds) = match measured.after(&l.state) {
        // Counted when the loop was parked.
        Some(parked) => (parked.tools, parked.idle_rounds),
        None => (heard.tools, idle_rounds(stop, l, &heard, own_limit.0)),
    };
    let in_turn = in_turn(stop, l);
    // The limit that is reached first.
    let (rounds, idle_limit, idle_limit_from) = match in_turn {
        Some((blocks, most)) if most.saturating_sub(blocks) <= own_limit.0.saturating_sub(idle_rounds) => {
            (blocks, most, IdleLimitFrom::HostTurnCap)
        }
        _ => (idle_rounds, own_limit.0, own_limit.1),
    };
    let mut evidence = Evidence {
        active: stop.counts(&l.file),
        iteration: l.file.iteration,
        max_iterations: l.file.max_iterations(),
        promise: l.file.completion_promise.clone(),
        claim: heard.claim(stop, l),
        blocked_rounds: if blocked.is_some() { l.state.blocked_rounds.saturating_add(1) } else { 0 },
        blocked,
        notes_waiting: notes::waiting(stop, &l.state),
        message: heard.from.clone(),
        interrupted: heard.interrupted,
        told_to_stop: heard.told_to_stop,
        queued_input: !heard.queue.is_empty(),
        background: stop.background.clone(),
        spent_ms: l.state.spent(now),
        max_ms: l.file.max_millis(),
        spent_usd_micros: spending.as_ref().filter(|_| report.is_some() || l.file.max_usd_micros() > 0).map_or(0, |s| s.usd_micros),
        max_usd_micros: l.file.max_usd_micros(),
        spent_tokens: l.state.tokens.total(),
        max_tokens: l.file.max_tokens(),
        tools,
        idle_rounds: rounds,
        idle_limit,
        idle_limit_from,
        stall_limit: stop.stall_limit(&l.file),
        fresh: report.is_some(),
        before_the_first: report.is_some_and(|report| report.before_the_first),
        denied: report.map(super::SessionReport::denied).unwrap_or_default(),
        context,
        max_context,
        items_done: items.as_ref().map_or(0, |items| items.done - items.before),
        // After a session of a run comes another one anyway.
        items_per_session: tallies().map(|t| t.per_session).filter(|n| *n > 0 && report.is_none()).min().unwrap_or(0),
        gates: measured.findings,
        suspicions: measured.suspicions,
        waited_ms: measured.waited_ms,
        // These follow from the rest.
        unknown_rounds: 0,
        stalled_rounds: 0,
        swings: 0,
        same_failure: 0,
    };
    evidence.unknown_rounds = unknown_rounds(&evidence, l.state.unknown_rounds);
    let standstill = standstill::count(stop, &mut evidence, l, measured.tree.as_deref());
    let failure = Repeated::after(l.state.failure.as_ref(), &evidence.gates);
    evidence.same_failure = failure.as_ref().map_or(0, |failure| failure.times);
    let turn_blocks = in_turn.map_or(0, |(blocks, _)| blocks);
    Gathered { evidence, heard, idle_rounds, turn_blocks, standstill, failure, items, spending }
}

/// How many iterations may be idle: the loop's own limit, or the client's cap on how often a session may be sent back. A run's sessions are new ones.
fn idle_limit(stop: &Stop<'_>, l: &Loop) -> (u64, IdleLimitFrom) {
    let host = stop.hook().map(|hook| hook.client.host).filter(|host| !host.counts_every_block());
    judge::idle_limit(l.file.idle_rounds, host.and_then(|host| host.block_cap(stop.project.root())))
}

/// How often the session is sent back in this turn if it is now, and how often it may be: for an agent that counts every time, whatever it did in between.
fn in_turn(stop: &Stop<'_>, l: &Loop) -> Option<(u64, u64)> {
    let hook = stop.hook().filter(|hook| hook.client.host.counts_every_block())?;
    let before = if hook.after_a_block { l.state.turn_blocks } else { 0 };
    Some((before.saturating_add(1), hook.client.host.blocks_in_a_turn(stop.project.root())?))
}

/// Iterations in a row without any tool call, this one included.
fn idle_rounds(stop: &Stop<'_>, l: &Loop, heard: &Heard, limit: u64) -> u64 {
    // The client counts within one turn of the person's: so do we.
    let same_turn = stop.report().is_some() || l.state.turn.as_deref() == stop.turn;
    let before = if same_turn { l.state.idle_rounds } else { 0 };
    // A message that could not be read is not one like the last.
    let is_read = !matches!(heard.from, Message::Unreadable { .. });
    let same_message = is_read && l.state.message.as_deref() == Some(heard.fingerprint().as_str());
    let idle = judge::count_idle(before, heard.tools, same_message);
    // Before the loop is paused for it: iterations that looked idle may have had tools whose lines came late.
    if idle >= limit && l.state.idle_since.is_some_and(|since| hear::used_tools_since(stop, since)) {
        return u64::from(heard.tools == ToolUse::None);
    }
    idle
}

/// How many items of the loop's lists were done in this session.
fn items(measured: &Measured, state: &State, session: &str) -> Option<Items> {
    let tallies: Vec<Tally> = measured.findings.iter().filter_map(|finding| finding.tally).collect();
    (!tallies.is_empty()).then(|| Items::counted(state.items.as_ref(), session, tallies.iter().map(|t| t.done).sum()))
}

/// Iterations in a row whose proof could not be measured. A gate that is left out while another one waits is not unknown: its turn comes later.
fn unknown_rounds(evidence: &Evidence, before: u64) -> u64 {
    let is_asked = (evidence.claims() && !evidence.waits()) || evidence.forge_unreachable();
    let is_unknown = is_asked && Proof::of(&evidence.gates) == Proof::Unknown;
    if is_unknown { before.saturating_add(1) } else { 0 }
}

/// How full the session's context is, in per cent, and the limit, where the loop has one. A run's sessions each begin with an empty one.
fn context(stop: &Stop<'_>, l: &Loop) -> (u64, u64) {
    if l.file.max_context() == 0 || stop.report().is_some() || !l.file.active {
        return (0, 0);
    }
    let fill = hear::transcript(stop).and_then(|file| transcript::context_percent(&file));
    (fill.unwrap_or(0), l.file.max_context())
}
