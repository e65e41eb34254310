//! `ralph uninstall`: undo what `ralph init` did.

use ralph_core::text::clean;
use ralph_engine::{
    setup::{
        places::{Places, Scope},
        record::Records,
        survey::{Origin, Survey},
        uninstall,
    },
    store::project::Project,
    view,
};

use crate::{
    commands::setup::{self, Scopes},
    exit::Done,
    text::quoted,
    ui,
};

/// Remove the hook and the commands, and restore every file
///
/// Without a scope: what is yours, here and in all projects, and the project's settings if it was you who set them up. Loops, journals and the program stay.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph uninstall
  ralph uninstall --local
  ralph uninstall --dry-run")]
pub(crate) struct Args {
    #[command(flatten)]
    scopes: Scopes,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let _alone = Records::alone();
    let places = Places::of(project);
    let records = Records::of_user();
    let survey = Survey::take(&places);
    let scopes = args.scopes.one().map_or_else(|| uninstall::own_scopes(&places, &records), |scope| vec![scope]);
    let (plan, problems) = uninstall::plan(&places, &survey, &records, &scopes);
    let changed = setup::carry_out(&plan, &records, args.dry_run)?;
    ui::line(match (changed, args.dry_run) {
        (false, _) => "There is nothing to undo: the hook is registered in none of these files.",
        (true, true) => "Nothing was changed: this was a dry run.",
        (true, false) => "Undone.",
    });
    if let Some(plugin) = survey.our_plugin() {
        ui::line(format!("The plugin is still installed: `claude plugin uninstall {}` removes it.", clean(&quoted(&plugin.id))));
    }
    if changed && !args.dry_run && !view::live(project).is_empty() {
        ui::line("A loop is live in this project; without the hook, agents may stop at any time. `ralph cancel` archives it.");
    }
    let of_project = survey.ours().iter().any(|r| r.origin == Origin::Settings(Scope::Project));
    if of_project && !scopes.contains(&Scope::Project) {
        ui::line("The project's settings register it for everyone; `ralph uninstall --project` removes it there.");
    }
    match problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(problem.into()),
    }
}
