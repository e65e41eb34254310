//! The project's files, and a fingerprint of their contents. No git process is needed for either.
//!
//! The fingerprint is the same before and after `git add` and `git commit`, and whatever happens to modification times; it differs for any other
//! content, mode, addition, deletion or rename. Where that cannot be told for sure, there is none. What counts is on the disk: nothing that git's index
//! says about contents is believed, only which files it tracks.

mod patterns;
mod seen;
mod walk;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

pub(crate) use patterns::Patterns;

use crate::{git::Folders, store::project::Project, sys::digest};
use seen::{Seen, Stat};
use walk::Walk;

/// How long looking at the tree may take: milliseconds, but for a cold disk under a large repository.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// More bytes than this in a folder without a repository are not read.
const MOST_BYTES: u64 = 256 << 20;

/// Larger files that git ignores (logs, databases, built programs) are not read: their size and time of change stand for their content.
const LARGEST_IGNORED: u64 = 1 << 20;

/// The files in the folder, ignored ones too, where it is unknown which they are.
pub(crate) fn walked(root: &Path, limit: Duration) -> Option<Tree> {
    let root = root.canonicalize().ok()?;
    let mut walk = Walk::new(&root, Instant::now() + limit);
    walk.folder_without_repository()?;
    // What is ignored is no part of the work, so it has no part in a fingerprint.
    walk.is_settled = false;
    Some(Tree::from(walk, false))
}

/// The files of a folder at one moment.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    entries: BTreeMap<String, Content>,
    /// Ignored files in folders that are not ignored.
    ignored: BTreeMap<String, Content>,
    /// Every file has a name that is text.
    is_whole: bool,
    /// Nothing is in the middle of a merge, and everything that is tracked is a file.
    is_settled: bool,
    in_repository: bool,
    until: Instant,
}

/// The kind of file at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    File(Stat),
    Link,
    /// A repository that is not checked out: its commit. It is no file.
    Commit(String),
}

impl Tree {
    /// Looks at the folder, for as long as `limit` at most. `None`: its repository cannot be read, or there are too many files.
    pub fn of(root: &Path, limit: Duration) -> Option<Self> {
        let root = root.canonicalize().ok()?;
        let mut walk = Walk::new(&root, Instant::now() + limit);
        if let Some(folders) = Folders::around(&root).ok()? {
            walk.repository(&folders)?;
        }
        // Outside of any repository, and where a repository around the folder ignores all of it.
        let in_repository = !walk.entries.is_empty();
        if !in_repository {
            walk.folder_without_repository()?;
        }
        Some(Tree::from(walk, in_repository))
    }

    fn from(walk: Walk<'_>, in_repository: bool) -> Self {
        let Walk { root, mut entries, mut ignored, is_whole, is_settled, until } = walk;
        remove_own(&mut entries, &mut ignored);
        Tree { root: root.to_owned(), entries, ignored, is_whole, is_settled, in_repository, until }
    }

    /// Whether [`Tree::files`] are all there are.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, content)| !matches!(content, Content::Commit(_))).map(|(path, _)| path.as_str())
    }

    /// The files without links, which would be counted twice.
    pub(super) fn plain_files(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, content)| matches!(content, Content::File(_))).map(|(path, _)| path.as_str())
    }

    /// A fingerprint of the contents of the files that are to be kept. `None`: it cannot be told. Files that were read before and did not change since
    /// are not read again; `memory` is whose memory is asked.
    pub fn fingerprint(&self, memory: Option<&Project>, keep: impl Fn(&str) -> bool) -> Option<String> {
        if !self.is_whole || !self.is_settled {
            return None;
        }
        let kept = || self.entries.iter().filter(|(path, _)| keep(path));
        let size = |content: &Content| if let Content::File(stat) = content { stat.size() } else { 0 };
        if !self.in_repository && kept().map(|(_, content)| size(content)).sum::<u64>() > MOST_BYTES {
            return None;
        }
        let mut seen = Seen::load(memory, &self.root);
        let mut whole = digest::Running::default();
        let mut add = |path: &str, content: &Content| {
            let (kind, digest) = self.told(path, content, &mut seen)?;
            whole.add(kind);
            whole.add(&digest);
            whole.add(&path.len().to_be_bytes());
            whole.add(path.as_bytes());
            Some(())
        };
        let told = kept().try_for_each(|(path, content)| add(path, content));
        // What was read in too short a time need not be read again the next time.
        seen.save(memory, |path| self.is_known(path));
        told.map(|()| whole.finish())
    }

    /// A fingerprint of the ignored files that stand beside the others: settings and data (`.env`) that tests read. One that cannot be read, or is large,
    /// counts by how it looks. `None`: there was not enough time.
    pub(super) fn ignored_fingerprint(&self, memory: Option<&Project>) -> Option<String> {
        let mut seen = Seen::load(memory, &self.root);
        let mut whole = digest::Running::default();
        for (path, content) in &self.ignored {
            let read = match content {
                Content::File(stat) if stat.size() > LARGEST_IGNORED => None,
                _ => self.told(path, content, &mut seen).map(|(_, digest)| digest),
            };
            if Instant::now() > self.until {
                return None;
            }
            whole.add(&read.unwrap_or_else(|| content.looks()));
            whole.add(&path.len().to_be_bytes());
            whole.add(path.as_bytes());
        }
        seen.save(memory, |path| self.is_known(path));
        Some(whole.finish())
    }

    fn is_known(&self, path: &str) -> bool {
        self.entries.contains_key(path) || self.ignored.contains_key(path)
    }

    /// The kind of a file in six bytes, and the digest of its content.
    fn told(&self, path: &str, content: &Content, seen: &mut Seen) -> Option<(&'static [u8; 6], [u8; 32])> {
        let at = self.root.join(path);
        Some(match content {
            Content::File(stat) => (if stat.is_runnable() { b"100755" } else { b"100644" }, seen.digest(path, &at, stat, self.until)?),
            // A link counts by where it leads, and is never followed.
            Content::Link => (b"120000", digest::raw(fs::read_link(&at).ok()?.as_os_str().as_encoded_bytes())),
            Content::Commit(id) => (b"160000", digest::raw(id.as_bytes())),
        })
    }
}

impl Content {
    /// A digest of how it looks from outside.
    fn looks(&self) -> [u8; 32] {
        match self {
            Content::File(stat) => stat.digest(),
            Content::Link | Content::Commit(_) => [0; 32],
        }
    }
}

fn remove_own(entries: &mut BTreeMap<String, Content>, ignored: &mut BTreeMap<String, Content>) {
    let is_there = |path: &str| entries.contains_key(path) || ignored.contains_key(path);
    let own: Vec<String> = entries.keys().chain(ignored.keys()).filter(|path| is_own(path, is_there)).cloned().collect();
    for path in own {
        entries.remove(&path);
        ignored.remove(&path);
    }
}

/// Ralph's and agents' own files say nothing about the work.
fn is_own(path: &str, is_there: impl Fn(&str) -> bool) -> bool {
    const STATES: [&str; 2] = [".ideal/.verify-state.json", ".trellis/.verify-state.json"];
    let in_a_feature_folder = |name| {
        let folder = path.strip_suffix(name).filter(|folder| folder.is_empty() || folder.ends_with('/'));
        folder.is_some_and(|folder| is_there(&format!("{folder}feature_list.json")))
    };
    is_agents(path) || STATES.contains(&path) || in_a_feature_folder("progress.txt") || in_a_feature_folder("hook.log")
}

fn is_agents(path: &str) -> bool {
    path.starts_with(".ralph/") || path.starts_with(".claude/")
}
