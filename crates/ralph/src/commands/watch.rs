//! `ralph watch`: a loop on the whole screen, as it goes.

use std::io::{IsTerminal, stdin, stdout};

use ralph_core::text::time::in_words;
use ralph_engine::{
    ops::{
        Refusal,
        cancel::{Cancelled, leftovers},
        resume, steer,
    },
    store::project::Project,
    sys::env,
};

use crate::{
    commands::{self, Which, asker},
    exit::{Done, Failure},
    watch::{self, Act},
};

/// Watch a loop as it goes: limits, gates, what the agent does
///
/// Watching disturbs nothing; keys pause, resume, cancel and steer the loop as the commands do. `?` shows all keys, q leaves.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph watch
  ralph watch docs
  ralph watch --all")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// The loops of all your projects
    #[arg(short, long, conflicts_with = "which")]
    all: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let instead = "`ralph status` shows where a loop stands, `ralph log -f` what happens to it";
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::usage(format!("`ralph watch` needs a terminal: {instead}")));
    }
    if env::is_dumb_terminal() {
        return Err(Failure::usage(format!("`ralph watch` cannot draw on this terminal (TERM): {instead}")));
    }
    watch::run(project, args.which.get(), args.all, act)
}

/// Does what a key asks for, as the command of that name does it.
fn act(project: &Project, id: &str, act: &Act) -> Result<String, Refusal> {
    match act {
        Act::Pause => commands::pause::act(project, Some(id)).map(|paused| commands::pause::line(&paused)),
        Act::Cancel => commands::cancel::act(project, Some(id)).map(|cancelled| of_cancel(&cancelled)),
        Act::Steer(note) => steer::leave(project, Some(id), note, &asker()).map(|left| commands::steer::line(&left)),
        Act::Resume => {
            let request = resume::Request { which: Some(id.to_owned()), ..resume::Request::default() };
            let resumed = resume::resume(project, &request, &asker())?;
            Ok(commands::resume::lines(project, &resumed).join(" "))
        }
    }
}

/// Without advice: the screen says what to type next.
fn of_cancel(cancelled: &Cancelled) -> String {
    format!(
        "Ralph loop cancelled at iteration {} ({}).{}",
        cancelled.iteration,
        in_words(cancelled.spent_ms),
        leftovers(cancelled.leftovers)
    )
}
