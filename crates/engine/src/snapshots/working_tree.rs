//! The files of the working tree as one of git's trees, made in an index of its own: the person's index, HEAD and files are only read.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::words;

use super::repository::{Ask, Repository, complaint, path_of, pieces};
use crate::{
    store::{folder, project::Project},
    sys::{files, scratch, scratch::Scratch},
};

/// The temporary folders' names begin with this.
const PREFIX: &str = "ralph-snapshot-";

/// A file that git does not track and that is larger than this is left out: it is a download or a dump, and would be copied.
const LARGEST: u64 = 50 << 20;
/// Of all such files together.
const LARGEST_ALL: u64 = 500 << 20;

/// What belongs to ralph and must stay as it is when files go back: the loop itself.
pub(crate) const OWN: [&str; 4] = [
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
        scratch::remove_leftovers(PREFIX);
        let scratch = Scratch::create(PREFIX, false).map_err(|e| format!("no temporary folder can be made: {e}"))?;
        let index = scratch.path().join("index");
        copy_index(&repository.git_dir.join("index"), &index).map_err(|e| format!("git's index cannot be read: {e}"))?;
        let is_sparse = repository.word(&["config", "--type=bool", "core.sparseCheckout"])?.as_deref() == Some("true");
        let making = Making { repository, index: &index, own: own(repository, project), is_sparse };
        making.look_at_everything()?;
        let (mut left_out, unwanted) = making.unwanted()?;
        making.read_filtered_files()?;
        left_out.extend(making.add(&unwanted)?);
        making.remove_own()?;
        let tree = making.write_tree()?;
        Ok(WorkingTree { tree, left_out, index, scratch })
    }

    /// What is staged, as a tree. `None`: in the middle of a merge there is no such tree.
    pub(crate) fn staged(&self, repository: &Repository) -> Option<String> {
        let index = self.scratch.path().join("staged");
        copy_index(&repository.git_dir.join("index"), &index).ok()?;
        write_tree(repository, &index).ok()
    }

    /// Puts the files into the state of another tree. Whatever somebody changed since this value was made keeps all of it from happening.
    pub(crate) fn become_tree(&self, repository: &Repository, tree: &str) -> Result<(), String> {
        let index = File::options().append(true).open(&self.index);
        // Git takes files that are as new as its index for changed ones. These were read when they were that new already.
        let later = index.and_then(|index| index.set_modified(index.metadata()?.modified()? + Duration::from_secs(2)));
        later.map_err(|e| format!("the temporary index cannot be changed: {e}"))?;
        let args = ["read-tree", "-m", "-u", "--no-recurse-submodules", &self.tree, tree].map(OsStr::new);
        repository.answer(&args, Ask { index: Some(&self.index), ..Ask::default() }).map(drop)
    }
}

fn write_tree(repository: &Repository, index: &Path) -> Result<String, String> {
    let args = ["write-tree", "--missing-ok"].map(OsStr::new);
    let tree = repository.answer(&args, Ask { index: Some(index), ..Ask::default() })?;
    Ok(String::from_utf8_lossy(&tree).trim().to_owned())
}

/// Copies an index together with its time: by that git tells which files may have changed in the very moment that it was written.
fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    let (mut old, _) = match files::open_regular(from) {
        Err(e) if files::is_missing(&e) => return Ok(()),
        other => other?,
    };
    let mut new = File::create_new(to)?;
    io::copy(&mut old, &mut new)?;
    new.set_modified(old.metadata()?.modified()?)
}

/// The patterns of what belongs to ralph.
fn own(repository: &Repository, project: &Project) -> Vec<Vec<u8>> {
    let mut own: Vec<Vec<u8>> = OWN.iter().map(|glob| format!("top,glob){glob}").into_bytes()).collect();
    let feature_folder = folder::place(project).canonicalize().ok();
    if let Some(below) = feature_folder.as_deref().and_then(|dir| dir.strip_prefix(&repository.top).ok()) {
        own.extend(["progress.txt", "hook.log"].map(|name| literally(below.join(name).as_os_str().as_encoded_bytes())));
    }
    own
}

fn literally(path: &[u8]) -> Vec<u8> {
    [b"top,literal)", path].concat()
}

struct Making<'a> {
    repository: &'a Repository,
    index: &'a Path,
    own: Vec<Vec<u8>>,
    is_sparse: bool,
}

