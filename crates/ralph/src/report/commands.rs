//! Commands to look at a loop again, to undo what it did, and to go on.

use ralph_core::{history::History, report::Way};
use ralph_engine::view::Status;

use super::{Snapshots, Sources, shared::GO_ON};
use crate::{advice, journal_lines::quoted};

pub(super) fn of(Sources { view, history, snapshots, .. }: Sources<'_>) -> Vec<Way> {
    let id = quoted(&view.id);
    let mut all = Vec::new();
    if history.state.stops > 0 {
        let journal = quoted(&format!("{}.jsonl", view.id));
        all.push(way("Judge every stop again and compare", format!("ralph explain --replay .ralph/journal/{journal}")));
        all.push(way("Why a stop was blocked or allowed", format!("ralph explain {} --loop {id}", history.state.stops)));
    }
    all.push(way("What happened, line by line", format!("ralph log {id}")));
    all.extend(undo(history, snapshots, &id));
    match view.status {
        Status::Complete => {}
        _ if view.is_live() && matches!(view.status, Status::Active | Status::Parked) => {
            all.push(way("Watch it", format!("ralph watch {id}")));
            all.push(way("Pause it", format!("ralph pause {id}")));
        }
        _ => all.push(way(GO_ON, advice::command(view, history))),
    }
    all
}

fn way(what: &str, command: String) -> Way {
    Way { what: what.to_owned(), command }
}

/// To see what the iterations changed, and to undo it: from snapshots, else from commits.
fn undo(history: &History, snapshots: &Snapshots, id: &str) -> Vec<Way> {
    let mut all = Vec::new();
    if snapshots.has(0) {
        all.push(way("What all iterations changed", format!("ralph diff --loop {id} --stat")));
    }
    if let Some(last) = history.rounds.last().map(|iteration| iteration.iteration) {
        let before = last.saturating_sub(1);
        if snapshots.has(last) && snapshots.has(before) {
            all.push(way("What the last iteration changed", format!("ralph diff {last} --loop {id}")));
        }
        if snapshots.has(before) && before > 0 {
            all.push(way("The files as they were before the last iteration", format!("ralph rollback {before} --loop {id} --dry-run")));
        }
    }
    if snapshots.has(0) {
        all.push(way("The files as they were before the loop", format!("ralph rollback 0 --loop {id} --dry-run")));
    }
    if all.is_empty() {
        let first_head = history.rounds.iter().find_map(|iteration| iteration.head.as_deref());
        let since = first_head.map_or_else(|| "git log --stat -10".to_owned(), |head| format!("git log --stat {}^..", quoted(head)));
        all.push(way("What it committed (no files were kept: git alone can undo it)", since));
    }
    all
}
