//! The journal as `ralph log` words it, a page of it.

use ratatui::{style::Modifier, text::Line};

use crate::{
    term::width::{columns, wrap},
    watch::{
        app::App,
        draw::{DIM, PLAIN, REVERSED, WARN, heading, row::Row},
        followed::Logged,
    },
};

/// The rows, and how many lines of the log fit from the oldest on: nobody can scroll further up than to those.
pub(super) fn page(app: &App, width: usize, height: usize) -> (Vec<Line<'static>>, usize) {
    let rows = height.saturating_sub(1).max(1);
    let Some(followed) = &app.followed else { return (Vec::new(), rows) };
    let log = &followed.log;
    let fitting = |lines: &mut dyn Iterator<Item = &Logged>| {
        let heights = lines.map(|line| wrapped(line, width, "").len());
        let sums = heights.scan(0, |sum, height| {
            *sum += height;
            Some(*sum)
        });
        sums.take_while(|sum| *sum <= rows).count().max(1)
    };
    let at_top = fitting(&mut log.iter());
    let below = app.scrolled.min(log.len().saturating_sub(at_top));
    let end = log.len() - below;
    let from = end.saturating_sub(fitting(&mut log.range(..end).rev()));
    let place = match (below, followed.forgotten) {
        (0, _) => "follows the end".to_owned(),
        (_, forgotten) if from == 0 && forgotten > 0 => {
            format!("{}: `ralph log`", ralph_core::text::count(forgotten, "older line", "older lines"))
        }
        _ => format!("{}–{end} of {}", from + 1, log.len()),
    };
    let mut lines = vec![heading("log", &place, width)];
    lines.extend(log.range(from..end).flat_map(|line| wrapped(line, width, &app.sought)));
    (lines, at_top)
}

fn wrapped(line: &Logged, width: usize, sought: &str) -> Vec<Line<'static>> {
    // The day is the same for most of them, and a narrow screen needs its columns for words.
    let at = if width < 60 { line.at.get(11..16).unwrap_or_default() } else { line.at.as_str() };
    let style = if line.is_trouble { WARN } else { PLAIN };
    let is_found = !sought.is_empty() && line.words.to_lowercase().contains(sought);
    let style = if is_found { style.patch(REVERSED) } else { style.remove_modifier(Modifier::REVERSED) };
    let hang = columns(at) + usize::from(!at.is_empty());
    let words = wrap(&line.words, width.saturating_sub(hang).max(10), 0);
    let begin = |n: usize| if n == 0 { Row::new(width).column(at, hang, DIM) } else { Row::new(width).gap(hang) };
    words.split('\n').enumerate().map(|(n, words)| begin(n).add(words, style).line()).collect()
}
