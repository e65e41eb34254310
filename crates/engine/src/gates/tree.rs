//! The project's files, and a fingerprint of their contents.
//!
//! The fingerprint is the same before and after `git add` and `git commit`, and whatever happens to modification times; it differs for any other
//! content, mode, addition, deletion or rename. Where that cannot be told for sure, there is none.

mod git;
mod patterns;
mod walk;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

pub use patterns::Patterns;

use crate::sys::digest;

/// How long looking at the tree may take. Git answers in milliseconds; a cold disk under a large repository does not.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Repositories within repositories within repositories: deeper than this nobody looks.
const DEEPEST: usize = 8;

/// A fingerprint of the contents of the project's files, if it can be had in so short a time.
pub fn fingerprint_within(root: &Path, limit: Duration) -> Option<String> {
    Tree::of(root, limit.min(PATIENCE))?.fingerprint(|_| true)
}

/// The files in the folder, ignored ones too, where git cannot say which they are.
pub fn walked(root: &Path, limit: Duration) -> Option<Tree> {
    let mut tree = Tree::empty(root, limit)?;
    tree.walk()?;
    remove_own(&mut tree.entries);
    // What is ignored is no part of the work, so it has no part in a fingerprint.
    tree.is_settled = false;
    Some(tree)
}

/// The files of a folder at one moment, as far as they have to be known without being read.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    repositories: Vec<git::Repository>,
    entries: BTreeMap<String, Content>,
    /// Every file has a name that is text.
    is_whole: bool,
    /// Git knows what is what.
    is_settled: bool,
    until: Instant,
}

/// Where the content of a file is known from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// Git knows it: its mode and the id of its content.
    Known(String, String),
    /// It has to be read, as this repository would read it, where it lies in one; with the mode that the repository has for it.
    OnDisk { repository: Option<usize>, mode: Option<String> },
    /// A repository that is not checked out: its commit. It is no file.
    Commit(String),
}

impl Tree {
    /// Looks at the folder, for as long as `limit` at most. `None`: git is there and could not answer, or there are too many files.
    pub fn of(root: &Path, limit: Duration) -> Option<Self> {
        let mut tree = Tree::empty(root, limit)?;
        if git::top(&tree.root).is_some() {
            tree.add_repository("", 0)?;
        }
        // Outside of any repository, and where a repository around the folder ignores all of it.
        if tree.entries.is_empty() {
            tree.walk()?;
        }
        remove_own(&mut tree.entries);
        Some(tree)
    }

    fn empty(root: &Path, limit: Duration) -> Option<Self> {
        let (root, until) = (root.canonicalize().ok()?, Instant::now() + limit);
        Some(Tree { root, repositories: Vec::new(), entries: BTreeMap::new(), is_whole: true, is_settled: true, until })
    }

    fn walk(&mut self) -> Option<()> {
        let (files, is_whole) = walk::files(&self.root, self.until)?;
        self.entries = files.into_iter().map(|path| (path, Content::OnDisk { repository: None, mode: None })).collect();
        self.is_whole &= is_whole;
        Some(())
    }

