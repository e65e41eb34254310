//! The `ralph` program. A hook call is decided here, before anything else is set up; everything else is a command.

mod commands;
mod exit;
mod hook;
mod text;
mod ui;

use std::{
    io::{IsTerminal, stdin},
    process::ExitCode,
};

fn main() -> ExitCode {
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
