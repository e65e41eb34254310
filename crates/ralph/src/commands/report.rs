//! `ralph report`: one page about a loop, for the morning after.

use std::path::{Path, PathBuf};

use clap::ValueHint;
use ralph_engine::{
    store::{page, project::Project},
    sys::process,
};

use crate::{
    commands::Which,
    exit::{Done, told},
    report, ui,
};

/// Write one page about a loop: how it went, what is proven, what needs you
///
/// The page is HTML that needs nothing but itself: no network, no script. It says how the loop ended and why, what needs a person, what proves each thing that had
/// to hold, where the time and the money went, which claims were refused, and how to replay and undo it. Without an option it lies in .ralph/reports.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph report --open
  ralph report main-20261115-093000 --html report.html
  ralph report --markdown | gh pr comment --body-file -
  ralph report --json | jq '.cost.per_verified'")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Write the page there; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,
    /// Show the page in the browser
    #[arg(long)]
    open: bool,
    /// Print it in short as Markdown, for a pull request or a CI summary
    #[arg(long, conflicts_with_all = ["html", "open"])]
    markdown: bool,
    /// For programs: everything as JSON (schemas/report.schema.json)
    #[arg(long, conflicts_with_all = ["html", "open", "markdown"])]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    told(args.json, report(project, args))
}

fn report(project: &Project, args: &Args) -> Done {
    let is_printed = args.html.as_deref() == Some(Path::new("-"));
    if args.json || args.markdown || is_printed {
        let gathered = report::gather(project, args.which.get())?;
        if args.json {
            ui::json(&gathered);
        } else {
            let text = if args.markdown { report::markdown(&gathered) } else { report::page(&gathered) };
            ui::line(text.trim_end());
        }
        return Ok(());
    }
    let id = report::meant(project, args.which.get())?;
    let path = args.html.clone().map_or_else(|| page::place(project, &id), Ok)?;
    let written = report::write(project, &id, &path)?;
    ui::paragraph(&written.sentence, 0);
    ui::line(ui::path(&path));
    if args.open && !process::open_in_browser(&path, project.root()) {
        ui::note("No program was found that opens pages: open it yourself.");
    }
    Ok(())
}