    /// Whether [`Tree::files`] are all there are.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, content)| !matches!(content, Content::Commit(_))).map(|(path, _)| path.as_str())
    }

    /// A fingerprint of the contents of the files that are to be kept. `None`: it cannot be told.
    pub fn fingerprint(&self, keep: impl Fn(&str) -> bool) -> Option<String> {
        if !self.is_whole || !self.is_settled {
            return None;
        }
        let mut tokens: BTreeMap<&str, String> = BTreeMap::new();
        let mut to_read: Vec<Vec<Unread<'_>>> = (0..=self.repositories.len()).map(|_| Vec::new()).collect();
        for (path, content) in self.entries.iter().filter(|(path, _)| keep(path)) {
            let at = self.root.join(path);
            match content {
                Content::Commit(id) => {
                    tokens.insert(path, format!("commit {id}"));
                }
                Content::Known(mode, _) | Content::OnDisk { mode: Some(mode), .. } if mode == git::LINK && is_link(&at) => {
                    tokens.insert(path, link(&at)?);
                }
                Content::Known(mode, id) => {
                    tokens.insert(path, format!("{mode} {id}"));
                }
                Content::OnDisk { repository, mode } => {
                    let meta = fs::symlink_metadata(&at).ok()?;
                    if meta.is_symlink() {
                        tokens.insert(path, link(&at)?);
                    } else if meta.is_file() {
                        let place = repository.unwrap_or(self.repositories.len());
                        to_read.get_mut(place)?.push(Unread { path, at, meta, mode: mode.as_deref() });
                    } else {
                        return None;
                    }
                }
            }
        }
        let outside = to_read.pop()?;
        for (repository, unread) in self.repositories.iter().zip(to_read) {
            let ids = repository.ids(&unread, self.until)?;
            tokens.extend(unread.iter().zip(ids).map(|(file, id)| (file.path, format!("{} {id}", repository.mode(file)))));
        }
        for (file, id) in outside.iter().zip(walk::ids(&outside, self.until)?) {
            tokens.insert(file.path, format!("{} {id}", git::mode_on_disk(&file.meta)));
        }
        let mut whole = digest::Running::default();
        for (path, token) in tokens {
            whole.add(format!("{token}\0{path}\0").as_bytes());
        }
        Some(whole.finish())
    }

    /// Adds the files below `prefix`, which is empty or ends with a slash, as git sees them; repositories within (submodules, checked out or not, and
    /// others that lie there) with their own git's eyes.
    fn add_repository(&mut self, prefix: &str, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        let listed = git::Repository::list(&self.root.join(prefix), self.until)?;
        let index = self.repositories.len();
        self.repositories.push(listed.repository);
        self.is_whole &= listed.is_whole;
        self.is_settled &= listed.is_settled;
        for (path, state) in listed.entries {
            let path = format!("{prefix}{path}");
            let content = match state {
                git::State::Known { mode, id } => Content::Known(mode, id),
                git::State::OnDisk { mode } => Content::OnDisk { repository: Some(index), mode },
                git::State::Within { commit } => {
                    let folder = format!("{}/", path.trim_end_matches('/'));
                    if is_agents(&folder) {
                        continue;
                    }
                    match commit.filter(|_| !self.root.join(&folder).join(".git").exists()) {
                        Some(commit) => Content::Commit(commit),
                        None => {
                            self.add_repository(&folder, depth + 1)?;
                            continue;
                        }
                    }
                }
            };
            self.entries.insert(path, content);
        }
        Some(())
    }
}

/// A plain file whose content must be read.
struct Unread<'a> {
    /// Relative to the tree's root.
    path: &'a str,
    at: PathBuf,
    meta: Metadata,
    /// What its repository has for it.
    mode: Option<&'a str>,
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

/// A link counts by where it leads, and is never followed.
fn link(path: &Path) -> Option<String> {
    Some(format!("link {}", digest::of(fs::read_link(path).ok()?.as_os_str().as_encoded_bytes())))
}

fn remove_own(entries: &mut BTreeMap<String, Content>) {
    let own: Vec<String> = entries.keys().filter(|path| is_own(path, entries)).cloned().collect();
    for path in own {
        entries.remove(&path);
    }
}

/// What ralph and agents keep for themselves says nothing about the work.
fn is_own(path: &str, all: &BTreeMap<String, Content>) -> bool {
    const STATES: [&str; 2] = [".ideal/.verify-state.json", ".trellis/.verify-state.json"];
    let in_a_feature_folder = |name| {
        let folder = path.strip_suffix(name).filter(|folder| folder.is_empty() || folder.ends_with('/'));
        folder.is_some_and(|folder| all.contains_key(&format!("{folder}feature_list.json")))
    };
    is_agents(path) || STATES.contains(&path) || in_a_feature_folder("progress.txt") || in_a_feature_folder("hook.log")
}

fn is_agents(path: &str) -> bool {
    path.starts_with(".ralph/") || path.starts_with(".claude/")
}
