//! Which items of a list had their commands passing once, so that they need not run at every stop.

use std::time::Duration;

use ralph_core::gate::list::Item;
use serde::{Deserialize, Serialize};

use crate::{
    store::project::Project,
    sys::{digest, files},
};

/// Several items may be proven at once; a mark that is lost costs another run of its commands, so nobody waits long.
const ALONE: Duration = Duration::from_secs(1);

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
    project.recall(&path(list), 1 << 20).unwrap_or_default()
}

pub(super) fn note(project: &Project, list: &str, item: &Item) {
    change(project, list, |marks| marks.push(mark(item)));
}

pub(super) fn forget(project: &Project, list: &str, item: &Item) {
    change(project, list, |marks| marks.retain(|known| *known != mark(item)));
}

/// What cannot be noted is proven again, and nothing else.
fn change(project: &Project, list: &str, change: impl FnOnce(&mut Vec<String>)) {
    let _alone = project.keep(&path(list)).ok().and_then(|file| files::alone_in(file.parent()?, ALONE));
    let Proven(before) = of(project, list);
    let mut marks = before.clone();
    change(&mut marks);
    marks.sort();
    marks.dedup();
    if marks != before {
        let _ = project.remember(&path(list), &marks);
    }
}
