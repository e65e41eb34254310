//! `ralph cancel`: end a loop now.

use ralph_core::{messages::Reader, text::clean};
use ralph_engine::{
    hosts::claude::compaction::Compaction,
    ops::{
        Refusal,
        cancel::{self, Cancelled},
    },
    store::project::Project,
};

use crate::{
    commands::{Which, asker, show},
    exit::Done,
    report,
};

/// End a loop now; its file moves to the archive
///
/// The agent may stop from now on. `ralph resume` brings the loop back.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph cancel
  ralph cancel docs")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// For programs: the loop as JSON, as `ralph status --json` shows it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let cancelled = act(project, args.which.get())?;
    show(project, &cancelled.id, args.json, clean(&cancelled.line(Reader::Terminal)));
    report::save_page(project, &cancelled.id);
    Ok(())
}

pub(crate) fn act(project: &Project, which: Option<&str>) -> Result<Cancelled, Refusal> {
    let cancelled = cancel::cancel(project, which, &asker())?;
    // The session's next hook would do it, too.
    let _ = Compaction::heal(project);
    Ok(cancelled)
}
