//! The judge: evidence in, ruling out. One function, plain data, no effects.
//!
//! Everything that the ruling depends on is in [`Evidence`], which the journal keeps: any ruling can be judged again later.

use serde::{Deserialize, Serialize};

use crate::{
    limits::{IdleLimitFrom, ToolUse},
    promise::Claim,
};

/// All that is known about one stop of a loop's own session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// `false` where a person or a brake paused the loop.
    pub active: bool,
    pub iteration: u64,
    /// 0 means no limit.
    pub max_iterations: u64,
    pub promise: Option<String>,
    pub claim: Claim,
    pub message: Message,
    /// The person interrupted the agent, and then typed something else.
    #[serde(default)]
    pub interrupted: bool,
    /// The person typed something that the client has not delivered yet.
    pub queued_input: bool,
    /// What still runs in the background, in words.
    pub background: Vec<String>,
    pub spent_ms: u64,
    /// 0 means no limit.
    pub max_ms: u64,
    pub tools: ToolUse,
    /// Rounds in a row without any tool call, this one included.
    pub idle_rounds: u64,
    pub idle_limit: u64,
    pub idle_limit_from: IdleLimitFrom,
}

/// Where the agent's last message was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum Message {
    /// In the event itself.
    Event,
    Transcript,
    /// The turn ended without any text.
    NoText,
    /// The event carries no message, as older clients' don't, and the transcript that would is not there.
    Unreadable {
        transcript: String,
    },
}

/// What happens to this stop, and to the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ruling {
    pub decision: Decision,
    pub code: Code,
    pub next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The agent may stop.
    Allow,
    /// The agent is sent back to work.
    Block,
}

/// The loop after the ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "loop")]
pub enum Next {
    /// Armed, in a new round.
    GoesOn {
        iteration: u64,
    },
    /// Just as it was.
    Stays,
    /// Kept, and not armed until somebody resumes it.
    Pauses,
    Ends {
        ending: Ending,
    },
}

/// How a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    Complete,
    /// A limit was reached.
    Capped,
    Cancelled,
    /// The loop file could not be read.
    Failed,
}

impl Ending {
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Complete => "complete",
            Ending::Capped => "capped",
            Ending::Cancelled => "cancelled",
            Ending::Failed => "failed",
        }
    }
}

/// Why: a stable word for programs, log lines and `explain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Code {
    #[serde(rename = "promise.accepted")]
    PromiseAccepted,
    /// A promise is configured and was not claimed.
    #[serde(rename = "promise.missing")]
    PromiseMissing,
    /// A promise tag was seen, and it does not count.
    #[serde(rename = "promise.refused")]
    PromiseRefused,
    /// No promise is configured: the loop goes on until a limit or a cancel.
    #[serde(rename = "promise.none")]
    PromiseNone,
    #[serde(rename = "limit.iterations")]
    LimitIterations,
    #[serde(rename = "limit.time")]
    LimitTime,
    #[serde(rename = "progress.none")]
    ProgressNone,
    #[serde(rename = "host.block-cap")]
    HostBlockCap,
    #[serde(rename = "host.background")]
    HostBackground,
    #[serde(rename = "host.queued-input")]
    HostQueuedInput,
    #[serde(rename = "host.interrupted")]
    HostInterrupted,
    #[serde(rename = "loop.paused")]
    LoopPaused,
    #[serde(rename = "transcript.missing")]
    TranscriptMissing,
}

impl Code {
    pub fn as_str(self) -> &'static str {
        match self {
            Code::PromiseAccepted => "promise.accepted",
            Code::PromiseMissing => "promise.missing",
            Code::PromiseRefused => "promise.refused",
            Code::PromiseNone => "promise.none",
            Code::LimitIterations => "limit.iterations",
            Code::LimitTime => "limit.time",
            Code::ProgressNone => "progress.none",
            Code::HostBlockCap => "host.block-cap",
            Code::HostBackground => "host.background",
            Code::HostQueuedInput => "host.queued-input",
            Code::HostInterrupted => "host.interrupted",
            Code::LoopPaused => "loop.paused",
            Code::TranscriptMissing => "transcript.missing",
        }
    }
}

