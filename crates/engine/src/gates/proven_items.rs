//! Which items of a list had their commands passing once, so that they need not run at every stop.

use ralph_core::gate::list::Item;
use serde::{Deserialize, Serialize};

use crate::{store::project::Project, sys::digest};

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
    digest::short(parts.join("\0").as_bytes())
}

fn path(list: &str) -> String {
    format!("items/{}.json", digest::short(list.as_bytes()))
}

pub(super) fn of(project: &Project, list: &str) -> Proven {
    project.load(&path(list)).unwrap_or_default()
}

pub(super) fn note(project: &Project, list: &str, item: &Item) {
    change(project, list, |marks| marks.push(mark(item)));
}

pub(super) fn forget(project: &Project, list: &str, item: &Item) {
    change(project, list, |marks| marks.retain(|known| *known != mark(item)));
}

/// A mark that cannot be written is proven again.
fn change(project: &Project, list: &str, change: impl FnOnce(&mut Vec<String>)) {
    project.update(&path(list), |marks: &mut Vec<String>| {
        let before = marks.clone();
        change(marks);
        marks.sort();
        marks.dedup();
        *marks != before
    });
}
