//! The judge of subagents: evidence in, ruling out (S3). No effects, like the judge of loops; the loop of the session that called the agent has no part in it.

use super::reason::Reason;
use crate::gate::{Finding, Proof};

/// The agents that have to prove their work unless the settings name others (S3-1).
pub const AGENT: &str = "check";

/// Whether an agent is of a type that the settings name: `check` is also `plugin:check`.
pub fn is_of_type(agent: &str, name: &str) -> bool {
    agent == name || (!name.contains(':') && agent.rsplit(':').next() == Some(name))
}

/// Everything that is known about one stop of a subagent.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub asked: Asked<'a>,
    /// The agent was sent back before, and not let go since.
    pub was_sent_back: bool,
}

/// The proof that is asked of an agent.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// Nothing: it is of another type, or nothing is configured.
    Nothing,
    /// The settings that could ask for something cannot be read.
    Unreadable,
    /// No person has trusted the commands.
    Untrusted,
    /// Something else than what it was sent back for.
    SomethingElse,
    Proof {
        findings: &'a [Finding],
        /// `None`: its iterations cannot be counted.
        tries: Option<Tries>,
    },
}

/// How far an agent is, and how far it may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tries {
    /// From 1.
    pub iteration: u64,
    pub max_iterations: u64,
    pub spent_ms: u64,
    pub max_ms: u64,
}

impl Tries {
    /// Whether the agent is let go after this one, proven or not.
    pub fn is_last(self) -> bool {
        self.iteration >= self.max_iterations || self.spent_ms >= self.max_ms
    }
}

/// The decision about one stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    pub code: Reason,
    pub next: Next,
}

/// The agent after the ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It stops, as agents do of which nothing is asked.
    Passes,
    /// It stops; if it is called again, its count begins anew.
    LetGo,
    /// It stops, and what was counted is removed.
    Forgotten,
    SentBack,
}

