//! The whole output of commands, in `.ralph/logs/`. Failing to write it never changes a verdict.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use ralph_core::text::time;

use crate::{
    store::project::Project,
    sys::{capped_log::Growing, clock, files},
};

/// More than this of one command is a mistake that would fill the disk.
const MAX_BYTES: u64 = 1 << 30;

/// So many logs are kept, and of all together no more than [`MAX_BYTES`]; the newest one always is.
const KEPT: usize = 60;

/// As long as no log is longer than this, they are not too long together either.
const SHARE: u64 = MAX_BYTES / KEPT as u64;

/// A log that is being written.
pub(super) struct Log {
    file: Growing,
    path: PathBuf,
}

impl Log {
    /// Begins the log of one run.
    pub(super) fn begin(project: &Project, gate: &str, command: &str) -> Self {
        let folder = project.folder("logs").map_err(|e| e.to_string());
        let opened = folder.and_then(|folder| {
            prune(&folder, false);
            create(&folder, gate)
        });
        let (file, path) = match opened {
            Ok((file, path)) => (Growing::new(file, MAX_BYTES), path),
            Err(problem) => (Growing::none(format!("there is no log: {problem}")), PathBuf::new()),
        };
        let mut log = Log { file, path };
        log.write(format!("$ {command}\n").as_bytes());
        log
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.file.write(bytes);
    }

    /// The log's path relative to the project's root, if anything could be written, and what is wrong with it.
    pub(super) fn finish(mut self, project: &Project, last_line: &str) -> (Option<String>, Option<String>) {
        self.write(format!("\n# {last_line}\n").as_bytes());
        if let Some(folder) = self.path.parent().filter(|_| self.file.written() > SHARE) {
            prune(folder, true);
        }
        let path = (self.file.written() > 0).then(|| relative(project.root(), &self.path));
        (path, self.file.problem().map(str::to_owned))
    }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// A new file, named by the time and the gate.
fn create(folder: &Path, gate: &str) -> Result<(File, PathBuf), String> {
    let stamp: String = time::format(clock::now()).chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    let plain = plain(gate);
    for n in 1..1_000 {
        let more = if n == 1 { String::new() } else { format!("-{n}") };
        let path = folder.join(format!("{stamp}{more}-{plain}.log"));
        match files::options().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(format!("cannot write {}: {e}", path.display())),
        }
    }
    Err(format!("{} has too many logs of this moment", folder.display()))
}

/// A gate's name as a part of a file's name: `./test.sh` is `test-sh`.
fn plain(gate: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = gate.split(|c| !is_plain(c)).filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(40).collect();
    if name.is_empty() { "gate".to_owned() } else { name.trim_end_matches('-').to_owned() }
}

/// Removes the oldest logs, a few at once; their names sort by time. `by_size`: those that do not fit into [`MAX_BYTES`] together, too.
fn prune(folder: &Path, by_size: bool) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut logs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
    logs.sort();
    let mut left = if logs.len() < KEPT { logs.len() } else { KEPT - KEPT / 10 };
    if by_size {
        let mut room = MAX_BYTES;
        let fits = |path: &&PathBuf| {
            let size = path.metadata().map_or(0, |meta| meta.len());
            room.checked_sub(size).map(|rest| room = rest).is_some()
        };
        left = logs.iter().rev().take_while(fits).count().clamp(1, left);
    }
    for path in &logs[..logs.len() - left] {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_logs_are_easy_to_read_and_to_type() {
        assert_eq!(plain("./test.sh"), "test-sh");
        assert_eq!(plain("cargo test -- --nocapture"), "cargo-test-nocapture");
        assert_eq!(plain("item US-2"), "item-US-2");
        assert_eq!(plain("../../..:"), "gate");
        assert_eq!(plain(&"x ".repeat(40)).len(), 39, "it ends with a letter");
    }
}
