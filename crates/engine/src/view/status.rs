//! The loops of one project, or of all: the JSON of `ralph status --json`.

use std::path::Path;

use serde::Serialize;

use crate::{
    store::project::Project,
    view::{
        self, View,
        worktrees::{self, Beside},
    },
};

#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Standing {
    /// The live ones.
    pub loops: Vec<View>,
    /// The one that ended last.
    pub last_ended: Option<View>,
    /// Loops that work in working trees of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worktrees: Vec<Beside>,
}

impl Standing {
    pub fn of(project: &Project) -> Self {
        Standing { loops: view::live(project), last_ended: view::ended(project).into_iter().next(), worktrees: worktrees::loops(project) }
    }

    /// The loop called `which`, by name or id; the live one, where several have had that name.
    pub fn of_loop(project: &Project, which: &str) -> Option<Self> {
        let is_it = |view: &View| view.id == which || view.name == which;
        let loops: Vec<View> = view::live(project).into_iter().filter(is_it).collect();
        let last_ended = if loops.is_empty() { view::ended(project).into_iter().find(is_it) } else { None };
        (!loops.is_empty() || last_ended.is_some()).then(|| Standing { loops, last_ended, worktrees: Vec::new() })
    }

    /// All projects as one. A working tree that is one of them is not listed a second time.
    pub fn of_all(projects: &[Project]) -> Self {
        let mut all = Standing::default();
        for project in projects {
            let one = Standing::of(project);
            all.loops.extend(one.loops);
            all.last_ended = all.last_ended.into_iter().chain(one.last_ended).max_by(|a, b| a.last_event_at.cmp(&b.last_event_at));
            all.worktrees.extend(one.worktrees.into_iter().filter(|beside| !is_among(&beside.folder, projects)));
        }
        all
    }
}

/// Whether a folder is the root of one of these.
pub fn is_among(folder: &Path, projects: &[Project]) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    projects.iter().any(|project| project.root() == folder)
}
