//! Errors of the model's service that ended a turn of an interactive session, and what follows for its loop. Only fields decide, never words.

use ralph_core::{judge::session_outcome::Trouble, text::time::Millis};

use crate::hosts::claude::transcript::ApiError;

/// Pauses before the session is woken, by the failures in a row before: the client has tried for minutes by itself.
const PAUSES_MIN: [Millis; 6] = [1, 2, 5, 10, 20, 30];

/// The meaning of the client's word for an error, with the details of its transcript. `None`: neither waiting nor a pause would help.
pub(crate) fn trouble(error: &str, seen: Option<&ApiError>) -> Option<Trouble> {
    let status = seen.and_then(|seen| seen.status);
    let by_status = |status| match status {
        Some(402) => Some(Trouble::Billing { status }),
        Some(429 | 500..) => Some(Trouble::Service { status }),
        _ => None,
    };
    match error {
        "rate_limit" => match seen.and_then(|seen| seen.resets_at) {
            Some(until) => Some(Trouble::Limit { until: Some(until), quota: seen.and_then(|seen| seen.quota.clone()) }),
            None => Some(Trouble::Service { status: status.or(Some(429)) }),
        },
        "server_error" | "overloaded" => Some(Trouble::Service { status }),
        "authentication_failed" => Some(Trouble::SignIn { status }),
        "billing_error" => Some(Trouble::Billing { status }),
        "model_not_found" => Some(Trouble::Model { name: None }),
        "invalid_request" => Some(Trouble::Refused { status, too_long: false }),
        _ => by_status(status),
    }
}

/// The thing to wait for, in words; `None`: a person is needed.
pub(crate) fn waits_for(trouble: &Trouble) -> Option<String> {
    match trouble {
        Trouble::Limit { quota, .. } => Some(match quota.as_deref() {
            Some("five_hour") => "the account's 5-hour limit".to_owned(),
            Some(quota) if quota.starts_with("seven_day") => "the account's weekly limit".to_owned(),
            _ => "the account's limit".to_owned(),
        }),
        Trouble::Service { status: Some(429) } => Some("the rate limit".to_owned()),
        Trouble::Service { status: Some(status) } => Some(format!("the model's service (status {status})")),
        Trouble::Service { status: None } => Some("the model's service".to_owned()),
        _ => None,
    }
}

/// When to try again. A time that has passed says nothing.
pub(crate) fn until(trouble: &Trouble, failures_before: u64, now: Millis, haste: Millis) -> Millis {
    let reset = if let Trouble::Limit { until, .. } = trouble { until.filter(|until| *until > now) } else { None };
    let at = usize::try_from(failures_before).unwrap_or(usize::MAX).min(PAUSES_MIN.len() - 1);
    reset.unwrap_or_else(|| now.saturating_add(PAUSES_MIN[at] * 60_000 / haste.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(status: u16, resets_at: Option<Millis>) -> ApiError {
        ApiError { error: "rate_limit".to_owned(), status: Some(status), resets_at, quota: resets_at.map(|_| "five_hour".to_owned()) }
    }

    #[test]
    fn s1_4_only_what_passes_by_itself_is_waited_for() {
        let waits = |error: &str, seen: Option<&ApiError>| trouble(error, seen).and_then(|trouble| waits_for(&trouble));
        assert_eq!(waits("rate_limit", None).as_deref(), Some("the rate limit"));
        assert_eq!(waits("rate_limit", Some(&seen(429, Some(9)))).as_deref(), Some("the account's 5-hour limit"));
        assert_eq!(waits("server_error", Some(&seen(529, None))).as_deref(), Some("the model's service (status 529)"));
        assert_eq!(waits("server_error", None).as_deref(), Some("the model's service"));
        assert_eq!(waits("unknown", Some(&seen(503, None))).as_deref(), Some("the model's service (status 503)"));
        for person in ["authentication_failed", "billing_error", "model_not_found", "invalid_request"] {
            assert_eq!(waits(person, None), None, "{person}");
            assert!(trouble(person, None).is_some(), "{person}");
        }
        assert_eq!(trouble("unknown", Some(&seen(402, None))), Some(Trouble::Billing { status: Some(402) }));
        for other in ["unknown", "max_output_tokens", "", "something new"] {
            assert_eq!(trouble(other, None), None, "{other}");
        }
        assert_eq!(trouble("unknown", Some(&seen(400, None))), None);
    }

    #[test]
    fn s1_4_the_pauses_grow_and_a_reset_that_is_told_counts() {
        let service = Trouble::Service { status: None };
        let minutes = |failures| until(&service, failures, 0, 1) / 60_000;
        assert_eq!([0, 1, 2, 3, 4, 5, 6, u64::MAX].map(minutes), [1, 2, 5, 10, 20, 30, 30, 30]);
        let limit = |until| Trouble::Limit { until, quota: None };
        assert_eq!(until(&limit(Some(500)), 3, 100, 1), 500);
        assert_eq!(until(&limit(Some(50)), 0, 100, 1), 60_100, "long past");
        assert_eq!(until(&service, 0, 0, 30), 2_000);
    }
}
