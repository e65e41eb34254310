//! The files of a folder as git sees them, and the ids that git would give their contents.

use std::{
    ffi::{OsStr, OsString},
    fs::Metadata,
    path::{Path, PathBuf},
    time::Instant,
};

use super::Unread;
use crate::sys::{git_settings, process};

/// Git's mode of a link, and of a repository within.
pub(super) const LINK: &str = "120000";
const REPOSITORY: &str = "160000";

/// A list of some hundred thousand files.
const MOST_OUTPUT: usize = 64 << 20;

/// A repository, asked about the files below one of its folders.
#[derive(Debug)]
pub(super) struct Repository {
    /// Its top folder.
    top: PathBuf,
    folder: PathBuf,
    options: Vec<OsString>,
    /// Whether modes on the disk mean anything.
    has_modes: bool,
}

/// What git says about a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// As it is in the index.
    Known { mode: String, id: String },
    /// Changed, new, or hidden from git: only the disk knows. With the mode in the index.
    OnDisk { mode: Option<String> },
    /// A repository of its own; with its commit in the index of the one around it.
    Within { commit: Option<String> },
}

pub(super) struct Listed {
    pub(super) repository: Repository,
    /// Relative to the folder.
    pub(super) entries: Vec<(String, State)>,
    /// Every name is text.
    pub(super) is_whole: bool,
    /// Nothing is in the middle of a merge.
    pub(super) is_settled: bool,
}

/// The top of the repository around a folder.
pub(super) fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|dir| dir.join(".git").exists())
}

impl Repository {
    /// Lists what lies below `folder`. `None`: git could not answer.
    pub(super) fn list(folder: &Path, until: Instant) -> Option<Listed> {
        // Git speaks of links resolved.
        let folder = folder.canonicalize().ok()?;
        let top = top(&folder)?.to_owned();
        let prefix = slashed(folder.strip_prefix(&top).ok()?)?;
        let prefix = if prefix.is_empty() { prefix } else { format!("{prefix}/") };
        let mut repository = Repository { top, folder, options: Vec::new(), has_modes: cfg!(unix) };
        repository.read_configuration(until)?;
        let args =
            ["ls-files", "-z", "-v", "--full-name", "--stage", "--cached", "--modified", "--deleted", "--others", "--exclude-standard"];
        let listing = repository.ask(&repository.folder, &args, Vec::new(), until)?;
        // A name that is no text cannot be told from another one.
        let (odd, text): (Vec<&str>, Vec<&str>) = listing.split_terminator('\0').partition(|line| line.contains('\u{fffd}'));
        let mut lines: Vec<Line<'_>> = text.into_iter().map(Line::read).collect::<Option<_>>()?;
        let is_settled = lines.iter().all(|line| !line.is_merging);
        // Git says twice that a file changed: that it is there, and that it changed.
        lines.sort_by(|a, b| a.path.cmp(b.path));
        let mut entries = Vec::new();
        for same in lines.chunk_by(|a, b| a.path == b.path) {
            let path = same.first()?.path;
            if let Some(state) = state(same, &repository.top.join(path)) {
                entries.push((path.strip_prefix(&prefix)?.to_owned(), state));
            }
        }
        Some(Listed { repository, entries, is_whole: odd.is_empty(), is_settled })
    }

