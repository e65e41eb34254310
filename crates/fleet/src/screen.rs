//! One screen for all jobs: what waits, runs, is proven, has landed, and what needs a person.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use ralph_core::{
    money,
    text::{clean, time::Millis},
};
use ralph_engine::sys::{clock, env, files};
use unicode_width::UnicodeWidthChar as _;

use crate::{
    board::{Board, Card},
    problem::Result,
    records::{self, Found, LEDGER, Ledger, State, Wish},
    settings::{Place, Settings},
    store::Store,
};

/// The states in the order in which they are shown.
pub(crate) const STATES: [State; 8] =
    [State::NeedsPerson, State::Runs, State::Lands, State::Proven, State::Parked, State::Waits, State::Landed, State::Cancelled];

pub fn word(state: State) -> &'static str {
    match state {
        State::NeedsPerson => "needs you",
        State::Runs => "runs",
        State::Lands => "lands",
        State::Proven => "proven",
        State::Parked => "parked",
        State::Waits => "waits",
        State::Landed => "landed",
        State::Cancelled => "cancelled",
    }
}

/// With fewer columns a row has what its job does, and not what it is about.
const ENOUGH_FOR_BOTH: usize = 36;

/// What is shown beside the jobs.
#[derive(Debug, Default)]
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

/// The whole screen, at most `height` lines of `width` columns. Styles are in it, for a terminal that has them.
pub fn lines(board: &Board, around: &Around, settings: &Settings, place: &Place, (width, height): (usize, usize)) -> Vec<String> {
    let soft = Style::new().dimmed();
    let list = clean(settings.list.as_deref().unwrap_or("tasks"));
    let mut lines = vec![
        styled(&cut(&format!("ralph fleet · {list} → {}", clean(&settings.target)), width), soft),
        styled(&cut(&summary(board), width), Style::new().bold()),
        styled(&cut(&budget(around, width), width), soft),
    ];
    let notice = AnsiColor::Yellow.on_default();
    if board.want.wish == Wish::Pause {
        lines.push(styled(&cut("paused: nothing new begins. `ralph fleet resume` goes on", width), notice));
    }
    if let Some(trouble) = &around.trouble {
        lines.push(styled(&cut(&format!("landing waits: {}", clean(trouble)), width), notice));
    }
    if let Some(short) = &around.short {
        lines.push(styled(&cut(&format!("no job is begun: {}", clean(short)), width), notice));
    }
    lines.push(String::new());
    let jobs = in_order(board);
    let room = height.saturating_sub(lines.len());
    let shown = if jobs.len() > room { room.saturating_sub(1) } else { jobs.len() };
    let now = clock::now();
    let widest =
        |text: &dyn Fn(&str, &Card) -> String| jobs.iter().take(shown).map(|(id, card)| columns(&text(id, card))).max().unwrap_or(0);
    let of = Columns { names: widest(&name).min(width / 5), figures: widest(&|_, card| figures(card, now)), all: width };
    lines.extend(jobs.iter().take(shown).map(|(id, card)| row(board, id, card, place, now, &of)));
    if shown < jobs.len() && room > 0 {
        lines.push(styled(&format!("… and {} more", jobs.len() - shown), soft));
    }
    lines
}

/// The last line: keys, or what came of one.
pub(crate) fn footer(text: &str, width: usize) -> String {
    styled(&cut(text, width), Style::new().dimmed())
}

fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// The jobs as they are shown: what needs a person first.
pub(crate) fn in_order(board: &Board) -> Vec<(&str, &Card)> {
    let mut cards: Vec<(&str, &Card)> = board.cards().collect();
    cards.sort_by_key(|(_, card)| (STATES.iter().position(|state| *state == card.job.state), card.spec.number));
    cards
}

/// What was spent, and how much of what may be spent that is.
fn budget(around: &Around, width: usize) -> String {
    let ledger = &around.ledger;
    let spent = money::shown(ledger.spent_micros);
    if ledger.limit_micros == 0 {
        return format!("{spent} spent, no limit");
    }
    let columns = (width / 4).clamp(8, 24) as u64;
    let full = (ledger.spent_micros.saturating_mul(columns) / ledger.limit_micros).min(columns);
    let (filled, empty) = if env::is_ascii_only() { ('#', '.') } else { ('█', '░') };
    let bar: String = (0..columns).map(|at| if at < full { filled } else { empty }).collect();
    format!("{spent} of {} spent  {bar}", money::shown(ledger.limit_micros))
}

fn name(id: &str, card: &Card) -> String {
    clean(card.spec.item.as_deref().unwrap_or(id))
}

/// How wide the parts of a row are.
struct Columns {
    names: usize,
    figures: usize,
    all: usize,
}

/// How far a job is, what it cost, and how long it has been in hand.
fn figures(card: &Card, now: Millis) -> String {
    let job = &card.job;
    let parts = [
        (job.iterations > 0).then(|| format!("#{}", job.iterations)),
        (job.usd_micros > 0).then(|| money::shown(job.usd_micros).to_string()),
        job.is_held().then(|| minutes(now - job.changed_at)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn row(board: &Board, id: &str, card: &Card, place: &Place, now: Millis, of: &Columns) -> String {
    let job = &card.job;
    let name = cut(&name(id, card), of.names);
    let gap = " ".repeat(of.names.saturating_sub(columns(&name)));
    let before = format!("{name}{gap}  {:<1$}  ", figures(card, now), of.figures);
    let state = word(job.state);
    let state = if card.want.wish == Wish::Pause && !job.is_over() { "paused" } else { state };
    let room = of.all.saturating_sub(10 + columns(&before));
    let doing = clean(doing(board, id, card, place).lines().next().unwrap_or_default());
    let title = clean(card.spec.task.lines().next().unwrap_or_default());
    let text = match (title.as_str(), doing.trim()) {
        (title, "") => title.to_owned(),
        (_, doing) if room < ENOUGH_FOR_BOTH => doing.to_owned(),
        // What it does now says more than what it is about.
        (title, doing) => format!("{} · {doing}", cut(title, room.saturating_sub(columns(doing) + 3).max(room / 3))),
    };
    format!("{} {before}{}", styled(&format!("{state:<9}"), style(job.state)), cut(&text, room))
}

fn style(state: State) -> Style {
    match state {
        State::NeedsPerson => AnsiColor::Yellow.on_default().bold(),
        State::Runs | State::Lands => AnsiColor::Cyan.on_default(),
        State::Proven | State::Landed => AnsiColor::Green.on_default(),
        State::Waits | State::Parked | State::Cancelled => Style::new().dimmed(),
    }
}

/// What a job does now, or why it is where it is.
pub(crate) fn doing(board: &Board, id: &str, card: &Card, place: &Place) -> String {
    match card.job.state {
        _ if card.left_alone().is_some() => card.left_alone().unwrap_or_default().to_owned(),
        State::Runs => live(place, id).unwrap_or_else(|| "the agent works".to_owned()),
        State::Waits => {
            let waits: Vec<&str> = board.waits_for(card).collect();
            match &card.spec.pool {
                _ if !waits.is_empty() => format!("waits for {}", waits.join(", ")),
                Some(pool) if card.job.why.is_empty() => format!("waits for a worker of the pool {}", clean(pool)),
                _ => card.job.why.clone(),
            }
        }
        State::Parked => format!("until {}: {}", card.job.until.map(clock::shortly).unwrap_or_default(), card.job.why),
        _ => card.job.why.clone(),
    }
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

/// How many columns a text takes on a terminal.
fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

fn cut(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken < width
    };
    line.chars().take_while(fits).collect::<String>() + "…"
}
