//! Which records of a journal are wanted.

use ralph_core::{
    journal::{Event, Record},
    judge::Code,
    text::{
        nearest,
        time::{self, Millis},
    },
};

use crate::exit::Failure;

pub(super) struct Filter {
    reasons: Vec<String>,
    since: Option<Millis>,
}

impl Filter {
    /// A reason that no ruling ever has is a mistake, and would show nothing.
    pub(super) fn of(reasons: &[String], since: Option<Millis>) -> Result<Self, Failure> {
        let codes = || Code::ALL.iter().map(|code| code.as_str());
        match reasons.iter().find(|reason| !codes().any(|code| is_of(code, reason))) {
            Some(unknown) => Err(Failure::usage(no_such(unknown))),
            None => Ok(Filter { reasons: reasons.to_vec(), since }),
        }
    }

    /// A line that cannot be read is one of nothing that can be asked for.
    pub(super) fn takes(&self, record: Option<&Record>) -> bool {
        let Some(record) = record else { return self.reasons.is_empty() && self.since.is_none() };
        let is_late = self.since.is_none_or(|since| time::parse(&record.at).is_some_and(|at| at >= since));
        let is_asked_for = match &record.event {
            _ if self.reasons.is_empty() => true,
            Event::Stop { ruling, .. } => self.reasons.iter().any(|reason| is_of(ruling.code.as_str(), reason)),
            _ => false,
        };
        is_late && is_asked_for
    }
}

/// Whether a code is this one, or one of its family: `gate.failed` is one of `gate`.
fn is_of(code: &str, reason: &str) -> bool {
    let reason = reason.strip_suffix(".*").unwrap_or(reason);
    code.strip_prefix(reason).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn no_such(reason: &str) -> String {
    let codes = || Code::ALL.iter().map(|code| code.as_str());
    let family = |code: &'static str| code.split('.').next().unwrap_or(code);
    let near = nearest(reason, codes()).or_else(|| nearest(reason, codes().map(family)));
    let meant = near.map_or_else(|| ".".to_owned(), |near| format!(", did you mean {near}?"));
    // Those of the same family, or all.
    let within: Vec<&str> = codes().filter(|code| family(code) == reason.split('.').next().unwrap_or_default()).collect();
    let there = if within.is_empty() { codes().collect() } else { within };
    format!("no decision has the reason \"{reason}\"{meant} There are: {}", there.join(", "))
}
