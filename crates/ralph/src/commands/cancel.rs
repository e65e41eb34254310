//! `ralph cancel`: end a loop now.

use ralph_engine::{ops::cancel, store::project::Project};

use crate::{commands::asker, exit::Done, ui};

/// End a loop now; its file moves to the archive
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph cancel
  ralph cancel --name docs")]
pub(crate) struct Args {
    /// Which loop, where there are several
    #[arg(long)]
    name: Option<String>,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let cancelled = cancel::cancel(project, args.name.as_deref(), &asker())?;
    ui::line(cancelled.line());
    Ok(())
}
