//! Merging without files: what git can merge by itself, lists, lock files, files of which both sides are kept; everything else is a conflict.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use ralph_engine::sys::command::Task;

use crate::{
    git::{self, Git},
    problem::{Problem, Result},
    settings::Settings,
};

/// A lock file, and the command that brings it up to date. Only tools are here that run nothing of the tree: a Gemfile is a program, pnpm and yarn load plugins from
/// the tree, uv and poetry build it. Those lock files conflict, and an agent settles them with what its person allowed it.
struct Lock {
    file: &'static str,
    command: &'static [&'static str],
    /// Folders and files of settings that could name a program or a server. If they are not the person's own, the tool is not run.
    settings: &'static [&'static str],
    vars: &'static [(&'static str, &'static str)],
}

const LOCKS: [Lock; 4] = [
    Lock {
        file: "Cargo.lock",
        command: &["cargo", "update", "--workspace", "--offline"],
        settings: &[".cargo", "rust-toolchain", "rust-toolchain.toml"],
        vars: &[],
    },
    Lock {
        file: "package-lock.json",
        command: &["npm", "install", "--package-lock-only", "--ignore-scripts"],
        settings: &[".npmrc"],
        vars: &[],
    },
    // A toolchain that go.mod asks for would be fetched and run.
    Lock { file: "go.sum", command: &["go", "mod", "tidy"], settings: &[], vars: &[("GOTOOLCHAIN", "local")] },
    Lock {
        file: "composer.lock",
        command: &["composer", "update", "--lock", "--no-scripts", "--no-plugins"],
        settings: &["auth.json"],
        vars: &[],
    },
];

/// How long a tool may take for its lock file.
const LIMIT: Duration = Duration::from_mins(10);

/// What became of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Merged {
    /// A tree; these lock files conflict in it, and are made anew by their tools.
    Tree { tree: String, locks: Vec<String> },
    /// These files conflict.
    Conflicts(Vec<String>),
    /// Nothing that an agent could see to.
    ForAPerson(String),
}

