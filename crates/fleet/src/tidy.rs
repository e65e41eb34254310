//! What jobs leave behind that are over goes: their work in the fleet's repository and on the remote, their files, the old values of their records. The disk that a fleet needs grows with its slots,
//! not with its jobs.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    board::Board,
    fleet::Fleet,
    records::{JOB, key},
};

/// How often it is looked, unless many jobs have ended since.
const EVERY: Duration = Duration::from_mins(1);
const MANY: usize = 16;

/// How much the logs of jobs that are over may take together; the newest are kept.
const MOST_LOGS: u64 = 256 << 20;

#[derive(Default)]
pub(crate) struct Tidy {
    /// How many jobs were over, and when.
    over: usize,
    looked: Option<Instant>,
    /// Whose records are short by now.
    done: BTreeSet<String>,
}

impl Tidy {
    /// Clears up if more jobs are over than the last time. `ends`: there is no other time.
    pub(crate) fn look(&mut self, fleet: &Fleet, board: &Board, ends: bool) {
        let over = board.count_over();
        let rests = self.looked.is_some_and(|looked| looked.elapsed() < EVERY) && over < self.over + MANY && !ends;
        if over == self.over || rests {
            return;
        }
        (self.over, self.looked) = (over, Some(Instant::now()));
        let over: BTreeSet<&str> = board.cards().filter(|(_, card)| card.job.is_over()).map(|(id, _)| id).collect();
        for id in &over {
            if self.done.insert((*id).to_owned()) {
                let _ = fleet.store.let_go(&key(JOB, id));
            }
        }
        // What cannot be cleared away now is the next time.
        let _ = fleet.hub.forget(&|id| over.contains(id));
        clear_files(&fleet.place.root().join("jobs"), &|id| over.contains(id), MOST_LOGS);
    }
}

/// Removes the files of jobs, and all but their newest logs.
fn clear_files(jobs: &Path, is_over: &dyn Fn(&str) -> bool, most_logs: u64) {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut logs = Vec::new();
    for folder in entries(jobs).filter(|folder| folder.file_name().to_str().is_some_and(|id| id != "lander" && is_over(id))) {
        for file in entries(&folder.path()) {
            match file.metadata() {
                Ok(meta) if file.file_name().as_encoded_bytes().starts_with(b"events.") => {
                    logs.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), file.path()));
                }
                _ => drop(fs::remove_file(file.path())),
            }
        }
        // If nothing is left in it.
        let _ = fs::remove_dir(folder.path());
    }
    logs.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (_, length, path) in logs {
        sum += length;
        if sum > most_logs {
            let _ = fs::remove_file(&path);
            let _ = path.parent().map(fs::remove_dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    #[test]
    fn f3_of_jobs_that_are_over_only_the_newest_logs_stay() {
        let jobs = tempfile::tempdir().unwrap();
        let file = |path: &str, age: u64| {
            let path = jobs.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            settings::write(&path, b"1234").unwrap();
            fs::File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age)).unwrap();
        };
        for (path, age) in
            [("a/events.jsonl", 30), ("a/loop.bundle", 1), ("b/events.jsonl", 20), ("c/events.log.old", 10), ("d/events.jsonl", 40)]
        {
            file(path, age);
        }
        file("d/prompt.md", 1);
        file("lander/gates.toml", 1);
        clear_files(jobs.path(), &|id| id != "d", 8);
        let there = |path: &str| jobs.path().join(path).exists();
        assert!(!there("a"), "the oldest log went, and its folder");
        assert!(there("b/events.jsonl") && there("c/events.log.old"));
        assert!(there("d/events.jsonl") && there("d/prompt.md") && there("lander/gates.toml"), "this job is not over");
    }
}