    /// The ids that git would give the contents of these files.
    pub(super) fn ids(&self, files: &[Unread<'_>], until: Instant) -> Option<Vec<String>> {
        if files.is_empty() {
            return Some(Vec::new());
        }
        let mut input = String::new();
        for file in files {
            input.push_str(&quoted(&slashed(file.at.strip_prefix(&self.top).ok()?)?));
            input.push('\n');
        }
        let ids = self.ask(&self.top, &["hash-object", "--stdin-paths"], input.into_bytes(), until)?;
        let ids: Vec<String> = ids.lines().map(str::to_owned).collect();
        (ids.len() == files.len()).then_some(ids)
    }

    /// The mode that git would give a file.
    pub(super) fn mode<'a>(&self, file: &Unread<'a>) -> &'a str {
        // Where there are no links, one is a plain file that says where it would lead.
        match file.mode {
            Some(mode) if !self.has_modes && (mode != LINK || cfg!(windows)) => mode,
            _ if self.has_modes => mode_on_disk(&file.meta),
            _ => PLAIN,
        }
    }

    /// Programs that the repository itself names to be run over its files are not run: it could name any. The user's own are.
    fn read_configuration(&mut self, until: Instant) -> Option<()> {
        let limit = until.checked_duration_since(Instant::now())?;
        for setting in git_settings::read(&self.folder, r"^(filter\..*|core\.filemode)$", limit)? {
            if setting.key == "core.filemode" {
                self.has_modes = cfg!(unix) && !matches!(setting.value.as_str(), "false" | "no" | "off" | "0");
            } else if let Some(name) = setting.own_filter() {
                self.options.extend(git_settings::without_filter(name)?);
            }
        }
        Some(())
    }

    fn ask(&self, folder: &Path, args: &[&str], input: Vec<u8>, until: Instant) -> Option<String> {
        let limit = until.checked_duration_since(Instant::now())?;
        let args: Vec<&OsStr> = self.options.iter().map(OsString::as_os_str).chain(args.iter().map(OsStr::new)).collect();
        let ran = process::git_fed(folder, &args, input, limit, MOST_OUTPUT).ok()?;
        (ran.code == Some(0) && ran.whole).then_some(ran.stdout)
    }
}

/// A line of `ls-files`.
struct Line<'a> {
    tag: char,
    /// Mode and id, of what is in the index.
    indexed: Option<(&'a str, &'a str)>,
    is_merging: bool,
    path: &'a str,
}

impl<'a> Line<'a> {
    /// Reads `H 100644 f2ad6c76… 0\tpath` and `? path`. `None`: it is no such line.
    fn read(line: &'a str) -> Option<Self> {
        let (tag, rest) = line.split_once(' ')?;
        let tag = tag.chars().next()?;
        if tag == '?' {
            return Some(Line { tag, indexed: None, is_merging: false, path: rest });
        }
        let (facts, path) = rest.split_once('\t')?;
        let mut facts = facts.split(' ');
        let (mode, id, stage) = (facts.next()?, facts.next()?, facts.next()?);
        Some(Line { tag, indexed: Some((mode, id)), is_merging: stage != "0", path })
    }
}

/// What all lines about one path say. `None`: it is not there.
fn state(lines: &[Line<'_>], at: &Path) -> Option<State> {
    let has = |tag: char| lines.iter().any(|line| line.tag == tag);
    let Some((mode, id)) = lines.iter().find_map(|line| line.indexed) else {
        let is_folder = lines.first()?.path.ends_with('/');
        return Some(if is_folder { State::Within { commit: None } } else { State::OnDisk { mode: None } });
    };
    // What somebody told git not to look at (`h`) can change unseen; what is not to be checked out (`S`) can be there all the same.
    let is_unwatched = has('h') || has('s') || has('S');
    let is_there = || at.symlink_metadata().is_ok();
    let is_merging = lines.iter().any(|line| line.is_merging);
    if has('R') || ((has('h') || is_merging) && !is_there()) {
        None
    } else if mode == REPOSITORY {
        Some(State::Within { commit: Some(id.to_owned()) })
    } else if is_merging || has('C') || (is_unwatched && is_there()) {
        Some(State::OnDisk { mode: Some(mode.to_owned()) })
    } else {
        Some(State::Known { mode: mode.to_owned(), id: id.to_owned() })
    }
}

const PLAIN: &str = "100644";

#[cfg(unix)]
pub(super) fn mode_on_disk(meta: &Metadata) -> &'static str {
    use std::os::unix::fs::PermissionsExt;
    if meta.permissions().mode() & 0o100 == 0 { PLAIN } else { "100755" }
}

#[cfg(not(unix))]
pub(super) fn mode_on_disk(_meta: &Metadata) -> &'static str {
    PLAIN
}

/// As git writes paths.
fn slashed(path: &Path) -> Option<String> {
    let names: Option<Vec<&str>> = path.components().map(|part| part.as_os_str().to_str()).collect();
    Some(names?.join("/"))
}

/// As git reads names that hold line breaks or quotes.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
