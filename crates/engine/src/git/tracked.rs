//! Whether a file came with a repository: git tracks it.

use std::path::Path;

use super::{Folders, config::Harmless, index::Index};

/// Where a file that is in a project comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was written here.
    Here,
    /// Git tracks it.
    Tracked,
    /// It is reached through a link that leads out of the project.
    Link,
    /// It is in a repository of its own within the project: a submodule, for instance.
    Nested,
    /// There is a repository, and it cannot be told.
    Unknown,
}

/// Whether git tracks `file`, or it is where git cannot tell, which counts the same. `None`: there is a repository, and it cannot be told.
pub(crate) fn is_tracked(root: &Path, file: &Path) -> Option<bool> {
    match origin_of(root, file) {
        Origin::Unknown => None,
        origin => Some(origin != Origin::Here),
    }
}

/// Where `file`, which is in `root`, comes from.
///
/// Links are resolved first: a folder that is reached through one, or that is one, is where it really is.
pub(crate) fn origin_of(root: &Path, file: &Path) -> Origin {
    let Ok(root) = root.canonicalize() else { return Origin::Here };
    let Ok(file) = file.canonicalize() else { return Origin::Here };
    let Some(folder) = file.parent().filter(|folder| folder.starts_with(&root)) else { return Origin::Link };
    // Within a repository of its own (a submodule), or outside of any.
    let is_repository = |dir: &Path| dir.join(".git").exists();
    if folder.ancestors().take_while(|dir| *dir != root).any(is_repository) {
        return Origin::Nested;
    }
    match in_index(&root, &file) {
        Some(true) => Origin::Tracked,
        Some(false) => Origin::Here,
        None => Origin::Unknown,
    }
}

/// Whether a folder of the project's is a link that came with the repository: what is written through it is written where somebody else chose.
pub(crate) fn is_link_of_repository(root: &Path, folder: &str) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    let link = root.join(folder);
    link.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) && in_index(&root, &link) != Some(false)
}

/// Whether the index of the repository around `root` has this file. `None`: it cannot be told.
fn in_index(root: &Path, file: &Path) -> Option<bool> {
    let Some(folders) = Folders::around(root).ok()? else { return Some(false) };
    let path = file.strip_prefix(&folders.top).ok()?.as_os_str().as_encoded_bytes();
    // A broken configuration says nothing about the index; ids are shorter where it does not say otherwise.
    let id_length = Harmless::of(&folders).map_or(20, |harmless| harmless.id_length());
    let index = Index::of(&folders, id_length).ok()?;
    Some(index.entries.iter().any(|entry| entry.path == path || (entry.is_folder() && path.starts_with(&entry.path))))
}
