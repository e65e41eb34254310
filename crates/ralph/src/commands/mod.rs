//! The command line: one file for each command.

mod cancel;
mod demo;
mod doctor;
mod explain;
mod init;
mod list;
mod log;
mod pause;
mod pick;
mod plugin;
mod resume;
mod setting_up;
mod start;
mod status;
mod uninstall;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use ralph_engine::{ops::Asker, store::project::Project, sys::env};

use crate::exit;

/// Keeps a coding agent working until the work is proven done.
///
/// The agent tries to stop; ralph, called as its stop hook, lets it stop or sends it back with the reason.
#[derive(Parser)]
#[command(name = "ralph", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    /// The project's folder; otherwise found from the current folder upwards
    #[arg(short = 'C', long = "dir", global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  ralph demo
  ralph start \"Fix the failing tests\" --completion-promise DONE --max-iterations 20
  ralph status
  ralph explain

Exit codes: 0 done, 1 failed, 2 usage, 3 no loop";

#[derive(Subcommand)]
enum Command {
    /// Answer an agent's hook event (called by agents, not by people)
    Hook(HookArgs),
    Start(start::Args),
    Cancel(cancel::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Status(status::Args),
    List(list::Args),
    Log(log::Args),
    Explain(explain::Args),
    Init(init::Args),
    Uninstall(uninstall::Args),
    Doctor(doctor::Args),
    Plugin(plugin::Args),
    Demo(demo::Args),
}

/// Reads one event on standard input and answers on standard output, as one line of JSON or not at all.
#[derive(clap::Args)]
#[command(after_help = "Example, as a stop hook in .claude/settings.json:
  {\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"ralph\",\"args\":[\"hook\",\"claude\"],\"timeout\":60}]}]}}")]
struct HookArgs {
    /// The agent that calls
    #[arg(value_parser = ["claude"])]
    host: Option<String>,
}

pub(crate) fn run() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            // An agent's hook that is registered with a typo must not block the agent, which is what 2 means to it.
            let usage = if env::project_dir().is_some() { exit::FAILED } else { exit::USAGE };
            return if e.use_stderr() { usage } else { 0 };
        }
    };
    if let Some(dir) = cli.dir.as_deref().filter(|dir| !dir.is_dir()) {
        return exit::code(Err(exit::Failure::usage(format!("there is no folder {}", dir.display()))));
    }
    let project = match &cli.dir {
        Some(dir) => Project::at(std::path::absolute(dir).unwrap_or_else(|_| dir.clone())),
        None => Project::upwards_from(std::path::Path::new(".")),
    };
    let project = &project;
    exit::code(match cli.command {
        Command::Hook(_) => return crate::hook::run(None),
        Command::Start(args) => start::run(project, args),
        Command::Cancel(args) => cancel::run(project, &args),
        Command::Pause(args) => pause::run(project, &args),
        Command::Resume(args) => resume::run(project, &args),
        Command::Status(args) => status::run(project, &args),
        Command::List(args) => list::run(project, &args),
        Command::Log(args) => log::run(project, &args),
        Command::Explain(args) => explain::run(project, &args),
        Command::Init(args) => init::run(project, &args),
        Command::Uninstall(args) => uninstall::run(project, &args),
        Command::Doctor(args) => doctor::run(project, &args),
        Command::Plugin(args) => plugin::run(&args),
        Command::Demo(args) => demo::run(&args),
    })
}

/// A whole number from 0 on.
fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number from 0 on".to_owned())
}

/// A number of hours that makes sense.
fn hours(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|h: &f64| h.is_finite() && *h >= 0.0).ok_or_else(|| "must be a number from 0 on".to_owned())
}

fn name(text: &str) -> Result<String, String> {
    if ralph_core::loop_file::is_name(text) { Ok(text.to_owned()) } else { Err("use up to 64 letters, digits, - and _".to_owned()) }
}

/// Which loop is meant, where there are several.
#[derive(clap::Args)]
struct Which {
    /// A loop's name or id, as `ralph list` shows them
    #[arg(value_name = "LOOP")]
    which: Option<String>,
    /// The same, as an option
    #[arg(long = "name", value_name = "LOOP", hide = true, conflicts_with = "which")]
    name: Option<String>,
}

impl Which {
    fn get(&self) -> Option<&str> {
        self.which.as_deref().or(self.name.as_deref())
    }
}

/// Who is asking: a person in a terminal, or an agent's shell, whose session is in the environment.
fn asker() -> Asker {
    Asker { session: env::claude_session(), ..Asker::default() }
}
