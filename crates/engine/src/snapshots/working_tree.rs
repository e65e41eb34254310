//! The files of the working tree as one of git's trees, made in an index of its own: the person's index, HEAD and files are only read.
//!
//! Git is told path by path what to take (`update-index`), and never to look for itself: `git add` would ask each submodule by a git of its own, which reads
//! that submodule's configuration.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use fast_glob::glob_match;
use ralph_core::text::messages;

use crate::{
    git::{
        Folders, Repository, command, head,
        repository::{Ask, path_of, pieces},
    },
    store::{feature_folder, project::Project},
    sys::{files, temp_dir, temp_dir::Scratch},
};

/// The temporary folders' names begin with this.
const PREFIX: &str = "ralph-snapshot-";

/// A file that git does not track and that is larger than this is left out: it is a download or a dump, and would be copied.
const LARGEST: u64 = 50 << 20;
/// Of all such files together.
const LARGEST_ALL: u64 = 500 << 20;

/// A file that changed so shortly before the index was written, or later, is read again, whatever the index says.
const MARGIN: Duration = Duration::from_secs(2);

/// What belongs to ralph and must stay as it is when files go back: the loop itself.
const OWN: [&str; 4] = [
    "**/.ralph/**",
    "**/.claude/ralph-loop*.local.md",
    "**/.claude/data/ralph-loops/**/progress.txt",
    "**/.claude/data/ralph-loops/**/hook.log*",
];

/// The files at one moment.
pub(crate) struct WorkingTree {
    pub(crate) tree: String,
    /// What is not in it, in words.
    pub(crate) left_out: Vec<String>,
    /// An index that says the same as the tree, with what the files looked like on the disk.
    pub(crate) index: PathBuf,
    /// Goes with this value.
    scratch: Scratch,
}

impl WorkingTree {
    pub(crate) fn of(repository: &Repository, project: &Project) -> Result<Self, String> {
        for prefix in [PREFIX, command::PREFIX] {
            temp_dir::remove_leftovers(prefix);
        }
        let scratch = Scratch::create(PREFIX, false).map_err(|e| format!("no temporary folder can be made: {e}"))?;
        let index = scratch.path().join("index");
        let written = copy_index(&repository.folders.index(), &index).map_err(|e| format!("git's index cannot be read: {e}"))?;
        let mut making = Making {
            repository,
            index: &index,
            written,
            own: own_of_folder(repository, project),
            left_out: Vec::new(),
            info: Vec::new(),
            add: Vec::new(),
        };
        making.take_tracked()?;
        making.take_new()?;
        making.put()?;
        let left_out = std::mem::take(&mut making.left_out);
        let tree = write_tree(repository, &index)?;
        Ok(WorkingTree { tree, left_out, index, scratch })
    }

    /// What is staged, as a tree. `None`: in the middle of a merge there is no such tree.
    pub(crate) fn staged(&self, repository: &Repository) -> Option<String> {
        let index = self.scratch.path().join("staged");
        copy_index(&repository.folders.index(), &index).ok()?;
        write_tree(repository, &index).ok()
    }

    /// Puts the files into the state of another tree. Whatever somebody changed since this value was made keeps all of it from happening.
    pub(crate) fn become_tree(&self, repository: &Repository, tree: &str) -> Result<(), String> {
        let index = File::options().append(true).open(&self.index);
        // Git takes files that are as new as its index for changed ones. These were read when they were that new already.
        let later = index.and_then(|index| index.set_modified(index.metadata()?.modified()? + MARGIN));
        later.map_err(|e| format!("the temporary index cannot be changed: {e}"))?;
        let args = ["read-tree", "-m", "-u", "--no-recurse-submodules", &self.tree, tree].map(OsStr::new);
        Ok(repository.answer(&args, Ask { index: Some(&self.index), ..Ask::default() }).map(drop)?)
    }
}

