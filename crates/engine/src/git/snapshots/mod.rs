//! Snapshots: the files of a project after each iteration of a loop, as commits under `refs/ralph/<loop>/<iteration>`.
//!
//! Keeping one reads the working tree and writes objects and one ref; no branch, index, reflog or file of the person's changes, and no hook runs.
//! Ignored files are no part of it, nor are ralph's own files.

pub mod compare;
pub(crate) mod working_tree;

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use ralph_core::text::time::Millis;
use serde::Serialize;

use crate::{
    git::Repository,
    store::{loops, project::Project},
    sys::{clock, digest},
};
use working_tree::WorkingTree;

/// Where all snapshots are.
const REFS: &str = "refs/ralph/";

/// Snapshots of a loop that is not there any more are kept for so long.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// The same for loops of other working trees: whether they are live is not looked up there.
const KEPT_FOR_OTHERS: Duration = Duration::from_hours(90 * 24);

/// A snapshot that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The ref: `refs/ralph/main-20261115-093000/3`.
    pub name: String,
    pub commit: String,
    /// Files that are not in it, in words: `dump.sql (812 MB)`.
    pub left_out: Vec<String>,
}

/// A snapshot that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// `3`, or `before-rollback-1`.
    pub name: String,
    /// The whole of it: `refs/ralph/main-20261115-093000/3`.
    #[serde(skip)]
    pub reference: String,
    pub commit: String,
    pub tree: String,
    /// The commit that was checked out.
    pub head: Option<String>,
    /// The branch that was checked out, as `refs/heads/…`.
    pub branch: Option<String>,
    /// When it was made.
    pub at: Millis,
}

impl Snapshot {
    /// The iteration after which it was made; 0 before the first one.
    pub fn iteration(&self) -> Option<u64> {
        self.name.parse().ok()
    }

    /// `round 3`, `the start`, `before-rollback-1`.
    pub fn words(&self) -> String {
        match self.iteration() {
            Some(0) => "the start".to_owned(),
            Some(n) => format!("iteration {n}"),
            None => self.name.clone(),
        }
    }
}

/// Keeps the files as they are after an iteration; 0 is the moment before the first one. `is_again`: the iteration may have been kept before, and that stays, under a
/// name of its own. `None`: there is no git, or no repository that knows the project.
pub fn keep(project: &Project, loop_id: &str, iteration: u64, is_again: bool, limit: Duration) -> Result<Option<Kept>, String> {
    let Some(repository) = Repository::of(project, limit)? else { return Ok(None) };
    let files = WorkingTree::of(&repository, project)?;
    // Once in a run.
    if iteration == 0 || is_again {
        remove_old(&repository, project, loop_id, iteration);
    }
    if is_again {
        set_aside(&repository, loop_id, iteration, &files.tree)?;
    }
    let what = if iteration == 0 { "before the first iteration".to_owned() } else { format!("after iteration {iteration}") };
    write(&repository, loop_id, &iteration.to_string(), &what, &files, false).map(Some)
}

/// Gives the snapshot that an iteration has already a name of its own, if its files were others.
fn set_aside(repository: &Repository, loop_id: &str, iteration: u64, tree: &str) -> Result<(), String> {
    if repository.reference(&format!("{}{iteration}", folder(repository, loop_id)))?.is_none() {
        return Ok(());
    }
    let all = list(repository, loop_id)?;
    let Some(before) = all.iter().find(|snapshot| snapshot.iteration() == Some(iteration) && snapshot.tree != tree) else { return Ok(()) };
    let name = |n: usize| format!("{iteration}-earlier-{n}");
    let free = (1..1_000).map(name).find(|name| all.iter().all(|snapshot| snapshot.name != *name)).unwrap_or_else(|| name(1));
    let name = format!("{}{free}", folder(repository, loop_id));
    Ok(repository.set_reference(&name, &before.commit)?)
}

/// Whether the files after an iteration of a loop are kept; 0 is the moment before the first one.
pub(crate) fn has(project: &Project, loop_id: &str, iteration: u64, limit: Duration) -> Result<bool, String> {
    let Some(repository) = Repository::of(project, limit)? else { return Ok(false) };
    Ok(repository.reference(&format!("{}{iteration}", folder(&repository, loop_id)))?.is_some())
}

