//! Which loop's journal a person wants to read.

use std::{path::Path, time::Duration};

use ralph_core::journal::{Record, records};
use ralph_engine::{
    snapshots,
    store::{journal, project::Project},
    view::{self, View},
};

use crate::exit::Failure;

/// How long git may take to list what is kept.
const PATIENCE: Duration = Duration::from_secs(30);

/// The loop called `which` by name or id; without it the only live one, else the one that something happened to last.
pub(crate) fn view(project: &Project, which: Option<&str>) -> Result<View, Failure> {
    let mut all: Vec<View> = view::live(project).into_iter().chain(view::ended(project)).collect();
    match which {
        Some(which) => all
            .into_iter()
            .find(|v| v.id == which || v.name == which)
            .ok_or_else(|| Failure::new(format!("there is no loop \"{which}\"; `ralph list` shows those there are"))),
        None => {
            // Live loops stand first; among several the one that was busy last is the one that people mean.
            all.sort_by(|a, b| (b.file.is_some(), &b.last_event_at).cmp(&(a.file.is_some(), &a.last_event_at)));
            all.into_iter().next().ok_or_else(|| Failure {
                message: "No loop has run in this project yet. Start one: ralph start \"…\"".to_owned(),
                ..Failure::no_loop()
            })
        }
    }
}

/// The id of the loop called `which` whose files are kept; without it that of a live one, else of the one that something happened to last.
pub(crate) fn with_snapshots(project: &Project, which: Option<&str>) -> Result<String, Failure> {
    let kept = snapshots::loops(project, PATIENCE).map_err(Failure::new)?;
    let has_some = |view: &View| kept.iter().any(|word| snapshots::is_called(&view.id, word));
    let mut all: Vec<View> = view::live(project).into_iter().chain(view::ended(project)).collect();
    all.sort_by(|a, b| (b.file.is_some(), &b.last_event_at).cmp(&(a.file.is_some(), &a.last_event_at)));
    let Some(which) = which else {
        // A loop whose journal was removed still has its files.
        let found = all.into_iter().find(has_some).map(|view| view.id).or_else(|| kept.into_iter().next_back());
        return found.ok_or_else(|| Failure {
            message: "The files of no loop are kept here. `ralph run` keeps them after each iteration, in a git repository".to_owned(),
            ..Failure::no_loop()
        });
    };
    let is_meant = |view: &&View| view.id == which || view.name == which;
    let meant = all.iter().filter(is_meant).find(|view| has_some(view)).map(|view| view.id.clone());
    let meant = meant.or_else(|| kept.iter().find(|word| *word == which).cloned());
    let is_there = || all.iter().any(|view| is_meant(&view));
    meant.ok_or_else(|| {
        Failure::new(if is_there() {
            format!("the files of the loop \"{which}\" are not kept; those of these are: {}", in_words(&kept))
        } else {
            format!("there is no loop \"{which}\"; `ralph list` shows those there are")
        })
    })
}

fn in_words(kept: &[String]) -> String {
    if kept.is_empty() { "none".to_owned() } else { kept.join(", ") }
}

/// The records of a journal file.
pub(crate) fn read(path: &Path) -> Result<(Vec<Record>, usize), Failure> {
    let bytes = journal::read(path).map_err(Failure::cannot_read(&path))?;
    Ok(records(&bytes))
}