fn write_tree(repository: &Repository, index: &Path) -> Result<String, String> {
    let args = ["write-tree", "--missing-ok"].map(OsStr::new);
    let tree = repository.answer(&args, Ask { index: Some(index), ..Ask::default() })?;
    Ok(String::from_utf8_lossy(&tree).trim().to_owned())
}

/// Copies an index together with its time, and says when it was written: by that git tells which files may have changed in the very moment that it was.
fn copy_index(from: &Path, to: &Path) -> io::Result<SystemTime> {
    let (mut old, _) = match files::open_regular(from) {
        Err(e) if files::is_missing(&e) => return Ok(SystemTime::UNIX_EPOCH),
        other => other?,
    };
    let mut new = File::create_new(to)?;
    io::copy(&mut old, &mut new)?;
    let written = old.metadata()?.modified()?;
    new.set_modified(written)?;
    Ok(written)
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
    index: &'a Path,
    /// When the person's index was written.
    written: SystemTime,
    own: Vec<Vec<u8>>,
    left_out: Vec<String>,
    /// Lines for `update-index --index-info`: what the index has to forget, or must not believe.
    info: Vec<u8>,
    /// The paths that git takes as they are on the disk, each with a zero at its end.
    add: Vec<u8>,
}

/// A path of the index.
struct Tracked<'a> {
    /// One letter: `H`, in lower case where git was told to assume that the file never changes; `S` where it is not to be checked out.
    tag: u8,
    mode: &'a str,
    id: &'a str,
    path: &'a [u8],
}

impl<'a> Tracked<'a> {
    /// Reads `H 100644 f2ad6c76… 0<tab>path`. Of a path in the middle of a merge there are several lines.
    fn read(line: &'a [u8]) -> Option<Self> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let mut facts = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
        let tag = *facts.next()?.as_bytes().first()?;
        Some(Tracked { tag, mode: facts.next()?, id: facts.next()?, path: &line[tab + 1..] })
    }
}

/// Git's mode of a repository within.
const REPOSITORY: &str = "160000";

