//! The outcome of one session that ralph started, and the next step: judge the iteration, try again, wait, or ask a person.
//!
//! Only structured fields decide: what the client's result says, a status, a time, an exit code. What the model wrote is never looked at for it: a project
//! about rate limits is full of the words.

use serde::{Deserialize, Serialize};

use crate::{judge::brakes::ToolUse, money::Micros, text::time::Millis};

/// Usage of one session, as its agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Work {
    /// The model that did most of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub turns: u64,
    pub tool_calls: u64,
    #[serde(flatten)]
    pub tokens: Tokens,
    pub usd_micros: Micros,
    /// What it cost is not known: the model's price is in no list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
    /// The agent's own id of the session, where that is not the journal's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// The session did not live to report it: this is an estimate, from its transcript.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    pub took_ms: u64,
    /// How full the context was at its fullest, in tokens, and how large it is; 0: not known.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub context: u64,
    #[serde(skip_serializing_if = "crate::is_default")]
    pub context_window: u64,
    /// Tool calls that were denied because no person was there to allow them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Denied>,
}

/// Tokens of all requests of a session, its subagents and the client's own included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_written: u64,
}

impl Tokens {
    pub fn total(self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_written].into_iter().fold(0, u64::saturating_add)
    }

    #[must_use]
    pub fn plus(self, other: Tokens) -> Self {
        Tokens {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_written: self.cache_written.saturating_add(other.cache_written),
        }
    }

    #[must_use]
    pub fn minus(self, other: Tokens) -> Self {
        Tokens {
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_written: self.cache_written.saturating_sub(other.cache_written),
        }
    }
}

/// A tool call that was denied because no person could be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denied {
    pub tool: String,
    /// Its subject, in a few words: the command, the file.
    pub what: String,
    /// The permission rule that would have allowed it.
    pub rule: String,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// The agent stopped by itself: there is something to judge.
    Stopped,
    /// It was ended in the middle of its work.
    Cut { by: Cut },
    /// It never came to a stop of its own.
    Failed { trouble: Trouble },
    /// A person wants the run to end now.
    Interrupted,
}

/// The cause that ended a session in the middle of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// Nothing was heard of it for too long.
    Silence,
    /// One iteration may not take longer.
    Time,
    /// The loop's money was spent: the client ended it.
    Money,
    /// As many turns as the client was told.
    Turns,
}

/// Why a session never came to a stop of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "trouble")]
pub enum Trouble {
    /// The account's quota is used up.
    Limit {
        /// When it is there again, where that is known.
        until: Option<Millis>,
        /// Which quota, as the service calls it: `five_hour`, `seven_day`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quota: Option<String>,
    },
    /// The service is overloaded, failing or out of reach.
    Service { status: Option<u16> },
    /// The agent is not signed in, or its user may not do this.
    SignIn { status: Option<u16> },
    /// The account has no credit left.
    Billing { status: Option<u16> },
    /// The model does not exist, or not for this account.
    Model { name: Option<String> },
    /// The service rejects the request, however often it is sent.
    Refused {
        status: Option<u16>,
        /// Its context is longer than the model takes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_long: bool,
    },
    /// The agent's program ended without a result.
    Crash { code: Option<i32>, signal: Option<i32> },
    /// The agent's program is not there, or cannot be run.
    CannotStart { why: String },
}

/// How often in a row it went wrong before, in this iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Failures {
    /// Of the agent's own: crashes, refused requests.
    pub own: u64,
    /// Of the service.
    pub service: u64,
}

impl Failures {
    /// The count after one more.
    #[must_use]
    pub fn after(self, trouble: &Trouble) -> Self {
        match trouble {
            Trouble::Service { .. } | Trouble::Limit { .. } => Failures { service: self.service.saturating_add(1), ..self },
            _ => Failures { own: self.own.saturating_add(1), ..self },
        }
    }
}

