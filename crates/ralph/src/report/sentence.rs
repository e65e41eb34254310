//! How a loop ended and why, or where it stands, in one sentence.

use ralph_core::{
    history::History,
    messages::{self, Reader},
    report::Mood,
    text::{
        clean, of_limit, opening,
        time::{self, Millis, in_words},
    },
};
use ralph_engine::view::{Status, View};

use crate::journal_lines::when;

/// How that looks from afar.
pub(super) fn mood(view: &View) -> Mood {
    match view.status {
        Status::Complete if view.doubtful => Mood::Held,
        Status::Complete => Mood::Good,
        Status::Active | Status::Parked | Status::Waiting => Mood::Going,
        Status::Tracked | Status::Paused | Status::LeftBehind | Status::Capped | Status::Cancelled => Mood::Held,
        Status::Corrupt | Status::Failed | Status::Gone => Mood::Bad,
    }
}

/// The sentence; `until`: as far as anything is known.
pub(super) fn of(view: &View, c: &History, until: Millis) -> String {
    let iteration = of_limit(view.iteration.max(c.state.iteration), view.max_iterations);
    let spent = in_words(c.state.spent(until));
    let text = match view.status {
        Status::Complete | Status::Capped => {
            ruled(c).unwrap_or_else(|| format!("{} at iteration {iteration}, after {spent}.", view.status.words()))
        }
        Status::Cancelled => format!("Cancelled by a person at iteration {iteration}, after {spent}."),
        Status::Failed => format!("Failed at iteration {iteration}: {}.", last_trouble(c)),
        Status::Gone => format!(
            "No ending was written down: its file is gone since iteration {iteration}. It was removed, or ralph was killed at that moment."
        ),
        Status::Corrupt => format!("No agent works on it: its file cannot be read ({}).", view.problem.as_deref().unwrap_or("unknown")),
        Status::Paused => paused(view, c, &iteration),
        Status::LeftBehind => {
            let who = if view.by_run { "its `ralph run` ended or was killed" } else { "its session has ended" };
            let why = view.why.as_deref().map(|why| format!(" ({})", why.trim_end_matches('.'))).unwrap_or_default();
            format!("Left behind at iteration {iteration} after {spent}: {who}{why}, and no agent works on it.")
        }
        Status::Tracked => {
            format!("Not begun: {}.", view.why.as_deref().unwrap_or("it came with the repository, and does not start by itself"))
        }
        Status::Waiting => format!("Waiting for a session: no agent works on it yet (iteration {iteration})."),
        Status::Parked => parked(view, c, &iteration),
        Status::Active => active(view, c, &iteration, &spent),
    };
    clean(&capitalised(&text))
}

/// The message to the person about the stop that ended or paused it.
fn ruled(c: &History) -> Option<String> {
    c.last_stop.as_ref().and_then(|stop| messages::ending(&stop.evidence, &stop.ruling, Reader::Terminal))
}

fn paused(view: &View, c: &History, round: &str) -> String {
    let by_ruling = view.paused_at.is_some().then(|| ruled(c)).flatten();
    let why = view.why.clone();
    match (by_ruling, why) {
        (Some(line), _) => line,
        (None, Some(why)) if why.starts_with("paused") => why,
        (None, Some(why)) => format!("Paused at iteration {round}: {}.", why.trim_end_matches('.')),
        (None, None) => format!("Paused by a person at iteration {round}."),
    }
}

fn parked(view: &View, c: &History, round: &str) -> String {
    let what = view.waits.as_ref().map(|waits| waits.what.clone()).or_else(|| c.state.parked.as_ref().map(|parked| parked.what.clone()));
    let until = c.state.parked.as_ref().and_then(|parked| parked.until);
    let until = until.map(|until| format!(" until {}", when(&time::format(until)))).unwrap_or_default();
    format!("Waiting at iteration {round} for {}{until}.", what.unwrap_or_else(|| "something outside".to_owned()))
}

fn active(view: &View, c: &History, round: &str, spent: &str) -> String {
    let doing = match (&view.checking, &view.waits, &c.working) {
        (Some(checking), ..) => format!("the gate \"{}\" is running", checking.gate),
        (_, Some(waits), _) => format!("it waits for {}", waits.words()),
        _ if view.interrupted.is_some() => "the agent was interrupted".to_owned(),
        (.., Some(working)) => match &working.item {
            Some(item) => format!("a session works on {}", opening(item, 80)),
            None => "a session is at work".to_owned(),
        },
        _ => "a session is at work".to_owned(),
    };
    format!("Still going: iteration {round} after {spent}, {doing}.")
}

fn last_trouble(c: &History) -> String {
    c.troubles.kept.last().map_or_else(|| "the journal does not say why".to_owned(), |said| said.what.trim_end_matches('.').to_owned())
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
