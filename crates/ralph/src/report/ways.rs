//! How to look at a loop again, how to undo what it did, and how to go on.

use ralph_core::{chronicle::Chronicle, report::Way};
use ralph_engine::ops::view::{Status, View};

use crate::{commands::status::next, text::quoted};

pub(super) fn of(view: &View, c: &Chronicle) -> Vec<Way> {
    let way = |what: &str, command: String| Way { what: what.to_owned(), command };
    let id = quoted(&view.id);
    let mut all = vec![
        way(
            "Judge every stop again and compare",
            format!("ralph explain --replay .ralph/journal/{}", quoted(&format!("{}.jsonl", view.id))),
        ),
        way("Why a stop was ruled as it was", format!("ralph explain {} --loop {id}", c.state.stops.max(1))),
        way("What happened, line by line", format!("ralph log {id}")),
    ];
    let first_head = c.rounds.iter().find_map(|round| round.head.as_deref());
    match c.rounds.last().filter(|_| !c.snapshots.is_empty()) {
        Some(last) => {
            let before = last.iteration.saturating_sub(1);
            all.push(way("What all rounds changed", format!("ralph diff --loop {id} --stat")));
            all.push(way("What the last round changed", format!("ralph diff {} --loop {id}", last.iteration)));
            all.push(way("The files as they were before the last round", format!("ralph rollback {before} --loop {id} --dry-run")));
            all.push(way("The files as they were before the loop", format!("ralph rollback 0 --loop {id} --dry-run")));
        }
        None => {
            let since = first_head.map_or_else(|| "git log --stat -10".to_owned(), |head| format!("git log --stat {}^..", quoted(head)));
            all.push(way("What it committed (no files were kept: git alone can undo it)", since));
        }
    }
    match view.status {
        Status::Complete => {}
        _ if view.is_live() && matches!(view.status, Status::Active | Status::Parked) => {
            all.push(way("Watch it", format!("ralph watch {id}")));
            all.push(way("Pause it", format!("ralph pause {id}")));
        }
        _ => all.push(way("Go on", next::command(view, c))),
    }
    all
}
