//! What a working tree has that its last commit has not.

use std::collections::HashSet;

use super::{Problem, Repository, command::Ask};

/// Work that git has begun and that only a commit ends, even if no file differs.
const BEGUN: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
];

/// The differences between a working tree and its last commit; paths are relative to the top.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncommitted {
    /// Files that differ, are staged, or are neither tracked nor ignored.
    pub files: Vec<String>,
    /// Tracked files that git was told not to look at.
    pub hidden: Vec<String>,
    /// Files that look changed, and that only a filter of the repository, which ralph does not run, could compare.
    pub unclear: Vec<String>,
    /// A merge or the like that was begun.
    pub begun: Option<&'static str>,
}

impl Uncommitted {
    /// Without the files that do not count.
    pub(crate) fn without(mut self, is_out: impl Fn(&str) -> bool) -> Self {
        for files in [&mut self.files, &mut self.hidden, &mut self.unclear] {
            files.retain(|path| !is_out(path));
        }
        self
    }
}

impl Repository {
    /// Submodules count by their commit alone: a look inside would run what they bring.
    pub(crate) fn uncommitted(&self) -> Result<Uncommitted, Problem> {
        let status = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty"];
        let told = self.answer(&status, Ask::default())?;
        let index = self.index()?;
        let filtered = self.filtered_by_others(&index)?;
        let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        let (unclear, files) = entries(&told).partition(|(state, path)| is_unclear(state, path, &filtered));
        let paths = |entries: Vec<(&[u8], &[u8])>| entries.into_iter().map(|(_, path)| shown(path)).collect();
        // A file that a sparse checkout keeps out does not exist.
        let is_there = |path: &[u8]| self.top().join(shown(path)).symlink_metadata().is_ok();
        let hidden = index.entries.iter().filter(|entry| entry.is_unwatched() && (!entry.is_kept_out || is_there(&entry.path)));
        Ok(Uncommitted {
            files: paths(files),
            hidden: hidden.map(|entry| shown(&entry.path)).collect(),
            unclear: paths(unclear),
            begun: BEGUN.iter().find(|(name, _)| self.folders.git_dir.join(name).exists()).map(|(_, what)| *what),
        })
    }
}

/// The two letters and the path of each line.
fn entries(told: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    told.split(|b| *b == 0).filter(|line| line.len() > 3).map(|line| (&line[..2], &line[3..]))
}

/// Nothing is staged, and the file's content can only be compared by a filter.
fn is_unclear(state: &[u8], path: &[u8], filtered: &HashSet<Vec<u8>>) -> bool {
    state == b" M" && filtered.contains(path)
}
