//! `ralph diff`: what iterations changed, by the snapshots of the files.

use std::{ffi::OsString, time::Duration};

use anstream::ColorChoice;
use ralph_core::text::clean;
use ralph_engine::{
    git::snapshots::compare::{Change, Comparison, Side},
    store::project::Project,
};
use serde::Serialize;

use crate::{
    exit::{Done, Failure},
    find_loop, ui,
};

const PATIENCE: Duration = Duration::from_mins(5);

/// Show what the iterations of a loop changed in the files
///
/// `ralph run` keeps the files after each iteration (in refs/ralph/, which are no branches). One number shows what that iteration did, two what changed from one to the
/// other, none what all iterations did. 0 is the moment before the first iteration, `now` is the files as they are. Git itself shows it, with your colours and pager.
/// What git ignores is no part of it, nor are untracked files over 50 MB.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph diff                     what all iterations did
  ralph diff 3                   what iteration 3 did
  ralph diff 3 docs              what iteration 3 of the loop \"docs\" did
  ralph diff 3 now --stat        what changed since iteration 3, in short
  ralph diff 2 5 -- src tests    from iteration 2 to iteration 5, in these folders
  ralph diff --json | jq -r '.files[].path'")]
pub(crate) struct Args {
    /// An iteration, `now`, or the name of another snapshot; then to which one; and the name or id of a loop, as `ralph status --all` shows them
    #[arg(value_name = "A [B] [LOOP]", num_args = 0..=3)]
    what: Vec<String>,
    /// The loop, as an option
    #[arg(long = "loop", value_name = "LOOP", hide = true)]
    of_loop: Option<String>,
    /// Only how much changed in which files
    #[arg(long)]
    stat: bool,
    /// For programs: the files and the numbers of lines as JSON
    #[arg(long, conflicts_with = "stat")]
    json: bool,
    /// Only these files and folders
    #[arg(last = true, value_name = "PATHS")]
    paths: Vec<OsString>,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(rename = "loop")]
    of_loop: &'a str,
    from: &'a Side,
    to: &'a Side,
    files: &'a [Change],
    added: u64,
    removed: u64,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let mut what = args.what.clone();
    let is_side = |word: &str| word == "now" || word.parse::<u64>().is_ok();
    let named = find_loop::among(project, &mut what, is_side);
    let (a, b) = match &what[..] {
        [] => (None, None),
        [a] => (Some(a.as_str()), None),
        [a, b] => (Some(a.as_str()), Some(b.as_str())),
        [.., odd] => return Err(find_loop::no_such(odd)),
    };
    let named = args.of_loop.as_deref().or(named.as_deref());
    let id = find_loop::with_snapshots(project, named)?;
    let comparison = Comparison::of(project, &id, a, b, PATIENCE).map_err(Failure::new)?;
    let folder = comparison.folder(std::env::current_dir().ok());
    if args.json {
        let files = comparison.changes(&folder, &args.paths).map_err(Failure::new)?;
        let (added, removed) = (files.iter().filter_map(|f| f.added).sum(), files.iter().filter_map(|f| f.removed).sum());
        ui::json(&Report { of_loop: &id, from: &comparison.from, to: &comparison.to, files: &files, added, removed });
        return Ok(());
    }
    if comparison.changes(&folder, &args.paths).is_ok_and(|files| files.is_empty()) {
        let (from, to) = (&comparison.from, &comparison.to);
        ui::note(&format!("No file changed from {} to {} of {}.", clean(&from.name), clean(&to.name), clean(&id)));
        return Ok(());
    }
    let colour = match anstream::AutoStream::choice(&std::io::stdout()) {
        ColorChoice::Never => Some("--no-color"),
        ColorChoice::Always if ui::is_forced() => Some("--color=always"),
        _ => None,
    };
    let options: Vec<&str> = colour.into_iter().chain(args.stat.then_some("--stat")).collect();
    comparison.show(&folder, &options, &args.paths).map_err(Failure::new)
}
