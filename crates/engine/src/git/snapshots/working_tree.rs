//! The files of the working tree as one of git's trees, made in an index of its own: the person's index, HEAD and files are only read.
//!
//! Git is told path by path what to take (`update-index`), and never to look for itself: `git add` would ask each submodule by a git of its own, which reads
//! that submodule's configuration.

use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    path::{Path, PathBuf},
};

use fast_glob::glob_match;
use ralph_core::text;

use crate::{
    git::{
        Ask, Folders, Repository, command, head,
        index::{Entry, Index, MARGIN},
        repository::{path_of, pieces},
    },
    store::{feature_folder, project::Project},
    sys::temp_dir,
};

/// A file that git does not track and that is larger than this is left out: it is a download or a dump, and would be copied.
const LARGEST: u64 = 50 << 20;
/// Of all such files together.
const LARGEST_ALL: u64 = 500 << 20;

/// Ralph's own files, which must stay as they are when files go back: the loop itself.
const OWN: [&str; 4] = [
    "**/.ralph/**",
    "**/.claude/ralph-loop*.local.md",
    "**/.claude/data/ralph-loops/**/progress.txt",
    "**/.claude/data/ralph-loops/**/hook.log*",
];

/// The files at one moment.
pub(crate) struct WorkingTree {
    pub(crate) tree: String,
    /// Files that are not in it, in words.
    pub(crate) left_out: Vec<String>,
    /// An index that says the same as the tree, with what the files looked like on the disk. It goes with the repository's value.
    index: PathBuf,
}

impl WorkingTree {
    pub(crate) fn of(repository: &Repository, project: &Project) -> Result<Self, String> {
        temp_dir::remove_leftovers(command::PREFIX);
        let at = repository.temporary("index");
        let own = own_of_folder(repository, project);
        let mut making = Making { repository, at: &at, own, left_out: Vec::new(), info: Vec::new(), add: Vec::new() };
        let mut index = repository.index()?;
        let doubtful = making.take_tracked(&index)?;
        for entry in doubtful {
            index.doubt(entry);
        }
        index.write(&at).map_err(|e| format!("a copy of git's index cannot be written: {e}"))?;
        making.take_new()?;
        let tree = making.put(&index)?;
        Ok(WorkingTree { tree, left_out: making.left_out, index: at })
    }

    /// Puts the files into the state of another tree. A file that changed since this value was made keeps all of it from happening.
    pub(crate) fn become_tree(&self, repository: &Repository, tree: &str) -> Result<(), String> {
        let index = File::options().append(true).open(&self.index);
        // Git takes files that are as new as its index for changed ones. These were read when they were that new already.
        let later = index.and_then(|index| index.set_modified(index.metadata()?.modified()? + MARGIN));
        later.map_err(|e| format!("the temporary index cannot be changed: {e}"))?;
        let args = ["read-tree", "-m", "-u", "--no-recurse-submodules", &self.tree, tree];
        Ok(repository.answer(&args, Ask { index: Some(&self.index), ..Ask::default() }).map(drop)?)
    }
}

/// The staged files, as a tree. `None` in the middle of a merge, where there is no such tree.
pub(super) fn staged(repository: &Repository) -> Option<String> {
    let at = repository.temporary("staged");
    repository.index().ok()?.write(&at).ok()?;
    write_tree(repository, &at).ok()
}

fn write_tree(repository: &Repository, index: &Path) -> Result<String, String> {
    let tree = repository.answer(&["write-tree", "--missing-ok"], Ask { index: Some(index), ..Ask::default() })?;
    Ok(String::from_utf8_lossy(&tree).trim().to_owned())
}

/// Whether a path is one of ralph's own, wherever its feature folder is.
pub(crate) fn is_own(path: &[u8]) -> bool {
    OWN.iter().any(|glob| glob_match(glob, path))
}

/// The paths of a feature folder that are ralph's, too.
pub(crate) fn own_of_folder(repository: &Repository, project: &Project) -> Vec<Vec<u8>> {
    let feature_folder = feature_folder::place(project).canonicalize().ok();
    let below = feature_folder.as_deref().and_then(|dir| dir.strip_prefix(repository.top()).ok());
    let names = |below: &Path| ["progress.txt", "hook.log"].map(|name| below.join(name).as_os_str().as_encoded_bytes().to_vec());
    below.into_iter().flat_map(names).collect()
}

struct Making<'a> {
    repository: &'a Repository,
    /// The index of its own.
    at: &'a Path,
    own: Vec<Vec<u8>>,
    left_out: Vec<String>,
    /// Lines for `update-index --index-info`: what the index has to forget, and where repositories within stand.
    info: Vec<u8>,
    /// The paths that git takes as they are on the disk, or forgets if nothing is there; each with a zero at its end.
    add: Vec<u8>,
}

/// Where the path to a file leads.
enum Reached {
    There(Metadata),
    Nowhere,
    /// Beyond a link, where nothing is the repository's.
    Elsewhere,
}

