//! A working tree beside the person's own, linked to the same repository, for a loop that shall not work in theirs: `.ralph/worktrees/<name>`.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::{loop_file, words};

use crate::{
    ops::{
        Refusal,
        view::{self, View},
    },
    snapshots::repository::{Ask, Repository, pieces},
    store::{project::Project, trust::place},
    sys::files,
};

/// Checking out a large repository takes its time.
const PATIENCE: Duration = Duration::from_mins(10);

/// Where they lie, in ralph's own folder.
const FOLDER: &str = "worktrees";

/// What a session needs and what git often does not track. The commands in there run only once they are trusted, and linked working trees share that.
const SET_UP: [&str; 3] = [".claude/settings.json", ".claude/settings.local.json", "ralph.toml"];

/// Where the loop works.
#[derive(Debug)]
pub struct Place {
    pub project: Project,
    /// The branch that is checked out there; empty if there is none.
    pub branch: String,
    pub is_new: bool,
    /// What the person should know, one sentence each.
    pub notes: Vec<String>,
}

/// Makes the working tree of that name, on the branch `ralph/<name>`, from the commit that is checked out; or finds it again, with all that lies in it.
///
/// No hook of the repository's runs. Its filters do, as they did for the person's own files: without them the files would not be what they are.
pub fn prepare(project: &Project, name: &str) -> Result<Place, Refusal> {
    let because = Refusal::Because;
    if !loop_file::is_name(name) {
        return Err(because("a working tree's name has up to 64 letters, digits, - and _".to_owned()));
    }
    let repository = Repository::of(project, PATIENCE).map_err(because)?;
    let repository =
        repository.ok_or_else(|| because("a working tree of its own needs a git repository: `git init`, and a commit".to_owned()))?;
    if repository.head().map_err(because)?.is_none() {
        return Err(because("a working tree of its own needs a commit to begin with: make the first one".to_owned()));
    }
    let path = project.folder(FOLDER)?.join(name);
    let is_new = fs::symlink_metadata(&path).is_err();
    if is_new {
        add(&repository, &path, name).map_err(because)?;
    }
    let there = Project::at(&path);
    if !place::Place::of(&there).is_linked_to(&place::Place::of(project)) {
        return Err(because(format!("{} is no working tree of this repository: move it away, or take another name", path.display())));
    }
    // A project that is not the whole repository is the same folder there, if that is committed.
    let same = path.join(&repository.below);
    let there = if same.is_dir() { Project::at(same) } else { there };
    let branch = Repository::of(&there, PATIENCE).map_err(because)?.map(|tree| tree.branch()).transpose().map_err(because)?.flatten();
    let branch = branch.map(|branch| branch.trim_start_matches("refs/heads/").to_owned()).unwrap_or_default();
    let notes = if is_new { notes(&repository, project, &there)? } else { Vec::new() };
    Ok(Place { project: there, branch, is_new, notes })
}

fn add(repository: &Repository, path: &Path, name: &str) -> Result<(), String> {
    let branch = format!("ralph/{name}");
    let is_there = repository.word(&["rev-parse", "--quiet", "--verify", &format!("refs/heads/{branch}")])?.is_some();
    let mut args: Vec<&OsStr> = ["worktree", "add", "--quiet"].map(OsStr::new).to_vec();
    // One that somebody removed by hand still has its name with git; `--force` gives that away, and a branch that is in use with it.
    if is_registered(repository, path)? && !is_in_use(repository, &branch, path)? {
        args.push("--force".as_ref());
    }
    let (path, branch) = (path.as_os_str(), OsStr::new(&branch));
    if is_there {
        args.extend(["--".as_ref(), path, branch]);
    } else {
        args.extend(["-b".as_ref(), branch, "--".as_ref(), path, "HEAD".as_ref()]);
    }
    repository.answer(&args, Ask { with_filters: true, ..Ask::default() }).map(drop)
}

/// The working trees that git knows: path and branch.
fn known(repository: &Repository) -> Result<Vec<(PathBuf, String)>, String> {
    let told = repository.ask(&["worktree", "list", "--porcelain"])?;
    let mut all: Vec<(PathBuf, String)> = Vec::new();
    for line in String::from_utf8_lossy(&told).lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            all.push((PathBuf::from(path), String::new()));
        } else if let (Some(branch), Some(last)) = (line.strip_prefix("branch refs/heads/"), all.last_mut()) {
            branch.clone_into(&mut last.1);
        }
    }
    Ok(all)
}

