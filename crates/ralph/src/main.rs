//! The `ralph` program. A hook call is decided here, before anything else is set up; everything else is a command.

#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]

mod commands;
mod entry;
mod exit;
mod hook;
mod text;
mod ui;

use std::io::{IsTerminal, stdin};

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
use entry::main;

/// Runs the program; the result is its exit code.
fn start() -> u8 {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        // Clients without the exec form run the bare command: JSON on standard input and no argument mean a hook call.
        None if !stdin().is_terminal() => hook::run(),
        Some(word) if word == "hook" => match args.next() {
            None => hook::run(),
            Some(host) if host == "claude" && args.next().is_none() => hook::run(),
            Some(_) => commands::run(),
        },
        _ => commands::run(),
    }
}
