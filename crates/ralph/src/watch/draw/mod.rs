//! The picture: which parts there are, and where they stand in the room that there is.
//!
//! Everything is drawn as if the terminal had all characters and sixteen colours; what it has not is taken out of the finished picture.

mod agent;
mod figures;
mod gates;
mod help;
mod limits;
mod log;
mod overview;
mod row;
mod row_shares;
mod rulings;
mod simple;
#[cfg(test)]
mod tests;
mod title;

use ralph_core::{history::History, text::time::Millis};
use ralph_engine::view::View;
use ratatui::{
    Frame,
    layout::{Position, Rect},
    style::{Color, Modifier, Style},
    text::Line,
};

use crate::watch::{
    app::{App, Asks, Face},
    draw::{
        row::{Row, paragraph},
        row_shares::{Part, shares},
    },
    followed::Followed,
};

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const WARN: Style = Style::new().fg(Color::Yellow);
const ACCENT: Style = Style::new().fg(Color::Cyan);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// From here on two columns stand side by side.
const WIDE: u16 = 116;
/// Below this a part is a line.
const LOW: u16 = 17;
/// From here on nothing has to share a row.
const HIGH: u16 = 36;

/// The size and abilities of the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looks {
    pub(super) colour: bool,
    pub(super) ascii: bool,
}

/// A loop as it is drawn.
struct Scene<'a> {
    now: Millis,
    /// When the view was taken.
    seen: Millis,
    view: &'a View,
    followed: &'a Followed,
    width: usize,
    /// There are few rows.
    is_low: bool,
    /// There are so many that each thing has one of its own.
    is_high: bool,
}

impl Scene<'_> {
    fn history(&self) -> &History {
        &self.followed.history
    }

    fn since(&self, at: Millis) -> u64 {
        u64::try_from(self.now.saturating_sub(at)).unwrap_or(0)
    }

    /// `3 min ago`
    fn ago(&self, at: Millis) -> String {
        match self.since(at) {
            0..5_000 => "just now".to_owned(),
            ms => format!("{} ago", age(ms)),
        }
    }

    fn with_width(&self, width: usize) -> Scene<'_> {
        Scene { width, ..*self }
    }
}

/// The largest unit of a duration: `3 min`.
fn age(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App, looks: Looks, now: Millis) {
    let area = frame.area();
    if area.height == 0 || area.width == 0 {
        return;
    }
    let foot = said(app, area);
    let rows = u16::try_from(foot.len()).unwrap_or(1).clamp(1, area.height);
    let (above, last) = (Rect { height: area.height - rows, ..area }, Rect { y: area.bottom() - rows, height: rows, ..area });
    match app.face {
        Face::Help => {
            let lines = help::page(above.width.into());
            app.page = usize::from(above.height).max(1);
            app.scrolled = app.scrolled.min(lines.len().saturating_sub(app.page));
            put(frame, above, &lines[app.scrolled..]);
        }
        Face::Overview => put(frame, above, &overview::page(&app.loops, above.width.into(), above.height.into(), now)),
        Face::Log => {
            let (lines, page) = log::page(app, above.width.into(), above.height.into());
            app.page = page;
            put(frame, above, &lines);
        }
        Face::Loop => loop_or_none(frame, above, app, now),
    }
    if foot.is_empty() {
        self::foot(frame, last, app);
    } else {
        put(frame, last, &foot);
    }
    simple::simplify(frame.buffer_mut(), looks);
}

/// The loop that is chosen, with a line about the others if there are any.
fn loop_or_none(frame: &mut Frame<'_>, area: Rect, app: &App, now: Millis) {
    let (Some(entry), Some(followed)) = (app.loops.chosen(), &app.followed) else {
        return put(frame, area, &overview::nothing(&app.loops, area.width.into()));
    };
    let mut area = area;
    if app.loops.entries.len() > 1 && area.height > 5 {
        put(frame, Rect { height: 1, ..area }, &[overview::tabs(&app.loops, area.width.into())]);
        area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    }
    let is_low = area.height < LOW;
    let scene =
        Scene { now, seen: app.loops.seen, view: &entry.view, followed, width: area.width.into(), is_low, is_high: area.height >= HIGH };
    if area.width >= WIDE && !is_low { wide(frame, area, &scene) } else { narrow(frame, area, &scene) }
}

