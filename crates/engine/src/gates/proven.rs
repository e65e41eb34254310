//! Which items of a list had their commands passing once, so that they need not run at every stop.

use std::path::PathBuf;

use ralph_core::{feature_list::Item, loop_file::fnv1a};
use serde::{Deserialize, Serialize};

use crate::{store::project::Project, sys::files};

const FOLDER: &str = "cache/items";

/// The items of one list that were proven, each by its id and its commands.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Proven(Vec<String>);

impl Proven {
    pub(super) fn contains(&self, item: &Item) -> bool {
        self.0.contains(&mark(item))
    }
}

/// Another command makes it another proof.
fn mark(item: &Item) -> String {
    let parts: Vec<&str> = std::iter::once(item.id.as_str()).chain(item.verify.iter().map(String::as_str)).collect();
    format!("{:016x}", fnv1a(parts.join("\0").as_bytes()))
}

fn path(project: &Project, list: &str) -> Option<PathBuf> {
    Some(project.folder(FOLDER).ok()?.join(format!("{:016x}.json", fnv1a(list.as_bytes()))))
}

pub(super) fn of(project: &Project, list: &str) -> Proven {
    let read = || serde_json::from_slice(&files::read(&path(project, list)?, 1 << 20).ok()?).ok();
    read().unwrap_or_default()
}

pub(super) fn note(project: &Project, list: &str, item: &Item) {
    change(project, list, |marks| marks.push(mark(item)));
}

pub(super) fn forget(project: &Project, list: &str, item: &Item) {
    change(project, list, |marks| marks.retain(|known| *known != mark(item)));
}

/// What cannot be noted is proven again, and nothing else.
fn change(project: &Project, list: &str, change: impl FnOnce(&mut Vec<String>)) {
    let Some(path) = path(project, list) else { return };
    let Proven(before) = of(project, list);
    let mut marks = before.clone();
    change(&mut marks);
    marks.sort();
    marks.dedup();
    if marks != before {
        let _ = files::replace(
            &path,
            &path.with_extension(format!("new-{}", std::process::id())),
            &serde_json::to_vec(&marks).unwrap_or_default(),
        );
    }
}
