//! `ralph bundle`: a loop as one file, for another folder or machine.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};
use ralph_engine::{
    ops::bundle::{self, Carried},
    store::project::Project,
    sys::files,
};
use serde_json::json;

use crate::{
    commands::Which,
    exit::{Done, Failure},
    ui,
};

/// Write a loop to one file, or take it from one, to go on elsewhere
///
/// The file holds the loop with its journal, and what ralph believes about it: limits, counts, proofs. Whoever can write it decides what counts as proven, so
/// import only what you exported. The project's own files, and snapshots, travel with git.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  ralph bundle export ~/fix.bundle
  ralph -C ../clone bundle import --trust ~/fix.bundle && ralph -C ../clone run --continue"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write a loop that is paused, parked or ended to a file
    Export {
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        #[command(flatten)]
        which: Which,
        /// For programs: JSON
        #[arg(long)]
        json: bool,
    },
    /// Put the loop of a file into this project
    Import {
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The same loop may be here, in an older state; it is overwritten
        #[arg(long)]
        replace: bool,
        /// Run here what it ran with: its own --verify commands, if they were trusted there, its agent and permission mode
        #[arg(long)]
        trust: bool,
        /// For programs: JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    match &args.what {
        What::Export { file, which, json } => {
            let (carried, bytes) = bundle::export(project, which.get())?;
            files::replace_private(file, &bytes).map_err(Failure::cannot_write(file))?;
            show(&carried, *json, &format!("is in {}", file.display()));
        }
        What::Import { file, replace, trust, json } => {
            let bytes = files::read(file, bundle::MAX_BYTES).map_err(Failure::cannot_read(file))?;
            let carried = bundle::import(project, &bytes, bundle::Import { replace: *replace, trust: *trust })?;
            show(&carried, *json, "is here now; `ralph run --continue` goes on with it");
        }
    }
    Ok(())
}

fn show(carried: &Carried, json: bool, what: &str) {
    let Carried { id, name, iteration } = carried;
    if json {
        ui::json(&json!({ "id": id, "name": name, "iteration": iteration }));
    } else {
        ui::paragraph(format!("Loop {id} ({name}), at iteration {iteration}, {what}."), 0);
    }
}
