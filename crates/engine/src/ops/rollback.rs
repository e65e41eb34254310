//! Going back: the files become what they were after an earlier iteration. What is there now is kept first, and can come back the same way.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::{journal::Event, text};
use serde::Serialize;

use crate::{
    git::{
        Problem, Repository,
        repository::path_of,
        snapshots::{
            self, Kept, Snapshot,
            compare::{self, Change, What},
            working_tree::WorkingTree,
        },
    },
    ops::{Asker, Refusal},
    store::{project::Project, project_lock::Locked},
    sys::{files, lock::Lock},
    view::{self, Status},
};

/// How long git may take, for everything together.
const PATIENCE: Duration = Duration::from_mins(10);

/// More names than this say no more.
const FEW: usize = 10;

/// Signs, in git's folder, that it is in the middle of something.
const UNDER_WAY: [&str; 6] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "index.lock"];

/// The request.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    pub loop_id: &'a str,
    /// The snapshot: an iteration, or `before-rollback-1`.
    pub to: &'a str,
    /// Even if the files are not as any iteration left them.
    pub force: bool,
    /// The branch goes back, too.
    pub commits: bool,
    /// Nothing is done.
    pub dry_run: bool,
}

/// The result, or with `--dry-run` the plan.
#[derive(Debug, Serialize)]
pub struct RolledBack {
    #[serde(rename = "loop")]
    pub of_loop: String,
    pub to: Snapshot,
    pub dry_run: bool,
    /// The state before; `None` if nothing was done.
    pub kept: Option<Kept>,
    /// Files that have other contents now.
    pub changed: Vec<String>,
    /// Files that are there again.
    pub brought_back: Vec<String>,
    /// Files that are gone.
    pub removed: Vec<String>,
    /// Repositories within that stood at other commits then. They stay as they are.
    pub repositories: Vec<String>,
    /// The commits that were made since, the newest first: `1a2b3c4 Fix it`.
    pub commits_above: Vec<String>,
    /// The branch now points at this commit.
    pub moved_to: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The commit that was checked out before.
    pub head_before: Option<String>,
    /// Where the loop goes on, if it is still there.
    pub iteration: Option<u64>,
}

pub fn rollback(project: &Project, wish: Wish<'_>, asker: &Asker) -> Result<RolledBack, Refusal> {
    let because = Refusal::Because;
    let repository = Repository::of(project, PATIENCE)?.ok_or_else(|| because("this is not a git repository".to_owned()))?;
    let all = snapshots::list(&repository, wish.loop_id).map_err(because)?;
    let to = compare::find(&all, wish.to).map_err(because)?.clone();
    nobody_works_here(project)?;
    let _runner = hold(project, wish.loop_id)?;
    let files = WorkingTree::of(&repository, project).map_err(because)?;
    let way = Way { repository: &repository, files: &files, to: &to };
    if !wish.force {
        way.all_is_kept(&all)?;
    }
    let differences = way.differences(&files.tree, &to.tree)?;
    way.nothing_is_in_the_way(&differences)?;
    let head_before = repository.head()?;
    let commits_above = way.commits_above().map_err(because)?;
    let target = if wish.commits { way.commit_to_move_to()? } else { None };
    let mut done = RolledBack {
        of_loop: wish.loop_id.to_owned(),
        dry_run: wish.dry_run,
        kept: None,
        changed: only(&differences, What::Changed),
        brought_back: only(&differences, What::Added),
        removed: only(&differences, What::Removed),
        repositories: only(&differences, What::Repository),
        commits_above,
        moved_to: target,
        branch: repository.branch()?,
        head_before,
        iteration: view::live(project).into_iter().find(|view| view.id == wish.loop_id).map(|view| view.iteration),
        to: to.clone(),
    };
    if wish.dry_run {
        return Ok(done);
    }
    let name = format!("before-rollback-{}", all.iter().filter_map(|s| number(&s.name)).max().unwrap_or(0) + 1);
    let what = format!("before the files went back to {}", to.words());
    let kept = snapshots::write(&repository, wish.loop_id, &name, &what, &files, wish.commits).map_err(because)?;
    let way_back = |problem: String| because(format!("{problem}. What was there is kept: `ralph rollback {name} --force` brings it back"));
    files.become_tree(&repository, &to.tree).map_err(way_back)?;
    if let Some(commit) = &done.moved_to {
        move_branch(&repository, commit, done.head_before.as_deref())
            .map_err(|problem| because(format!("the files went back, and the branch did not: {problem}")))?;
    }
    done.kept = Some(kept);
    let moved = done.moved_to.as_deref().map(|commit| format!(", and the branch to {commit}")).unwrap_or_default();
    let detail = format!("the files went back to {}{moved}; {name} has what was there", to.words());
    let locked = Locked::acquire(project)?;
    locked.note(wish.loop_id, asker.session.as_deref(), Event::Heard { event: "rollback".to_owned(), detail: Some(detail) })?;
    Ok(done)
}