impl Making<'_> {
    fn ask(&self, args: &[&str], input: Vec<u8>) -> Result<Vec<u8>, String> {
        Ok(self.repository.answer(args, Ask { index: Some(self.at), input, ..Ask::default() })?)
    }

    fn is_own(&self, path: &[u8]) -> bool {
        is_own(path) || self.own.iter().any(|own| own == path)
    }

    fn on_disk(&self, path: &[u8]) -> PathBuf {
        self.repository.top().join(path_of(path))
    }

    /// Everything that git tracks, as it is on the disk now. Returns the entries whose files git has to read, whatever they look like.
    fn take_tracked(&mut self, index: &Index) -> Result<Vec<usize>, String> {
        // What the index has of these went through a filter that does not run now: they are kept as they are on the disk, changed or not.
        let filtered = self.repository.filtered_by_others(index)?;
        let is_sparse = self.repository.harmless.is_sparse();
        let mut folders = HashMap::new();
        let mut doubtful = Vec::new();
        for (n, entry) in index.entries.iter().enumerate() {
            let path = entry.path.as_slice();
            match self.reached(path, &mut folders) {
                _ if self.is_own(path) => self.forget(entry),
                Reached::Nowhere if is_sparse && entry.is_kept_out => {}
                found if entry.is_repository() => self.take_repository(entry, &found),
                Reached::There(meta) if meta.is_file() || meta.is_symlink() => {
                    let is_doubtful = entry.is_unwatched() || index.is_too_new(&meta) || filtered.contains(path);
                    if is_doubtful {
                        doubtful.push(n);
                    }
                    if is_doubtful || entry.stage != 0 || !entry.looks_like(&meta) {
                        self.take(path, &meta);
                    }
                }
                Reached::Nowhere => self.add.extend([path, b"\0"].concat()),
                _ => self.forget(entry),
            }
        }
        Ok(doubtful)
    }

    fn reached<'p>(&self, path: &'p [u8], folders: &mut HashMap<&'p [u8], Reached>) -> Reached {
        let look = |path: &[u8]| fs::symlink_metadata(self.on_disk(path)).map_or(Reached::Nowhere, Reached::There);
        for end in memchr::memchr_iter(b'/', path) {
            match folders.entry(&path[..end]).or_insert_with(|| look(&path[..end])) {
                Reached::There(meta) if meta.is_dir() => {}
                Reached::There(meta) if meta.is_symlink() => return Reached::Elsewhere,
                _ => return Reached::Nowhere,
            }
        }
        look(path)
    }

    fn take(&mut self, path: &[u8], meta: &Metadata) {
        if meta.is_file() && !is_readable(&self.on_disk(path)) {
            self.leave_out(path, "cannot be read");
        } else {
            self.add.extend([path, b"\0"].concat());
        }
    }

    /// A repository within counts by the commit that is checked out there, which is read without its own git.
    fn take_repository(&mut self, entry: &Entry, found: &Reached) {
        let is_folder = matches!(found, Reached::There(meta) if meta.is_dir());
        match is_folder.then(|| Folders::at(&self.on_disk(&entry.path))) {
            None => self.forget(entry),
            Some(Ok(Some(within))) => {
                if let Some(commit) = head::of(&within).filter(|commit| *commit != entry.hex()) {
                    self.info.extend([format!("160000 {commit} 0\t").as_bytes(), &entry.path, b"\0"].concat());
                }
            }
            // It is not checked out.
            Some(_) => {}
        }
    }

    /// Untracked files that git does not ignore, without repositories of their own, and without files that are too large or cannot be read.
    fn take_new(&mut self) -> Result<(), String> {
        let mut room = LARGEST_ALL;
        for path in pieces(&self.ask(&["ls-files", "-z", "--others", "--exclude-standard"], Vec::new())?) {
            if self.is_own(path) {
                continue;
            }
            if path.ends_with(b"/") {
                self.leave_out(path, "a repository of its own");
                continue;
            }
            let Ok(meta) = fs::symlink_metadata(self.on_disk(path)) else { continue };
            if meta.len() > LARGEST || meta.len() > room {
                self.leave_out(path, &format!("{} MB", meta.len() >> 20));
            } else if meta.is_file() || meta.is_symlink() {
                room -= meta.len();
                self.take(path, &meta);
            }
        }
        Ok(())
    }

    /// Changes the index, and makes the tree of it.
    fn put(&mut self, index: &Index) -> Result<String, String> {
        let (info, add) = (std::mem::take(&mut self.info), std::mem::take(&mut self.add));
        if let Some(tree) = index.tree().filter(|_| info.is_empty() && add.is_empty()) {
            return Ok(tree);
        }
        if !info.is_empty() {
            self.ask(&["update-index", "-z", "--index-info"], info)?;
        }
        if !add.is_empty() {
            self.ask(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], add)?;
        }
        write_tree(self.repository, self.at)
    }

    fn forget(&mut self, entry: &Entry) {
        let nothing = "0".repeat(entry.id.len() * 2);
        self.info.extend([format!("0 {nothing}\t").as_bytes(), &entry.path, b"\0"].concat());
    }

    fn leave_out(&mut self, path: &[u8], why: &str) {
        self.left_out.push(format!("{} ({why})", text::clean(&String::from_utf8_lossy(path))));
    }
}

#[cfg(unix)]
fn is_readable(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(path, Access::READ_OK).is_ok()
}

#[cfg(not(unix))]
fn is_readable(path: &Path) -> bool {
    File::open(path).is_ok()
}