/// The ids of the project's loops that have snapshots. One that is no plain word is told by its fingerprint.
pub fn loops(project: &Project, limit: Duration) -> Result<Vec<String>, String> {
    let Some(repository) = Repository::of(project, limit)? else { return Ok(Vec::new()) };
    let names = repository.text(&["for-each-ref", "--format=%(refname)", REFS], "")?;
    let of_here =
        |line: &str| Some(line.strip_prefix(REFS)?.split_once('/')?.0).and_then(|part| loop_in(&repository, part)).map(str::to_owned);
    let mut ids: Vec<String> = names.lines().filter_map(of_here).collect();
    ids.dedup();
    Ok(ids)
}

/// Removes the snapshots of every loop of this project, and tells how many there were.
pub(crate) fn remove_all(project: &Project, limit: Duration) -> Result<usize, String> {
    let Some(repository) = Repository::of(project, limit)? else { return Ok(0) };
    let names = repository.text(&["for-each-ref", "--format=%(refname)", REFS], "")?;
    let is_own = |name: &&str| {
        name.strip_prefix(REFS).and_then(|rest| rest.split_once('/')).is_some_and(|(part, _)| loop_in(&repository, part).is_some())
    };
    let own: Vec<&str> = names.lines().filter(is_own).collect();
    let input: Vec<String> = own.iter().map(|name| format!("delete {name}\n")).collect();
    if !own.is_empty() {
        repository.text(&["update-ref", "--no-deref", "--stdin"], input.concat())?;
    }
    Ok(own.len())
}

/// Whether a loop of this id has snapshots under that name.
pub fn is_called(loop_id: &str, word: &str) -> bool {
    plain(loop_id) == word
}

/// The snapshots of a loop: the rounds in order, then the others in the order of their making.
pub(crate) fn list(repository: &Repository, loop_id: &str) -> Result<Vec<Snapshot>, String> {
    let folder = folder(repository, loop_id);
    let format = "--format=%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(committerdate:unix)%00%(contents:body)%00";
    let told = repository.text(&["for-each-ref", format, &folder], "")?;
    let fields: Vec<&str> = told.split('\0').collect();
    let mut all: Vec<Snapshot> = fields.chunks_exact(6).filter_map(|fields| snapshot(fields, &folder)).collect();
    all.sort_by_key(|snapshot| (snapshot.iteration().is_none(), snapshot.iteration(), snapshot.at, snapshot.name.len()));
    Ok(all)
}

fn snapshot(fields: &[&str], folder: &str) -> Option<Snapshot> {
    let [name, commit, tree, parents, at, body] = fields else { return None };
    let branch = body.lines().find_map(|line| line.strip_prefix(BRANCH)).map(str::to_owned);
    Some(Snapshot {
        name: name.trim_start().strip_prefix(folder)?.to_owned(),
        reference: name.trim_start().to_owned(),
        commit: (*commit).to_owned(),
        tree: (*tree).to_owned(),
        head: parents.split(' ').next().filter(|parent| !parent.is_empty()).map(str::to_owned),
        branch,
        at: at.parse::<Millis>().ok()? * 1_000,
    })
}

const BRANCH: &str = "Branch: ";