/// Lets the branch point at another commit, and the index say what that commit has. The commit before stays known as `ORIG_HEAD`.
fn move_branch(repository: &Repository, commit: &str, before: Option<&str>) -> Result<(), Problem> {
    repository.text(&["reset", "--quiet", "--mixed", "--no-recurse-submodules", commit], "")?;
    if let Some(before) = before.filter(|_| !repository.folders.has_reftable()) {
        let _ = files::write_whole(&repository.folders.git_dir.join("ORIG_HEAD"), format!("{before}\n").as_bytes());
    }
    Ok(())
}

/// The n of `before-rollback-n`.
fn number(name: &str) -> Option<u64> {
    name.strip_prefix("before-rollback-")?.parse().ok()
}

fn only(differences: &[Change], wanted: What) -> Vec<String> {
    differences.iter().filter(|change| change.what == wanted).map(|change| change.path.clone()).collect()
}

/// An agent that works in these files must not have them changed under its hands.
fn nobody_works_here(project: &Project) -> Result<(), Refusal> {
    let busy = view::live(project).into_iter().find(|view| matches!(view.status, Status::Active | Status::Parked));
    let Some(view) = busy else { return Ok(()) };
    let (id, status) = (text::clean(&view.id), view.status.words());
    Err(Refusal::Because(format!("the loop {id} is {status}: an agent may be at work on these files. Pause it first: ralph pause {id}")))
}

/// Keeps runners from taking the loop meanwhile. It is their own lock, and one that holds it is at work.
fn hold(project: &Project, loop_id: &str) -> Result<Option<Lock>, Refusal> {
    let Ok(folder) = project.folder("locks") else { return Ok(None) };
    let Ok(lock) = Lock::take(&folder.join(format!("{loop_id}.runner")), Duration::ZERO) else { return Ok(None) };
    lock.map(Some).ok_or_else(|| {
        let id = text::clean(loop_id);
        Refusal::Because(format!("`ralph run` is at work on the loop {id}. End it first: Ctrl-C there, or ralph pause {id}"))
    })
}

/// From the files as they are to a snapshot.
struct Way<'a> {
    repository: &'a Repository,
    files: &'a WorkingTree,
    to: &'a Snapshot,
}

