//! The judge by cases, and what holds for any evidence.

use proptest::prelude::*;

use super::{
    brakes::ToolUse,
    claim::{Claim, Refusal},
    *,
};
use crate::gate::Finding;

fn working() -> Evidence {
    Evidence {
        active: true,
        iteration: 4,
        max_iterations: 10,
        promise: Some("DONE".to_owned()),
        claim: Claim::None,
        blocked: None,
        blocked_rounds: 0,
        notes_waiting: 0,
        message: Message::Event,
        interrupted: false,
        told_to_stop: false,
        queued_input: false,
        background: Vec::new(),
        spent_ms: 1_000,
        max_ms: 60_000,
        spent_usd_micros: 1_000_000,
        max_usd_micros: 50_000_000,
        spent_tokens: 10,
        max_tokens: 1_000,
        tools: ToolUse::Used,
        idle_rounds: 0,
        idle_limit: 7,
        idle_limit_from: IdleLimitFrom::HostCap,
        stalled_rounds: 0,
        stall_limit: 6,
        swings: 0,
        fresh: false,
        before_the_first: false,
        denied: Vec::new(),
        context: 0,
        max_context: 0,
        gates: Vec::new(),
        unknown_rounds: 0,
        same_failure: 0,
        items_done: 0,
        items_per_session: 0,
        suspicions: Vec::new(),
        waited_ms: 0,
    }
}

/// What the person said last counts first, and costs no measurement; limits count all the same.
#[test]
fn t5_a_note_that_was_not_delivered_goes_before_a_claim() {
    let noted = || Evidence { notes_waiting: 1, ..working() };
    let ruled = |e: &Evidence| (judge(e).decision, judge(e).code);
    assert_eq!(ruled(&Evidence { claim: Claim::Made, ..noted() }), (Decision::Block, Code::NoteUndelivered));
    assert_eq!(ruled(&noted()), (Decision::Block, Code::PromiseMissing), "nothing was claimed");
    assert!(!Evidence { claim: Claim::Made, ..noted() }.said().says_done(), "and nothing that a gate does can be undone");
    let gated = Evidence { promise: None, gates: found(&[Verdict::Pass]), ..noted() };
    assert_eq!(ruled(&gated), (Decision::Block, Code::NoteUndelivered));
    assert_eq!(ruled(&Evidence { gates: found(&[Verdict::Fail]), ..gated }), (Decision::Block, Code::GateFailed));
    assert_eq!(ruled(&Evidence { promise: None, ..noted() }), (Decision::Block, Code::PromiseNone));
    let capped = Evidence { claim: Claim::Made, iteration: 10, ..noted() };
    assert_eq!(judge(&capped), allowed(Code::LimitIterations, Next::Ends { ending: Ending::Capped }));
    assert_eq!(ruled(&Evidence { claim: Claim::Made, queued_input: true, ..noted() }), (Decision::Allow, Code::HostQueuedInput));
}

#[test]
fn t12_an_agent_that_cannot_go_on_is_sent_back_once_and_then_a_person_is_asked() {
    let says = |blocked_rounds| Evidence { blocked: Some("no key".to_owned()), blocked_rounds, ..working() };
    let sent_back = Ruling { decision: Decision::Block, code: Code::AgentBlocked, next: Next::GoesOn { iteration: 5 } };
    assert_eq!(judge(&says(1)), sent_back);
    assert_eq!(judge(&says(2)), allowed(Code::AgentBlocked, Next::Pauses));
    assert_eq!(judge(&Evidence { promise: None, ..says(1) }), sent_back, "also without a promise");
    assert_eq!(judge(&Evidence { promise: None, gates: found(&[Verdict::Fail]), ..says(2) }).code, Code::AgentBlocked);
    assert_eq!(judge(&Evidence { promise: None, gates: found(&[Verdict::Pass]), ..says(2) }).code, Code::GatesPassed);
    assert_eq!(judge(&Evidence { iteration: 10, ..says(2) }).code, Code::LimitIterations);
    assert_eq!(judge(&Evidence { queued_input: true, ..says(2) }).code, Code::HostQueuedInput, "the person is there");
}

fn found(verdicts: &[Verdict]) -> Vec<Finding> {
    verdicts.iter().map(|verdict| Finding::new("g", Kind::Command, *verdict, "")).collect()
}

