//! Whose a repository is. Git asks no repository of another user's, unless the person said that it may; nor does ralph.

use super::Folders;

/// The other user whose repository it is.
#[cfg(unix)]
pub(super) fn stranger(folders: &Folders) -> Option<u32> {
    use std::{fs, os::unix::fs::MetadataExt};

    use crate::sys::env;
    let me = rustix::process::geteuid();
    // With `sudo` the person is who they were before.
    let before = env::sudo_user().filter(|_| me.is_root());
    let is_mine = |user: &u32| *user == me.as_raw() || Some(*user) == before;
    let owner = |path: &std::path::Path| fs::symlink_metadata(path).ok().map(|meta| meta.uid());
    let places = [folders.top.clone(), folders.top.join(".git"), folders.git_dir.clone(), folders.common.clone()];
    places.iter().filter_map(|path| owner(path)).find(|user| !is_mine(user))
}

/// There git looks at who may do what, and not at a number.
#[cfg(not(unix))]
pub(super) fn stranger(_folders: &Folders) -> Option<u32> {
    None
}

/// Whether one of the person's own `safe.directory` settings, in their order, is about this repository.
pub(super) fn is_allowed(folders: &Folders, settings: &[&str]) -> bool {
    let top = folders.top.to_string_lossy();
    settings.iter().fold(false, |allowed, setting| match *setting {
        "" => false,
        "*" => true,
        path => {
            let is_below = path.strip_suffix("/*").is_some_and(|folder| top.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
            allowed || is_below || path.trim_end_matches('/') == top
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t8_the_person_may_allow_a_repository_of_another_user() {
        let folders = Folders { top: "/a/b".into(), git_dir: "/a/b/.git".into(), common: "/a/b/.git".into() };
        for (settings, allowed) in [
            (&[][..], false),
            (&["/a/b"][..], true),
            (&["/a/b/"][..], true),
            (&["/a"][..], false),
            (&["/a/*"][..], true),
            (&["/a/bc"][..], false),
            (&["/a/b/*"][..], false),
            (&["*"][..], true),
            (&["*", ""][..], false),
            (&["", "/x", "/a/b"][..], true),
        ] {
            assert_eq!(is_allowed(&folders, settings), allowed, "{settings:?}");
        }
    }
}
