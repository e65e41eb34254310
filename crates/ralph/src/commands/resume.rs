//! `ralph resume`: go on with a paused, left-behind or ended loop.

use ralph_core::text::{clean, of_limit};
use ralph_engine::{
    ops::resume::{self, Resumed},
    store::project::Project,
};

use crate::{
    commands::{Which, asker, loop_flags::LoopFlags, show_json},
    doctor::Case,
    exit::Done,
    ui,
};

/// Resume a paused, left-behind or ended loop at the iteration where it was
///
/// Without a name, the only live loop is meant, else the one that ended last. A loop of `ralph run` that is paused in its last iteration goes on there; after
/// the run has ended, `ralph run --continue` goes on with it, or a session if --session is given.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph resume
  ralph resume --max-iterations 40
  ralph resume main-20261115-093000 --hours 2")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    limits: LoopFlags<false>,
    /// Resume the loop even if it is complete
    #[arg(long)]
    again: bool,
    /// The session that gets the loop; without ID the next one that stops here
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    session: Option<String>,
    /// For programs: the loop as JSON, as `ralph status --json` shows it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let request = resume::Request {
        which: args.which.get().map(str::to_owned),
        settings: args.limits.0.clone(),
        session: args.session.clone().filter(|id| !id.is_empty()),
        to_a_session: args.session.is_some(),
        again: args.again,
        goes_on: false,
    };
    let resumed = resume::resume(project, &request, &asker())?;
    if args.json {
        show_json(project, &resumed.id);
    } else {
        for line in lines(project, &resumed) {
            ui::paragraph(line, 0);
        }
        if !resumed.edits.is_empty() {
            let edits = clean(&resumed.edits.join(", "));
            ui::paragraph(format!("Edited in its file since ralph last saw it, and counting now: {edits}."), 0);
        }
    }
    Case::of(project).warn_of_gates();
    Ok(())
}

/// Its state, and who goes on with it.
pub(crate) fn lines(project: &Project, resumed: &Resumed) -> [String; 2] {
    let iteration = of_limit(resumed.file.iteration, resumed.file.max_iterations());
    if let Some(pid) = resumed.runner_pid {
        let state = format!("Ralph loop {} is not paused any more, at iteration {iteration}.", ui::bold(clean(&resumed.id)));
        return [state, format!("`ralph run` (pid {pid}) goes on after this iteration, unless it was told to end then (-n, Ctrl-C).")];
    }
    let state = if resumed.was_active { "was active all along" } else { "is active again" };
    let root = ui::path_from_home(project.root());
    let next = match &resumed.owner {
        Some(session) => format!("Session {} has it: tell the agent there to go on.", clean(session)),
        None => format!("The next session that stops takes it: start the agent in {root} and tell it to go on."),
    };
    [format!("Ralph loop {} {state} at iteration {iteration}.", ui::bold(clean(&resumed.id))), next]
}
