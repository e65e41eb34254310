//! `ralph demo`: a loop from start to end, with a scripted agent and the real hook.
//!
//! Only the agent is played. The project is a real folder, every event goes to this very program as Claude Code would send it, and what is shown
//! of ralph is what it answered.

mod client;
mod notes;
mod script;
mod stage;

use ralph_engine::sys::temp_dir::{self, Scratch};

use crate::exit::{Done, Failure};

use self::{client::Client, notes::Notes, stage::Stage};

const PREFIX: &str = "ralph-demo-";

/// Watch ralph at work: a scripted agent, a real project, the real hook
///
/// Takes about ten seconds, in a temporary folder; needs no agent, no account and no network.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph demo
  ralph demo --fast
  ralph demo --keep        and then look around with ralph log, ralph explain 2, …")]
pub(crate) struct Args {
    /// Without pauses
    #[arg(long)]
    fast: bool,
    /// Keep the folder, and say where it is
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(args: &Args) -> Done {
    temp_dir::remove_leftovers(PREFIX);
    let cannot = |e| Failure::new(format!("cannot make a folder in {}: {e}", std::env::temp_dir().display()));
    let folder = Scratch::create(PREFIX, args.keep).map_err(cannot)?;
    let project = folder.path().join("notes");
    let notes = Notes::write(&project)?;
    let mut client = Client::new(&project, folder.path().join("state"));
    let mut stage = Stage::new(args.fast);
    script::play(&mut stage, &mut client, &notes)?;
    script::farewell(&mut stage, &client, args.keep.then_some(project.as_path()));
    Ok(())
}
