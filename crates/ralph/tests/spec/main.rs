//! What the product promises, from outside: everything here drives the real `ralph` program as an agent or a person would, in sealed
//! projects, and looks only at what it prints, what it returns and what it leaves on disk.
//!
//! Test names carry the ids of `docs/requirements.md` (`s0_5_…` proves S0-5, `pains_9_…` the ninth complaint of
//! the field), so that a search for an id finds its proof.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests: they fail loudly, and make their own files and processes"
)]

mod api_errors;
mod blocked;
mod brakes;
mod bundle;
mod claims;
mod commands;
mod common;
mod completions;
mod context;
mod counted;
mod crash;
mod demo;
mod diff;
mod docs;
mod doctor;
mod driven;
mod eyes_log;
mod eyes_status;
mod eyes_statusline;
mod features;
mod first_minutes;
mod forged;
mod gate;
mod gate_commands;
mod gate_leftovers;
mod gated;
mod gates;
mod git_attacks;
mod help;
mod hook_events;
mod hook_stop;
mod hosts;
mod hub;
mod in_tmux;
mod item;
mod json;
mod limits;
mod loop_file;
mod man;
mod notify;
mod ownership;
mod phase;
mod pr_attacks;
mod privacy;
mod progress;
mod pull_requests;
mod races;
mod readme;
mod report;
mod robustness;
mod rollback;
mod run;
mod run_attacks;
mod run_command_line;
mod screen;
mod sealed;
mod session_news;
mod setup;
mod slash;
mod slow_input;
mod snapshots;
mod steer;
mod told;
mod trust;
mod verify;
mod waiting;
mod waiting_disturbed;
mod watch;
mod who_may_command;
mod wire;
mod worktree;
