//! The last rulings with their reasons, and what went wrong between them.

use ralph_core::words::clean;
use ratatui::text::Line;

use crate::{
    columns::wrap,
    watch::{
        draw::{BOLD, DIM, GOOD, PLAIN, Part, Scene, WARN, heading, row::Row},
        followed::Ruled,
    },
};

const WHEN: usize = 12;
/// A reason on more rows than this is a story: `ralph explain` tells it.
const ROWS: usize = 3;

pub(super) fn part(scene: &Scene<'_>) -> Part {
    let rulings = &scene.followed.rulings;
    let trouble = scene.chronicle().troubles.kept.last();
    if rulings.is_empty() && trouble.is_none() {
        return Part::default();
    }
    if scene.is_low {
        let lines: Vec<Line<'static>> = rulings.iter().rev().take(5).map(|ruled| short(scene, ruled)).collect();
        return Part { least: lines.len().min(1), lines, rank: 6 };
    }
    let mut lines = vec![heading("rulings", scene.width)];
    for ruled in rulings.iter().rev().take(60) {
        lines.extend(whole(scene, ruled));
    }
    if let Some(trouble) = trouble {
        let text = format!("trouble in round {} ({}): {}", trouble.iteration, scene.ago(trouble.at), clean(&trouble.what));
        lines.insert(1, Row::new(scene.width).add(&text, WARN).line());
    }
    let least = lines.len().min(3);
    Part { lines, least, rank: 5 }
}

fn short(scene: &Scene<'_>, ruled: &Ruled) -> Line<'static> {
    Row::new(scene.width).add(&scene.ago(ruled.at), DIM).gap(2).add(&ruled.words, PLAIN).line()
}

fn whole(scene: &Scene<'_>, ruled: &Ruled) -> Vec<Line<'static>> {
    let style = if ruled.sent_back { WARN } else { GOOD };
    let head = Row::new(scene.width).column(&scene.ago(ruled.at), WHEN, DIM);
    let head = head.add(&format!("stop {:<4}", ruled.stop), BOLD).add(ruled.code.as_str(), style);
    // On one row if that is enough.
    if head.left() > crate::columns::columns(&ruled.words) + 2 {
        return vec![head.gap(2).add(&ruled.words, PLAIN).line()];
    }
    let wrapped = wrap(&ruled.words, scene.width.saturating_sub(WHEN).max(10), 0);
    let rows = wrapped.split('\n').take(ROWS).map(|row| Row::new(scene.width).gap(WHEN).add(row, PLAIN).line());
    std::iter::once(head.line()).chain(rows).collect()
}
