//! Work that a loop leaves in no commit: changed and new files, and stashes. Asking for it writes nothing.

use std::{ffi::OsStr, time::Duration};

use ralph_core::text::time::Millis;

use crate::{
    git::{
        Ask, Repository,
        repository::pieces,
        snapshots::working_tree::{is_own, own_of_folder},
    },
    store::project::Project,
};

/// Work that is in no commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Left {
    /// Files of the project that are changed or new, from the top of the working tree on.
    pub files: Vec<String>,
    /// Stashes that were made since.
    pub stashes: u64,
}

impl Left {
    /// The uncommitted work in the project's working tree, and the stashes that were made since that moment; `None`: there is no git, or it did not answer.
    pub fn of(project: &Project, since: Millis, limit: Duration) -> Option<Left> {
        let repository = Repository::of(project, limit).ok()??;
        let below = if repository.below.as_os_str().is_empty() { OsStr::new(".") } else { repository.below.as_os_str() };
        // A submodule has its own configuration, and is not looked into.
        let args = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all", "--"];
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).chain([below]).collect();
        let said = repository.answer(&args, Ask::default()).ok()?;
        let own = own_of_folder(&repository, project);
        let is_left = |path: &&[u8]| !is_own(path.strip_suffix(b"/").unwrap_or(path)) && !own.iter().any(|own| own == path);
        let files = pieces(&said).filter_map(|entry| entry.get(3..)).filter(is_left).map(|path| String::from_utf8_lossy(path).into_owned());
        Some(Left { files: files.collect(), stashes: stashes(&repository, since)? })
    }
}

fn stashes(repository: &Repository, since: Millis) -> Option<u64> {
    if repository.reference("refs/stash").ok()?.is_none() {
        return Some(0);
    }
    let stashed = repository.text(&["stash", "list", "--format=%ct"], "").ok()?;
    Some(stashed.lines().filter_map(|line| line.trim().parse::<Millis>().ok()).filter(|at| *at >= since / 1000).count() as u64)
}
