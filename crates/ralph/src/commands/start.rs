//! `ralph start`: begin a loop.

use std::sync::Arc;

use ralph_core::text::messages::clean;
use ralph_engine::{
    gates::loop_start,
    ops::{Asker, start},
    store::project::Project,
    sys::signals,
    view::phase,
};

use crate::{
    commands::{asker, new_loop::NewLoop, show_json, start_progress},
    doctor::Case,
    exit::{Done, told},
    ui,
};

/// Start a loop in this project
///
/// The loop belongs to the session given with --session, or to the agent's session that runs this command; otherwise
/// the first session that stops in this project takes it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph start \"Make all tests pass\" --completion-promise DONE --verify \"cargo test\" --deadline 10m
  ralph start --prompt-file TASK.md --hours 2
  git diff | ralph start --stdin --completion-promise REVIEWED")]
pub(crate) struct Args {
    #[command(flatten)]
    wanted: NewLoop,
    /// The session that the loop belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// For programs: the loop as JSON, as `ralph status --json` shows it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: Args) -> Done {
    told(args.json, start(project, args))
}

fn start(project: &Project, args: Args) -> Done {
    let request = args.wanted.request()?;
    let caller = asker();
    let asker = Asker { session: args.session.or(caller.session.clone()), ..caller };
    let started = start::start(project, &request, &asker)?;
    let begun = loop_start::note(project, &started.id, &started.file, start_progress::BUDGET, Arc::new(start_progress::Running));
    let phase = phase::at_the_start(project, &started.id, &begun.declared, &signals::asked_to_end);
    let case = Case::of(project);
    if args.json {
        show_json(project, &started.id);
        case.warn();
        return Ok(());
    }
    ui::line(format!("{} {}", ui::good("Ralph loop started:"), ui::bold(clean(&started.id))));
    for limit in started.limits(case.survey.block_cap().as_deref()) {
        ui::paragraph(format!("  {}", clean(&limit)), 4);
    }
    for told in begun.told() {
        ui::paragraph(format!("  {}", clean(&told)), 4);
    }
    if let Some(phase) = phase {
        ui::paragraph(format!("  {phase}"), 4);
    }
    ui::field("file", started.path.display());
    match started.file.session_id {
        Some(session) => ui::field("session", session),
        None => {
            let root = ui::path(project.root());
            ui::paragraph(format!("The first session that stops takes it: start the agent in {root} and tell it to begin."), 0);
        }
    }
    case.warn();
    Ok(())
}
