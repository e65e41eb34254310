//! Whether a file came with a repository: git tracks it.

use std::path::Path;

use super::{Folders, config::Harmless, index};

/// Whether git tracks `file`, which is in `root`. `None`: there is a repository, and it cannot be told.
///
/// Links are resolved first: a folder that is reached through one, or that is one, is where it really is.
pub(crate) fn is_tracked(root: &Path, file: &Path) -> Option<bool> {
    let Ok(root) = root.canonicalize() else { return Some(false) };
    let Ok(file) = file.canonicalize() else { return Some(false) };
    let Some(folder) = file.parent().filter(|folder| folder.starts_with(&root)) else { return Some(true) };
    // Within a repository of its own (a submodule), or outside of any.
    let is_repository = |dir: &Path| dir.join(".git").exists();
    if folder.ancestors().take_while(|dir| *dir != root).any(is_repository) {
        return Some(true);
    }
    let Some(folders) = Folders::around(&root).ok()? else { return Some(false) };
    let path = file.strip_prefix(&folders.top).ok()?.as_os_str().as_encoded_bytes();
    // A broken configuration says nothing about the index; ids are shorter where it does not say otherwise.
    let id_length = Harmless::of(&folders).map_or(20, |harmless| harmless.id_length());
    let entries = match index::read(&folders.index(), id_length) {
        Ok(entries) => entries,
        Err(index::Unread::Split) => return by_git(&folders, &file),
        Err(_) => return None,
    };
    Some(entries.iter().any(|entry| entry.path == path || (entry.is_folder() && path.starts_with(&entry.path))))
}

/// An index in two parts is git's to read.
fn by_git(folders: &Folders, file: &Path) -> Option<bool> {
    let repository = super::Repository::around(&folders.top, super::repository::HASTE).ok()??;
    let args = ["ls-files".as_ref(), "--error-unmatch".as_ref(), "--".as_ref(), file.as_os_str()];
    match repository.ran(&args, super::repository::Ask::default()).ok()?.code {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    }
}