/// Rules on one stop. The order is the meaning: a person's wish first, then the claim, then what must not be disturbed, then the limits.
pub fn judge(e: &Evidence) -> Ruling {
    let allow = |code, next| Ruling { decision: Decision::Allow, code, next };
    if !e.active {
        return allow(Code::LoopPaused, Next::Stays);
    }
    // Before the limits: a promise kept in the last allowed round is complete, not capped.
    if e.claim == Claim::Made {
        return allow(Code::PromiseAccepted, Next::Ends { ending: Ending::Complete });
    }
    if e.interrupted {
        return allow(Code::HostInterrupted, Next::Pauses);
    }
    // The client wakes the agent when the work is done; sending it back now would burn rounds on waiting.
    if !e.background.is_empty() {
        return allow(Code::HostBackground, Next::Stays);
    }
    if matches!(e.message, Message::Unreadable { .. }) {
        return allow(Code::TranscriptMissing, Next::Pauses);
    }
    if e.max_iterations > 0 && e.iteration >= e.max_iterations {
        return allow(Code::LimitIterations, Next::Ends { ending: Ending::Capped });
    }
    if e.max_ms > 0 && e.spent_ms >= e.max_ms {
        return allow(Code::LimitTime, Next::Ends { ending: Ending::Capped });
    }
    // After the limits, which let the input through as well: sending the agent on afterwards must not lead past them.
    if e.queued_input {
        return allow(Code::HostQueuedInput, Next::Stays);
    }
    if e.idle_rounds >= e.idle_limit {
        let code = if e.idle_limit_from == IdleLimitFrom::HostCap { Code::HostBlockCap } else { Code::ProgressNone };
        return allow(code, Next::Pauses);
    }
    let code = match (&e.promise, &e.claim) {
        (None, _) => Code::PromiseNone,
        (Some(_), Claim::Refused { .. }) => Code::PromiseRefused,
        (Some(_), _) => Code::PromiseMissing,
    };
    Ruling { decision: Decision::Block, code, next: Next::GoesOn { iteration: e.iteration.saturating_add(1) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promise::Refusal;
    use proptest::prelude::*;

    fn working() -> Evidence {
        Evidence {
            active: true,
            iteration: 4,
            max_iterations: 10,
            promise: Some("DONE".to_owned()),
            claim: Claim::None,
            message: Message::Event,
            interrupted: false,
            queued_input: false,
            background: Vec::new(),
            spent_ms: 1_000,
            max_ms: 60_000,
            tools: ToolUse::Used,
            idle_rounds: 0,
            idle_limit: 7,
            idle_limit_from: IdleLimitFrom::HostCap,
        }
    }

    fn allowed(code: Code, next: Next) -> Ruling {
        Ruling { decision: Decision::Allow, code, next }
    }

    #[test]
    fn s0_10_work_goes_on_with_the_next_iteration() {
        let block = |code| Ruling { decision: Decision::Block, code, next: Next::GoesOn { iteration: 5 } };
        assert_eq!(judge(&working()), block(Code::PromiseMissing));
        assert_eq!(judge(&Evidence { promise: None, ..working() }), block(Code::PromiseNone), "S0-9");
        let refused = Claim::Refused { why: Refusal::InCode };
        assert_eq!(judge(&Evidence { claim: refused, ..working() }), block(Code::PromiseRefused));
        assert_eq!(judge(&Evidence { max_iterations: 0, max_ms: 0, ..working() }), block(Code::PromiseMissing));
    }

    #[test]
    fn s1_ac4_a_claim_completes_even_in_the_last_round() {
        let complete = allowed(Code::PromiseAccepted, Next::Ends { ending: Ending::Complete });
        assert_eq!(judge(&Evidence { claim: Claim::Made, ..working() }), complete);
        assert_eq!(judge(&Evidence { claim: Claim::Made, iteration: 10, spent_ms: 90_000, ..working() }), complete, "pains 5");
        assert_eq!(judge(&Evidence { claim: Claim::Made, background: vec!["server".to_owned()], ..working() }), complete);
    }

    #[test]
    fn s0_5_s1_ac5_limits_end_the_loop() {
        let capped = |code| allowed(code, Next::Ends { ending: Ending::Capped });
        assert_eq!(judge(&Evidence { iteration: 10, ..working() }), capped(Code::LimitIterations));
        assert_eq!(judge(&Evidence { iteration: 12, ..working() }), capped(Code::LimitIterations));
        assert_eq!(judge(&Evidence { spent_ms: 60_000, ..working() }), capped(Code::LimitTime));
    }

    #[test]
    fn brakes_pause_and_say_who_asked_for_it() {
        let idle = Evidence { idle_rounds: 7, ..working() };
        assert_eq!(judge(&idle), allowed(Code::HostBlockCap, Next::Pauses));
        assert_eq!(judge(&Evidence { idle_limit_from: IdleLimitFrom::Loop, ..idle }), allowed(Code::ProgressNone, Next::Pauses));
        let unreadable = Message::Unreadable { transcript: "/t.jsonl".to_owned() };
        assert_eq!(judge(&Evidence { message: unreadable, ..working() }), allowed(Code::TranscriptMissing, Next::Pauses), "S0-6");
    }

    #[test]
    fn what_must_not_be_disturbed_is_allowed_and_costs_nothing() {
        assert_eq!(judge(&Evidence { active: false, claim: Claim::Made, ..working() }), allowed(Code::LoopPaused, Next::Stays), "pains 10");
        assert_eq!(judge(&Evidence { interrupted: true, queued_input: true, ..working() }), allowed(Code::HostInterrupted, Next::Pauses));
        assert_eq!(judge(&Evidence { queued_input: true, ..working() }), allowed(Code::HostQueuedInput, Next::Stays));
        assert_eq!(judge(&Evidence { queued_input: true, iteration: 10, ..working() }).code, Code::LimitIterations);
        assert_eq!(
            judge(&Evidence { background: vec!["tests".to_owned()], iteration: 10, ..working() }),
            allowed(Code::HostBackground, Next::Stays),
            "pains 12"
        );
    }

    fn any_evidence() -> impl Strategy<Value = Evidence> {
        let claim = prop_oneof![Just(Claim::None), Just(Claim::Made), Just(Claim::Refused { why: Refusal::Quoted })];
        let from = prop_oneof![Just(IdleLimitFrom::Loop), Just(IdleLimitFrom::HostCap), Just(IdleLimitFrom::Default)];
        let message = prop_oneof![Just(Message::Event), Just(Message::NoText), Just(Message::Unreadable { transcript: String::new() })];
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        let numbers = (0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12);
        (claim, from, message, flags, numbers).prop_map(|(claim, idle_limit_from, message, (active, queued_input, promised, busy), n)| {
            Evidence {
                active,
                iteration: if n.0 == 11 { u64::MAX } else { n.0 },
                max_iterations: n.1,
                promise: promised.then(|| "DONE".to_owned()),
                claim,
                message,
                interrupted: promised && busy,
                queued_input,
                background: if busy { vec!["x".to_owned()] } else { Vec::new() },
                spent_ms: n.2,
                max_ms: n.3,
                tools: ToolUse::None,
                idle_rounds: n.4,
                idle_limit: n.5,
                idle_limit_from,
            }
        })
    }

    proptest! {
        #[test]
        fn never_blocks_beyond_a_limit(e in any_evidence()) {
            if judge(&e).decision == Decision::Block {
                prop_assert!(e.active && e.claim != Claim::Made && !e.queued_input && !e.interrupted && e.background.is_empty());
                prop_assert!(e.max_iterations == 0 || e.iteration < e.max_iterations);
                prop_assert!(e.max_ms == 0 || e.spent_ms < e.max_ms);
                prop_assert!(e.idle_rounds < e.idle_limit);
            }
        }

        #[test]
        fn every_block_uses_up_a_bound_and_an_allow_none(e in any_evidence()) {
            let ruling = judge(&e);
            match ruling.decision {
                Decision::Block => prop_assert_eq!(ruling.next, Next::GoesOn { iteration: e.iteration.saturating_add(1) }),
                Decision::Allow => {
                    let counted = matches!(ruling.next, Next::GoesOn { .. });
                    prop_assert!(!counted);
                }
            }
        }

        /// However the rounds go, a loop with any one limit stops being blocked after that many rounds.
        #[test]
        fn a_bounded_loop_always_ends(mut e in any_evidence(), max in 1u64..20) {
            e.iteration = 1;
            e.max_iterations = max;
            for _ in 0..max {
                match judge(&e).next {
                    Next::GoesOn { iteration } => e.iteration = iteration,
                    _ => return Ok(()),
                }
            }
            prop_assert_eq!(judge(&e).decision, Decision::Allow);
        }

        /// The words of the enum, of the journal and of `as_str` are the same ones.
        #[test]
        fn codes_are_stable_words(e in any_evidence()) {
            let code = judge(&e).code;
            prop_assert_eq!(serde_json::to_value(code).ok(), Some(serde_json::Value::from(code.as_str())));
        }
    }
}