/// Rules on one stop of a subagent.
pub fn judge(e: Evidence<'_>) -> Ruling {
    let ruling = |code, next| Ruling { code, next };
    match e.asked {
        // Taken away while the agent worked, perhaps by the agent itself: it is told that the work is unverified.
        Asked::Nothing | Asked::Unreadable | Asked::SomethingElse if e.was_sent_back => ruling(Reason::VERIFY_GONE, Next::Forgotten),
        // S3-1: other agents pass at once.
        Asked::Nothing => ruling(Reason::EVENT_HEARD, Next::Passes),
        // S3-2: broken settings are a warning, and no commands.
        Asked::Unreadable => ruling(Reason::VERIFY_BROKEN, Next::Passes),
        Asked::SomethingElse => ruling(Reason::VERIFY_GONE, Next::Passes),
        // Only a person can change that: an agent that is sent back could never leave.
        Asked::Untrusted => ruling(Reason::VERIFY_UNTRUSTED, Next::Passes),
        // S3-5, before the limits: a proof in the last iteration counts.
        Asked::Proof { findings, .. } if Proof::of(findings) == Proof::Holds => ruling(Reason::VERIFY_PASSED, Next::LetGo),
        Asked::Proof { tries: Some(tries), .. } if !tries.is_last() => ruling(Reason::VERIFY_FAILED, Next::SentBack),
        // S3-4: without a count there is no telling when to give up, so this is the last iteration.
        Asked::Proof { .. } => ruling(Reason::VERIFY_UNVERIFIED, Next::LetGo),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Kind, Verdict};

    const TRIES: Tries = Tries { iteration: 1, max_iterations: 5, spent_ms: 0, max_ms: 1_800_000 };

    fn found(verdict: Verdict) -> Vec<Finding> {
        vec![Finding::new("pnpm test", Kind::Command, Verdict::Pass, ""), Finding::new("pnpm lint", Kind::Command, verdict, "")]
    }

    fn ruled(asked: Asked<'_>, was_sent_back: bool) -> (Reason, Next) {
        let ruling = judge(Evidence { asked, was_sent_back });
        (ruling.code, ruling.next)
    }

    fn measured(findings: &[Finding], tries: Option<Tries>) -> (Reason, Next) {
        ruled(Asked::Proof { findings, tries }, tries.is_some_and(|tries| tries.iteration > 1))
    }

    #[test]
    fn s3_1_only_agents_of_the_named_types_are_asked() {
        for (agent, name, is_meant) in [
            ("check", "check", true),
            ("plugin:check", "check", true),
            ("plugin:check", "plugin:check", true),
            ("check", "plugin:check", false),
            ("other:check", "plugin:check", false),
            ("checker", "check", false),
            ("Check", "check", false),
        ] {
            assert_eq!(is_of_type(agent, name), is_meant, "{agent} {name}");
        }
        assert_eq!(ruled(Asked::Nothing, false), (Reason::EVENT_HEARD, Next::Passes));
    }

    #[test]
    fn s3_2_broken_settings_and_untrusted_commands_hold_no_agent() {
        assert_eq!(ruled(Asked::Unreadable, false), (Reason::VERIFY_BROKEN, Next::Passes));
        for was_sent_back in [false, true] {
            assert_eq!(ruled(Asked::Untrusted, was_sent_back), (Reason::VERIFY_UNTRUSTED, Next::Passes));
        }
    }

    #[test]
    fn s3_3_a_command_that_could_not_be_run_is_not_a_pass() {
        for verdict in [Verdict::Fail, Verdict::Unknown, Verdict::Wait] {
            assert_eq!(measured(&found(verdict), Some(TRIES)), (Reason::VERIFY_FAILED, Next::SentBack), "{verdict:?}");
        }
    }

    #[test]
    fn s3_4_an_agent_that_cannot_be_counted_is_let_go_as_unverified() {
        assert_eq!(measured(&found(Verdict::Fail), None), (Reason::VERIFY_UNVERIFIED, Next::LetGo));
        assert_eq!(measured(&found(Verdict::Pass), None), (Reason::VERIFY_PASSED, Next::LetGo));
    }

    #[test]
    fn s3_5_it_is_sent_back_until_it_holds_or_the_limit_is_reached() {
        let (passes, fails) = (found(Verdict::Pass), found(Verdict::Fail));
        for (iteration, spent_ms, is_last) in
            [(1, 0, false), (4, 1_799_999, false), (5, 0, true), (1, 1_800_000, true), (9, 9_999_999, true)]
        {
            let tries = Tries { iteration, spent_ms, ..TRIES };
            let unproven = if is_last { (Reason::VERIFY_UNVERIFIED, Next::LetGo) } else { (Reason::VERIFY_FAILED, Next::SentBack) };
            assert_eq!(tries.is_last(), is_last, "{tries:?}");
            assert_eq!(measured(&fails, Some(tries)), unproven, "{tries:?}");
            assert_eq!(measured(&passes, Some(tries)), (Reason::VERIFY_PASSED, Next::LetGo), "the last one is still verified: {tries:?}");
        }
    }

    #[test]
    fn s3_5_what_asked_for_the_proof_cannot_be_taken_away() {
        for asked in [Asked::Nothing, Asked::Unreadable, Asked::SomethingElse] {
            assert_eq!(ruled(asked, true), (Reason::VERIFY_GONE, Next::Forgotten), "{asked:?}");
        }
        assert_eq!(ruled(Asked::SomethingElse, false), (Reason::VERIFY_GONE, Next::Passes));
    }

    #[test]
    fn s3_6_markers_are_a_proof_like_any_other() {
        let markers = |verdict| [Finding::new("markers", Kind::Markers, verdict, "")];
        assert_eq!(measured(&markers(Verdict::Fail), Some(TRIES)), (Reason::VERIFY_FAILED, Next::SentBack));
        assert_eq!(measured(&markers(Verdict::Pass), Some(TRIES)), (Reason::VERIFY_PASSED, Next::LetGo));
    }
}
