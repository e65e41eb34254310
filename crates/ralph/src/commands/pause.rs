//! `ralph pause`: let the agent stop without ending the loop.

use ralph_core::text::of_limit;
use ralph_engine::{
    hosts::claude::compaction::Compaction,
    ops::{
        Refusal,
        cancel::leftovers,
        pause::{self, Paused},
    },
    store::project::Project,
};

use crate::{
    commands::{Which, asker, show},
    exit::Done,
    report,
};

/// Pause a loop: stops are allowed and nothing is counted until `ralph resume`
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph pause
  ralph pause docs")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// For programs: the loop as JSON, as `ralph status --json` shows it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let paused = act(project, args.which.get())?;
    show(project, &paused.id, args.json, line(&paused));
    report::save_page(project, &paused.id);
    Ok(())
}

pub(crate) fn act(project: &Project, which: Option<&str>) -> Result<Paused, Refusal> {
    let paused = pause::pause(project, which, &asker())?;
    // The session's next hook would do it, too.
    let _ = Compaction::heal(project);
    Ok(paused)
}

pub(crate) fn line(paused: &Paused) -> String {
    let iteration = of_limit(paused.iteration, paused.max_iterations);
    let state = if paused.already { "was paused already" } else { "is paused" };
    let runner = paused.runner_pid.map(|pid| format!(" `ralph run` (pid {pid}) ends after this iteration.")).unwrap_or_default();
    let goes_on = if paused.by_run { "ralph run --continue" } else { "ralph resume" };
    let leftovers = leftovers(paused.leftovers);
    format!("Ralph loop {state} at iteration {iteration}.{runner} `{goes_on}` goes on.{leftovers}")
}
