//! The files of a folder: those that its repository tracks, ignored or not, and the new ones that it does not ignore; or all of them, where there is no repository.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    fs::{self, Metadata},
    path::{Path, PathBuf},
    rc::Rc,
    time::Instant,
};

use super::{Content, Stat, is_agents};
use crate::git::{
    Folders,
    config::Harmless,
    ignore::Rules,
    index::{Entry, Index},
};

/// So many files are listed without a repository.
const MOST_FILES: usize = 20_000;

/// Repositories within repositories within repositories: the deepest level that is looked at.
const DEEPEST: usize = 8;

pub(super) struct Walk<'a> {
    pub(super) root: &'a Path,
    pub(super) until: Instant,
    /// The files, by their paths below the root.
    pub(super) entries: BTreeMap<String, Content>,
    /// Ignored files in folders that are not ignored: no part of the work, but commands read them.
    pub(super) ignored: BTreeMap<String, Content>,
    pub(super) is_whole: bool,
    pub(super) is_settled: bool,
}

/// A folder that has yet to be looked at: its path below the root is empty or ends with a slash.
struct Folder {
    at: PathBuf,
    path: String,
    rules: Rc<Rules>,
}

/// The repository that is walked through.
struct Here {
    /// The beginning of paths below the root in this repository, and its counterpart in the repository's own paths.
    prefix: String,
    below: String,
    ignores_case: bool,
    /// Its index, by path: what has not been found yet.
    tracked: HashMap<String, Entry>,
    depth: usize,
}

