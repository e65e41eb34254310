//! The `ralph-fleet` program; `ralph fleet …` finds it.

use std::process::ExitCode;

use ralph_fleet::commands;

fn main() -> ExitCode {
    ralph_engine::sys::signals::outlive_limits_on_files();
    ExitCode::from(commands::run())
}
