//! `ralph list`: every loop of this project, live and ended.

use ralph_core::{time::in_words, words::of_limit};
use ralph_engine::{
    ops::view::{self, View},
    store::project::Project,
};

use crate::{exit::Done, text::when, ui};

/// List the loops of this project, live and ended
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph list
  ralph list --json")]
pub(crate) struct Args {
    /// For programs: JSON
    #[arg(long)]
    json: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "every command ends the same way")]
pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let all: Vec<View> = view::live(project).into_iter().chain(view::ended(project)).collect();
    if args.json {
        ui::json(&all);
        return Ok(());
    }
    if all.is_empty() {
        ui::line("No loop has run in this project yet.");
        return Ok(());
    }
    let width = all.iter().map(|v| v.id.len()).max().unwrap_or(0);
    ui::line(ui::dim(format!("{:<width$}  {:<24}  {:<9}  {:<12}  LAST EVENT", "LOOP", "STATUS", "ITERATION", "TIME")));
    for v in &all {
        let round = of_limit(v.iteration, v.max_iterations);
        let at = v.last_event_at.as_deref().map(when).unwrap_or_default();
        let status = format!("{:<24}", v.status.words());
        let status = if v.is_live() { status } else { ui::dim(status) };
        ui::line(format!("{:<width$}  {status}  {round:<9}  {:<12}  {at}", v.id, in_words(v.spent_ms)));
    }
    Ok(())
}
