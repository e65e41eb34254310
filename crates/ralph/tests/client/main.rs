//! The suite with the real Claude Code client: the built binary is its hook, and a scripted model answers. What these tests prove is what a
//! person gets.
//!
//! A client takes most of a core while it starts, so the test kit bounds how many of them run at once; the number of test threads need not.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "tests: they fail loudly, and make their own files and processes"
)]

#[macro_use]
mod real;

mod carried;
mod claims;
mod command;
mod costs;
mod counted;
mod gates;
mod host_screens;
mod hosts;
mod preflight;
mod print;
mod pull_requests;
mod run;
mod run_acp;
mod run_agents;
mod session_news;
mod setup;
mod several_agents;
mod stops;
mod tui;
mod waits;
