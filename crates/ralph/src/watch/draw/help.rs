//! The keys: the few that matter in the last line, all of them on a page.

use ralph_engine::view::Status;
use ratatui::text::Line;

use crate::{
    term::width::{columns, wrap},
    watch::{
        app::{App, Face},
        draw::{
            BOLD, DIM, PLAIN, heading,
            row::{Row, paragraph},
        },
    },
};

const ALL: [(&str, &str); 15] = [
    ("q, Ctrl-C", "leave; the loop goes on"),
    ("Esc", "back, and from the first screen out"),
    ("p", "pause the loop: the agent may stop, nothing is counted"),
    ("r", "resume it, where the last line offers it; a loop of `ralph run` goes on with `ralph run --continue`"),
    ("c", "cancel it, after a question; its file is kept"),
    ("s", "steer: a note that the next prompt tells the agent"),
    ("l", "the log; arrows, Page Up, Page Down, Home and End move in it"),
    ("/, n", "in the log: look for words, and further up"),
    ("Tab, ← →, 1–9", "the next loop, the one before, the first to ninth"),
    ("Backspace", "all loops as a list, ended ones too; arrows and Enter choose"),
    ("?", "this page"),
    ("Ctrl-Z", "to the shell for a while; fg comes back"),
    ("", ""),
    ("✓ ✗ … ? ·", "holds, fails, waits, could not be measured, not measured yet"),
    ("● ‖", "an agent works on it, it is paused"),
];

const REST: &str =
    "Nothing here changes a loop but p, r, c and s, which do what `ralph pause`, `ralph resume`, `ralph cancel` and `ralph steer` do.";

pub(super) fn page(width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![heading("keys", "", width)];
    // Where there is little room, what a key does stands below it.
    let keys = if width < 40 { 2 } else { 16 };
    for (key, what) in ALL {
        let wrapped = wrap(what, width.saturating_sub(keys).max(10), 0);
        let mut rows = wrapped.split('\n');
        if keys > columns(key) {
            lines.push(Row::new(width).column(key, keys, BOLD).add(rows.next().unwrap_or_default(), PLAIN).line());
        } else {
            lines.push(Row::new(width).add(key, BOLD).line());
        }
        lines.extend(rows.map(|row| Row::new(width).gap(keys).add(row, PLAIN).line()));
    }
    lines.push(Line::default());
    lines.extend(paragraph(REST, width, usize::MAX, DIM));
    lines
}

/// The keys that do something to the chosen loop as it is now.
fn acts(app: &App) -> Vec<(&'static str, &'static str)> {
    let Some(entry) = app.loops.chosen() else { return Vec::new() };
    let resume = app.can_resume().then_some(("r", "resume"));
    let pause = matches!(entry.view.status, Status::Active | Status::Parked | Status::Waiting).then_some(("p", "pause"));
    let others = if app.is_over() { vec![] } else { vec![("s", "steer"), ("c", "cancel")] };
    resume.into_iter().chain(pause).chain(others).collect()
}

/// The last line, as much of it as fits: what is most wanted now comes first.
pub(super) fn keys(app: &App, width: usize) -> Line<'static> {
    let several = app.loops.entries.len() > 1;
    let keys: Vec<(&str, &str)> = match app.face {
        Face::Help => vec![("↑↓", "move"), ("any other key", "back"), ("q", "quit")],
        Face::Overview => [vec![("q", "quit"), ("?", "help"), ("↑↓", "choose"), ("Enter", "look at it")], acts(app)].concat(),
        Face::Log => {
            let search = if app.sought.is_empty() { ("/", "search") } else { ("n", "further up") };
            vec![("↑↓", "move"), ("End", "follow"), search, ("l", "back"), ("?", "help"), ("q", "quit")]
        }
        Face::Loop if app.loops.chosen().is_none() => vec![("?", "help"), ("q", "quit")],
        Face::Loop => {
            let others = several.then_some(("Tab", "next loop"));
            [vec![("q", "quit"), ("?", "help"), ("l", "log")], acts(app), others.into_iter().collect()].concat()
        }
    };
    keys.into_iter()
        .fold(Row::new(width), |row, (key, what)| {
            let wide = columns(key) + what.len() + 1;
            if row.left() < wide { row } else { row.add(key, BOLD).add(&format!(" {what}"), DIM).gap(2) }
        })
        .line()
}
