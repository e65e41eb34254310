//! How to look at a loop again, how to undo what it did, and how to go on.

use ralph_core::{journal::history::Chronicle, report::Way};
use ralph_engine::view::{Status, View};

use super::kept::Files;
use crate::{advice, text::quoted};

pub(super) fn of(view: &View, c: &Chronicle, files: &Files) -> Vec<Way> {
    let way = |what: &str, command: String| Way { what: what.to_owned(), command };
    let id = quoted(&view.id);
    let mut all = Vec::new();
    if c.state.stops > 0 {
        let journal = quoted(&format!("{}.jsonl", view.id));
        all.push(way("Judge every stop again and compare", format!("ralph explain --replay .ralph/journal/{journal}")));
        all.push(way("Why a stop was ruled as it was", format!("ralph explain {} --loop {id}", c.state.stops)));
    }
    all.push(way("What happened, line by line", format!("ralph log {id}")));
    all.extend(back(c, files, &id));
    match view.status {
        Status::Complete => {}
        _ if view.is_live() && matches!(view.status, Status::Active | Status::Parked) => {
            all.push(way("Watch it", format!("ralph watch {id}")));
            all.push(way("Pause it", format!("ralph pause {id}")));
        }
        _ => all.push(way("Go on", advice::command(view, c))),
    }
    all
}

/// What the iterations changed, and how that is undone: from the files that are kept, else from what was committed.
fn back(c: &Chronicle, files: &Files, id: &str) -> Vec<Way> {
    let way = |what: &str, command: String| Way { what: what.to_owned(), command };
    let mut all = Vec::new();
    if files.has(0) {
        all.push(way("What all iterations changed", format!("ralph diff --loop {id} --stat")));
    }
    if let Some(last) = c.rounds.last().map(|round| round.iteration) {
        let before = last.saturating_sub(1);
        if files.has(last) && files.has(before) {
            all.push(way("What the last iteration changed", format!("ralph diff {last} --loop {id}")));
        }
        if files.has(before) && before > 0 {
            all.push(way("The files as they were before the last iteration", format!("ralph rollback {before} --loop {id} --dry-run")));
        }
    }
    if files.has(0) {
        all.push(way("The files as they were before the loop", format!("ralph rollback 0 --loop {id} --dry-run")));
    }
    if all.is_empty() {
        let first_head = c.rounds.iter().find_map(|round| round.head.as_deref());
        let since = first_head.map_or_else(|| "git log --stat -10".to_owned(), |head| format!("git log --stat {}^..", quoted(head)));
        all.push(way("What it committed (no files were kept: git alone can undo it)", since));
    }
    all
}
