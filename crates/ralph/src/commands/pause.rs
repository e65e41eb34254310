//! `ralph pause`: let the agent stop without ending the loop.

use ralph_core::words::of_limit;
use ralph_engine::{ops::pause, store::project::Project};

use crate::{
    commands::{Which, asker},
    exit::Done,
    ui,
};

/// Pause a loop: stops are allowed and nothing is counted until `ralph resume`
#[derive(clap::Args)]
#[command(after_help = "Example:
  ralph pause && ralph resume")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let paused = pause::pause(project, args.which.get(), &asker())?;
    let round = of_limit(paused.iteration, paused.max_iterations);
    let state = if paused.already { "was paused already" } else { "is paused" };
    ui::line(format!("Ralph loop {state} at iteration {round}. `ralph resume` goes on."));
    Ok(())
}