/// Makes the commit and its ref. Its parent is the commit that was checked out, so that it tells by itself what was not committed; the snapshot before it is
/// none, because then the last one would keep all others from being collected. `with_staged`: what was staged is a second parent, if it is nowhere else.
pub(crate) fn write(
    repository: &Repository,
    loop_id: &str,
    name: &str,
    what: &str,
    files: &WorkingTree,
    with_staged: bool,
) -> Result<Kept, String> {
    let head = repository.head()?;
    let mut message = format!("ralph: {loop_id} {what}\n\n");
    if let Some(branch) = repository.branch()? {
        let _ = writeln!(message, "{BRANCH}{branch}");
    }
    for path in &files.left_out {
        let _ = writeln!(message, "Left out: {path}");
    }
    let mut parents: Vec<String> = head.clone().into_iter().collect();
    if let Some((head, staged)) = head.filter(|_| with_staged).and_then(|head| Some((head, working_tree::staged(repository)?))) {
        let committed = repository.word(&["rev-parse", &format!("{head}^{{tree}}")])?;
        if staged != files.tree && committed.as_ref() != Some(&staged) {
            parents.push(commit(repository, &staged, &parents, "ralph: what was staged\n")?);
        }
    }
    let commit = commit(repository, &files.tree, &parents, &message)?;
    let name = format!("{}{name}", folder(repository, loop_id));
    repository.set_reference(&name, &commit)?;
    Ok(Kept { name, commit, left_out: files.left_out.clone() })
}

fn commit(repository: &Repository, tree: &str, parents: &[String], message: &str) -> Result<String, String> {
    let mut args = vec!["commit-tree", "--no-gpg-sign"];
    args.extend(parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
    args.extend(["-F", "-", tree]);
    Ok(repository.text(&args, message)?.trim().to_owned())
}

/// Where a loop's snapshots are, with the slash. Linked working trees share their refs, so what is not the usual place has its own mark.
fn folder(repository: &Repository, loop_id: &str) -> String {
    let dot = if repository.place.is_empty() { "" } else { "." };
    format!("{REFS}{}{dot}{}/", plain(loop_id), repository.place)
}

/// The loop that a folder of refs belongs to, if it is one of this place.
fn loop_in<'a>(repository: &Repository, folder: &'a str) -> Option<&'a str> {
    let (id, place) = folder.split_once('.').unwrap_or((folder, ""));
    (place == repository.place).then_some(id)
}

/// An id as a part of a ref's name. Files can say that a loop has any id.
fn plain(loop_id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let can_be = !loop_id.is_empty() && loop_id.len() <= 128 && !loop_id.starts_with('-') && loop_id.chars().all(is_plain);
    if can_be { loop_id.to_owned() } else { format!("x{}", digest::short(loop_id.as_bytes())) }
}

/// Removes old snapshots: those of loops that are long over, and those of an earlier loop with the same id when a new one begins. The objects stay until
/// git collects them. That this fails is no reason not to keep the next one.
fn remove_old(repository: &Repository, project: &Project, loop_id: &str, iteration: u64) {
    let Ok(told) = repository.text(&["for-each-ref", "--format=%(refname) %(committerdate:unix)", REFS], "") else { return };
    let mut folders: BTreeMap<&str, (Millis, Vec<&str>)> = BTreeMap::new();
    for (name, at) in told.lines().filter_map(|line| line.split_once(' ')) {
        let Some((folder, _)) = name.strip_prefix(REFS).and_then(|rest| rest.split_once('/')) else { continue };
        let (newest, names) = folders.entry(folder).or_default();
        *newest = (*newest).max(at.parse::<Millis>().unwrap_or(Millis::MAX / 1_000).saturating_mul(1_000));
        names.push(name);
    }
    let live: Vec<String> = loops::known(project).iter().map(|found| plain(&found.id())).collect();
    let own = plain(loop_id);
    let mut removed: Vec<&str> = Vec::new();
    for (folder, (newest, names)) in &folders {
        let age = Duration::from_millis(u64::try_from(clock::now() - newest).unwrap_or(0));
        let is_over = match loop_in(repository, folder) {
            Some(id) if id == own => {
                // What a person had before a rollback is not the loop's.
                let rounds =
                    names.iter().filter(|name| iteration == 0 && name.rsplit('/').next().is_some_and(|n| n.parse::<u64>().is_ok()));
                removed.extend(rounds);
                false
            }
            Some(id) => age > KEPT && !live.iter().any(|live| live == id),
            None => age > KEPT_FOR_OTHERS,
        };
        if is_over {
            removed.extend(names);
        }
    }
    if !removed.is_empty() {
        let input = removed.iter().flat_map(|name| ["delete ", name, "\n"]).collect::<String>();
        let _ = repository.text(&["update-ref", "--no-deref", "--stdin"], input);
    }
}
