//! The loops of a project's own working trees, `.ralph/worktrees/<name>`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_core::{loops::is_name, text};

use crate::{
    store::{place, project::Project},
    view::{self, View},
};

/// The folder of the working trees, in ralph's own folder.
pub(crate) const FOLDER: &str = "worktrees";

/// A loop that works in one of the project's own working trees.
#[derive(Debug, Clone, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// The working tree's name.
    pub worktree: String,
    /// The project's folder in it.
    #[serde(skip)]
    pub folder: PathBuf,
    #[serde(flatten)]
    pub view: View,
}

/// The live loops of the project's working trees.
pub fn loops(project: &Project) -> Vec<Beside> {
    in_trees(project, view::live)
}

/// For a project without loops: the live ones of each working tree, or the one that ended there last.
pub fn live_or_last(project: &Project) -> Vec<Beside> {
    in_trees(project, |there| {
        let live = view::live(there);
        if live.is_empty() { view::ended(there).into_iter().take(1).collect() } else { live }
    })
}

fn in_trees(project: &Project, look: impl Fn(&Project) -> Vec<View>) -> Vec<Beside> {
    let of_tree = |(name, folder): (String, PathBuf)| {
        let beside = |view: View| Beside { worktree: text::clean(&name), folder: folder.clone(), view };
        look(&Project::at(&folder)).into_iter().map(beside).collect::<Vec<_>>()
    };
    folders(project).into_iter().flat_map(of_tree).collect()
}

/// The project's working trees by name, each with the project's folder in it.
pub fn folders(project: &Project) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(project.own().join(FOLDER)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_name(name)).collect();
    names.sort();
    let of_tree = |name: String| {
        let path = project.own().join(FOLDER).join(&name);
        let folder = [below(project).map(|below| path.join(below)), Some(path)].into_iter().flatten().find(|dir| dir.is_dir());
        folder.map(|folder| (name, folder))
    };
    names.into_iter().filter_map(of_tree).collect()
}

/// The project's path within its repository.
fn below(project: &Project) -> Option<PathBuf> {
    let place = place::Place::of(project);
    place.root().strip_prefix(place.top()).ok().map(Path::to_owned)
}
