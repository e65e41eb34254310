//! The journal as `ralph log` words it, a page of it.

use ratatui::{style::Modifier, text::Line};

use crate::watch::{
    app::App,
    draw::{DIM, PLAIN, REVERSED, WARN, heading, row::Row},
    followed::Logged,
};

/// The rows, and how many of them are lines of the log.
pub(super) fn page(app: &App, width: usize, height: usize) -> (Vec<Line<'static>>, usize) {
    let rows = height.saturating_sub(1).max(1);
    let Some(followed) = &app.followed else { return (Vec::new(), rows) };
    let log = &followed.log;
    let below = app.scrolled.min(log.len().saturating_sub(rows));
    let end = log.len() - below;
    let from = end.saturating_sub(rows);
    let place = match (below, followed.forgotten) {
        (0, _) => "follows the end".to_owned(),
        (_, forgotten) if from == 0 && forgotten > 0 => {
            format!("{}: `ralph log`", ralph_core::text::count(forgotten, "older line", "older lines"))
        }
        _ => format!("{}–{end} of {}", from + 1, log.len()),
    };
    let mut lines = vec![heading("log", &place, width)];
    lines.extend(log.range(from..end).map(|line| row(line, width, &app.sought)));
    (lines, rows)
}

fn row(line: &Logged, width: usize, sought: &str) -> Line<'static> {
    // The day is the same for most of them, and a narrow screen needs its columns for words.
    let at = if width < 60 { line.at.get(11..16).unwrap_or_default() } else { line.at.as_str() };
    let style = if line.is_trouble { WARN } else { PLAIN };
    let is_found = !sought.is_empty() && line.words.to_lowercase().contains(sought);
    let style = if is_found { style.patch(REVERSED) } else { style.remove_modifier(Modifier::REVERSED) };
    Row::new(width).add(at, DIM).gap(usize::from(!at.is_empty())).add(&line.words, style).line()
}
