//! Where a project is: its repository with all linked working trees, or a folder outside of any.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{store::project::Project, sys::files};

/// A file of git's that names a path is shorter.
const LONGEST_POINTER: usize = 16 << 10;

pub(crate) struct Place {
    root: PathBuf,
    /// The top of the working tree, or the project's root where there is none.
    top: PathBuf,
    /// The repository's own folder, which its linked working trees share; or the top.
    key: PathBuf,
}

impl Place {
    pub(crate) fn of(project: &Project) -> Self {
        let root = files::real_path(project.root()).unwrap_or_else(|_| project.root().to_owned());
        let found = root.ancestors().find_map(|dir| Some((dir.to_owned(), fs::symlink_metadata(dir.join(".git")).ok()?)));
        let (top, key) = match found {
            Some((top, meta)) => (top.clone(), repository(&top, &meta).unwrap_or(top)),
            None => (root.clone(), root.clone()),
        };
        Place { root, top, key }
    }

    /// The project's root, without links.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Whether this is another working tree of the repository of `other`, linked to it.
    pub(crate) fn is_linked_to(&self, other: &Place) -> bool {
        let is_linked = || fs::symlink_metadata(self.top.join(".git")).is_ok_and(|meta| meta.is_file());
        self.top != other.top && self.key == other.key && is_linked()
    }

    /// The folder in this working tree that corresponds to `other` in its own; the top, if there is none.
    pub(crate) fn counterpart_of(&self, other: &Place) -> PathBuf {
        let folder = other.root.strip_prefix(&other.top).map(|below| self.top.join(below)).unwrap_or_default();
        if folder.is_dir() { folder } else { self.top.clone() }
    }

    pub(super) fn key(&self) -> &Path {
        &self.key
    }

    /// The path of a file as all working trees of the repository call it.
    pub(super) fn origin(&self, relative: &str) -> String {
        let path = plain(&self.root.join(relative));
        path.strip_prefix(&self.top).unwrap_or(&path).to_string_lossy().into_owned()
    }
}

/// Resolves `.` and `..`, without asking the disk.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The folder that the working trees of a repository share. A link or a `.git` file in a stranger's project can point into any repository; only what git
/// itself made in there leads back to the working tree.
fn repository(top: &Path, meta: &fs::Metadata) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    if meta.is_dir() {
        return Some(dot_git);
    }
    if !meta.is_file() {
        return None;
    }
    let of_tree = named_in(&dot_git, "gitdir: ", top)?.canonicalize().ok()?;
    let back = named_in(&of_tree.join("gitdir"), "", &of_tree)?.canonicalize().ok()?;
    let worktrees = of_tree.parent().filter(|folder| folder.ends_with("worktrees"))?;
    (back == dot_git).then(|| worktrees.parent().map(Path::to_owned))?
}

/// The path in a one-line file of git's, relative to `from`.
fn named_in(file: &Path, prefix: &str, from: &Path) -> Option<PathBuf> {
    let text = String::from_utf8(files::read(file, LONGEST_POINTER).ok()?).ok()?;
    let path = text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r']);
    (!path.is_empty()).then(|| from.join(path))
}
