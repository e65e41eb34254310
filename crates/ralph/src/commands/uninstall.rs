//! `ralph uninstall`: undo what `ralph init` did.

use ralph_core::words::clean;
use ralph_engine::{
    ops::view,
    setup::{
        places::{Places, Scope},
        record::Records,
        survey::Survey,
        uninstall,
    },
    store::project::Project,
};

use crate::{
    commands::setting_up::{self, Scopes},
    exit::Done,
    text::quoted,
    ui,
};

/// Take the hook and the commands out again, leaving every file as it was
///
/// Without a scope: wherever the hook is registered for you and for this project. Loops, journals and the program itself stay.
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
    let places = Places::of(project);
    let records = Records::of_user();
    let survey = Survey::take(&places);
    let scopes = args.scopes.one().map_or(Scope::ALL.to_vec(), |scope| vec![scope]);
    let plan = uninstall::plan(&places, &survey, &records, &scopes)?;
    let changed = setting_up::carry_out(&plan, &records, args.dry_run)?;
    ui::line(match (changed, args.dry_run) {
        (false, _) => "There is nothing to undo: the hook is registered in none of these files.",
        (true, true) => "Nothing was changed: this was a dry run.",
        (true, false) => "Undone.",
    });
    if let Some(plugin) = survey.our_plugin() {
        ui::line(format!("The plugin is still there: `claude plugin uninstall {}` takes it out.", clean(&quoted(&plugin.id))));
    }
    if changed && !args.dry_run && !view::live(project).is_empty() {
        ui::line("A loop is live in this project; without the hook nothing holds the agent to it. `ralph cancel` archives it.");
    }
    Ok(())
}
