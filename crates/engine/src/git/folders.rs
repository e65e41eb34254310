//! Where a repository's folders are, found without git.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::sys::files;

/// More than this is no file of git's that names a path.
const LONGEST_POINTER: usize = 16 << 10;

/// The folders of one working tree of a repository, without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The top of the working tree.
    pub top: PathBuf,
    /// The folder of this working tree alone: its HEAD, its index.
    pub git_dir: PathBuf,
    /// The folder that all working trees of the repository share: objects, refs, configuration.
    pub common: PathBuf,
}

impl Folders {
    /// The repository around a folder; `None`: there is none. The error says what is wrong with it.
    pub(crate) fn around(folder: &Path) -> Result<Option<Self>, String> {
        let Ok(folder) = folder.canonicalize() else { return Ok(None) };
        for dir in folder.ancestors() {
            if let Some(found) = Folders::at(dir)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The repository whose working tree begins in this very folder. A `.git` folder that holds no repository is none, as for git itself.
    pub(crate) fn at(top: &Path) -> Result<Option<Self>, String> {
        let dot_git = top.join(".git");
        let Ok(meta) = fs::metadata(&dot_git) else { return Ok(None) };
        let broken = || format!("{} does not lead to a git repository", dot_git.display());
        let git_dir = if meta.is_dir() { dot_git.clone() } else { named_in(&dot_git, "gitdir: ", top).ok_or_else(broken)? };
        let found = Folders::of(top, &git_dir).filter(|found| found.common.join("objects").is_dir());
        if found.is_none() && !meta.is_dir() {
            return Err(broken());
        }
        Ok(found)
    }

    fn of(top: &Path, git_dir: &Path) -> Option<Self> {
        let git_dir = git_dir.canonicalize().ok()?;
        fs::symlink_metadata(git_dir.join("HEAD")).ok()?;
        let shared = git_dir.join("commondir");
        let common = if shared.exists() { named_in(&shared, "", &git_dir)?.canonicalize().ok()? } else { git_dir.clone() };
        Some(Folders { top: top.canonicalize().ok()?, git_dir, common })
    }

    /// Refs are kept in tables that only git can read.
    pub(crate) fn has_reftable(&self) -> bool {
        self.common.join("reftable").is_dir()
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// Whether it is one of several working trees, and not the first.
    pub(crate) fn is_linked(&self) -> bool {
        self.git_dir != self.common
    }
}

/// The path in a one-line file of git's, seen from `from`.
fn named_in(file: &Path, prefix: &str, from: &Path) -> Option<PathBuf> {
    let text = files::read(file, LONGEST_POINTER).ok()?;
    let path = text.strip_prefix(prefix.as_bytes())?.trim_ascii_end();
    (!path.is_empty()).then(|| from.join(super::repository::path_of(path)))
}
