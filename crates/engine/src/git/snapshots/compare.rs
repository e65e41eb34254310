//! The changes between two snapshots, or between one and now.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::text;
use serde::Serialize;

use super::{Snapshot, working_tree::WorkingTree};
use crate::{
    git::{Ask, Repository, repository::pieces},
    store::project::Project,
};

/// The word for the files as they are.
pub(crate) const NOW: &str = "now";

/// Two states of the files.
#[derive(Debug)]
pub struct Comparison {
    repository: Repository,
    pub from: Side,
    pub to: Side,
}

/// One of them.
#[derive(Debug, Clone, Serialize)]
pub struct Side {
    /// `3`, `before-rollback-1` or `now`.
    pub name: String,
    /// The snapshot's commit; for now, a tree.
    pub id: String,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub path: String,
    /// The path as git has it, which need not be text.
    #[serde(skip)]
    pub(crate) bytes: Vec<u8>,
    pub what: What,
    /// Lines; `None` in a file that is no text.
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    Added,
    Removed,
    Changed,
    /// A repository within stands at another commit, came or went. Its files are its own.
    Repository,
}

impl Comparison {
    /// Neither side: what all iterations did. One: what that iteration did. Both: from one to the other. The error says why there is nothing to compare.
    pub fn of(project: &Project, loop_id: &str, a: Option<&str>, b: Option<&str>, limit: Duration) -> Result<Self, String> {
        let repository = Repository::of(project, limit)?.ok_or("this is not a git repository")?;
        let all = super::list(&repository, loop_id)?;
        let rounds: Vec<&Snapshot> = all.iter().filter(|snapshot| snapshot.iteration().is_some()).collect();
        let newest = rounds.iter().max_by_key(|snapshot| (snapshot.at, snapshot.iteration())).copied();
        let nothing = || format!("no files of {} are kept", text::clean(loop_id));
        let side = |name: &str| match name {
            NOW => Ok(Side { name: NOW.to_owned(), id: WorkingTree::of(&repository, project)?.tree }),
            _ => find(&all, name).map(side_of),
        };
        let (from, to) = match (a, b) {
            (Some(NOW), None) => (side_of(newest.ok_or_else(nothing)?), side(NOW)?),
            (Some(a), None) => {
                let to = find(&all, a)?;
                let before = rounds.iter().rev().find(|snapshot| snapshot.iteration() < to.iteration());
                let before = before
                    .ok_or_else(|| format!("nothing is kept from before {}: `ralph diff {a} now` compares it with now", to.words()))?;
                (side_of(before), side_of(to))
            }
            (Some(a), Some(b)) => (side(a)?, side(b)?),
            (None, _) => (side_of(rounds.first().ok_or_else(nothing)?), side_of(newest.ok_or_else(nothing)?)),
        };
        Ok(Comparison { repository, from, to })
    }

    /// The folder that paths are seen from: the person's, where it is in the working tree, else the project's.
    pub fn folder(&self, here: Option<PathBuf>) -> PathBuf {
        let here = here.and_then(|here| here.canonicalize().ok()).filter(|here| here.starts_with(self.repository.top()));
        here.unwrap_or_else(|| self.repository.top().join(&self.repository.below))
    }

    pub fn changes(&self, folder: &Path, paths: &[OsString]) -> Result<Vec<Change>, String> {
        changes(&self.repository, &self.from.id, &self.to.id, folder, paths)
    }

    /// Has git show it: with the person's colours and pager, and with no program that the repository names.
    pub fn show(&self, folder: &Path, options: &[&str], paths: &[OsString]) -> Result<(), String> {
        let mut args: Vec<&OsStr> = Vec::new();
        args.extend(["diff", "--no-ext-diff", "--no-textconv", "--submodule=short"].map(OsStr::new));
        args.extend(options.iter().map(OsStr::new));
        args.extend([self.from.id.as_str(), self.to.id.as_str(), "--"].map(OsStr::new));
        args.extend(paths.iter().map(OsString::as_os_str));
        match self.repository.show(folder, &args) {
            // Who closes the pager early has seen enough.
            Ok(Some(0 | 141) | None) => Ok(()),
            Ok(Some(_)) => Err("git could not show it".to_owned()),
            Err(e) => Err(format!("git cannot be started: {e}")),
        }
    }
}

fn side_of(snapshot: &Snapshot) -> Side {
    Side { name: snapshot.name.clone(), id: snapshot.commit.clone() }
}

/// The snapshot of that name; otherwise, which there are.
pub(crate) fn find<'a>(all: &'a [Snapshot], name: &str) -> Result<&'a Snapshot, String> {
    let found = all.iter().find(|snapshot| snapshot.name == name);
    found.ok_or_else(|| {
        let name = text::opening(name, 64);
        match all {
            [] => format!("there is no snapshot {name}: this loop has none"),
            _ => format!("there is no snapshot {name}; this loop has {}", names(all)),
        }
    })
}

/// `0–7, 9, before-rollback-1`.
fn names(all: &[Snapshot]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let rounds: Vec<u64> = all.iter().filter_map(Snapshot::iteration).collect();
    for row in rounds.chunk_by(|a, b| b - a == 1) {
        parts.push(match row {
            [first, .., last] => format!("{first}–{last}"),
            one => one.iter().map(u64::to_string).collect(),
        });
    }
    parts.extend(all.iter().filter(|snapshot| snapshot.iteration().is_none()).map(|snapshot| text::clean(&snapshot.name)));
    parts.join(", ")
}

/// Git's mode of a repository within.
const REPOSITORY: &[u8] = b"160000";

/// The files that differ between two trees or commits.
pub(crate) fn changes(repository: &Repository, from: &str, to: &str, folder: &Path, paths: &[OsString]) -> Result<Vec<Change>, String> {
    let options = ["diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", from, to, "--"];
    let args: Vec<&OsStr> = options.iter().map(OsStr::new).chain(paths.iter().map(OsString::as_os_str)).collect();
    let told = repository.answer(&args, Ask { folder: Some(folder), ..Ask::default() })?;
    let mut fields = pieces(&told);
    let (mut all, mut counts) = (Vec::new(), HashMap::new());
    while let Some(field) = fields.next() {
        if field.first() == Some(&b':') {
            let is_repository = field.get(1..7) == Some(REPOSITORY) || field.get(8..14) == Some(REPOSITORY);
            let what = match field.last() {
                _ if is_repository => What::Repository,
                Some(b'A') => What::Added,
                Some(b'D') => What::Removed,
                _ => What::Changed,
            };
            let bytes = fields.next().unwrap_or_default().to_vec();
            all.push(Change { path: String::from_utf8_lossy(&bytes).into_owned(), bytes, what, added: None, removed: None });
        } else if let [added, removed, path] = field.splitn(3, |byte| *byte == b'\t').collect::<Vec<_>>()[..] {
            let number = |digits| std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            counts.insert(path, (number(added), number(removed)));
        }
    }
    for change in &mut all {
        (change.added, change.removed) = counts.get(change.bytes.as_slice()).copied().unwrap_or_default();
    }
    Ok(all)
}