impl Here {
    /// A path below the root, as the repository calls it.
    fn own<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let path = path.get(self.prefix.len()..).unwrap_or_default();
        if self.below.is_empty() { Cow::Borrowed(path) } else { Cow::Owned([self.below.as_str(), path].concat()) }
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Path, until: Instant) -> Self {
        Walk { root, until, entries: BTreeMap::new(), ignored: BTreeMap::new(), is_whole: true, is_settled: true }
    }

    /// Walks through the repository around the root, and those within.
    pub(super) fn repository(&mut self, folders: &Folders) -> Option<()> {
        let below = slashed(self.root.strip_prefix(&folders.top).ok()?)?;
        self.within(folders, "", &below, 0)
    }

    fn within(&mut self, folders: &Folders, prefix: &str, below: &str, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        // A configuration that cannot be read changes nothing about which files there are.
        let harmless = Harmless::of(folders).unwrap_or_default();
        let mut here = Here {
            prefix: prefix.to_owned(),
            below: below.to_owned(),
            ignores_case: harmless.ignores_case(),
            tracked: HashMap::new(),
            depth,
        };
        self.read_index(folders, &harmless, &mut here)?;
        let mut rules = Rules::of(folders, here.ignores_case);
        let mut at = folders.top.clone();
        let mut path = String::new();
        for name in below.split_terminator('/') {
            rules = rules.within(&at, &path, here.ignores_case);
            at.push(name);
            path = format!("{path}{name}/");
        }
        let mut left = vec![Folder { at, path: prefix.to_owned(), rules }];
        while let Some(folder) = left.pop() {
            if Instant::now() > self.until {
                return None;
            }
            self.folder(&folder, &mut here, &mut left)?;
        }
        self.add_tracked(&here)
    }

    fn read_index(&mut self, folders: &Folders, harmless: &Harmless, here: &mut Here) -> Option<()> {
        let entries = Index::of(folders, harmless.id_length()).ok()?.entries.into_iter();
        for mut entry in entries.filter(|entry| entry.path.starts_with(here.below.as_bytes()) && !entry.is_folder()) {
            self.is_settled &= entry.stage == 0;
            match String::from_utf8(std::mem::take(&mut entry.path)) {
                Ok(path) => drop(here.tracked.insert(path, entry)),
                // A name that is no text cannot be told from another one.
                Err(_) => self.is_whole = false,
            }
        }
        Some(())
    }

    fn folder(&mut self, folder: &Folder, here: &mut Here, left: &mut Vec<Folder>) -> Option<()> {
        let rules = folder.rules.within(&folder.at, &here.own(&folder.path), here.ignores_case);
        for entry in fs::read_dir(&folder.at).ok()? {
            let entry = entry.ok()?;
            let Ok(name) = entry.file_name().into_string() else {
                self.is_whole = false;
                continue;
            };
            if name == ".git" {
                continue;
            }
            let path = [folder.path.as_str(), &name].concat();
            if entry.file_type().ok()?.is_dir() {
                self.subfolder(entry.path(), &path, here, &rules, left)?;
                continue;
            }
            let Some(content) = entry.metadata().ok().and_then(|meta| content(&meta)) else { continue };
            let own = here.own(&path);
            let is_tracked = here.tracked.remove(&*own).is_some();
            // Rules count even if the file that they are in is ignored.
            let counts = is_tracked || name == ".gitignore" || !rules.ignore(&own, false);
            drop(if counts { &mut self.entries } else { &mut self.ignored }.insert(path, content));
        }
        Some(())
    }

    /// A folder within: a repository of its own, one that is ignored, or one to walk through.
    fn subfolder(&mut self, at: PathBuf, path: &str, here: &Here, rules: &Rc<Rules>, left: &mut Vec<Folder>) -> Option<()> {
        let (own, path) = (here.own(path), format!("{path}/"));
        if is_agents(&path) {
            return Some(());
        }
        let submodule = here.tracked.get(&*own).filter(|entry| entry.is_repository());
        if submodule.is_none() && rules.ignore(&own, true) {
            return Some(());
        }
        if let Some(within) = Folders::at(&at).ok()? {
            return self.within(&within, &path, "", here.depth + 1);
        }
        if let Some(submodule) = submodule {
            self.entries.insert(path.trim_end_matches('/').to_owned(), Content::Commit(submodule.hex()));
        }
        left.push(Folder { at, path, rules: Rc::clone(rules) });
        Some(())
    }

    /// Tracked files count where they are, even in a folder that is ignored.
    fn add_tracked(&mut self, here: &Here) -> Option<()> {
        let mut real: HashSet<PathBuf> = HashSet::new();
        for (own, entry) in &here.tracked {
            let path = format!("{}{}", here.prefix, own.get(here.below.len()..)?);
            if entry.is_repository() || is_agents(&path) {
                continue;
            }
            let at = self.root.join(&path);
            if !is_reached(&at, self.root, &mut real) {
                continue;
            }
            match fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_dir() => {}
                Ok(meta) => match content(&meta) {
                    Some(content) => drop(self.entries.insert(path, content)),
                    // A pipe in the place of a file.
                    None => self.is_settled = false,
                },
                Err(_) => {}
            }
        }
        Some(())
    }

    /// All files below the root, but for what a repository would ignore. `None`: there are too many.
    pub(super) fn folder_without_repository(&mut self) -> Option<()> {
        let mut folders: Vec<(PathBuf, String)> = vec![(self.root.to_owned(), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            if Instant::now() > self.until {
                return None;
            }
            for entry in fs::read_dir(&folder).ok()? {
                let entry = entry.ok()?;
                let Ok(name) = entry.file_name().into_string() else {
                    self.is_whole = false;
                    continue;
                };
                let path = format!("{prefix}{name}");
                if !entry.file_type().ok()?.is_dir() {
                    let content = entry.metadata().ok().and_then(|meta| content(&meta));
                    self.entries.extend(content.map(|content| (path, content)));
                } else if !is_no_source(&name, &entry.path()) {
                    folders.push((entry.path(), format!("{path}/")));
                }
                if self.entries.len() > MOST_FILES || folders.len() > MOST_FILES {
                    return None;
                }
            }
        }
        Some(())
    }
}

/// Whether all folders on the way to a path are real ones: what is beyond a link is somewhere else.
fn is_reached(at: &Path, root: &Path, real: &mut HashSet<PathBuf>) -> bool {
    let Some(folder) = at.parent() else { return false };
    if folder == root || real.contains(folder) {
        return true;
    }
    let is_real = is_reached(folder, root, real) && fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
    if is_real {
        real.insert(folder.to_owned());
    }
    is_real
}

/// A plain file or a link; pipes and the like are nothing that a project is made of.
fn content(meta: &Metadata) -> Option<Content> {
    if meta.is_file() {
        Some(Content::File(Stat::of(meta)))
    } else if meta.is_symlink() {
        Some(Content::Link)
    } else {
        None
    }
}

/// As git writes the path of a folder: empty, or with a slash at its end.
fn slashed(path: &Path) -> Option<String> {
    path.components().map(|part| Some(format!("{}/", part.as_os_str().to_str()?))).collect()
}

/// Folders that a repository would ignore: other programs' memory, and files that can be made again.
fn is_no_source(name: &str, folder: &Path) -> bool {
    const NAMES: [&str; 8] = [".git", ".hg", ".svn", ".jj", ".ralph", "node_modules", "__pycache__", ".venv"];
    NAMES.contains(&name) || folder.join("CACHEDIR.TAG").is_file()
}
