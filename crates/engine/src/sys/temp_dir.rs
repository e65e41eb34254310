//! A private folder among the temporary files: its name cannot be guessed, and it is always a new one.

use std::{
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::sys::{files, process, random};

/// A process that looks dead may live in another container that shares the temporary folder, so only old folders are removed.
const ABANDONED: Duration = Duration::from_mins(10);

/// A temporary folder. Unless it is to be kept, it is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    /// Makes a new folder whose name begins with `prefix`. Making a folder never takes one that is there already, nor a link.
    pub fn create(prefix: &str, keep: bool) -> io::Result<Self> {
        let path = std::path::absolute(std::env::temp_dir())?.join(name(prefix, keep));
        files::private_folders().create(&path)?;
        Ok(Scratch { path, keep })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The name has the maker's process id, so that a later run can see whether it is gone. A kept one has none.
fn name(prefix: &str, keep: bool) -> String {
    let unguessable = random::number();
    if keep { format!("{prefix}kept-{unguessable:016x}") } else { format!("{prefix}{}-{unguessable:016x}", std::process::id()) }
}

/// Removes folders that interrupted runs left: with our prefix, owned by us, and made by a process that is gone.
pub fn remove_leftovers(prefix: &str) {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let maker = file_name.to_str().and_then(|name| maker(name, prefix));
        let is_left = maker.is_some_and(|pid| !process::is_alive(pid)) && entry.metadata().is_ok_and(|meta| is_abandoned(&meta));
        if is_left {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that made a folder of this name.
fn maker(name: &str, prefix: &str) -> Option<u32> {
    let (pid, random) = name.strip_prefix(prefix)?.split_once('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    pid.parse().ok().filter(|_| is_random)
}

fn is_abandoned(meta: &Metadata) -> bool {
    meta.is_dir() && files::is_mine(meta) && files::is_older(meta, ABANDONED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_maker_and_a_kept_one_does_not() {
        assert_eq!(maker(&name("x-", false), "x-"), Some(std::process::id()));
        assert_eq!(maker(&name("x-", true), "x-"), None);
        assert_ne!(name("x-", false), name("x-", false));
    }

    #[test]
    fn what_only_looks_like_ours_is_nobodys() {
        for other in ["x-1", "x-1-", "x-1-123", "x--0123456789abcdef", "x-1-0123456789abcdeg", "y-1-0123456789abcdef"] {
            assert_eq!(maker(other, "x-"), None, "{other}");
        }
    }
}
