//! The `ralph` program. A hook call is decided here, before anything else is set up; everything else is a command.

#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]

mod columns;
mod commands;
mod doctor;
mod entry;
mod exit;
mod help;
mod hook;
mod page;
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
        None if !stdin().is_terminal() => hook::run(None),
        Some(word) if word == "hook" => match (args.next(), args.next()) {
            (None, _) => hook::run(None),
            (Some(host), None) if host == "claude" => hook::run(None),
            // A person asks for help, or mistypes; an agent with a mistyped registration is answered by the hook.
            (Some(_), _) if stdin().is_terminal() || std::env::args_os().any(|a| a == "--help" || a == "-h") => commands::run(),
            (Some(host), _) => hook::run(Some(&host)),
        },
        _ => commands::run(),
    }
}