pub(crate) fn merge(git: &Git, ours: &str, theirs: &str, settings: &Settings) -> Result<Merged> {
    if let Some(why) = not_for_us(git, ours, theirs, settings)? {
        return Ok(Merged::ForAPerson(why));
    }
    let ran = git.ran(&["merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs], b"")?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let mut parts = said.split('\0');
    let tree = parts.next().unwrap_or_default().trim().to_owned();
    match ran.code {
        Some(0) => return Ok(Merged::Tree { tree, locks: Vec::new() }),
        Some(1) => {}
        _ => return Err(Problem::new(format!("git merge-tree: {}", git::last_words(&ran)))),
    }
    let mut stages: BTreeMap<String, [Option<String>; 3]> = BTreeMap::new();
    for part in parts.take_while(|part| !part.is_empty()) {
        let Some((facts, path)) = part.split_once('\t') else { continue };
        let mut words = facts.split(' ');
        let (blob, stage) = (words.nth(1), words.next().and_then(|stage| stage.parse::<usize>().ok()));
        if let (Some(blob), Some(stage @ 1..=3)) = (blob, stage) {
            stages.entry(path.to_owned()).or_default()[stage - 1] = Some(blob.to_owned());
        }
    }
    settle(git, ours, tree, stages, settings)
}

/// Settles the conflicts that need nobody.
fn settle(git: &Git, into: &str, mut tree: String, stages: BTreeMap<String, [Option<String>; 3]>, settings: &Settings) -> Result<Merged> {
    let (mut locks, mut conflicts) = (Vec::new(), Vec::new());
    for (path, blobs) in stages {
        if settings.list.as_deref() == Some(&path) {
            // Marks belong to the lander: the target's list counts.
            tree = git.with_file(&tree, into, &path, &git.file(into, &path)?.unwrap_or_default())?;
        } else if Lock::of(&path).is_some() {
            locks.push(path);
        } else if let (true, [base, Some(ours), Some(theirs)]) = (settings.slots.union.contains(&path), &blobs) {
            let both = union(git, base.as_deref(), ours, theirs)?;
            tree = git.with_file(&tree, into, &path, &both)?;
        } else {
            conflicts.push(path);
        }
    }
    Ok(if conflicts.is_empty() { Merged::Tree { tree, locks } } else { Merged::Conflicts(conflicts) })
}

/// Both sides of a file.
fn union(git: &Git, base: Option<&str>, ours: &str, theirs: &str) -> Result<Vec<u8>> {
    let scratch = ralph_engine::sys::temp_dir::Scratch::create("ralph-union-", false).map_err(Problem::when("a temporary folder"))?;
    let mut paths = Vec::new();
    for (name, blob) in [("ours", Some(ours)), ("base", base), ("theirs", Some(theirs))] {
        let bytes = blob.map_or(Ok(Vec::new()), |blob| git.ran(&["cat-file", "blob", blob], b"").map(|ran| ran.stdout))?;
        let path = scratch.path().join(name);
        crate::settings::write(&path, &bytes)?;
        paths.push(path.display().to_string());
    }
    Ok(git.run(&["merge-file", "-p", "--union", &paths[0], &paths[1], &paths[2]])?.stdout)
}

/// What a landing cannot take along: submodules that changed, and files that git keeps elsewhere.
fn not_for_us(git: &Git, ours: &str, theirs: &str, settings: &Settings) -> Result<Option<String>> {
    let base = git.ran(&["merge-base", ours, theirs], b"")?.text();
    if base.is_empty() {
        return Ok(Some("it has no commit in common with the branch that it should land on".to_owned()));
    }
    let changed = git.word(&["diff-tree", "-r", "--no-renames", &base, theirs])?;
    let mut paths = Vec::new();
    for line in changed.lines() {
        let Some((facts, path)) = line.split_once('\t') else { continue };
        if facts.split(' ').take(2).any(|mode| mode.trim_start_matches(':') == "160000") {
            return Ok(Some(format!("it changes the submodule {path}: land it by hand")));
        }
        if path.starts_with(".ralph/") || (path.starts_with(".claude/ralph-loop") && path.ends_with(".local.md")) {
            return Ok(Some(format!("it commits {path}, which is ralph's own: remove it from the branch")));
        }
        if settings.slots.copies(path) {
            return Ok(Some(format!("it commits {path}, which [fleet] copies from your folder: it may hold secrets")));
        }
        paths.push(path);
    }
    let asked = paths.join("\0") + "\0";
    let with_filters = git.ran(&["check-attr", "-z", "--stdin", "--source", theirs, "filter"], asked.as_bytes())?;
    let said = String::from_utf8_lossy(&with_filters.stdout).into_owned();
    let words: Vec<&str> = said.split('\0').collect();
    let of_lfs = words.chunks(3).find(|chunk| chunk.get(2) == Some(&"lfs"));
    Ok(of_lfs.map(|chunk| format!("it changes {}, which Git LFS keeps elsewhere: land it by hand", chunk[0])))
}

/// The settings of a lock file's tool that are not the person's own: a branch brought them.
pub(crate) fn foreign_settings(git: &Git, persons: &str, tree: &str, lock: &str) -> Result<Option<String>> {
    let Some(lock) = Lock::of(lock) else { return Ok(None) };
    let changed = git.run(&["diff-tree", "-r", "-z", "--no-renames", "--name-only", persons, tree])?;
    let is_one = |part: &str| lock.settings.iter().any(|name| part.eq_ignore_ascii_case(name));
    let said = String::from_utf8_lossy(&changed.stdout).into_owned();
    Ok(said.split('\0').find(|path| path.split('/').any(is_one)).map(str::to_owned))
}

/// Has a lock file brought up to date by its own tool.
pub(crate) fn update_lock(folder: &Path, lock: &str, vars: Vec<(OsString, OsString)>) -> Result<()> {
    let Some(Lock { command, vars: own, .. }) = Lock::of(lock) else { return Ok(()) };
    let task = Task {
        program: command[0].into(),
        args: command[1..].iter().map(OsString::from).collect(),
        folder: &folder.join(Path::new(lock).parent().unwrap_or(Path::new(""))),
        vars: vars.into_iter().chain(own.iter().map(|(name, value)| ((*name).into(), (*value).into()))).collect(),
        hidden: Vec::new(),
        input: Vec::new(),
        limit: LIMIT,
        most_output: 64 << 10,
    };
    match task.run() {
        Ok(ran) if ran.code == Some(0) => Ok(()),
        Ok(ran) => Err(Problem::new(format!("`{}` fails: {}", command.join(" "), ran.stderr.trim().lines().last().unwrap_or_default()))),
        Err(_) => Err(Problem::new(format!("{lock} conflicts, and `{}` cannot be run", command.join(" ")))),
    }
}

impl Lock {
    /// The row for a path.
    fn of(path: &str) -> Option<&'static Lock> {
        let name = path.rsplit('/').next().unwrap_or(path);
        LOCKS.iter().find(|lock| lock.file == name)
    }
}
