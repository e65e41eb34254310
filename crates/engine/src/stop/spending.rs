//! A loop's spending: the transcripts of the session and its subagents, read on from where the last stop left off.
//!
//! Counted only where the loop has a limit on money, and from the start that its file names; a loop that was written by hand without one begins with its first
//! stop. Use while the loop is paused is the person's own.

use std::path::Path;

use ralph_core::{journal::Spending, text::time::Millis};

use super::Stop;
use crate::{hosts::usage, store::project_lock::Loop};

/// The loop's spending until now. A run charges its sessions itself.
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