/// The next step after a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "then")]
pub enum Then {
    /// The iteration is over: the judge rules on it.
    Judge,
    /// The same iteration once more, not before that moment.
    Again { at: Millis },
    /// Nothing is to be done until then; the same iteration goes on.
    Park { until: Millis },
    /// Only a person can go on.
    Pause,
    /// The run ends; the loop stays where it is.
    Leave,
}

/// The first pause before another try of the agent's own, of the service's, and the longest.
const AFTER_A_CRASH_MS: u64 = 1_000;
const AFTER_AN_OVERLOAD_MS: u64 = 5_000;
const LONGEST_PAUSE_MS: u64 = 10 * 60_000;

/// A limit that does not say when it ends is asked again after this; a limit that does is asked a little later, because clocks differ.
const UNKNOWN_LIMIT_MS: Millis = 10 * 60_000;
const AFTER_RESET_MS: Millis = 2_000;

/// No quota takes longer than a week to come back: a later moment is a mistake.
const LONGEST_LIMIT_MS: Millis = 8 * 24 * 3_600_000;

/// Whether a session did anything that is worth a ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Did {
    pub tools: ToolUse,
    /// The commit or the files are not what they were before.
    pub changed: bool,
}

impl Then {
    /// Chooses the next step after a session. `before` counts the failures of this iteration until now; `retries` says how many crashes in a row are tolerated.
    /// `jitter` is between 0 and 999: sessions of several machines should not all come back at the same moment.
    pub fn after(outcome: &Outcome, did: Did, before: Failures, retries: u64, now: Millis, jitter: u64) -> Self {
        let again = |first: u64, failures: u64| Then::Again {
            at: now.saturating_add(Millis::try_from(pause_ms(first, failures, jitter)).unwrap_or(Millis::MAX)),
        };
        let own_fault = || if before.own < retries { again(AFTER_A_CRASH_MS, before.own) } else { Then::Pause };
        match outcome {
            Outcome::Interrupted => Then::Leave,
            Outcome::Stopped | Outcome::Cut { by: Cut::Money | Cut::Turns } => Then::Judge,
            // What was worked on counts. A session of which nothing was ever heard is no iteration.
            Outcome::Cut { by: Cut::Silence | Cut::Time } if did.changed || did.tools == ToolUse::Used => Then::Judge,
            Outcome::Cut { .. } => own_fault(),
            Outcome::Failed { trouble } => match trouble {
                Trouble::Limit { until: Some(until), .. } if *until <= now.saturating_add(LONGEST_LIMIT_MS) => {
                    Then::Park { until: until.saturating_add(AFTER_RESET_MS).max(now) }
                }
                Trouble::Limit { .. } => Then::Park { until: now.saturating_add(UNKNOWN_LIMIT_MS) },
                Trouble::Service { .. } => again(AFTER_AN_OVERLOAD_MS, before.service),
                // Its own work filled the context: that counts, and the next session begins with an empty one. What does not fit at the beginning never will.
                Trouble::Refused { too_long: true, .. } if did.changed || did.tools == ToolUse::Used => Then::Judge,
                Trouble::SignIn { .. }
                | Trouble::Billing { .. }
                | Trouble::Model { .. }
                | Trouble::CannotStart { .. }
                | Trouble::Refused { too_long: true, .. } => Then::Pause,
                Trouble::Refused { .. } | Trouble::Crash { .. } => own_fault(),
            },
        }
    }
}

