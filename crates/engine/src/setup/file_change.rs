//! One change to a file that is not ralph's own: shown first, then made as a whole or not at all.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
    thread,
    time::Duration,
};

use crate::{
    setup::{
        Problem,
        record::{Record, Records},
    },
    sys::{
        exchange::{self, Swapped},
        files,
    },
};

/// How late a program can write into a file that it has opened, on a busy machine.
const LATE: Duration = Duration::from_millis(20);

/// Settings are small.
const MAX_BYTES: usize = 16 << 20;

/// A file before and after; `None` means that there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
    /// For the undo: the file as it would be without ralph.
    original: Original,
    /// The folder that a link must not lead out of.
    bounds: Option<PathBuf>,
    /// The folders that have to be made for it, the innermost first.
    folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Original {
    /// This change restores it, so the record goes.
    Restored,
    Was(Option<String>),
}

impl Change {
    /// A change that can be undone later to `original`; `None` if it would change nothing.
    pub fn to(path: &Path, before: Option<String>, after: String, original: Option<String>) -> Option<Self> {
        let folders = path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let change = Change { path: path.to_owned(), before, after: Some(after), original: Original::Was(original), bounds: None, folders };
        (change.before != change.after).then_some(change)
    }

    /// A change that undoes an earlier one.
    pub fn back(path: &Path, before: String, after: Option<String>) -> Option<Self> {
        let change =
            Change { path: path.to_owned(), before: Some(before), after, original: Original::Restored, bounds: None, folders: Vec::new() };
        (change.before != change.after).then_some(change)
    }

    #[must_use]
    pub fn within(self, bounds: Option<&Path>) -> Self {
        Change { bounds: bounds.map(Path::to_owned), ..self }
    }

    /// Whether the change could be made.
    pub fn check(&self) -> Result<(), Problem> {
        target(&self.path, self.bounds.as_deref()).map(|_| ())
    }

    /// Makes the change, unless the file was changed since it was read. Returns the folders that were made for the file and can go if they are empty.
    pub fn make(&self, records: &Records) -> Result<Vec<PathBuf>, Problem> {
        let target = target(&self.path, self.bounds.as_deref())?;
        let known = records.get(&self.path);
        if let (Original::Was(original), Some(after)) = (&self.original, &self.after) {
            let folders = known.as_ref().map_or_else(|| self.folders.clone(), |record| record.folders.clone());
            records.put(&Record { path: self.path.clone(), before: original.clone(), after: after.clone(), folders })?;
        }
        if let Err(problem) = turn(&target, self.before.as_deref(), self.after.as_deref()) {
            // Nothing was changed, so the record is as before.
            match known {
                Some(record) => records.put(&record)?,
                None => records.forget(&self.path)?,
            }
            return Err(problem);
        }
        if self.original != Original::Restored {
            return Ok(Vec::new());
        }
        records.forget(&self.path)?;
        // Without a record it is unknown who made the folder; an empty one is no loss.
        let folder = || target.parent().filter(|_| self.after.is_none()).map(Path::to_owned).into_iter().collect();
        Ok(known.map_or_else(folder, |record| record.folders))
    }

