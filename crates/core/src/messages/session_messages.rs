//! What became of a session: how it ended, and what a person can do about it.

use crate::{
    judge::session_outcome::{Cut, Outcome, Trouble},
    text::opening,
};

impl Outcome {
    pub fn words(&self) -> String {
        match self {
            Outcome::Stopped => "the agent stopped".to_owned(),
            Outcome::Cut { by: Cut::Silence } => "nothing was heard of the agent any more".to_owned(),
            Outcome::Cut { by: Cut::Time } => "the iteration took too long".to_owned(),
            Outcome::Cut { by: Cut::Money } => "the money is spent".to_owned(),
            Outcome::Cut { by: Cut::Turns } => "the agent took as many turns as it may".to_owned(),
            Outcome::Failed { trouble } => trouble.words(),
            Outcome::Interrupted => "interrupted".to_owned(),
        }
    }
}

impl Trouble {
    pub fn words(&self) -> String {
        let status = |status: &Option<u16>| status.map(|s| format!(" (status {s})")).unwrap_or_default();
        match self {
            Trouble::Limit { quota, .. } => match quota.as_deref() {
                Some("five_hour") => "the 5-hour limit of the account is used up".to_owned(),
                Some(quota) if quota.starts_with("seven_day") => "the weekly limit of the account is used up".to_owned(),
                _ => "the account's limit is used up".to_owned(),
            },
            Trouble::Service { status: None } => "the model's service cannot be reached".to_owned(),
            Trouble::Service { status: Some(529) } => "the model's service is overloaded (status 529)".to_owned(),
            Trouble::Service { status: Some(429) } => "the model's service limits the rate of requests (status 429)".to_owned(),
            Trouble::Service { status: s } => format!("the model's service failed{}", status(s)),
            Trouble::SignIn { status: s } => format!("the agent is not signed in{}", status(s)),
            Trouble::Billing { status: s } => format!("the account has no credit left{}", status(s)),
            Trouble::Model { name: Some(name) } => format!("the model \"{}\" is not available to this account", opening(name, 60)),
            Trouble::Model { name: None } => "the model is not available to this account".to_owned(),
            Trouble::Refused { status: s, too_long: true } => format!("the context is too long for the model{}", status(s)),
            Trouble::Refused { status: s, too_long: false } => format!("the model's service rejected the request{}", status(s)),
            Trouble::Crash { code, signal } => match (code, signal) {
                (_, Some(signal)) => format!("the agent was ended by signal {signal}"),
                (None | Some(0), None) => "the agent ended without a result".to_owned(),
                (Some(code), None) => format!("the agent ended with exit code {code} and without a result"),
            },
            Trouble::CannotStart { why } => format!("the agent cannot be started: {why}"),
        }
    }

    /// The action that a person can take.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Trouble::SignIn { .. } => Some("start the agent and sign in, then `ralph run --continue`"),
            Trouble::Billing { .. } => Some("add credit to the account, then `ralph run --continue`"),
            Trouble::Model { .. } => Some("choose another one with `ralph run --continue --model M`"),
            Trouble::Refused { too_long: true, .. } => Some(
                "a new session begins with the loop's prompt and the agent's own instructions and tools, and the model does not take them; shorten them, \
                 or choose a model with a larger context with `ralph run --continue --model M`",
            ),
            Trouble::CannotStart { .. } => Some("install it or put it on the PATH (`ralph doctor` looks), then `ralph run --continue`"),
            _ => None,
        }
    }
}
