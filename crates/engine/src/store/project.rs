//! A project: its root, and the paths of ralph's files in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{
    store::{Error, loops, place::Place, private, sessions},
    sys::{env, files},
};

#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    /// The user's state folder.
    state: Option<PathBuf>,
    /// This project's folder in there, once it was checked.
    pub(super) state_folder: OnceLock<PathBuf>,
    /// The settings that count instead of its `ralph.toml`.
    settings: Option<Arc<[u8]>>,
}

impl PartialEq for Project {
    fn eq(&self, other: &Self) -> bool {
        (&self.root, &self.state) == (&other.root, &other.state)
    }
}

impl Eq for Project {}

const LARGEST_SETTINGS: usize = 1 << 20;

/// Folders that every loop needs; [`Project::folder`] makes the others.
const FOLDERS: [&str; 3] = ["journal", "archive", "backup"];

impl Project {
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Project { root: root.into(), state: env::state_dir(), state_folder: OnceLock::new(), settings: None }
    }

    /// A project without state files.
    pub fn passing(root: impl Into<PathBuf>) -> Self {
        Project { root: root.into(), state: None, state_folder: OnceLock::new(), settings: None }
    }

    /// A project whose user has the state folder `state`.
    #[cfg(test)]
    pub(crate) fn with_state(root: impl Into<PathBuf>, state: &Path) -> Self {
        Project { state: Some(state.to_owned()), ..Project::at(root) }
    }

    /// The project of a hook call: where the client was started, else found upwards from the event's folder.
    pub fn of_event(cwd: Option<&str>) -> Self {
        started_in().map_or_else(|| Project::upwards_from(Path::new(cwd.unwrap_or("."))), Project::at)
    }

    /// The same for a session, where the client does not say where it was started: a session that has a loop stays in that loop's project, whatever folders
    /// appear below it.
    pub(crate) fn of_session(cwd: Option<&str>, session: Option<&str>) -> Self {
        if let Some(root) = started_in() {
            return Project::at(root);
        }
        let found = Project::upwards_from(Path::new(cwd.unwrap_or(".")));
        let own = session.and_then(|session| sessions::root_of(&found, session));
        own.filter(|root| found.root.starts_with(root) && root.is_dir()).map_or(found, Project::at)
    }

    /// The nearest folder from `start` upwards that has a loop or has had one, else the nearest with a `.claude` folder, else the repository. Never beyond the repository
    /// (a linked worktree is one of its own) or the home folder, whose `.claude` is the user's configuration and no project, nor is the root of all folders.
    pub fn upwards_from(start: &Path) -> Self {
        let start = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
        let home = env::home();
        let is_home = |dir: &Path| home.as_deref() == Some(dir) || dir.parent().is_none();
        let mut within = Vec::new();
        for dir in start.ancestors() {
            within.push(dir);
            if dir.join(".git").exists() || is_home(dir) {
                break;
            }
        }
        let may_be = |dir: &Path| !is_home(dir) || dir == start;
        let ralphs = |dir: &&&Path| may_be(dir) && (dir.join(".ralph").is_dir() || loops::mark(&Project::at(**dir)));
        let clients = |dir: &&&Path| may_be(dir) && dir.join(".claude").is_dir();
        let repository = within.last().filter(|dir| dir.join(".git").exists());
        let root = within.iter().find(ralphs).or_else(|| within.iter().find(clients)).or(repository);
        Project::at(root.map_or(start.as_path(), |dir| *dir))
    }

    /// The same project under the settings of a file outside of it, a `ralph.toml` in a folder that only this user can write into. Whoever wrote it may run any
    /// command as this user anyway, so it needs no trust; the project's own `ralph.toml` does not count.
    pub fn under_settings(mut self, file: &Path) -> Result<Self, Error> {
        let real = file.canonicalize().map_err(Error::io("read", file))?;
        let place = Place::of(&self);
        let is_ours = fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_file() && files::is_mine_alone(&meta));
        let folder = real.parent().unwrap_or(&real);
        if !is_ours || private::check(folder, &place).is_err() || real.starts_with(place.top()) {
            return Err(Error::NotOurs { path: file.display().to_string() });
        }
        self.settings = Some(files::read(&real, LARGEST_SETTINGS).map_err(Error::io("read", file))?.into());
        Ok(self)
    }

    /// The settings that count instead of `ralph.toml`.
    pub(crate) fn settings(&self) -> Option<&[u8]> {
        self.settings.as_deref()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Why the root is no project, in the words for it: an agent in it would have everything of a person, or of the machine.
    pub fn no_project(&self) -> Option<&'static str> {
        let root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        let is_home = env::home().and_then(|home| home.canonicalize().ok()).is_some_and(|home| home == root);
        match root.parent() {
            _ if is_home => Some("your home folder"),
            None => Some("the top folder of the system"),
            Some(_) => None,
        }
    }

    /// The client's folder, with the loop files.
    pub fn claude(&self) -> PathBuf {
        self.root.join(".claude")
    }

    pub fn own(&self) -> PathBuf {
        self.root.join(".ralph")
    }

    pub fn journal(&self, id: &str) -> PathBuf {
        self.own().join("journal").join(format!("{id}.jsonl"))
    }

    pub fn archive(&self) -> PathBuf {
        self.own().join("archive")
    }

    /// The version of a loop file before its last change.
    pub fn backup(&self, name: &str) -> PathBuf {
        let path = self.own().join("backup").join(format!("{name}.md"));
        // A folder in its place would keep the loop file from being written.
        if path.is_dir() { path.with_extension(format!("{}.md", std::process::id())) } else { path }
    }

    /// Makes ralph's own folder, which ignores itself in git.
    pub fn prepare(&self) -> Result<(), Error> {
        let own = self.own();
        let was_open = make_folder(&own)?;
        for folder in FOLDERS {
            make_folder(&own.join(folder))?;
        }
        if was_open {
            make_private(&own);
        }
        let ignore = own.join(".gitignore");
        if !ignore.exists() {
            files::append(&ignore, b"*\n").map_err(Error::io("write", &ignore))?;
        }
        Ok(())
    }

    /// Whether ralph has a folder here. A link in its place is not followed.
    pub(crate) fn is_in_use(&self) -> bool {
        fs::symlink_metadata(self.own()).is_ok_and(|meta| meta.is_dir())
    }

    /// A folder of ralph's own, made if need be: `logs`, for instance.
    pub fn folder(&self, path: &str) -> Result<PathBuf, Error> {
        self.prepare()?;
        let mut folder = self.own();
        for part in path.split('/') {
            folder.push(part);
            make_folder(&folder)?;
        }
        Ok(folder)
    }

    /// The user's state folder, of all projects.
    pub(super) fn state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// Whether [`Project::prepare`] would succeed, without making anything.
    pub fn look(&self) -> Result<(), Error> {
        let own = self.own();
        for folder in FOLDERS.iter().map(|name| own.join(name)).chain([own.clone()]) {
            match fs::symlink_metadata(&folder) {
                Ok(meta) if !meta.is_dir() => return Err(Error::NotOurs { path: folder.display().to_string() }),
                Ok(_) if !files::may_write_into(&folder) => {
                    return Err(Error::io("write into", &folder)(io::ErrorKind::PermissionDenied.into()));
                }
                Err(e) if !files::is_missing(&e) => {
                    return Err(Error::io("look at", &folder)(e));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A repository can have a `.ralph` link that points anywhere; ralph writes only into real folders. They are private, because whole sessions are in them.
/// `true`: it was open to others until now, as those of older versions were.
fn make_folder(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(files::is_open_to_others(&meta) && files::make_private(path)),
        Ok(_) => Err(Error::NotOurs { path: path.display().to_string() }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            files::make_folder(path).map_err(Error::io("create", path))?;
            Ok(false)
        }
        Err(e) => Err(Error::io("look at", path)(e)),
    }
}

/// A folder of ralph's has fewer.
const MOST_FILES: usize = 100_000;

/// Makes everything in ralph's own folder private, except inside of working trees: they are behind a private folder.
fn make_private(own: &Path) {
    let mut folders = vec![own.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_FILES {
                return;
            }
            let path = entry.path();
            files::make_private(&path);
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != "worktrees" {
                folders.push(path);
            }
        }
    }
}
/// The folder that the client was started in, where it says so.
fn started_in() -> Option<PathBuf> {
    env::project_dir().filter(|dir| dir.is_absolute() && dir.is_dir())
}