/// Git's paths have no links; that of a working tree that is not there cannot be resolved, but its folder can.
fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

fn is_registered(repository: &Repository, path: &Path) -> Result<bool, String> {
    let path = resolved(path);
    Ok(known(repository)?.iter().any(|(known, _)| *known == path))
}

fn is_in_use(repository: &Repository, branch: &str, but: &Path) -> Result<bool, String> {
    let but = resolved(but);
    Ok(known(repository)?.iter().any(|(path, used)| used == branch && *path != but))
}

/// What a new working tree does not have, in words; what a session cannot do without is copied.
fn notes(repository: &Repository, project: &Project, there: &Project) -> Result<Vec<String>, Refusal> {
    let mut notes = Vec::new();
    let status = repository.ask(&["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"]).map_err(Refusal::Because)?;
    let changed = pieces(&status).count();
    if changed > 0 {
        let files = if changed == 1 { "1 changed or new file is".to_owned() } else { format!("{changed} changed or new files are") };
        notes.push(format!("{files} not committed, and so not in the working tree of the loop"));
    }
    let mut copied = Vec::new();
    for file in SET_UP {
        match copy(&project.root().join(file), &there.root().join(file)) {
            Ok(true) => copied.push(file),
            Ok(false) => {}
            Err(e) => notes.push(format!("{file} could not be copied into the working tree: {e}")),
        }
    }
    if !copied.is_empty() {
        notes.push(format!("copied into it, because git does not have them: {}", copied.join(", ")));
    }
    notes.push("what git ignores (.env, node_modules and the like) is not in it: the agent has to set that up, or you do".to_owned());
    Ok(notes)
}

/// Copies a plain file to a place that must be free. `false`: there is nothing to copy, or something is there.
fn copy(from: &Path, to: &Path) -> io::Result<bool> {
    let is_plain = fs::symlink_metadata(from).is_ok_and(|meta| meta.is_file());
    if !is_plain || fs::symlink_metadata(to).is_ok() {
        return Ok(false);
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut source = File::open(from)?;
    let mut target = files::options().write(true).create_new(true).open(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(source.metadata()?.permissions())?;
    Ok(true)
}

/// A loop that works in one of the project's own working trees.
#[derive(Debug, Clone, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// The working tree's name.
    pub worktree: String,
    /// The project's folder in it.
    #[serde(skip)]
    pub folder: PathBuf,
    #[serde(flatten)]
    pub view: View,
}

/// The live loops of the project's working trees.
pub fn loops(project: &Project) -> Vec<Beside> {
    in_trees(project, view::live)
}

/// The loops that somebody who finds none in the project may look for: the live ones of each working tree, or the one that ended there last.
pub fn live_or_last(project: &Project) -> Vec<Beside> {
    in_trees(project, |there| {
        let live = view::live(there);
        if live.is_empty() { view::ended(there).into_iter().take(1).collect() } else { live }
    })
}

fn in_trees(project: &Project, look: impl Fn(&Project) -> Vec<View>) -> Vec<Beside> {
    let of_tree = |(name, folder): (String, PathBuf)| {
        let beside = |view: View| Beside { worktree: words::clean(&name), folder: folder.clone(), view };
        look(&Project::at(&folder)).into_iter().map(beside).collect::<Vec<_>>()
    };
    folders(project).into_iter().flat_map(of_tree).collect()
}

/// The project's working trees by name, each with the project's folder in it.
pub fn folders(project: &Project) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(project.own().join(FOLDER)).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| loop_file::is_name(name)).collect();
    names.sort();
    let of_tree = |name: String| {
        let path = project.own().join(FOLDER).join(&name);
        let folder = [below(project).map(|below| path.join(below)), Some(path)].into_iter().flatten().find(|dir| dir.is_dir());
        folder.map(|folder| (name, folder))
    };
    names.into_iter().filter_map(of_tree).collect()
}

/// Where a project lies in its repository.
fn below(project: &Project) -> Option<PathBuf> {
    let place = place::Place::of(project);
    place.root().strip_prefix(place.top()).ok().map(Path::to_owned)
}
