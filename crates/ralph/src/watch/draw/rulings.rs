//! The last decisions with their reasons, and what went wrong between them.

use ralph_core::text::clean;
use ratatui::text::Line;

use crate::{
    term::width::{columns, wrap},
    watch::{
        draw::{
            BOLD, DIM, GOOD, PLAIN, Part, Scene, WARN, headed,
            row::{Row, paragraph},
        },
        followed::Ruled,
    },
};

const WHEN: usize = 12;
/// A reason on more rows than this is a story: `ralph explain` tells it.
const ROWS: usize = 3;

pub(super) fn part(scene: &Scene<'_>) -> Part {
    let rulings = &scene.followed.rulings;
    let trouble = scene.history().troubles.kept.last();
    if rulings.is_empty() && trouble.is_none() {
        return Part::default();
    }
    if scene.is_low {
        let lines = rulings.iter().rev().take(5).flat_map(|ruled| short(scene, ruled)).collect();
        return Part { lines, least: 1, rank: 6, is_endless: true };
    }
    let mut lines = headed(scene, "decisions", "");
    for ruled in rulings.iter().rev().take(60) {
        lines.extend(whole(scene, ruled));
    }
    if let Some(trouble) = trouble {
        let text = format!("trouble in iteration {} ({}): {}", trouble.iteration, scene.ago(trouble.at), clean(&trouble.what));
        lines.insert(lines.len().min(1 + usize::from(scene.is_high)), Row::new(scene.width).add(&text, WARN).line());
    }
    Part { lines, least: 3, rank: 5, is_endless: true }
}

fn short(scene: &Scene<'_>, ruled: &Ruled) -> Vec<Line<'static>> {
    let mut rows = paragraph(&ruled.words, scene.width.saturating_sub(WHEN).max(10), ROWS, PLAIN).into_iter();
    let first = Row::new(scene.width).column(&scene.ago(ruled.at), WHEN, DIM).then(rows.next().unwrap_or_default()).line();
    std::iter::once(first).chain(rows.map(|row| Row::new(scene.width).gap(WHEN).then(row).line())).collect()
}

/// The reason on up to three rows. Its code stands behind the last word, if there is room: it never comes between two words.
fn whole(scene: &Scene<'_>, ruled: &Ruled) -> Vec<Line<'static>> {
    let style = if ruled.sent_back { PLAIN } else { GOOD };
    let number = format!("stop {}", ruled.stop);
    let indent = WHEN + columns(&number).max(7) + 2;
    let room = scene.width.saturating_sub(indent).max(10);
    let wrapped = wrap(&ruled.words, room, 0);
    let begin = |n: usize| match n {
        0 => Row::new(scene.width).column(&scene.ago(ruled.at), WHEN, DIM).column(&number, indent - WHEN, BOLD),
        _ => Row::new(scene.width).gap(indent),
    };
    let rows: Vec<&str> = wrapped.split('\n').collect();
    let more = |n: usize| if n + 1 == ROWS && rows.len() > ROWS { " …" } else { "" };
    let last = rows.len().min(ROWS) - 1;
    let mut lines = Vec::new();
    for (n, text) in rows.iter().take(ROWS).enumerate() {
        let row = begin(n).add(&format!("{text}{}", more(n)), style);
        let is_full = columns(ruled.code.as_str()) + 2 > row.left();
        lines.push(if n == last { row.right(ruled.code.as_str(), DIM) } else { row }.line());
        if n == last && is_full && scene.is_high {
            lines.push(begin(1).right(ruled.code.as_str(), DIM).line());
        }
    }
    lines
}
