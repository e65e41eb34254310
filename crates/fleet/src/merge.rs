//! Merging without files: what git can merge by itself, lists, lock files, files of which both sides are kept; everything else is a conflict.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use ralph_core::gate::list::List;
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

/// Where ralph writes in a working tree.
pub(crate) const OWN_FOLDERS: [&str; 2] = [".claude", ".ralph"];

/// How long a tool may take for its lock file.
const LIMIT: Duration = Duration::from_mins(10);

/// Whose work is merged into what has landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// An agent's: its branch has no word in the list, and brings nothing that only a person may.
    Job,
    /// The person's own.
    Person,
}

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

pub(crate) fn merge(git: &Git, ours: &str, theirs: &str, whose: Whose, settings: &Settings) -> Result<Merged> {
    if whose == Whose::Job
        && let Some(why) = not_for_us(git, ours, theirs, settings)?
    {
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
    let (mut tree, mut locks, mut conflicts) = (tree, Vec::new(), Vec::new());
    for (path, blobs) in stages {
        if Lock::of(&path).is_some() {
            locks.push(path);
        } else if let Some(bytes) = settled(git, &path, &blobs, whose, settings)? {
            tree = git.with_file(&tree, ours, &path, &bytes)?;
        } else {
            conflicts.push(path);
        }
    }
    Ok(if conflicts.is_empty() { Merged::Tree { tree, locks } } else { Merged::Conflicts(conflicts) })
}

/// A file that conflicts as both sides together have it, where that needs nobody.
fn settled(
    git: &Git,
    path: &str,
    [base, ours, theirs]: &[Option<String>; 3],
    whose: Whose,
    settings: &Settings,
) -> Result<Option<Vec<u8>>> {
    let blob = |name: &str| Ok::<_, Problem>(git.run(&["cat-file", "blob", name])?.stdout);
    Ok(match (ours, theirs) {
        // Marks belong to the lander: the target's list counts.
        (Some(ours), _) if settings.list.as_deref() == Some(path) && whose == Whose::Job => Some(blob(ours)?),
        // The person's words count, with what landed since.
        (Some(ours), Some(theirs)) if settings.list.as_deref() == Some(path) => {
            let base = base.as_deref().map(blob).transpose()?;
            with_new_marks(base.as_deref(), &blob(ours)?, blob(theirs)?).ok()
        }
        (Some(ours), Some(theirs)) if settings.slots.union.iter().any(|one| one == path) => {
            Some(union(git, base.as_deref(), ours, theirs)?)
        }
        _ => None,
    })
}

/// A list of the person's, in which the items are marked that were marked in ours since both were the same.
fn with_new_marks(before: Option<&[u8]>, ours: &[u8], theirs: Vec<u8>) -> std::result::Result<Vec<u8>, ralph_core::text::Problem> {
    let (ours, before) = (List::parse(ours)?, before.map(List::parse).transpose()?);
    let was_marked = |id: &str| before.as_ref().is_some_and(|list| list.find(id).is_some_and(|at| list.items[at].passes));
    let mut list = theirs;
    for item in ours.items.iter().filter(|item| item.passes && !was_marked(&item.id)) {
        let now = List::parse(&list)?;
        if let Some(at) = now.find(&item.id).filter(|at| !now.items[*at].passes) {
            list = now.with_done(&list, at)?;
        }
    }
    Ok(list)
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
        let is_link = facts.split(' ').nth(1) == Some("120000");
        if is_link && OWN_FOLDERS.contains(&path) {
            return Ok(Some(format!("it makes {path} a link, through which ralph would write elsewhere: remove it from the branch")));
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

/// Has a lock file brought up to date by its own tool. The result says why that cannot be done.
pub(crate) fn update_lock(folder: &Path, lock: &str, vars: Vec<(OsString, OsString)>) -> Option<String> {
    let Lock { command, vars: own, .. } = Lock::of(lock)?;
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
        Ok(ran) if ran.code == Some(0) => None,
        Ok(ran) => Some(format!("`{}` fails: {}", command.join(" "), ran.stderr.trim().lines().last().unwrap_or_default())),
        Err(_) => Some(format!("`{}` cannot be run", command.join(" "))),
    }
}

impl Lock {
    /// The row for a path.
    fn of(path: &str) -> Option<&'static Lock> {
        let name = path.rsplit('/').next().unwrap_or(path);
        LOCKS.iter().find(|lock| lock.file == name)
    }
}