#[test]
fn a_claim_counts_only_with_its_proof() {
    use Verdict::{Fail, Pass, Unknown, Wait};
    let claimed = |verdicts: &[Verdict]| Evidence { claim: Claim::Made, gates: found(verdicts), ..working() };
    let ruled = |e: &Evidence| (judge(e).decision, judge(e).code);
    assert_eq!(judge(&claimed(&[Pass, Pass])), allowed(Code::PromiseAccepted, Next::Ends { ending: Ending::Complete }));
    assert_eq!(ruled(&claimed(&[Pass, Fail])), (Decision::Block, Code::PromiseUnproven));
    assert_eq!(ruled(&claimed(&[Pass, Unknown])), (Decision::Block, Code::GateUnknown), "unknown never counts as pass");
    assert_eq!(judge(&claimed(&[Wait])), allowed(Code::GateWaiting, Next::Parks));
    assert_eq!(judge(&Evidence { unknown_rounds: 3, ..claimed(&[Unknown]) }), allowed(Code::GateUnknown, Next::Pauses));
    assert_eq!(ruled(&Evidence { unknown_rounds: 3, ..claimed(&[Unknown, Fail]) }), (Decision::Block, Code::PromiseUnproven));
    assert_eq!(judge(&Evidence { iteration: 10, ..claimed(&[Fail]) }).code, Code::LimitIterations);
    assert_eq!(judge(&Evidence { iteration: 10, ..claimed(&[Pass]) }).code, Code::PromiseAccepted, "pains 5");
    let mut untrusted = claimed(&[Unknown]);
    untrusted.gates[0].needs = Some("ralph trust".to_owned());
    assert_eq!(judge(&untrusted), allowed(Code::GateUntrusted, Next::Pauses));
    let mut broken = untrusted;
    broken.gates.iter_mut().for_each(|f| f.kind = Kind::Config);
    assert_eq!(judge(&broken), allowed(Code::GateBroken, Next::Pauses), "trusting it would not help");
    assert_eq!(ruled(&Evidence { gates: found(&[Fail]), ..working() }), (Decision::Block, Code::PromiseMissing), "no claim, no matter");
    assert_eq!(
        ruled(&Evidence { gates: found(&[Pass]), ..working() }),
        (Decision::Block, Code::PromiseMissing),
        "the promise is still asked for"
    );
}

#[test]
fn without_a_promise_gates_alone_decide() {
    use Verdict::{Fail, Pass, Unknown};
    let gated = |verdicts: &[Verdict]| Evidence { promise: None, gates: found(verdicts), ..working() };
    assert_eq!(judge(&gated(&[Pass])), allowed(Code::GatesPassed, Next::Ends { ending: Ending::Complete }));
    assert_eq!((judge(&gated(&[Fail])).decision, judge(&gated(&[Fail])).code), (Decision::Block, Code::GateFailed));
    assert_eq!(judge(&gated(&[Unknown])).code, Code::GateUnknown);
    let busy = Evidence { background: vec!["tests".to_owned()], ..gated(&[Pass]) };
    assert_eq!(judge(&busy), allowed(Code::HostBackground, Next::Stays), "nobody said that it is done");
    assert_eq!(judge(&Evidence { interrupted: true, ..gated(&[Pass]) }).code, Code::HostInterrupted);
}

#[test]
fn s2_5_what_is_decided_elsewhere_is_waited_for_and_costs_no_round() {
    use Verdict::{Fail, Pass, Unknown, Wait};
    let parked = allowed(Code::GateWaiting, Next::Parks);
    let with = |verdicts: &[Verdict]| Evidence { gates: found(verdicts), ..working() };
    assert_eq!(judge(&with(&[Pass, Wait])), parked, "nobody has to claim anything");
    assert_eq!(judge(&Evidence { idle_rounds: 9, ..with(&[Wait]) }), parked, "waiting is not idling");
    assert_eq!(judge(&with(&[Wait, Fail])).decision, Decision::Block, "there is work to do meanwhile");
    assert_eq!(judge(&with(&[Wait, Unknown])).decision, Decision::Block);
    let mut skipped = with(&[Wait, Unknown]);
    skipped.gates[1].skipped = true;
    assert_eq!(judge(&skipped), parked, "a command that nobody asked for decides nothing");
    assert_eq!(judge(&Evidence { spent_ms: 60_000, ..with(&[Wait]) }).code, Code::LimitTime, "S2-7");
    assert_eq!(judge(&Evidence { queued_input: true, ..with(&[Wait]) }).code, Code::HostQueuedInput);
}

