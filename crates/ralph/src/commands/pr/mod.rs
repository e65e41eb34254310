//! `ralph pr`: where the branch's pull request stands, and waiting for its checks.

mod phase;
mod progress;
mod wait;

use ralph_engine::store::project::Project;

use crate::{commands::Which, exit::Done};

/// Show where the branch's pull request stands, or wait for its checks
///
/// Asks git about this branch, and GitHub, through gh, about its pull request and the checks on its head commit. p0: there is no open pull request. p1: it needs
/// work, because CI is red, because commits are not pushed, or because it has conflicts. pending: CI has not decided. p2: CI is green, or it is merged.
/// unknown: could not check, and why (exit code 1). With a loop that is about a pull request it speaks of that loop's; otherwise of the branch that is checked out.
///
/// With --wait it waits until whatever the loop waits for is decided, and no model runs meanwhile. Exit code 0 once it is decided, good or bad; 1 if only a person
/// can go on; 75 if the time is up first.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph pr
  ralph pr --json | jq -r .phase
  ralph pr --wait --timeout 30m || echo 'still not decided'
  ralph pr --wait && claude --continue -p /ralph-resume")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Wait until the checks, or whatever else the loop waits for, are decided
    #[arg(long)]
    wait: bool,
    /// With --wait: no longer than this: 90s, 10m, 2h, or seconds [default: 8h]
    #[arg(long, value_name = "TIME", value_parser = ralph_core::gate::Command::parse_deadline, requires = "wait")]
    timeout: Option<u64>,
    /// For programs: JSON
    #[arg(long)]
    json: bool,
}

/// How long is waited unless the command line says: 8 hours.
const LONGEST: u64 = 8 * 3_600_000;

pub(crate) fn run(project: &Project, args: Args) -> Done {
    let Args { which, wait, timeout, json } = args;
    if wait {
        wait::until_decided_or(project, which.get(), timeout.unwrap_or(LONGEST), json)
    } else {
        phase::tell(project, which.get(), json)
    }
}