/// Twice as long each time, give or take a quarter.
fn pause_ms(first: u64, failures: u64, jitter: u64) -> u64 {
    let doubled = first.saturating_mul(1 << failures.min(20)).min(LONGEST_PAUSE_MS);
    doubled.saturating_mul(750 + jitter.min(999) / 2) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDLE: Did = Did { tools: ToolUse::None, changed: false };
    const BUSY: Did = Did { tools: ToolUse::Used, changed: true };

    fn failed(trouble: Trouble) -> Outcome {
        Outcome::Failed { trouble }
    }

    fn ruled(outcome: &Outcome, did: Did, before: Failures) -> Then {
        Then::after(outcome, did, before, 3, 1_000_000, 500)
    }

    #[test]
    fn a_limit_is_waited_for_until_it_ends() {
        let until = |until| ruled(&failed(Trouble::Limit { until, quota: None }), BUSY, Failures::default());
        assert_eq!(until(Some(1_020_000)), Then::Park { until: 1_022_000 });
        assert_eq!(until(Some(10)), Then::Park { until: 1_000_000 }, "it is over already");
        assert_eq!(until(None), Then::Park { until: 1_600_000 });
        assert_eq!(until(Some(Millis::MAX)), Then::Park { until: 1_600_000 }, "nobody waits for ever");
    }

    #[test]
    fn pains_6_a_service_is_asked_again_for_ever_and_ever_more_rarely() {
        let at = |service| ruled(&failed(Trouble::Service { status: Some(529) }), IDLE, Failures { own: 0, service });
        assert_eq!(at(0), Then::Again { at: 1_005_000 });
        assert_eq!(at(3), Then::Again { at: 1_040_000 });
        assert_eq!(at(1_000), Then::Again { at: 1_600_000 });
    }

    #[test]
    fn what_only_a_person_can_mend_ends_the_run_at_once() {
        for trouble in [
            Trouble::SignIn { status: Some(401) },
            Trouble::Billing { status: Some(400) },
            Trouble::Model { name: None },
            Trouble::CannotStart { why: String::new() },
            Trouble::Refused { status: Some(400), too_long: true },
        ] {
            assert!(trouble.remedy().is_some());
            assert_eq!(ruled(&failed(trouble), IDLE, Failures::default()), Then::Pause);
        }
    }

    #[test]
    fn h5_a_session_that_filled_its_context_counts_and_its_like_is_not_sent_again() {
        let too_long = Trouble::Refused { status: None, too_long: true };
        assert_eq!(ruled(&failed(too_long.clone()), BUSY, Failures::default()), Then::Judge);
        assert!(too_long.words().contains("context is too long"));
        // Journals of the first versions do not say so.
        let old: Trouble = serde_json::from_str(r#"{"trouble":"refused","status":400}"#).unwrap();
        assert_eq!(old, Trouble::Refused { status: Some(400), too_long: false });
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"trouble":"refused","status":400}"#);
        assert!(matches!(ruled(&failed(old), BUSY, Failures::default()), Then::Again { .. }));
    }

    #[test]
    fn pains_13_a_crash_is_tried_again_a_bounded_number_of_times() {
        let crash = failed(Trouble::Crash { code: Some(1), signal: None });
        let mut failures = Failures::default();
        let mut tries = 0;
        while let Then::Again { .. } = ruled(&crash, IDLE, failures) {
            failures = failures.after(&Trouble::Crash { code: Some(1), signal: None });
            tries += 1;
        }
        assert_eq!(tries, 3);
        assert_eq!(ruled(&crash, IDLE, failures), Then::Pause);
    }

    #[test]
    fn pains_11_a_round_that_was_cut_off_counts_if_anything_was_done() {
        for by in [Cut::Silence, Cut::Time] {
            assert_eq!(ruled(&Outcome::Cut { by }, BUSY, Failures::default()), Then::Judge);
            assert_eq!(ruled(&Outcome::Cut { by }, Did { changed: true, ..IDLE }, Failures::default()), Then::Judge);
            assert!(matches!(ruled(&Outcome::Cut { by }, IDLE, Failures::default()), Then::Again { .. }));
        }
        assert_eq!(ruled(&Outcome::Cut { by: Cut::Money }, IDLE, Failures::default()), Then::Judge);
    }

    proptest! {
        #[test]
        fn a_pause_is_never_longer_than_the_longest(failures in any::<u64>(), jitter in any::<u64>()) {
            for first in [AFTER_A_CRASH_MS, AFTER_AN_OVERLOAD_MS] {
                prop_assert!((first / 2..=LONGEST_PAUSE_MS + LONGEST_PAUSE_MS / 4).contains(&pause_ms(first, failures, jitter)));
            }
        }
    }
}
