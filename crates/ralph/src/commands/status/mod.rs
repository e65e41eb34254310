//! `ralph status`: where the loops of this project stand, at a glance.

mod page;

use ralph_core::text::clean;
use ralph_engine::{
    store::{known_projects, project::Project},
    view::{self, Status, View, status::Standing},
};

use crate::{
    advice::REPORT,
    commands::{Which, worktree_hint},
    exit::{Done, Failure},
    find_loop,
    journal_lines::last_event,
    term::{one_line::Brief, width::cut},
    ui,
};

/// Show where the loops of this project stand
///
/// The exit code is 3 if there is none; how the last one ended is shown then. The JSON is what schemas/status.schema.json says.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph status
  ralph status --all
  ralph status --json | jq '.loops[0].iteration'")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// The loops of all your projects, live and ended, a line for each
    #[arg(short, long, conflicts_with = "which")]
    all: bool,
    /// For programs: JSON, always with exit code 0
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    if args.all {
        return everywhere(project, args.json);
    }
    if let Some(which) = args.which.get() {
        return one(project, which, args.json);
    }
    let standing = Standing::of(project);
    if args.json {
        ui::json(&standing);
        return Ok(());
    }
    standing.loops.iter().for_each(page::show);
    standing.worktrees.iter().for_each(worktree_hint::show);
    if !standing.loops.is_empty() || !standing.worktrees.is_empty() {
        return Ok(());
    }
    let Some(ended) = &standing.last_ended else { return Err(find_loop::none_yet()) };
    ui::paragraph(format!("Last loop: {} {}, {}. {REPORT}", clean(&ended.id), ended.ended(), last_event(ended)), 0);
    Err(Failure::no_loop())
}

fn one(project: &Project, which: &str, json: bool) -> Done {
    let standing = Standing::of_loop(project, which).ok_or_else(|| find_loop::no_such(which))?;
    if json {
        ui::json(&standing);
    } else {
        standing.loops.iter().chain(&standing.last_ended).for_each(page::show);
    }
    Ok(())
}

fn everywhere(project: &Project, json: bool) -> Done {
    let projects = known_projects::with(project);
    let standing = Standing::of_all(&projects);
    if json {
        ui::json(&standing);
        return Ok(());
    }
    for project in &projects {
        let live: Vec<&View> = standing.loops.iter().filter(|view| view.project == project.root()).collect();
        let ended = view::ended(project);
        if !live.is_empty() || !ended.is_empty() {
            ui::line(ui::bold(ui::path_from_home(project.root())));
        }
        for view in live {
            let state = if view.status == Status::Active { " active" } else { "" };
            let brief = Brief::of(view, &format!("{}{state}", clean(&view.id)), None);
            ui::line(format!("  {}", brief.fitted(ui::width().map(|width| width.saturating_sub(2)))));
        }
        those_that_ended(&ended);
    }
    standing.worktrees.iter().for_each(worktree_hint::show);
    if standing.loops.is_empty() && standing.worktrees.is_empty() {
        return Err(Failure { message: "No active Ralph loop in any project".to_owned(), ..Failure::no_loop() });
    }
    Ok(())
}

/// More loops of a project than this that ended are counted.
const ENDED: usize = 20;

/// Each with its id, by which it can be brought back.
fn those_that_ended(ended: &[View]) {
    for view in ended.iter().take(ENDED) {
        let line = format!("  {}  {}, {}  {}", clean(&view.id), view.ended(), last_event(view), clean(&view.prompt));
        ui::line(ui::dim(ui::width().map_or(line.clone(), |width| cut(&line, width))));
    }
    if ended.len() > ENDED {
        ui::line(ui::dim(format!("  and {} more that ended before", ended.len() - ENDED)));
    }
}
