//! The last rulings with their reasons, and what went wrong between them.

use ralph_core::text::clean;
use ratatui::text::Line;

use crate::{
    term::width::{columns, wrap},
    watch::{
        draw::{BOLD, DIM, GOOD, PLAIN, Part, Scene, WARN, headed, row::Row},
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
        let lines: Vec<Line<'static>> = rulings.iter().rev().take(5).map(|ruled| short(scene, ruled)).collect();
        return Part { least: lines.len().min(1), lines, rank: 6, is_endless: true };
    }
    let mut lines = headed(scene, "rulings", "");
    for ruled in rulings.iter().rev().take(60) {
        lines.extend(whole(scene, ruled));
    }
    if let Some(trouble) = trouble {
        let text = format!("trouble in iteration {} ({}): {}", trouble.iteration, scene.ago(trouble.at), clean(&trouble.what));
        lines.insert(lines.len().min(1 + usize::from(scene.is_high)), Row::new(scene.width).add(&text, WARN).line());
    }
    let least = lines.len().min(3);
    Part { lines, least, rank: 5, is_endless: true }
}

fn short(scene: &Scene<'_>, ruled: &Ruled) -> Line<'static> {
    Row::new(scene.width).column(&scene.ago(ruled.at), WHEN, DIM).add(&ruled.words, PLAIN).line()
}

/// The reason on up to three rows, and its code at the end of the first one that has room for it.
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
    let mut code = Some(ruled.code.as_str());
    let mut lines = Vec::new();
    for (n, text) in rows.iter().take(ROWS).enumerate() {
        let row = begin(n).add(&format!("{text}{}", more(n)), style);
        let fits = code.filter(|code| columns(code) + 2 <= row.left());
        code = code.filter(|_| fits.is_none());
        lines.push(fits.into_iter().fold(row, |row, code| row.right(code, DIM)).line());
    }
    if scene.is_high {
        lines.extend(code.map(|code| begin(1).right(code, DIM).line()));
    }
    lines
}