#[test]
fn s2_1_who_cannot_be_asked_is_told_to_the_person_and_not_to_the_agent() {
    let asked = |kind, verdict, needs: Option<&str>| {
        let finding = Finding { needs: needs.map(str::to_owned), ..Finding::new("ci", kind, verdict, "") };
        Evidence { gates: vec![finding], ..working() }
    };
    let signed_out = asked(Kind::Ci, Verdict::Unknown, Some("gh auth login"));
    assert_eq!(judge(&signed_out), allowed(Code::GateBlocked, Next::Pauses), "nobody has to claim anything");
    assert_eq!(judge(&Evidence { claim: Claim::Made, ..signed_out.clone() }).code, Code::GateBlocked);
    let mut work = signed_out;
    work.gates.push(Finding::new("audit", Kind::File, Verdict::Fail, ""));
    assert_eq!(judge(&work).decision, Decision::Block, "there is work to do meanwhile");
    let strange = asked(Kind::Ci, Verdict::Unknown, None);
    assert_eq!(judge(&strange).decision, Decision::Block);
    assert_eq!(judge(&Evidence { unknown_rounds: 3, ..strange }), allowed(Code::GateUnknown, Next::Pauses));
    assert_eq!(judge(&asked(Kind::Command, Verdict::Unknown, Some("ralph trust"))).decision, Decision::Block, "commands wait for a claim");
}

