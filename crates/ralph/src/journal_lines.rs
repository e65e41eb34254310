//! Journal records as lines that people read, and words that they copy into a shell.

use ralph_core::{
    gate::Finding,
    journal::{Actor, Event, Record},
    judge::{
        Decision, Evidence, Next, Ruling,
        session_outcome::{Then, Work},
    },
    money,
    text::{
        clean, count, of_limit,
        time::{self, in_words},
    },
};

use jiff::tz::TimeZone;
use ralph_engine::{sys::clock, view::View};

use crate::agent_names;

pub(crate) use ralph_core::text::quoted;

/// One record as one line, without its time. `who` names the agent that stopped, where that is a question.
pub(crate) fn of_event(record: &Record, who: Option<&str>) -> String {
    clean(&match &record.event {
        Event::Started { file, by: Actor::CommandLine, prompt } => format!("started ({file}): {prompt}"),
        Event::Started { file, by, prompt } => format!("started {} ({file}): {prompt}", by_whom(*by)),
        Event::Adopted => {
            let agent = record.state.host.as_deref().map(|host| format!(" of {}", agent_names::title(host))).unwrap_or_default();
            format!("taken by session {}{agent}", short(record.session.as_deref()))
        }
        Event::Rebound { from } => {
            format!("goes on in session {} after /clear (was {})", short(record.session.as_deref()), short(Some(from)))
        }
        Event::Stop { evidence, ruling, work, .. } => {
            let used: Vec<String> = who.map(str::to_owned).into_iter().chain(work.as_deref().map(of_work)).collect();
            let used = if used.is_empty() { String::new() } else { format!(" ({})", used.join(", ")) };
            format!("stop {:<4} {}{used}", record.state.stops, of_ruling(evidence, ruling))
        }
        Event::Taken { pid, from, unfinished, unwritten } => {
            let from = from.as_deref().map(|s| format!(" from session {}", short(Some(s)))).unwrap_or_default();
            let unfinished = unfinished.map(|n| format!("; iteration {n} was begun and not ended")).unwrap_or_default();
            let unwritten = unwritten.map(|n| format!("; iteration {n} was decided, and that was not written down")).unwrap_or_default();
            // A run that starts its own loop takes over from no one.
            let how = if from.is_empty() { "runs in" } else { "taken over by" };
            format!("{how} `ralph run` (pid {pid}){from}{unfinished}{unwritten}")
        }
        Event::Began { iteration, attempt, agent, model, item, notes, .. } => {
            let again = if *attempt > 1 { format!(", try {attempt}") } else { String::new() };
            let model = model.as_deref().map(|m| format!(", model {m}")).unwrap_or_default();
            let item = item.as_deref().map(|i| format!(", item {i}")).unwrap_or_default();
            let notes: Vec<String> = notes.iter().map(u64::to_string).collect();
            let notes = if notes.is_empty() { String::new() } else { format!(", with note {}", notes.join(", ")) };
            format!("iteration {iteration}{again} begins: {agent}, session {}{model}{item}{notes}", short(record.session.as_deref()))
        }
        Event::Broke { iteration, outcome, then, work, .. } => {
            format!("iteration {iteration}: {}; {} ({})", outcome.words(), of_then(*then), of_work(work))
        }
        Event::Left { why } => format!("`ralph run` ended: {why}"),
        Event::Steered { by, id, note } if note.is_empty() => format!("note {id} taken back {}", by_whom(*by)),
        Event::Steered { by, id, note } => format!("note {id} {}: {note}", by_whom(*by)),
        Event::Snapshot { name, commit } => format!("files kept as {name} ({})", short(Some(commit))),
        Event::Checking { gate, command, limit_ms } => {
            let command = if gate == command { String::new() } else { format!(" ({command})") };
            format!("runs the gate \"{gate}\"{command}, for {} at most", in_words(*limit_ms))
        }
        Event::Waiting { what } => format!("waits for {what}"),
        Event::Measured { findings } => format!("gates measured by hand: {}", in_short(findings)),
        Event::Accepted { suspicions } => format!("a person accepted what the guard suspected: {}", suspicions.join("; ")),
        Event::Paused { by, why } if why.is_empty() => format!("paused {}", by_whom(*by)),
        Event::Paused { by, why } => format!("paused {}: {why}", by_whom(*by)),
        Event::Resumed { by, iteration } => format!("resumed {} at iteration {iteration}", by_whom(*by)),
        Event::Cancelled { by, iteration } => format!("cancelled {} at iteration {iteration}", by_whom(*by)),
        Event::Corrupt { problem } => format!("the loop file could not be read: {problem}"),
        Event::Heard { event, detail } => format!("heard {event}{}", detail.as_deref().map(|d| format!(" ({d})")).unwrap_or_default()),
        Event::Edited { changes, refused } if refused.is_empty() => format!("the loop file was edited: {}", changes.join(", ")),
        Event::Edited { changes, refused } => {
            let counting = if changes.is_empty() { String::new() } else { format!("; these count: {}", changes.join(", ")) };
            format!("an edit of the loop file by the agent did not count: {}{counting}", refused.join(", "))
        }
        Event::Misfit { what } => format!("the journal was changed by something other than ralph: {what}"),
        Event::Error { what } => format!("error: {what}"),
        Event::Unknown => "something that a newer ralph wrote".to_owned(),
    })
}

