//! A working tree beside the person's own, linked to the same repository, for a loop that should not work in theirs: `.ralph/worktrees/<name>`.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::loops::is_name;

use crate::{
    git::{
        Problem, Repository,
        repository::{path_of, pieces},
    },
    ops::Refusal,
    store::{place, project::Project},
    sys::files,
    view::worktrees::FOLDER,
};

/// Checking out a large repository takes its time.
const PATIENCE: Duration = Duration::from_mins(10);

/// Files that a session needs and that git often does not track. The commands in there run only once they are trusted, and linked working trees share that.
const SET_UP: [&str; 3] = [".claude/settings.json", ".claude/settings.local.json", "ralph.toml"];

/// Where the loop works.
#[derive(Debug)]
pub struct Place {
    pub project: Project,
    /// The branch that is checked out there; empty if there is none.
    pub branch: String,
    pub is_new: bool,
    /// Remarks for the person, one sentence each.
    pub notes: Vec<String>,
}

/// Makes the working tree of that name, on the branch `ralph/<name>`, from the commit that is checked out; or finds it again, with everything in it.
///
/// Nothing of the repository's own is run: no hook, and no filter. Where it has filters, that is said.
pub fn prepare(project: &Project, name: &str) -> Result<Place, Refusal> {
    let because = Refusal::Because;
    if !is_name(name) {
        return Err(because("a working tree's name has up to 64 letters, digits, - and _".to_owned()));
    }
    let repository = Repository::of(project, PATIENCE)?;
    let repository =
        repository.ok_or_else(|| because("a working tree of its own needs a git repository: `git init`, and a commit".to_owned()))?;
    if repository.head()?.is_none() {
        return Err(because("a working tree of its own needs a commit to begin with: make the first one".to_owned()));
    }
    let path = project.folder(FOLDER)?.join(name);
    let is_new = fs::symlink_metadata(&path).is_err();
    if is_new {
        add(&repository, &path, name)?;
    }
    let there = Project::at(&path);
    if !place::Place::of(&there).is_linked_to(&place::Place::of(project)) {
        return Err(because(format!("{} is no working tree of this repository: move it away, or take another name", path.display())));
    }
    // A project that is not the whole repository is the same folder there, if that is committed.
    let same = path.join(&repository.below);
    let there = if same.is_dir() { Project::at(same) } else { there };
    let branch = Repository::of(&there, PATIENCE)?.map(|tree| tree.branch()).transpose()?.flatten();
    let branch = branch.map(|branch| branch.trim_start_matches("refs/heads/").to_owned()).unwrap_or_default();
    let notes = if is_new { notes(&repository, project, &there)? } else { Vec::new() };
    Ok(Place { project: there, branch, is_new, notes })
}

/// Makes the branch, if it does not exist, and what git keeps about a working tree; then the files.
///
/// `git worktree add` would do that in the repository's real folder, with the repository's own configuration.
fn add(repository: &Repository, path: &Path, name: &str) -> Result<(), Problem> {
    let branch = format!("ralph/{name}");
    let reference = format!("refs/heads/{branch}");
    if let Some(other) = in_use(repository, &branch, path)? {
        return Err(Problem::Other(format!("the branch {branch} is checked out in another working tree: {}", other.display())));
    }
    if repository.word(&["rev-parse", "--quiet", "--verify", &reference])?.is_none() {
        repository.text(&["update-ref", "-m", "branch: Created from HEAD", &reference, "HEAD"], "")?;
    }
    let cannot = |e: io::Error| Problem::Other(format!("{} cannot be made: {e}", path.display()));
    let own = own_folder(repository, path, name).map_err(cannot)?;
    let made = link(repository, path, &own, &reference).map_err(cannot).and_then(|()| check_out(path, &reference));
    if made.is_err() {
        let _ = fs::remove_dir_all(path);
        let _ = fs::remove_dir_all(&own);
    }
    made
}

/// The folder in which git keeps what it knows about the working tree: the one of an earlier tree in the same place, or a new one.
fn own_folder(repository: &Repository, path: &Path, name: &str) -> io::Result<PathBuf> {
    let all = repository.folders.common.join("worktrees");
    fs::create_dir_all(&all)?;
    let place = resolved(path).join(".git");
    let is_of_it = |own: &PathBuf| files::read(&own.join("gitdir"), 16 << 10).is_ok_and(|text| path_of(text.trim_ascii_end()) == place);
    let before = fs::read_dir(&all)?.flatten().map(|entry| entry.path()).find(is_of_it);
    if let Some(own) = before {
        if own.join("locked").exists() {
            return Err(io::Error::other("git has it locked: `git worktree unlock` it first"));
        }
        fs::remove_dir_all(&own)?;
    }
    let names = std::iter::once(name.to_owned()).chain((1..1_000).map(|n| format!("{name}{n}")));
    let mut last = io::Error::other("there are too many of that name");
    for own in names.map(|name| all.join(name)) {
        match fs::create_dir(&own) {
            Ok(()) => return Ok(own),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => last = e,
            Err(e) => return Err(e),
        }
    }
    Err(last)
}

