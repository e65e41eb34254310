//! `ralph pause`: let the agent stop without ending the loop.

use ralph_core::words::of_limit;
use ralph_engine::{ops::pause, store::project::Project};

use crate::{commands::asker, exit::Done, ui};

/// Pause a loop: stops are allowed and nothing is counted until `ralph resume`
#[derive(clap::Args)]
#[command(after_help = "Example:
  ralph pause && ralph resume")]
pub(crate) struct Args {
    /// Which loop, where there are several
    #[arg(long)]
    name: Option<String>,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let (iteration, max) = pause::pause(project, args.name.as_deref(), "asked for at the command line", &asker())?;
    ui::line(format!("Ralph loop paused at iteration {}. `ralph resume` goes on.", of_limit(iteration, max)));
    Ok(())
}