impl Making<'_> {
    fn ask(&self, args: &[&str], input: Vec<u8>) -> Result<Vec<u8>, String> {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        self.repository.answer(&args, Ask { index: Some(self.index), input, ..Ask::default() })
    }

    fn update(&self, options: &[&str], paths: &[&[u8]]) -> Result<(), String> {
        if paths.is_empty() {
            return Ok(());
        }
        let args: Vec<&str> = std::iter::once("update-index").chain(options.iter().copied()).chain(["-z", "--stdin"]).collect();
        self.ask(&args, [paths.join(&0), vec![0]].concat()).map(drop)
    }

    fn write_tree(&self) -> Result<String, String> {
        write_tree(self.repository, self.index)
    }

    /// Files that somebody told git not to look at change all the same. In a sparse checkout the flag means that they are not there.
    fn look_at_everything(&self) -> Result<(), String> {
        let listed = self.ask(&["ls-files", "-z", "-v"], Vec::new())?;
        let with = |wanted: &dyn Fn(u8) -> bool| -> Vec<&[u8]> {
            pieces(&listed).filter(|line| line.first().is_some_and(|tag| wanted(*tag))).filter_map(|line| line.get(2..)).collect()
        };
        self.update(&["--no-assume-unchanged"], &with(&|tag| tag.is_ascii_lowercase()))?;
        if !self.is_sparse {
            self.update(&["--no-skip-worktree"], &with(&|tag| tag.eq_ignore_ascii_case(&b'S')))?;
        }
        Ok(())
    }

    /// What git does not track and what is not kept: repositories of their own, and what is too large. In words, and as paths.
    fn unwanted(&self) -> Result<(Vec<String>, Vec<Vec<u8>>), String> {
        let (mut words, mut paths) = (Vec::new(), Vec::new());
        let mut room = LARGEST_ALL;
        for path in pieces(&self.ask(&["ls-files", "-z", "--others", "--exclude-standard"], Vec::new())?) {
            let shown = words::clean(&String::from_utf8_lossy(path));
            let why = if path.ends_with(b"/") {
                "a repository of its own".to_owned()
            } else {
                let size = fs::symlink_metadata(self.repository.top.join(path_of(path))).map_or(0, |meta| meta.len());
                if size <= LARGEST && size <= room {
                    room -= size;
                    continue;
                }
                format!("{} MB", size >> 20)
            };
            words.push(format!("{shown} ({why})"));
            paths.push(path.strip_suffix(b"/").unwrap_or(path).to_vec());
        }
        Ok((words, paths))
    }

    /// Where the repository's own filters do not run, their files are kept as they are on the disk, changed or not.
    fn read_filtered_files(&self) -> Result<(), String> {
        if self.repository.own_filters.is_empty() {
            return Ok(());
        }
        let tracked = self.ask(&["ls-files", "-z"], Vec::new())?;
        if tracked.is_empty() {
            return Ok(());
        }
        let told = self.ask(&["check-attr", "-z", "--stdin", "filter"], tracked)?;
        let fields: Vec<&[u8]> = told.split(|b| *b == 0).collect();
        let is_own = |value: &[u8]| self.repository.own_filters.iter().any(|name| name.as_bytes() == value);
        let paths: Vec<&[u8]> = fields.chunks_exact(3).filter(|field| is_own(field[2])).map(|field| field[0]).collect();
        self.update(&["--force-remove"], &paths)?;
        self.update(&["--add", "--remove"], &paths)
    }

    /// Adds everything but that. What cannot be read is left out, and told.
    fn add(&self, unwanted: &[Vec<u8>]) -> Result<Vec<String>, String> {
        let excluded = self.own.iter().cloned().chain(unwanted.iter().map(|path| literally(path)));
        let input: Vec<u8> = excluded.flat_map(|pattern| [b":(exclude,".as_slice(), &pattern, b"\0"].concat()).collect();
        let mut args = vec!["add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"];
        args.extend(self.is_sparse.then_some("--sparse"));
        let args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
        let ran = self.repository.ran(&args, Ask { index: Some(self.index), input, ..Ask::default() })?;
        let unread: Vec<String> = ran.stderr.lines().filter_map(unread).collect();
        let is_whole = ran.code == Some(0) || (ran.code == Some(1) && !unread.is_empty() && !ran.stderr.contains("into database"));
        if is_whole { Ok(unread) } else { Err(complaint(&args, &ran.stderr)) }
    }

    fn remove_own(&self) -> Result<(), String> {
        let patterns: Vec<Vec<u8>> = self.own.iter().map(|own| [b":(", own.as_slice()].concat()).collect();
        let patterns = patterns.iter().map(|pattern| path_of(pattern).as_os_str());
        let args: Vec<&OsStr> = ["ls-files", "-z", "--cached", "--"].into_iter().map(OsStr::new).chain(patterns).collect();
        let own = self.repository.answer(&args, Ask { index: Some(self.index), ..Ask::default() })?;
        self.update(&["--force-remove"], &pieces(&own).collect::<Vec<_>>())
    }
}

/// `error: unable to index file 'x'`
fn unread(line: &str) -> Option<String> {
    let path = line.strip_prefix("error: unable to index file '")?.strip_suffix('\'')?;
    Some(format!("{} (cannot be read)", words::clean(path)))
}
