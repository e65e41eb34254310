//! Developer tools, run as `cargo xtask <command>`: how fast is the hook, has it grown, are the generated files fresh; what people install; and the pictures of the README.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a tool for developers: it prints, and it starts programs and writes files outside of any user's project"
)]

#[cfg(unix)]
mod bench;
mod cargo;
mod dist;
mod fuzz;
mod generate;
mod hot_functions;
mod instructions;
#[cfg(unix)]
mod picture;
mod scene;
mod transcript;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Whatever went wrong, in words: a developer reads it once.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How a command came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// A target was missed, a count grew, a file is stale.
    Bad,
    /// The check cannot be made on this machine; the reason was printed.
    Skipped,
}

impl Verdict {
    pub(crate) fn when(good: bool) -> Self {
        if good { Verdict::Good } else { Verdict::Bad }
    }
}

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Developer tools of ralph",
    after_help = "Exit codes: 0 all is well · 1 a target is missed, a count grew or a file is stale · 2 usage · 77 cannot be checked here"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(unix)]
    Bench(bench::Args),
    Instructions(instructions::Args),
    Dist(dist::Args),
    Generate(generate::Args),
    #[cfg(unix)]
    Picture(picture::Args),
    Fuzz(fuzz::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        #[cfg(unix)]
        Command::Bench(args) => bench::run(&args),
        Command::Instructions(args) => instructions::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Generate(args) => generate::run(&args),
        #[cfg(unix)]
        Command::Picture(args) => picture::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
    };
    match done {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::FAILURE,
        // What other test tools use for "skipped".
        Ok(Verdict::Skipped) => ExitCode::from(77),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
