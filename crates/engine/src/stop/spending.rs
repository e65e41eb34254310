//! What a loop has spent: the session's transcripts and those of its subagents, read on from where the stop before left off.
//!
//! Only a loop with a limit on money is looked at. What counts is newer than the loop's start, as its file has it; a loop that was written by hand without
//! one begins with its first stop. What is used while it is paused is the person's own.

use std::path::Path;

use ralph_core::{journal::Spending, text::time::Millis};

use super::Stop;
use crate::{hosts::usage, store::project_lock::Loop};

/// What the loop has spent until now. A run charges what its sessions used.
pub(super) fn count(stop: &Stop<'_>, l: &Loop, at: Millis) -> Option<Spending> {
    let hook = stop.hook().filter(|_| l.file.max_usd_micros() > 0 && l.state.runner.is_none());
    let Some(hook) = hook else { return l.state.spending.clone() };
    let mut spending = l.state.spending.clone().unwrap_or_else(|| Spending::since(l.file.began().unwrap_or(at)));
    if l.file.active {
        usage::read_on(&mut spending, Path::new(hook.transcript));
    } else {
        spending.since = at;
    }
    Some(spending)
}
