//! Finds the loop that a person wants to read about.

use std::{path::Path, time::Duration};

use ralph_core::{
    journal::{Record, records},
    text::clean,
};
use ralph_engine::{
    git::snapshots,
    store::{journal, project::Project},
    view::{self, View},
};

use crate::{advice, exit::Failure, ui};

/// How long git may take to list what is kept.
const PATIENCE: Duration = Duration::from_secs(30);

/// All loops, the live ones first; among them the one that was busy last, because that is the one that people mean.
fn all(project: &Project) -> Vec<View> {
    let mut all: Vec<View> = view::live(project).into_iter().chain(view::ended(project)).collect();
    all.sort_by(|a, b| (b.file.is_some(), &b.last_event_at).cmp(&(a.file.is_some(), &a.last_event_at)));
    all
}

/// The loop called `which` by name or id; without it a live one, else the one that something happened to last.
pub(crate) fn view(project: &Project, which: Option<&str>) -> Result<View, Failure> {
    let is_meant = |view: &View| which.is_none_or(|which| view.id == which || view.name == which);
    all(project).into_iter().find(is_meant).ok_or_else(|| match which {
        Some(which) => no_such(which),
        None => none_yet(),
    })
}

pub(crate) fn none_yet() -> Failure {
    Failure { message: format!("No loop has run in this project yet. Start one: {}", advice::START), ..Failure::no_loop() }
}

/// Takes the word out of these that is a loop's name or id, unless it is `taken` for something else.
pub(crate) fn among(project: &Project, words: &mut Vec<String>, taken: impl Fn(&str) -> bool) -> Option<String> {
    let known = all(project);
    let at = words.iter().position(|word| !taken(word) && known.iter().any(|view| view.id == *word || view.name == *word))?;
    Some(words.remove(at))
}

pub(crate) fn no_such(which: &str) -> Failure {
    Failure::new(format!("there is no loop \"{which}\"; `ralph status --all` shows all loops"))
}

/// The id of the loop called `which` whose files are kept; without it that of a live one, else of the one that something happened to last. A person who
/// named none is told if that is not the newest.
pub(crate) fn with_snapshots(project: &Project, which: Option<&str>) -> Result<String, Failure> {
    let kept = snapshots::loops(project, PATIENCE).map_err(Failure::new)?;
    let has_some = |view: &View| kept.iter().any(|word| snapshots::is_called(&view.id, word));
    let all = all(project);
    let Some(which) = which else {
        let newest = all.first().map(|view| view.id.clone());
        // A loop whose journal was removed still has its files.
        let found = all.into_iter().find(has_some).map(|view| view.id).or_else(|| kept.into_iter().next_back());
        let found = found.ok_or_else(|| Failure {
            message: "The files of no loop are kept here. `ralph run` keeps them after each iteration, in a git repository".to_owned(),
            ..Failure::no_loop()
        })?;
        if let Some(newest) = newest.filter(|newest| *newest != found) {
            ui::note(&format!("The loop {} has no snapshots: this is about {}.", clean(&newest), clean(&found)));
        }
        return Ok(found);
    };
    let is_meant = |view: &&View| view.id == which || view.name == which;
    let meant = all.iter().filter(is_meant).find(|view| has_some(view)).map(|view| view.id.clone());
    let meant = meant.or_else(|| kept.iter().find(|word| *word == which).cloned());
    meant.ok_or_else(|| match kept.join(", ") {
        _ if !all.iter().any(|view| is_meant(&view)) => no_such(which),
        kept if kept.is_empty() => Failure::new(format!("the files of the loop \"{which}\" are not kept, and no other loop's are")),
        kept => Failure::new(format!("the files of the loop \"{which}\" are not kept; those of these are: {kept}")),
    })
}

pub(crate) fn read(path: &Path) -> Result<(Vec<Record>, usize), Failure> {
    let bytes = journal::read(path).map_err(Failure::cannot_read(path))?;
    Ok(records(&bytes))
}