    /// Takes the change back, unless the file was changed since, and restores the record.
    pub fn undo(&self, records: &Records, known: Option<&Record>) {
        let Ok(target) = target(&self.path, self.bounds.as_deref()) else { return };
        if turn(&target, self.after.as_deref(), self.before.as_deref()).is_ok() {
            let _ = known.map_or_else(|| records.forget(&self.path), |record| records.put(record));
            for folder in &self.folders {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

/// Makes one version of a file another one; `None` means that there is none.
fn turn(target: &Path, from: Option<&str>, to: Option<&str>) -> Result<(), Problem> {
    match (from, to) {
        (None, Some(to)) => create(target, to),
        (Some(from), Some(to)) => replace(target, from, to),
        (Some(from), None) => remove(target, from),
        (None, None) => Ok(()),
    }
}

/// The text of a file that may not exist.
pub fn read(path: &Path) -> Result<Option<String>, Problem> {
    match files::read(path, MAX_BYTES) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Problem::new(path, "is not UTF-8 text. It is left as it is")),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Problem::io("read", path)(e)),
    }
}

/// The same for a file that is about to be changed. Some programs empty a file before they fill it, so an empty one is read again for a moment.
pub(crate) fn read_settled(path: &Path) -> Result<Option<String>, Problem> {
    let mut text = read(path)?;
    for _ in 0..10 {
        if text.as_deref() != Some("") {
            break;
        }
        thread::sleep(Duration::from_millis(10));
        text = read(path)?;
    }
    Ok(text)
}

/// The file itself: people keep their settings elsewhere and put a link in their place, and the link stays.
fn target(path: &Path, bounds: Option<&Path>) -> Result<PathBuf, Problem> {
    let mut target = path.to_owned();
    // As many links as the system follows.
    for _ in 0..40 {
        let Ok(to) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(to);
    }
    if let Some(bounds) = bounds {
        // Where a folder is yet to be made, `..` means something else before and after.
        let yet_to_be = target.strip_prefix(nearest(&target)).unwrap_or(&target);
        let climbs = yet_to_be.components().any(|part| part == Component::ParentDir);
        let inside = |path: &Path| match (nearest(path).canonicalize(), bounds.canonicalize()) {
            (Ok(real), Ok(bounds)) => real.starts_with(bounds),
            _ => false,
        };
        if climbs || !inside(&target) {
            return Err(Problem::new(path, format!("leads out of the project, to {}. It is left as it is", target.display())));
        }
    }
    // A folder cannot be made where there is a broken link or a file.
    if let Some(odd) = target.ancestors().skip(1).find(|part| fs::symlink_metadata(part).is_ok()).filter(|part| !part.is_dir()) {
        return Err(Problem::new(odd, "is no folder, so nothing can be written into it"));
    }
    // The file is replaced, so it is the folder that has to be writable.
    let folder = target.parent().map_or(target.as_path(), nearest);
    if !files::may_write_into(folder) {
        return Err(Problem::new(folder, "is a folder that you may not write to"));
    }
    if fs::metadata(&target).is_ok_and(|meta| meta.permissions().readonly()) {
        return Err(Problem::new(
            &target,
            "is read-only. It is left as it is; make it writable, or choose another of --user, --project and --local",
        ));
    }
    Ok(target)
}

/// The nearest part of a path that exists.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|part| part.exists()).unwrap_or(path)
}

fn changed_meanwhile(path: &Path) -> Problem {
    Problem::new(path, "was changed by another program just now. That version stays; try again")
}

fn create(path: &Path, text: &str) -> Result<(), Problem> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Problem::io("created", folder))?;
    }
    match exchange::create_new(path, &beside(path), text.as_bytes()) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(changed_meanwhile(path)),
        other => other.map_err(Problem::io("written", path)),
    }
}

fn replace(path: &Path, before: &str, after: &str) -> Result<(), Problem> {
    let beside = beside(path);
    let swapped = exchange::swap(path, &beside, before.as_bytes(), after.as_bytes());
    let was_written_to = has_a_late_writer(path, &beside);
    let _ = fs::remove_file(&beside);
    match swapped.map_err(Problem::io("written", path))? {
        Swapped::Done if !was_written_to => Ok(()),
        Swapped::Done | Swapped::Gone | Swapped::Changed => Err(changed_meanwhile(path)),
    }
}

/// A program that opened the file before the exchange writes into the version that goes: then that one is put in place.
fn has_a_late_writer(path: &Path, beside: &Path) -> bool {
    let before = fs::read(beside).ok();
    thread::sleep(LATE);
    let is_written_to = before.is_some() && fs::read(beside).ok().is_some_and(|now| Some(now) != before);
    if is_written_to {
        let _ = exchange::exchange(path, beside);
    }
    is_written_to
}

/// Moves the file away and checks it then, so that no other version is removed.
fn remove(path: &Path, before: &str) -> Result<(), Problem> {
    let beside = beside(path);
    fs::rename(path, &beside).map_err(Problem::io("removed", path))?;
    if fs::read(&beside).is_ok_and(|bytes| bytes == before.as_bytes()) {
        return fs::remove_file(&beside).map_err(Problem::io("removed", path));
    }
    exchange::move_new(&beside, path).map_err(Problem::io("given back", path))?;
    Err(changed_meanwhile(path))
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.ralph-{}", std::process::id()))
}
