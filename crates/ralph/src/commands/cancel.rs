//! `ralph cancel`: end a loop now.

use ralph_engine::{ops::cancel, store::project::Project};

use crate::{
    commands::{Which, asker},
    exit::Done,
    ui,
};

/// End a loop now; its file moves to the archive
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph cancel
  ralph cancel docs")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let cancelled = cancel::cancel(project, args.which.get(), &asker())?;
    ui::line(cancelled.line());
    Ok(())
}
