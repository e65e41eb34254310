//! Loops in working trees of their own (`.ralph/worktrees`): where a command finds none in the project, it says what to type to reach them.

use std::path::Path;

use ralph_core::text::clean;
use ralph_engine::{
    store::project::Project,
    view::{
        Status,
        worktrees::{self, Beside},
    },
};

use crate::{
    exit::{Done, Failure, NO_LOOP},
    journal_lines::quoted,
    ui,
};

/// More of them are for `ralph status --all`.
const SHOWN: usize = 3;

/// The result of a command; if it found no loop, with those that are in working trees.
pub(super) fn pointed_out(project: &Project, command: &str, done: Done) -> Done {
    let failure = match done {
        Err(failure) if failure.code == NO_LOOP && !failure.in_json => failure,
        done => return done,
    };
    let needs_a_live_one = matches!(command, "pause" | "cancel" | "steer" | "pr");
    let mut found = worktrees::live_or_last(project);
    found.retain(|beside| beside.view.is_live() || !needs_a_live_one);
    found.sort_by(|a, b| b.view.last_event_at.cmp(&a.view.last_event_at));
    let ways: Vec<String> = found.iter().take(SHOWN).map(|beside| way(beside, command)).collect();
    let there = match ways.len() {
        0 => return Err(failure),
        1 => "There is one in a working tree of its own",
        _ => "There are some in working trees of their own",
    };
    let message = failure.message.trim_end_matches('.');
    Err(Failure { message: format!("{message}. {there}: {}", ways.join(", ")), ..failure })
}

/// `` `ralph -C .ralph/worktrees/main log` (complete) ``
fn way(beside: &Beside, command: &str) -> String {
    let line = match command {
        "run" => goes_on(beside),
        "steer" => format!("{} steer \"…\"", there(beside)),
        command => format!("{} {command}", there(beside)),
    };
    format!("`{line}` ({})", beside.view.status.words())
}

fn there(beside: &Beside) -> String {
    format!("ralph -C {}", quoted(&place(beside)))
}

fn goes_on(beside: &Beside) -> String {
    format!("ralph run --continue --worktree={}", beside.worktree)
}

/// Its folder, as short as the shell's own folder allows.
fn place(beside: &Beside) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| beside.folder.strip_prefix(here).ok()).map(Path::to_owned);
    ui::path(&below.unwrap_or_else(|| beside.folder.clone()))
}

/// A loop in a working tree of its own, in one line, and where to ask about it.
pub(super) fn show(beside: &Beside) {
    let more = match beside.view.status {
        Status::Paused | Status::LeftBehind => format!("`{} status` says more, `{}` goes on", there(beside), goes_on(beside)),
        _ if beside.view.file.is_none() => format!("`{} report` shows how it went", there(beside)),
        _ => format!("`{} status` says more", there(beside)),
    };
    ui::paragraph(format!("{}  {} ({})", ui::bold(place(beside)), clean(&beside.view.line()), clean(&more)), 2);
}