fn narrow(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
    let parts = [
        title::part(scene),
        title::needs(scene),
        limits::part(scene),
        agent::part(scene, scene.is_low),
        gates::part(scene),
        figures::part(scene),
        rulings::part(scene),
    ];
    stack(frame, area, &parts);
}

/// Gates on the left, the agent's words and tools on the right.
fn wide(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
    const GAP: u16 = 3;
    let head = [title::part(scene), title::needs(scene)];
    let used: usize = head.iter().map(|part| part.lines.len()).sum();
    let used = u16::try_from(used).unwrap_or(area.height).min(area.height);
    stack(frame, Rect { height: used, ..area }, &head);
    let below = Rect { y: area.y + used, height: area.height - used, ..area };
    let (left, right) = (Rect { width: (area.width - GAP) / 2, ..below }, Rect { x: area.x + area.width / 2 + GAP / 2 + 1, ..below });
    let right = Rect { width: area.right().saturating_sub(right.x), ..right };
    let measured = scene.with_width(left.width.into());
    let mut limits = limits::part(&measured);
    if scene.is_high {
        // On a level with what stands beside it.
        limits.lines.insert(0, Line::default());
    }
    stack(frame, left, &[limits, gates::part(&measured), figures::part(&measured)]);
    let told = scene.with_width(right.width.into());
    stack(frame, right, &[agent::part(&told, false), rulings::part(&told)]);
}

/// Parts one below the other, as much of each as there is room for.
fn stack(frame: &mut Frame<'_>, area: Rect, parts: &[Part]) {
    let rows = shares(parts, area.height.into());
    let shown: Vec<Line<'static>> = parts.iter().zip(rows).flat_map(|(part, rows)| part.lines[..rows].to_vec()).collect();
    put(frame, area, &shown);
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'static>]) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
}

/// A part's heading with a word at its right end, and a free row above it where there is room.
fn headed(scene: &Scene<'_>, name: &str, word: &str) -> Vec<Line<'static>> {
    let heading = heading(name, word, scene.width);
    if scene.is_high { vec![Line::default(), heading] } else { vec![heading] }
}

/// `gates ───────── 2 of 3 hold`
fn heading(name: &str, word: &str, width: usize) -> Line<'static> {
    let row = Row::new(width).add(name, ACCENT.add_modifier(Modifier::BOLD)).add(" ", PLAIN);
    let taken = if word.is_empty() { 0 } else { crate::term::width::columns(word) + 1 };
    let rule = row.left().saturating_sub(taken);
    let row = row.add(&"─".repeat(rule), DIM);
    if word.is_empty() { row.line() } else { row.add(" ", PLAIN).add(word, DIM).line() }
}

/// The answer to a key, on as many rows as it needs.
fn said(app: &App, area: Rect) -> Vec<Line<'static>> {
    let Some((said, _)) = app.said.as_ref().filter(|_| matches!(app.asks, Asks::Nothing)) else { return Vec::new() };
    let most = usize::from(area.height / 6).clamp(1, 4);
    paragraph(&said.words, area.width.into(), most, if said.refused { WARN } else { GOOD })
}

/// The last line: what is asked, or the keys.
fn foot(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let width = usize::from(area.width);
    let typed = |label: &str, editor: &crate::watch::editor::Editor| {
        let row = Row::new(width).add(label, BOLD).gap(1);
        let from = width - row.left();
        let (text, cursor) = editor.shown(row.left());
        (row.add(&text, PLAIN).line(), Some(from + cursor))
    };
    let (line, cursor) = match &app.asks {
        Asks::Cancel { id, root } => {
            let folder = root.file_name().map(|name| format!(" in {}", name.to_string_lossy())).unwrap_or_default();
            let asked = ralph_core::text::clean(&format!("End {id}{folder} now? y: yes, any other key: no"));
            let asked = if asked.len() <= width { asked } else { "End it now? y / n".to_owned() };
            (Row::new(width).add(&asked, BOLD.patch(REVERSED)).line(), None)
        }
        Asks::Note(editor) => typed("Note:", editor),
        Asks::Search(editor) => typed("/", editor),
        Asks::Nothing => (help::keys(app, width), None),
    };
    put(frame, area, &[line]);
    if let Some(x) = cursor {
        let x = u16::try_from(x).unwrap_or(u16::MAX).min(area.right().saturating_sub(1));
        frame.set_cursor_position(Position { x, y: area.y });
    }
}
