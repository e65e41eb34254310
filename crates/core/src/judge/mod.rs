//! The judge: evidence in, ruling out. One function, plain data, no effects.
//!
//! Everything that the ruling depends on is in [`Evidence`], which the journal keeps: any ruling can be judged again later.

pub mod claim;
mod evidence;
pub mod limits;
pub mod reason;
mod ruling;
pub mod session_outcome;
pub mod subagent;
#[cfg(test)]
mod tests;

use claim::Claim;
use limits::{IdleLimitFrom, SWINGS_BORNE};

use crate::gate::{Kind, Proof, Verdict};

pub use evidence::{Budget, Evidence, Message, Said};
pub use reason::Code;
pub use ruling::{Decision, Ending, Next, Ruling};

/// Rounds in a row whose proof could not be had, after which a person is asked.
const UNKNOWN_ROUNDS: u64 = 3;

/// Iterations in a row in which the agent says that it cannot go on, after which a person is asked: the first time it is sent back to try another way.
const BLOCKED_ROUNDS: u64 = 2;

/// Rules on one stop. The order is the meaning: a person's wish first, then the proven claim, then what must not be disturbed, then the limits.
pub fn judge(e: &Evidence) -> Ruling {
    let allow = |code, next| Ruling { decision: Decision::Allow, code, next };
    let proof = Proof::of(&e.gates);
    if !e.active {
        return allow(Code::LoopPaused, Next::Stays);
    }
    // Before the limits: a promise kept in the last allowed round is complete, not capped.
    if e.claims() && matches!(proof, Proof::NotAsked | Proof::Holds) {
        let is_claimed = e.promise.is_some() && !e.before_the_first;
        let code = if is_claimed { Code::PromiseAccepted } else { Code::GatesPassed };
        return allow(code, Next::Ends { ending: Ending::Complete });
    }
    if e.interrupted {
        return allow(Code::HostInterrupted, Next::Pauses);
    }
    if e.told_to_stop {
        return allow(Code::PersonStop, Next::Pauses);
    }
    // The client wakes the agent when the work is done; sending it back now would burn rounds on waiting.
    if !e.background.is_empty() {
        return allow(Code::HostBackground, Next::Stays);
    }
    if e.is_unheard() {
        return allow(Code::TranscriptMissing, Next::Pauses);
    }
    if e.max_iterations > 0 && e.iteration >= e.max_iterations {
        return allow(Code::LimitIterations, Next::Ends { ending: Ending::Capped });
    }
    if let Some(code) = e.budget().used_up() {
        return allow(code, Next::Ends { ending: Ending::Capped });
    }
    // After the limits, which let the input through as well: sending the agent on afterwards must not lead past them.
    if e.queued_input {
        return allow(Code::HostQueuedInput, Next::Stays);
    }
    if e.claims() || e.forge_unreachable() {
        // Nothing that the agent could do about these.
        match proof {
            Proof::NeedsPerson => return allow(why_a_person(e), Next::Pauses),
            Proof::Unknown if e.unknown_rounds >= UNKNOWN_ROUNDS => return allow(Code::GateUnknown, Next::Pauses),
            _ => {}
        }
    }
    // Nobody looks on, and the agent cannot mark the item that it is told to work on.
    if e.fresh && e.gates.iter().any(|f| f.kind == Kind::Features && f.verdict == Verdict::Fail && f.needs.is_some()) {
        return allow(Code::GateUntrusted, Next::Pauses);
    }
    if e.waits() {
        return allow(Code::GateWaiting, Next::Parks);
    }
    if e.blocked_rounds >= BLOCKED_ROUNDS {
        return allow(Code::AgentBlocked, Next::Pauses);
    }
    if e.items_per_session > 0 && e.items_done >= e.items_per_session {
        return allow(Code::FeaturesPerSession, Next::Pauses);
    }
    if e.max_context > 0 && e.context >= e.max_context {
        return allow(Code::HostContextFull, Next::Pauses);
    }
    if e.stuck_on_permissions() {
        return allow(Code::HostDenied, Next::Pauses);
    }
    if e.idle_rounds >= e.idle_limit {
        let code = if e.idle_limit_from == IdleLimitFrom::HostCap { Code::HostBlockCap } else { Code::ProgressNone };
        return allow(code, Next::Pauses);
    }
    if e.is_stalled() {
        return allow(Code::ProgressNone, Next::Pauses);
    }
    if e.stall_limit > 0 && e.swings >= SWINGS_BORNE {
        return allow(Code::ProgressOscillating, Next::Pauses);
    }
    Ruling { decision: Decision::Block, code: why_blocked(e, proof), next: Next::GoesOn { iteration: e.iteration.saturating_add(1) } }
}

/// The first that needs one is what the person is told.
fn why_a_person(e: &Evidence) -> Code {
    match e.gates.iter().find(|f| f.needs.is_some()).map(|f| f.kind) {
        Some(Kind::Config) => Code::GateBroken,
        Some(kind) if kind.is_decided_elsewhere() => Code::GateBlocked,
        _ => Code::GateUntrusted,
    }
}

fn why_blocked(e: &Evidence, proof: Proof) -> Code {
    let says_done = e.claim == Claim::Made || (e.promise.is_none() && proof != Proof::NotAsked);
    match (&e.promise, &e.claim) {
        _ if e.blocked.is_some() => Code::AgentBlocked,
        _ if e.notes_waiting > 0 && says_done && proof != Proof::Fails => Code::NoteUndelivered,
        (Some(_), Claim::None) => Code::PromiseMissing,
        (Some(_), Claim::Refused { .. }) => Code::PromiseRefused,
        (None, _) if proof == Proof::NotAsked => Code::PromiseNone,
        (None, _) if proof == Proof::Fails => Code::GateFailed,
        (Some(_), Claim::Made) if proof == Proof::Fails => Code::PromiseUnproven,
        _ => Code::GateUnknown,
    }
}