/// The use of a session: `3 tools, 12k tokens, $0.12, 2 min`.
pub(crate) fn of_work(work: &Work) -> String {
    let mut parts = Vec::new();
    // Unknown for a plain program.
    if work.tool_calls > 0 || work.tokens.total() > 0 {
        parts.push(count(work.tool_calls, "tool", "tools"));
    }
    if work.tokens.total() > 0 {
        parts.push(format!("{} tokens", in_thousands(work.tokens.total())));
    }
    if work.usd_micros > 0 {
        parts.push(format!("{}{}", if work.estimated { "about " } else { "" }, money::shown(work.usd_micros)));
    } else if work.cost_unknown && work.tokens.total() > 0 {
        parts.push("cost unknown".to_owned());
    }
    parts.push(in_words(work.took_ms));
    parts.join(", ")
}

/// `812`, `12k`, `3.4M`, rounded.
pub(crate) fn in_thousands(n: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = n.saturating_add(unit / 20) / (unit / 10);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match n {
        0..1_000 => n.to_string(),
        1_000..9_950 => format!("{}k", tenths(1_000)),
        9_950..999_500 => format!("{}k", (n + 500) / 1_000),
        _ => format!("{}M", tenths(1_000_000)),
    }
}

pub(crate) fn of_then(then: Then) -> String {
    match then {
        Then::Judge => "it is judged".to_owned(),
        Then::Again { at } => format!("again at {}", when(&time::format(at))),
        Then::Park { until } => format!("parked until {}", when(&time::format(until))),
        Then::Pause => "a person is asked".to_owned(),
        Then::Leave => "the run ends".to_owned(),
    }
}

/// `tests pass, lint fail`.
fn in_short(findings: &[Finding]) -> String {
    findings.iter().map(|f| format!("{} {}", f.gate, f.verdict.as_str())).collect::<Vec<_>>().join(", ")
}

/// A ruling in one line: what, why, and where the loop is then.
pub(crate) fn of_ruling(e: &Evidence, ruling: &Ruling) -> String {
    format!("{:<18} {}", ruling.code.as_str(), follows(e, ruling))
}

/// What follows from a ruling, without its reason.
pub(crate) fn follows(e: &Evidence, ruling: &Ruling) -> String {
    match (ruling.decision, ruling.next) {
        (Decision::Block, Next::GoesOn { iteration }) => format!("sent back to iteration {}", of_limit(iteration, e.max_iterations)),
        (_, Next::Ends { ending }) => format!("allowed, the loop is {}", ending.as_str()),
        (_, Next::Pauses) => "allowed, the loop is paused".to_owned(),
        (_, Next::Parks) => "allowed, the loop is parked".to_owned(),
        _ => "allowed, the loop stays as it is".to_owned(),
    }
}

/// When a record was written, as people read it: `2026-11-15 10:30:00 CET`.
pub(crate) fn when(at: &str) -> String {
    time::parse(at).map_or_else(|| clean(at), |at| time::in_zone(at, zone()))
}

/// When something happened to a loop last; empty if that is not known.
pub(crate) fn last_event(v: &View) -> String {
    v.last_event_at.as_deref().map(when).unwrap_or_default()
}

/// The person's zone. Tests of the program's parts have none.
pub(crate) fn zone() -> &'static TimeZone {
    static UTC: TimeZone = TimeZone::UTC;
    if cfg!(test) { &UTC } else { clock::zone() }
}

pub(crate) fn short(id: Option<&str>) -> &str {
    let id = id.unwrap_or("none");
    id.get(..8).unwrap_or(id)
}

/// A stranger's text with everything spelled out that a terminal would not show, or would show in another place: control characters, changes of the
/// reading direction, characters without a width.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '\'' | '"' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

fn by_whom(actor: Actor) -> &'static str {
    match actor {
        Actor::CommandLine => "by hand",
        Actor::Session => "in the session",
        Actor::Ralph => "by ralph",
        Actor::File => "by a file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u7_tokens_are_rounded_and_not_cut() {
        let shown = [999, 1_260, 3_780, 9_949, 9_950, 41_500, 999_499, 999_500, 1_260_000, u64::MAX].map(in_thousands);
        assert_eq!(shown[..9], ["999", "1.3k", "3.8k", "9.9k", "10k", "42k", "999k", "1.0M", "1.3M"]);
        assert!(shown[9].ends_with('M'));
    }
}
