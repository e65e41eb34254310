//! One screen for all jobs: what waits, runs, is proven, has landed, and what needs a person.

use std::fmt::Write as _;

use ralph_core::{
    money,
    text::{clean, time::Millis},
};
use ralph_engine::sys::{clock, files};

use crate::{
    board::{Board, Card},
    problem::Result,
    records::{self, Found, LEDGER, Ledger, State, Wish},
    settings::{Place, Settings},
    store::Store,
};

/// The states in the order in which they are shown, with their words.
const ROWS: [(State, &str); 8] = [
    (State::NeedsPerson, "needs you"),
    (State::Runs, "runs"),
    (State::Lands, "lands"),
    (State::Proven, "proven"),
    (State::Parked, "parked"),
    (State::Waits, "waits"),
    (State::Landed, "landed"),
    (State::Cancelled, "cancelled"),
];

pub fn word(state: State) -> &'static str {
    ROWS.iter().find(|(row, _)| *row == state).map_or("?", |(_, word)| word)
}

/// What is shown beside the jobs.
pub struct Around {
    pub ledger: Ledger,
    /// What keeps landing from going on.
    pub trouble: Option<String>,
    /// What keeps jobs from being begun.
    pub short: Option<String>,
}

impl Around {
    pub fn read(store: &dyn Store, place: &Place) -> Result<Self> {
        let ledger = match store.get(LEDGER)?.map(|entry| records::read(&entry.value)) {
            Some(Found::Known(ledger)) => ledger,
            _ => Ledger::default(),
        };
        Ok(Around { ledger, trouble: place.told(Place::LANDING), short: place.told(Place::WORK) })
    }
}

/// How many jobs are in each state, in words: `3 of 12 landed · 4 run · 1 needs you`.
pub fn summary(board: &Board) -> String {
    let count = |state: State| board.cards().filter(|(_, card)| card.job.state == state).count();
    let all = board.cards().count() - count(State::Cancelled);
    let mut words = format!("{} of {all} landed", count(State::Landed));
    for (state, name) in [
        (State::Runs, "running"),
        (State::Lands, "landing"),
        (State::Proven, "proven"),
        (State::Parked, "parked"),
        (State::Waits, "waiting"),
        (State::NeedsPerson, "need you"),
    ] {
        let n = count(state);
        if n > 0 {
            let name = if state == State::NeedsPerson && n == 1 { "needs you" } else { name };
            let _ = write!(words, " · {n} {name}");
        }
    }
    words
}

/// The whole screen, at most `height` lines of `width` columns.
pub fn lines(board: &Board, around: &Around, settings: &Settings, place: &Place, (width, height): (usize, usize)) -> Vec<String> {
    let mut lines =
        vec![format!("ralph fleet · {} → {}", settings.list.as_deref().unwrap_or("tasks"), settings.target), header(board, around)];
    if board.want.wish == Wish::Pause {
        lines.push("paused: nothing new begins. `ralph fleet resume` goes on".to_owned());
    }
    if let Some(trouble) = &around.trouble {
        lines.push(format!("landing waits: {}", clean(trouble)));
    }
    if let Some(short) = &around.short {
        lines.push(format!("no job is begun: {}", clean(short)));
    }
    lines.push(String::new());
    let now = clock::now();
    let mut jobs = Vec::new();
    for (state, name) in ROWS {
        let mut cards: Vec<(&str, &Card)> = board.cards().filter(|(_, card)| card.job.state == state).collect();
        cards.sort_by_key(|(_, card)| card.spec.number);
        jobs.extend(cards.into_iter().map(|(id, card)| row(board, id, card, name, place, now)));
    }
    let room = height.saturating_sub(lines.len());
    if jobs.len() > room && room > 0 {
        let hidden = jobs.len() - room + 1;
        jobs.truncate(room - 1);
        jobs.push(format!("… and {hidden} more"));
    }
    lines.extend(jobs);
    lines.into_iter().map(|line| cut(&line, width)).collect()
}

fn header(board: &Board, around: &Around) -> String {
    let ledger = &around.ledger;
    let spent: u64 = ledger.spent_micros;
    let of = if ledger.limit_micros > 0 { format!(" of {}", money::shown(ledger.limit_micros)) } else { String::new() };
    format!("{} · {}{of} spent", summary(board), money::shown(spent))
}

fn row(board: &Board, id: &str, card: &Card, state: &str, place: &Place, now: Millis) -> String {
    let title = card.spec.task.lines().next().unwrap_or_default();
    let name = card.spec.item.as_deref().unwrap_or(id);
    let what = match card.job.state {
        _ if card.left_alone().is_some() => card.left_alone().unwrap_or_default().to_owned(),
        State::Runs => live(place, id).unwrap_or_else(|| "the agent works".to_owned()),
        State::Waits => {
            let waits: Vec<&str> = board.waits_for(card).collect();
            if waits.is_empty() { card.job.why.clone() } else { format!("waits for {}", waits.join(", ")) }
        }
        State::Parked => format!("until {}: {}", card.job.until.map(clock::shortly).unwrap_or_default(), card.job.why),
        State::Proven if card.is_waiting_for_review() && !card.job.why.is_empty() => card.job.why.clone(),
        _ => card.job.why.clone(),
    };
    let took = if card.job.is_held() { format!(" {}", minutes(now - card.job.changed_at)) } else { String::new() };
    let cost = if card.job.usd_micros > 0 { format!(" {}", money::shown(card.job.usd_micros)) } else { String::new() };
    let iteration = if card.job.iterations > 0 { format!(" #{}", card.job.iterations) } else { String::new() };
    let mut line = format!("{state:<10}{}{iteration}{cost}{took}  {}", clean(name), clean(title));
    if !what.trim().is_empty() {
        let _ = write!(line, " · {}", clean(what.lines().next().unwrap_or_default()));
    }
    line
}

/// What its agent does now.
fn live(place: &Place, id: &str) -> Option<String> {
    let bytes = files::read(&place.job(id).ok()?.join("live"), 4096).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|words| !words.trim().is_empty())
}

fn minutes(ms: Millis) -> String {
    let seconds = (ms / 1000).max(0);
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min", seconds / 60) }
}

fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width { line.to_owned() } else { line.chars().take(width.saturating_sub(1)).collect::<String>() + "…" }
}