impl Making<'_> {
    fn ask(&self, args: &[&str], input: Vec<u8>) -> Result<Vec<u8>, String> {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        Ok(self.repository.answer(&args, Ask { index: Some(self.index), input, ..Ask::default() })?)
    }

    fn is_own(&self, path: &[u8]) -> bool {
        is_own(path) || self.own.iter().any(|own| own == path)
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        self.repository.top().join(path_of(path))
    }

    /// Everything that git tracks, as it is on the disk now.
    fn take_tracked(&mut self) -> Result<(), String> {
        let listed = self.ask(&["ls-files", "-z", "-v", "--stage"], Vec::new())?;
        // What the index has of them went through a filter that does not run now: they are kept as they are on the disk, changed or not.
        let filtered = self.repository.filtered_by_others(Some(self.index))?;
        let mut folders = HashMap::new();
        let is_sparse = self.repository.harmless.is_sparse();
        for tracked in pieces(&listed).filter_map(Tracked::read) {
            let meta = self.reached(tracked.path, &mut folders);
            let is_kept_out = is_sparse && tracked.tag.eq_ignore_ascii_case(&b'S') && meta.is_none();
            if is_kept_out {
                continue;
            }
            if self.is_own(tracked.path) {
                self.forget(&tracked);
            } else if tracked.mode == REPOSITORY {
                self.take_repository(&tracked, meta.as_ref());
            } else {
                let is_doubtful = tracked.tag != b'H' || filtered.contains(tracked.path);
                self.take_file(&tracked, meta.as_ref(), is_doubtful);
            }
        }
        Ok(())
    }

    /// What is at a path, if all folders on the way to it are real ones.
    fn reached<'p>(&self, path: &'p [u8], folders: &mut HashMap<&'p [u8], bool>) -> Option<Metadata> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(n, _)| n);
        for end in ends {
            let is_real =
                *folders.entry(&path[..end]).or_insert_with(|| fs::symlink_metadata(self.at(&path[..end])).is_ok_and(|meta| meta.is_dir()));
            if !is_real {
                return None;
            }
        }
        fs::symlink_metadata(self.at(path)).ok()
    }

    fn take_file(&mut self, tracked: &Tracked<'_>, meta: Option<&Metadata>, is_doubtful: bool) {
        match meta.filter(|meta| meta.is_file() || meta.is_symlink()) {
            None => self.forget(tracked),
            Some(meta) if meta.is_file() && !is_readable(&self.at(tracked.path)) => self.leave_out(tracked.path, "cannot be read"),
            Some(meta) => {
                if is_doubtful || self.may_have_changed(meta) {
                    // An entry without any facts about the file: git has to read it.
                    self.note(tracked.mode, tracked.id, tracked.path);
                }
                self.add.extend([tracked.path, b"\0"].concat());
            }
        }
    }

    /// A repository within counts by the commit that is checked out there, which is read without its own git.
    fn take_repository(&mut self, tracked: &Tracked<'_>, meta: Option<&Metadata>) {
        let within = meta.filter(|meta| meta.is_dir()).map(|_| Folders::at(&self.at(tracked.path)));
        match within {
            None => self.forget(tracked),
            Some(Ok(Some(within))) => {
                if let Some(commit) = head::of(&within).filter(|commit| commit != tracked.id) {
                    self.note(REPOSITORY, &commit, tracked.path);
                }
            }
            // It is not checked out.
            Some(_) => {}
        }
    }

    /// What git does not track and does not ignore, but for repositories of their own, and what is too large or cannot be read.
    fn take_new(&mut self) -> Result<(), String> {
        let mut room = LARGEST_ALL;
        for path in pieces(&self.ask(&["ls-files", "-z", "--others", "--exclude-standard"], Vec::new())?) {
            if self.is_own(path) {
                continue;
            }
            if let Some(path) = path.strip_suffix(b"/") {
                self.leave_out(&[path, b"/"].concat(), "a repository of its own");
                continue;
            }
            let Ok(meta) = fs::symlink_metadata(self.at(path)) else { continue };
            if meta.len() > LARGEST || meta.len() > room {
                self.leave_out(path, &format!("{} MB", meta.len() >> 20));
            } else if meta.is_file() && !is_readable(&self.at(path)) {
                self.leave_out(path, "cannot be read");
            } else if meta.is_file() || meta.is_symlink() {
                room -= meta.len();
                self.add.extend([path, b"\0"].concat());
            }
        }
        Ok(())
    }

    /// Changes the index: first what it has to forget, so that a folder can come where a file was.
    fn put(&mut self) -> Result<(), String> {
        let (info, add) = (std::mem::take(&mut self.info), std::mem::take(&mut self.add));
        if !info.is_empty() {
            self.ask(&["update-index", "-z", "--index-info"], info)?;
        }
        if !add.is_empty() {
            self.ask(&["update-index", "--add", "-z", "--stdin"], add)?;
        }
        Ok(())
    }

    fn note(&mut self, mode: &str, id: &str, path: &[u8]) {
        self.info.extend([format!("{mode} {id} 0\t").as_bytes(), path, b"\0"].concat());
    }

    fn forget(&mut self, tracked: &Tracked<'_>) {
        let nothing = "0".repeat(tracked.id.len());
        self.info.extend([format!("0 {nothing}\t").as_bytes(), tracked.path, b"\0"].concat());
    }

    fn leave_out(&mut self, path: &[u8], why: &str) {
        self.left_out.push(format!("{} ({why})", messages::clean(&String::from_utf8_lossy(path))));
    }

    /// The system's own time of the last change is not older than the index: what that says may be about an earlier content.
    #[cfg(unix)]
    fn may_have_changed(&self, meta: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        let changed = Duration::new(u64::try_from(meta.ctime()).unwrap_or(0), u32::try_from(meta.ctime_nsec()).unwrap_or(0));
        SystemTime::UNIX_EPOCH + changed + MARGIN >= self.written
    }

    #[cfg(not(unix))]
    fn may_have_changed(&self, meta: &Metadata) -> bool {
        meta.modified().is_ok_and(|changed| changed + MARGIN >= self.written)
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
