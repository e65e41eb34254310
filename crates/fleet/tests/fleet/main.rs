//! `ralph fleet` as a person uses it: the real programs, the real git, and agents that are shell scripts.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::disallowed_methods, reason = "tests")]

mod attacks;
mod bad_input;
mod bed;
mod clients;
mod documents;
mod eyes;
#[path = "../common/histories.rs"]
mod histories;
mod landing;
mod machines;
mod page;
mod people;
mod slots;
