//! Failures of hooks with their causes (S0-1): a bounded log in the user's state folder, for all projects, because there may be no `.ralph` to write into.
//! `ralph doctor` shows the last lines. Failing to log never changes an answer.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use ralph_core::{
    judge::Reason,
    text::time::{self, Millis},
};
use serde::{Deserialize, Serialize};

use crate::{
    store::project::Project,
    sys::{clock, env, files, secrets},
};

/// A longer log is put aside; one old log is kept.
const MAX_BYTES: u64 = 128 << 10;

/// The end of the log in which the same failure is looked for.
const RECENT: u64 = 16 << 10;

/// The same failure is not logged again within this time.
const AGAIN_MS: Millis = 3_600_000;

const MAX_CAUSE: usize = 400;

/// One failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// RFC 3339, UTC.
    pub at: String,
    pub project: String,
    pub event: String,
    /// The reason code of the answer.
    pub code: String,
    pub cause: String,
}

impl Trouble {
    /// Advice for the person.
    pub fn advice(&self) -> &'static str {
        match Reason::of(&self.code) {
            Some(Reason::INPUT_INVALID) => {
                "The client sent no event in JSON. If it happens again, check the registered command and what runs it."
            }
            Some(Reason::LOOP_TRACKED) => {
                "`ralph resume` lets the loop run here, or take its file out of the repository (`git rm --cached`)."
            }
            Some(Reason::INPUT_UNREAD) => "The client closed the pipe. If it happens again, check what runs the hook.",
            _ if self.cause.contains(".ralph/lock") => "Another ralph process holds the lock: `fuser .ralph/lock` says which.",
            _ => "Remove the cause; `ralph status` says whether a loop is paused because of it, and `ralph resume` goes on.",
        }
    }
}

/// Failures on the way that are in no answer.
static MISSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes a failure that the hook goes on without.
pub(super) fn missed(what: &impl std::fmt::Display) {
    let mut missed = MISSED.lock().unwrap_or_else(PoisonError::into_inner);
    let what = what.to_string();
    if missed.len() < 8 && !missed.contains(&what) {
        missed.push(what);
    }
}

/// The failures since the last call.
pub(crate) fn take_missed() -> Option<String> {
    let missed = std::mem::take(&mut *MISSED.lock().unwrap_or_else(PoisonError::into_inner));
    (!missed.is_empty()).then(|| missed.join("; "))
}

fn path() -> Option<PathBuf> {
    Some(env::state_dir()?.join("hook.log"))
}

/// Logs a failure, unless it is there already.
pub(crate) fn note(project: &Project, event: &str, code: Reason, cause: &str) {
    // A state folder in the project is not used.
    let Some(path) = path().filter(|_| project.keeps_state()) else { return };
    let trouble = Trouble {
        at: time::format(clock::now()),
        project: project.root().display().to_string(),
        event: secrets::opening(event, 60),
        code: code.as_str().to_owned(),
        cause: secrets::opening(cause, MAX_CAUSE),
    };
    let _ = append(&path, &trouble);
}

fn append(path: &Path, trouble: &Trouble) -> io::Result<()> {
    let now = clock::now();
    let is_same = |other: &Trouble| {
        let is_recent = time::parse(&other.at).is_some_and(|at| (0..AGAIN_MS).contains(&now.saturating_sub(at)));
        is_recent && (&other.project, &other.code, &other.cause) == (&trouble.project, &trouble.code, &trouble.cause)
    };
    if read(path).iter().any(is_same) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        files::make_folder(folder)?;
    }
    let mut line = serde_json::to_vec(trouble)?;
    line.push(b'\n');
    files::append_bounded(path, &line, MAX_BYTES)
}

fn read(path: &Path) -> Vec<Trouble> {
    let end = files::read_end(path, RECENT).unwrap_or_default();
    end.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The last ones, the newest last.
pub fn last(most: usize) -> Vec<Trouble> {
    let Some(path) = path() else { return Vec::new() };
    let mut all = read(&path.with_extension("log.old"));
    all.extend(read(&path));
    all.split_off(all.len().saturating_sub(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::temp_dir::Scratch;

    fn trouble(cause: &str) -> Trouble {
        let [at, project, event, code] = [time::format(clock::now()), "/p".to_owned(), "Stop".to_owned(), "internal.error".to_owned()];
        Trouble { at, project, event, code, cause: cause.to_owned() }
    }

    #[test]
    fn t21_the_same_trouble_is_written_once_an_hour() {
        let scratch = Scratch::create("ralph-trouble-", false).unwrap();
        let path = scratch.path().join("state/hook.log");
        let old = Trouble { at: time::format(clock::now() - AGAIN_MS - 1_000), ..trouble("a") };
        for one in [&old, &trouble("a"), &trouble("a"), &trouble("b"), &trouble("a")] {
            append(&path, one).unwrap();
        }
        let causes: Vec<String> = read(&path).into_iter().map(|t| t.cause).collect();
        assert_eq!(causes, ["a", "a", "b"]);
    }

    #[test]
    fn t21_several_writers_keep_the_log_bounded_and_its_lines_whole() {
        let scratch = Scratch::create("ralph-trouble-", false).unwrap();
        let path = scratch.path().join("hook.log");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || (0..200).for_each(|n| append(path, &trouble(&format!("{writer} {n} {}", "x".repeat(200)))).unwrap()));
            }
        });
        let of = |path: &Path| files::read(path, 1 << 20).unwrap();
        let (new, old) = (of(&path), of(&path.with_extension("log.old")));
        assert!(new.len() as u64 <= MAX_BYTES + 8 * 1_024 && old.len() as u64 <= MAX_BYTES + 8 * 1_024);
        assert!(old.len() as u64 > MAX_BYTES, "a full one is kept");
        for line in new.split(|b| *b == b'\n').chain(old.split(|b| *b == b'\n')).filter(|line| !line.is_empty()) {
            assert!(serde_json::from_slice::<Trouble>(line).is_ok(), "{}", String::from_utf8_lossy(line));
        }
    }
}