/// Lets the working tree and the repository know of each other.
fn link(repository: &Repository, path: &Path, own: &Path, reference: &str) -> io::Result<()> {
    fs::create_dir(path)?;
    let line = |before: &[u8], path: &Path| [before, path.as_os_str().as_encoded_bytes(), b"\n"].concat();
    files::write_whole(&own.join("gitdir"), &line(b"", &resolved(path).join(".git")))?;
    files::write_whole(&own.join("commondir"), b"../..\n")?;
    if repository.folders.has_reftable() {
        fs::create_dir(own.join("reftable"))?;
        fs::create_dir(own.join("refs"))?;
        files::write_whole(&own.join("refs/heads"), b"this repository uses the reftable format\n")?;
        files::write_whole(&own.join("HEAD"), b"ref: refs/heads/.invalid\n")?;
    } else {
        files::write_whole(&own.join("HEAD"), format!("ref: {reference}\n").as_bytes())?;
    }
    files::write_whole(&path.join(".git"), &line(b"gitdir: ", own))
}

fn check_out(path: &Path, reference: &str) -> Result<(), Problem> {
    let there = Repository::around(path, PATIENCE)?.ok_or_else(|| Problem::Other("the new working tree is not found".to_owned()))?;
    if there.folders.has_reftable() {
        there.text(&["symbolic-ref", "HEAD", reference], "")?;
    }
    there.text(&["read-tree", "-m", "-u", "--no-recurse-submodules", "HEAD"], "").map(drop)
}

/// The working trees that git knows: path and branch.
fn known(repository: &Repository) -> Result<Vec<(PathBuf, String)>, Problem> {
    let told = repository.text(&["worktree", "list", "--porcelain"], "")?;
    let mut all: Vec<(PathBuf, String)> = Vec::new();
    for line in told.lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            all.push((PathBuf::from(path), String::new()));
        } else if let (Some(branch), Some(last)) = (line.strip_prefix("branch refs/heads/"), all.last_mut()) {
            branch.clone_into(&mut last.1);
        }
    }
    // The first one is the repository's own, of which git knows the sealed folder.
    if let Some((path, _)) = all.first_mut() {
        let common = &repository.folders.common;
        common.parent().filter(|_| common.ends_with(".git")).unwrap_or(common).clone_into(path);
    }
    Ok(all)
}

/// Git's paths have no links; that of a working tree that is not there cannot be resolved, but its folder can.
fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

/// The working tree in which a branch is checked out, but for one.
fn in_use(repository: &Repository, branch: &str, but: &Path) -> Result<Option<PathBuf>, Problem> {
    let but = resolved(but);
    Ok(known(repository)?.into_iter().find(|(path, used)| used == branch && *path != but).map(|(path, _)| path))
}

/// Parts that a new working tree does not have, in words; files that a session cannot do without are copied.
fn notes(repository: &Repository, project: &Project, there: &Project) -> Result<Vec<String>, Refusal> {
    let mut notes = Vec::new();
    let status = repository.text(&["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"], "")?;
    let changed = pieces(status.as_bytes()).count();
    if changed > 0 {
        let files = if changed == 1 { "1 changed or new file is".to_owned() } else { format!("{changed} changed or new files are") };
        notes.push(format!("{files} not committed, and so not in the working tree of the loop"));
    }
    let filtered = filtered(there)?;
    if filtered > 0 {
        let files = if filtered == 1 { "1 file has".to_owned() } else { format!("{filtered} files have") };
        let again = format!("git -C {} rm -rq --cached . && git -C {} reset -q --hard", there.root().display(), there.root().display());
        notes.push(format!("{files} a filter of this repository's own, which ralph does not run; to have git run it: {again}"));
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

/// How many files have a filter that only the repository knows.
fn filtered(there: &Project) -> Result<usize, Problem> {
    let Some(repository) = Repository::of(there, PATIENCE)? else { return Ok(0) };
    Ok(repository.filtered_by_others(&repository.index()?)?.len())
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
