//! The judge: evidence in, ruling out. One function, plain data, no effects.
//!
//! Everything that the ruling depends on is in [`Evidence`], which the journal keeps: any ruling can be judged again later.

pub(crate) mod brakes;
pub(crate) mod claim;
mod evidence;
mod reason;
mod ruling;
pub mod session_outcome;
pub mod subagent;
#[cfg(test)]
mod tests;

use brakes::SWINGS_BORNE;

use crate::gate::{Kind, Proof, Verdict};

pub use brakes::{Breaker, IdleLimitFrom, Repeated, Standstill, ToolUse, block_cap, count_failing, count_idle, idle_limit};
pub use claim::{Claim, Refusal, join_blocks};
pub use evidence::{Budget, Evidence, Message, Said};
pub use reason::{Code, Reason};
pub use ruling::{Decision, Ending, Next, Ruling};

/// Iterations in a row whose proof could not be had, after which a person is asked.
const UNKNOWN_ROUNDS: u64 = 3;

/// Iterations in a row in which the agent says that it cannot go on, after which a person is asked: the first time it is sent back to try another way.
const BLOCKED_ROUNDS: u64 = 2;

/// Rules on one stop. The order is the meaning: a person's wish first, then the proven claim, then what must not be disturbed, then the limits.
/// The ids are those of docs/requirements.md; "pains" are the complaints of users that a branch answers.
pub fn judge(e: &Evidence) -> Ruling {
    let allow = |code, next| Ruling { decision: Decision::Allow, code, next };
    let proof = Proof::of(&e.gates);
    // pains 9
    if !e.active {
        return allow(Code::LoopPaused, Next::Stays);
    }
    // S0-8, S1-AC4, S2-3, S4-3. Before the limits: a promise kept in the last allowed iteration is complete, not capped.
    if e.claims() && matches!(proof, Proof::NotAsked | Proof::Holds) {
        let is_claimed = e.promise.is_some() && !e.before_the_first;
        let code = if is_claimed { Code::PromiseAccepted } else { Code::GatesPassed };
        return allow(code, Next::Ends { ending: Ending::Complete });
    }
    // pains 9
    if e.interrupted {
        return allow(Code::HostInterrupted, Next::Pauses);
    }
    // pains 9
    if e.told_to_stop {
        return allow(Code::PersonStop, Next::Pauses);
    }
    // pains 7: the client wakes the agent when the work is done; sending it back now would burn iterations on waiting.
    if !e.background.is_empty() {
        return allow(Code::HostBackground, Next::Stays);
    }
    // S0-6
    if e.is_unheard() {
        return allow(Code::TranscriptMissing, Next::Pauses);
    }
    // S0-5, S1-AC5, S4-3
    if e.max_iterations > 0 && e.iteration >= e.max_iterations {
        return allow(Code::LimitIterations, Next::Ends { ending: Ending::Capped });
    }
    // S2-7, pains 3 and 16
    if let Some(code) = e.budget().used_up() {
        return allow(code, Next::Ends { ending: Ending::Capped });
    }
    // pains 18. After the limits, which let the input through as well: sending the agent on afterwards must not lead past them.
    if e.queued_input {
        return allow(Code::HostQueuedInput, Next::Stays);
    }
    // S2-1, pains 2 and 20: the agent can do nothing about these.
    if e.claims() || e.forge_unreachable() {
        match proof {
            Proof::NeedsPerson => return allow(Code::needing_a_person(e), Next::Pauses),
            Proof::Unknown if e.unknown_rounds >= UNKNOWN_ROUNDS => return allow(Code::GateUnknown, Next::Pauses),
            _ => {}
        }
    }
    // S4-1, pains 20: the run is unattended, and the agent cannot mark the item that it is told to work on.
    if e.fresh && e.gates.iter().any(|f| f.kind == Kind::Features && f.verdict == Verdict::Fail && f.needs.is_some()) {
        return allow(Code::GateUntrusted, Next::Pauses);
    }
    // S2-5, pains 12
    if e.waits() {
        return allow(Code::GateWaiting, Next::Parks);
    }
    // pains 3: a task that cannot be done
    if e.blocked_rounds >= BLOCKED_ROUNDS {
        return allow(Code::AgentBlocked, Next::Pauses);
    }
    // S4-5
    if e.items_per_session > 0 && e.items_done >= e.items_per_session {
        return allow(Code::FeaturesPerSession, Next::Pauses);
    }
    // S4-5, pains 5
    if e.max_context > 0 && e.context >= e.max_context {
        return allow(Code::HostContextFull, Next::Pauses);
    }
    // S1-4, pains 17
    if e.stuck_on_permissions() {
        return allow(Code::HostDenied, Next::Pauses);
    }
    // S4-4, pains 7
    if e.idle_rounds >= e.idle_limit {
        let code = if matches!(e.idle_limit_from, IdleLimitFrom::HostCap | IdleLimitFrom::HostTurnCap) {
            Code::HostBlockCap
        } else {
            Code::ProgressNone
        };
        return allow(code, Next::Pauses);
    }
    // S1-4, S2-7, pains 11
    if e.is_stalled() {
        return allow(Code::ProgressNone, Next::Pauses);
    }
    // S1-4, pains 11
    if e.stall_limit > 0 && e.swings >= SWINGS_BORNE {
        return allow(Code::ProgressOscillating, Next::Pauses);
    }
    // S0-9, S0-10, S1-AC2
    Ruling { decision: Decision::Block, code: Code::of_block(e, proof), next: Next::GoesOn { iteration: e.iteration.saturating_add(1) } }
}
