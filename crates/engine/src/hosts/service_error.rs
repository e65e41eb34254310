//! An error in an agent's own words, and its meaning. Most agents hand on what their model's service said as a sentence; only a few have a status beside it.
//!
//! Only an agent's own error event is read here, never what the model wrote: a project about rate limits is full of the words.

use jiff::{Timestamp, civil, tz::TimeZone};
use ralph_core::{judge::session_outcome::Trouble, text::time::Millis};

use super::{Host, api_error};

/// Words of a sentence, in lower case, and what they mean. The first that fits counts: an account that is used up is often told as too many requests.
const WORDS: &[(&[&str], Meaning)] = &[
    // Copilot's codes for what an account may use: `user_weekly_rate_limited`.
    (&["usage limit", "daily quota", "weekly limit", "session limit", "quota will reset", "usage_limit", "_rate_limited"], Meaning::Limit),
    (&["current quota", "insufficient_quota", "billing", "credit balance", "out of credits", "quota exceeded"], Meaning::Billing),
    (
        &[
            "context length",
            "context_length",
            "context window",
            "context limit",
            "prompt is too long",
            "contextoverflow",
            "maximum prompt length",
            "maximum number of tokens",
        ],
        Meaning::TooLong,
    ),
    (
        &[
            "api key not valid",
            "invalid_api_key",
            "incorrect api key",
            "unauthorized",
            "not logged in",
            "please log in",
            "authentication",
            "api_key_invalid",
            "sign in",
        ],
        Meaning::SignIn,
    ),
    (&["model_not_found", "model not found", "does not exist or you do not have access", "unknown model"], Meaning::Model),
    (&["rate limit", "rate_limit", "too many requests", "too many tokens"], Meaning::TooMany),
    (
        &[
            "high demand",
            "at capacity",
            "overloaded",
            "server had an error",
            "unavailable",
            "connection",
            "timed out",
            "fetch failed",
            "stream disconnected",
        ],
        Meaning::Service,
    ),
];

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Limit,
    Billing,
    TooLong,
    SignIn,
    Model,
    TooMany,
    Service,
}

/// What an error means: by its status where there is one, by its words otherwise. `None`: neither says anything.
pub(super) fn trouble(status: Option<u16>, message: &str) -> Option<Trouble> {
    let words = message.to_lowercase();
    let status = status.or_else(|| status_in(&words));
    let meaning = WORDS.iter().find(|(all, _)| all.iter().any(|word| words.contains(word))).map(|(_, meaning)| *meaning);
    Some(match (meaning, status) {
        (Some(Meaning::Limit), _) => {
            Trouble::Limit { until: until_in(message), quota: words.contains("weekly").then(|| "seven_day".to_owned()) }
        }
        (Some(Meaning::Billing), _) | (_, Some(402)) => Trouble::Billing { status },
        (Some(Meaning::TooLong), _) => Trouble::Refused { status, too_long: true },
        (Some(Meaning::SignIn), _) | (_, Some(401 | 403)) => Trouble::SignIn { status },
        (Some(Meaning::Model), _) => Trouble::Model { name: None },
        (Some(Meaning::TooMany), None) => Trouble::Service { status: Some(429) },
        (_, Some(429 | 500..)) | (Some(Meaning::Service), None) => Trouble::Service { status },
        (_, Some(_)) => Trouble::Refused { status, too_long: false },
        (None, None) => return None,
    })
}

/// Why a turn in another agent than Claude Code failed. What the service said tells more than the agent's own word: Grok calls a key that does not count a
/// `server_error`, and a quota that is used up a `rate_limit`.
pub(crate) fn of_turn(said: &str, word: &str) -> Option<Trouble> {
    trouble(None, said).or_else(|| api_error::trouble(word, None))
}

/// Advice for the person about an error that does not pass by itself.
pub(crate) fn remedy(trouble: &Trouble, host: &Host) -> String {
    let then_resume = |what: &str| format!("{what}, then /ralph-resume");
    match trouble {
        Trouble::SignIn { .. } if host.is_claude() => then_resume("/login"),
        Trouble::SignIn { .. } => then_resume(&format!("To go on, {}", host.advice.sign_in)),
        Trouble::Billing { .. } => then_resume("Add credit to the account"),
        Trouble::Model { .. } => then_resume("/model chooses another one"),
        _ if host.is_claude() => {
            "`ralph run --continue` goes on in fresh sessions; in this one, /compact and then /ralph-resume".to_owned()
        }
        _ => "`ralph run --continue` goes on in fresh sessions".to_owned(),
    }
}