impl Way<'_> {
    fn differences(&self, from: &str, to: &str) -> Result<Vec<Change>, Refusal> {
        compare::changes(self.repository, from, to, self.repository.top(), &[]).map_err(Refusal::Because)
    }

    /// Files that are as a snapshot has them cannot get lost. Others are work that was done since then.
    fn all_is_kept(&self, all: &[Snapshot]) -> Result<(), Refusal> {
        let Some(newest) = all.iter().max_by_key(|snapshot| (snapshot.at, snapshot.iteration())) else { return Ok(()) };
        if all.iter().any(|snapshot| snapshot.tree == self.files.tree) {
            return Ok(());
        }
        let differences = self.differences(&newest.tree, &self.files.tree)?;
        let names: Vec<String> = differences.iter().map(|change| text::clean(&change.path)).collect();
        Err(Refusal::Because(format!(
            "the files changed since {} was kept: {}. `--force` goes back anyway, and keeps that work first",
            newest.words(),
            some_of(&names)
        )))
    }

    /// Protects files that are in no snapshot: an ignored or too large file may be where a file has to come back.
    fn nothing_is_in_the_way(&self, differences: &[Change]) -> Result<(), Refusal> {
        let of = |wanted: What| differences.iter().filter(move |change| change.what == wanted).map(|change| path_of(&change.bytes));
        let goes: BTreeSet<&Path> = of(What::Removed).collect();
        let blocks = of(What::Added).filter_map(|path| in_the_way(self.repository.top(), path, &goes));
        let names: Vec<String> = blocks.map(|path| text::clean(&path.display().to_string())).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Refusal::Because(format!(
            "files would come back where others lie that are not kept: {}. Move those away first",
            some_of(&names)
        )))
    }

    /// The commits since the snapshot, if the branch goes on from where it was.
    fn commits_above(&self) -> Result<Vec<String>, String> {
        let Some(commit) = &self.to.head else { return Ok(Vec::new()) };
        let range = format!("{commit}..HEAD");
        let log = self.repository.text(&["log", "--no-color", "--no-decorate", "--format=%h %s", "--max-count=1000", &range, "--"], "")?;
        Ok(log.lines().map(text::clean).collect())
    }

    /// The commit that the branch should point at; `None`: it does already.
    fn commit_to_move_to(&self) -> Result<Option<String>, Refusal> {
        let because = |why: String| Err(Refusal::Because(why));
        let words = self.to.words();
        let repository = self.repository;
        let Some(commit) = &self.to.head else {
            return because(format!("there was no commit yet at {words}: the branch cannot go back to it"));
        };
        let Some(branch) = repository.branch()? else {
            return because("no branch is checked out (HEAD is detached): leave out --commits, or check out the branch first".to_owned());
        };
        if self.to.branch.as_ref() != Some(&branch) {
            let then = self.to.branch.as_deref().map_or_else(|| "no branch".to_owned(), text::clean);
            return because(format!("{} is checked out now, and at {words} it was {then}: leave out --commits", text::clean(&branch)));
        }
        if let Some(sign) = UNDER_WAY.iter().find(|sign| repository.folders.git_dir.join(sign).exists()) {
            return because(format!("git is in the middle of something ({sign} exists): end that first, or leave out --commits"));
        }
        if repository.head()?.as_ref() == Some(commit) {
            return Ok(None);
        }
        let count = |args: &[&str]| -> Result<u64, Refusal> {
            let all: Vec<&str> = ["rev-list", "--count"].iter().chain(args).copied().collect();
            let told = repository.word(&all)?;
            told.and_then(|n| n.parse().ok())
                .ok_or_else(|| Refusal::Because(format!("the commit {commit} of {words} is not there any more")))
        };
        let (above, not_pushed) = (count(&["HEAD", "--not", commit])?, count(&["HEAD", "--not", commit, "--remotes"])?);
        if above != not_pushed {
            let pushed = above - not_pushed;
            return because(format!(
                "{pushed} of the commits since {words} are pushed: others may have them. Leave out --commits, and `git revert` them"
            ));
        }
        Ok(Some(commit.clone()))
    }
}

/// The obstacle that keeps a file from coming back to its place.
fn in_the_way(top: &Path, path: &Path, goes: &BTreeSet<&Path>) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    for part in path {
        at.push(part);
        match fs::symlink_metadata(top.join(&at)) {
            Err(_) => return None,
            Ok(meta) if meta.is_dir() => {}
            Ok(_) if goes.contains(at.as_path()) => return None,
            Ok(_) => return Some(at),
        }
    }
    stays_below(top, &at, goes)
}

/// A file below a folder that does not go away by itself.
fn stays_below(top: &Path, folder: &Path, goes: &BTreeSet<&Path>) -> Option<PathBuf> {
    for entry in fs::read_dir(top.join(folder)).ok()?.flatten() {
        let path = folder.join(entry.file_name());
        let stays = match entry.file_type() {
            Ok(kind) if kind.is_dir() => stays_below(top, &path, goes),
            _ => Some(path).filter(|path| !goes.contains(path.as_path())),
        };
        if stays.is_some() {
            return stays;
        }
    }
    None
}

/// The first names, and how many more there are.
fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(FEW);
    let shown = names.iter().take(FEW).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
