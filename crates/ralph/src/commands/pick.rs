//! Which loop's journal a person wants to read.

use std::{fs, path::PathBuf};

use ralph_core::journal::{Record, records};
use ralph_engine::{
    ops::view::{self, View},
    store::project::Project,
};

use crate::exit::Failure;

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

/// The records of a journal file.
pub(crate) fn read(path: &PathBuf) -> Result<(Vec<Record>, usize), Failure> {
    let bytes = fs::read(path).map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?;
    Ok(records(&bytes))
}