#[test]
fn point_4_a_session_does_only_so_many_items() {
    let enough = Evidence { items_done: 2, items_per_session: 2, gates: found(&[Verdict::Fail]), promise: None, ..working() };
    assert_eq!(judge(&enough), allowed(Code::FeaturesPerSession, Next::Pauses));
    assert_eq!(judge(&Evidence { items_done: 1, ..enough.clone() }).code, Code::GateFailed);
    assert_eq!(judge(&Evidence { items_per_session: 0, ..enough.clone() }).code, Code::GateFailed);
    assert_eq!(judge(&Evidence { gates: found(&[Verdict::Pass]), ..enough }).code, Code::GatesPassed, "all are done");
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
fn s2_7_money_that_is_spent_ends_the_loop() {
    let spent = Evidence { spent_usd_micros: 50_000_000, ..working() };
    assert_eq!(judge(&spent), allowed(Code::LimitCost, Next::Ends { ending: Ending::Capped }));
    assert_eq!(judge(&Evidence { max_usd_micros: 0, ..spent.clone() }).code, Code::PromiseMissing, "0 is no limit");
    assert_eq!(judge(&Evidence { claim: Claim::Made, ..spent.clone() }).code, Code::PromiseAccepted, "a kept promise is complete");
    assert_eq!(judge(&Evidence { queued_input: true, ..spent.clone() }).code, Code::LimitCost, "no way past the limit");
    assert_eq!(judge(&Evidence { gates: found(&[Verdict::Wait]), ..spent }).code, Code::LimitCost);
}

#[test]
fn s2_7_rounds_that_change_nothing_pause_the_loop() {
    let stalled = Evidence { stalled_rounds: 6, gates: found(&[Verdict::Fail]), ..working() };
    assert_eq!(judge(&stalled), allowed(Code::ProgressNone, Next::Pauses), "whatever tools were called");
    assert_eq!(judge(&Evidence { stalled_rounds: 5, ..stalled.clone() }).decision, Decision::Block);
    assert_eq!(judge(&Evidence { stall_limit: 0, ..stalled.clone() }).decision, Decision::Block);
    assert_eq!(judge(&Evidence { gates: found(&[Verdict::Wait]), ..stalled }).code, Code::GateWaiting, "waiting is no standstill");
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

/// Issue 6: what a run of fresh sessions is stopped for besides.
#[test]
fn s1_4_brakes_of_fresh_sessions() {
    let fresh = || Evidence { fresh: true, ..working() };
    assert_eq!(judge(&Evidence { spent_tokens: 1_000, ..fresh() }), allowed(Code::LimitTokens, Next::Ends { ending: Ending::Capped }));
    assert_eq!(judge(&Evidence { spent_tokens: 1_000, claim: Claim::Made, ..fresh() }).code, Code::PromiseAccepted);
    assert_eq!(judge(&Evidence { swings: 3, ..fresh() }).decision, Decision::Block);
    assert_eq!(judge(&Evidence { swings: 4, ..fresh() }), allowed(Code::ProgressOscillating, Next::Pauses));
    assert_eq!(judge(&Evidence { swings: 9, stall_limit: 0, ..fresh() }).decision, Decision::Block, "nobody asked");
    let denied = |stalled_rounds| Evidence { denied: vec!["Bash(npm test)".to_owned()], stalled_rounds, ..fresh() };
    assert_eq!(judge(&denied(1)).decision, Decision::Block, "pains 17: a denial alone is harmless");
    assert_eq!(judge(&denied(2)), allowed(Code::HostDenied, Next::Pauses));
    assert_eq!(judge(&Evidence { context: 84, max_context: 85, ..working() }).decision, Decision::Block);
    assert_eq!(judge(&Evidence { context: 85, max_context: 85, ..working() }), allowed(Code::HostContextFull, Next::Pauses));
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let claim = prop_oneof![Just(Claim::None), Just(Claim::Made), Just(Claim::Refused { why: Refusal::Quoted })];
    let from = prop_oneof![
        Just(IdleLimitFrom::Loop),
        Just(IdleLimitFrom::HostCap),
        Just(IdleLimitFrom::HostTurnCap),
        Just(IdleLimitFrom::Default)
    ];
    let message = prop_oneof![Just(Message::Event), Just(Message::NoText), Just(Message::Unreadable { transcript: String::new() })];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = (0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12);
    let verdict = prop_oneof![Just(Verdict::Pass), Just(Verdict::Fail), Just(Verdict::Wait), Just(Verdict::Unknown)];
    let verdicts = proptest::collection::vec(verdict, 0..3);
    (claim, from, message, flags, numbers, verdicts).prop_map(
        |(claim, idle_limit_from, message, (active, queued_input, promised, busy), n, verdicts)| Evidence {
            active,
            iteration: if n.0 == 11 { u64::MAX } else { n.0 },
            max_iterations: n.1,
            promise: promised.then(|| "DONE".to_owned()),
            claim,
            blocked: (n.5 > 8).then(|| "no key".to_owned()),
            blocked_rounds: n.5.saturating_sub(8),
            notes_waiting: n.2 / 8,
            message,
            interrupted: promised && busy,
            told_to_stop: promised && !busy && n.0 == 7,
            queued_input,
            background: if busy { vec!["x".to_owned()] } else { Vec::new() },
            spent_ms: n.2,
            max_ms: n.3,
            spent_usd_micros: n.6,
            max_usd_micros: n.7,
            spent_tokens: n.2,
            max_tokens: n.6,
            tools: ToolUse::None,
            idle_rounds: n.4,
            idle_limit: n.5,
            idle_limit_from,
            stalled_rounds: n.7,
            stall_limit: n.6,
            swings: n.3,
            fresh: promised,
            before_the_first: false,
            denied: if promised { Vec::new() } else { vec!["Bash".to_owned()] },
            context: n.1,
            max_context: n.4,
            gates: found(&verdicts),
            unknown_rounds: n.4,
            same_failure: n.4,
            items_done: n.0,
            items_per_session: n.5,
            suspicions: Vec::new(),
            waited_ms: 0,
        },
    )
}

proptest! {
    #[test]
    fn never_blocks_beyond_a_limit(e in any_evidence()) {
        if judge(&e).decision == Decision::Block {
            prop_assert!(e.active && !e.queued_input && !e.interrupted && e.background.is_empty());
            prop_assert!(e.claim != Claim::Made || e.notes_waiting > 0 || e.gates.iter().any(|f| f.verdict != Verdict::Pass));
            prop_assert!(e.blocked_rounds < BLOCKED_ROUNDS);
            prop_assert!(e.max_iterations == 0 || e.iteration < e.max_iterations);
            prop_assert!(e.max_ms == 0 || e.spent_ms < e.max_ms);
            prop_assert!(e.max_usd_micros == 0 || e.spent_usd_micros < e.max_usd_micros);
            prop_assert!(e.max_tokens == 0 || e.spent_tokens < e.max_tokens);
            prop_assert!(e.max_context == 0 || e.context < e.max_context);
            prop_assert!(e.stall_limit == 0 || e.swings < SWINGS_BORNE);
            prop_assert!(e.idle_rounds < e.idle_limit);
            prop_assert!(e.stall_limit == 0 || e.stalled_rounds < e.stall_limit);
            prop_assert!(e.items_per_session == 0 || e.items_done < e.items_per_session);
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

    /// No loop is ever complete unless every gate passed.
    #[test]
    fn complete_means_proven(e in any_evidence()) {
        if judge(&e).next == (Next::Ends { ending: Ending::Complete }) {
            prop_assert!(e.notes_waiting == 0 && e.gates.iter().all(|f| f.verdict == Verdict::Pass));
            prop_assert!(e.claim == Claim::Made || (e.promise.is_none() && !e.gates.is_empty()));
        }
    }

    /// However the iterations go, a loop with any one limit stops being blocked after that many iterations.
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