/// A status of an error as a word of its own: `401 Incorrect…`, `(HTTP 401)`, `status: 429`.
fn status_in(words: &str) -> Option<u16> {
    let mut numbers = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != ':' && c != '/');
    let status = |word: &str| word.trim_matches([':', '.']).parse().ok().filter(|status| (400..600).contains(status));
    numbers.find_map(status)
}

/// When a limit ends, as Codex says it: `try again at Jan 15th, 2027 8:00 AM`, in local time, or `try again at 8:00 AM`.
fn until_in(message: &str) -> Option<Millis> {
    let zone = TimeZone::system();
    let rest = message.split_once("try again at ")?.1;
    let words: Vec<&str> = rest.split_whitespace().map(|word| word.trim_end_matches(['.', ','])).take(5).collect();
    let time = |words: &[&str]| civil::Time::strptime("%I:%M %p", words.get(..2)?.join(" ")).ok();
    let at = match &words[..] {
        [month, day, year, clock @ ..] if time(clock).is_some() => {
            let day = day.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let date = civil::Date::strptime("%b %d %Y", format!("{month} {day} {year}")).ok()?;
            date.to_datetime(time(clock)?).to_zoned(zone).ok()?
        }
        clock => {
            let now = Timestamp::now().to_zoned(zone);
            let today = now.with().time(time(clock)?).build().ok()?;
            if today < now { today.tomorrow().ok()?.with().time(time(clock)?).build().ok()? } else { today }
        }
    };
    Some(at.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sentences of the real clients.
    #[test]
    fn h5_an_error_means_what_its_status_or_its_words_say() {
        let sign_in = |status| Some(Trouble::SignIn { status });
        let service = |status| Some(Trouble::Service { status });
        let refused = |status, too_long| Some(Trouble::Refused { status, too_long });
        for (message, wanted) in [
            (
                "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:40123/v1/responses",
                sign_in(Some(401)),
            ),
            ("exceeded retry limit, last status: 429 Too Many Requests", service(Some(429))),
            ("Quota exceeded. Check your plan and billing details.", Some(Trouble::Billing { status: None })),
            ("Selected model is at capacity. Please try a different model.", service(None)),
            ("We’re currently experiencing high demand, which may cause temporary errors.", service(None)),
            (
                r#"{"error": {"message": "This model's maximum context length is 1000 tokens.", "code": "context_length_exceeded"}}"#,
                refused(None, true),
            ),
            ("The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", refused(None, true)),
            ("429 Too many tokens, please wait before trying again.", service(Some(429))),
            (r#"[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]"#, sign_in(Some(400))),
            ("[API Error: You have exhausted your daily quota on this model.]", Some(Trouble::Limit { until: None, quota: None })),
            (
                "429 You exceeded your current quota, please check your plan and billing details.",
                Some(Trouble::Billing { status: Some(429) }),
            ),
            ("[API Error: 500 The server had an error]", service(Some(500))),
            ("requests: Rate limit reached for requests", service(Some(429))),
            ("API error (status 400 Bad Request): something else", refused(Some(400), false)),
            ("Exec failed", None),
        ] {
            assert_eq!(trouble(None, message), wanted, "{message}");
        }
        assert_eq!(trouble(Some(503), "no words"), service(Some(503)));
    }

    #[test]
    fn h5_a_limit_says_when_it_ends() {
        let until = |text: &str| until_in(&format!("You’ve hit your usage limit. Upgrade or try again at {text}."));
        let zoned = |at: Millis| Timestamp::from_millisecond(at).unwrap().to_zoned(TimeZone::system());
        let at = zoned(until("Jan 15th, 2027 8:00 AM").unwrap());
        assert_eq!((at.year(), at.month(), at.day(), at.hour(), at.minute()), (2027, 1, 15, 8, 0));
        let at = zoned(until("3:45 PM").unwrap());
        assert_eq!((at.hour(), at.minute()), (15, 45));
        assert!(at.timestamp() > Timestamp::now(), "the next one");
        for odd in ["", "soon", "Jan 99th, 2027 8:00 AM", "25:00 AM"] {
            assert_eq!(until(odd), None, "{odd}");
        }
    }
}
