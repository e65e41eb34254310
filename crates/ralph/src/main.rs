//! The `ralph` program. Hook calls and status lines are decided here, before anything else is set up; everything else is a command.

#![cfg_attr(all(target_os = "linux", not(test)), no_main)]

mod advice;
mod agent_names;
mod agents_shell;
mod arena;
mod commands;
mod doctor;
#[cfg(all(target_os = "linux", not(test)))]
mod entry;
mod exit;
mod find_loop;
mod help;
mod hook;
mod journal_lines;
mod report;
mod run_wording;
mod statusline;
mod term;
mod watch;

use std::{
    ffi::OsString,
    io::{IsTerminal, stdin},
};

use ralph_engine::hosts::{Host, WAIT};
use term::ui;

#[global_allocator]
static MEMORY: arena::Arena = arena::Arena::new();

/// Where C does not call us (see `entry.rs`), and in tests of the program's parts.
#[cfg(not(all(target_os = "linux", not(test))))]
fn main() -> std::process::ExitCode {
    ralph_engine::sys::signals::outlive_limits_on_files();
    std::process::ExitCode::from(start())
}

#[cfg(all(target_os = "linux", not(test)))]
use entry::args;

/// The command line, the program first.
#[cfg(not(all(target_os = "linux", not(test))))]
fn args() -> Vec<OsString> {
    std::env::args_os().collect()
}

fn start() -> u8 {
    let mut args = args().into_iter().skip(1);
    match args.next() {
        // Clients without the exec form run the bare command: JSON on standard input and no argument mean a hook call.
        None if !stdin().is_terminal() => hook::run_bare().unwrap_or_else(commands::run),
        Some(word) if word == "hook" => called_as_hook(&args.collect::<Vec<_>>()),
        Some(word) if word == "statusline" => called_for_statusline(&args.collect::<Vec<_>>()),
        _ => commands::run(),
    }
}

/// Mostly no argument parser is needed. A client that asks gets a line in any case: with another exit code than 0 it shows nothing, not even why.
fn called_for_statusline(args: &[OsString]) -> u8 {
    if let Some(code) = statusline::without_parser(args) {
        return code;
    }
    let code = commands::run();
    if code != 0 && !stdin().is_terminal() {
        ui::line("ralph statusline: this command line is not known, see `ralph statusline --help`");
        return 0;
    }
    code
}

/// A person asks for help, or mistypes; an agent is answered by the hook, however odd its registration is.
fn called_as_hook(args: &[OsString]) -> u8 {
    let asks = |args: &[OsString]| stdin().is_terminal() || args.iter().any(|a| a == "--help" || a == "-h");
    if !hook::is_registered_so(args) && asks(args) {
        return commands::run();
    }
    if hook::sends_news(args) {
        return 0;
    }
    if args.iter().any(|arg| arg == WAIT) {
        return hook::wait();
    }
    let is_known = |host: &OsString| host.to_str().is_some_and(|name| name.starts_with('-') || Host::by_name(name).is_some());
    let unknown = args.first().filter(|host| !is_known(host));
    hook::run(unknown.map(OsString::as_os_str))
}
