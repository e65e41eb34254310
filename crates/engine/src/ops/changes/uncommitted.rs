//! What a loop leaves in the working tree that is in no commit: files that are changed or new, and stashes. Nothing is written for asking.

use std::{ffi::OsStr, time::Duration};

use ralph_core::text::time::Millis;

use crate::{
    git::{Ask, Repository, repository::pieces},
    snapshots::working_tree::{is_own, own_of_folder},
    store::project::Project,
};

/// What is in no commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Left {
    /// Files of the project that are changed or new, from the top of the working tree on.
    pub files: Vec<String>,
    /// Stashes that were made since.
    pub stashes: u64,
}

/// What is left now in the project's working tree, and which stashes were made since that moment; `None`: there is no git, or it did not tell.
pub fn left(project: &Project, since: Millis, limit: Duration) -> Option<Left> {
    let repository = Repository::of(project, limit).ok()??;
    let below = if repository.below.as_os_str().is_empty() { OsStr::new(".") } else { repository.below.as_os_str() };
    // A submodule has its own configuration, and is not looked into.
    let args = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all", "--"];
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).chain([below]).collect();
    let said = repository.answer(&args, Ask::default()).ok()?;
    let own = own_of_folder(&repository, project);
    let is_left = |path: &&[u8]| !is_own(path.strip_suffix(b"/").unwrap_or(path)) && !own.iter().any(|own| own == path);
    let files = pieces(&said).filter_map(|entry| entry.get(3..)).filter(is_left).map(|path| String::from_utf8_lossy(path).into_owned());
    let stashed = repository.text(&["stash", "list", "--format=%ct"], "").ok()?;
    let made = stashed.lines().filter_map(|line| line.trim().parse::<Millis>().ok()).filter(|at| *at >= since / 1000).count();
    Some(Left { files: files.collect(), stashes: made as u64 })
}
