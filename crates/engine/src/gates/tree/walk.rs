//! The files of a folder that no git knows.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    time::Instant,
};

use super::Unread;
use crate::sys::{digest, files};

const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 256 << 20;

/// All files below `root`, relative to it, and whether those are all: what has a name that is no text is left out. Links are not followed. `None`: there
/// are too many.
pub(super) fn files(root: &Path, until: Instant) -> Option<(Vec<String>, bool)> {
    let mut found = Vec::new();
    let mut is_whole = true;
    let mut folders: Vec<(PathBuf, String)> = vec![(root.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        if Instant::now() > until {
            return None;
        }
        for entry in fs::read_dir(&folder).ok()? {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            let Ok(name) = entry.file_name().into_string() else {
                is_whole = false;
                continue;
            };
            let path = format!("{prefix}{name}");
            if kind.is_dir() {
                if !is_no_source(&name, &entry.path()) {
                    folders.push((entry.path(), format!("{path}/")));
                }
            } else if kind.is_file() || kind.is_symlink() {
                found.push(path);
            }
            if found.len() > MOST_FILES || folders.len() > MOST_FILES {
                return None;
            }
        }
    }
    Some((found, is_whole))
}

/// What a repository would ignore: other programs' memory, and what can be made again.
fn is_no_source(name: &str, folder: &Path) -> bool {
    const NAMES: [&str; 8] = [".git", ".hg", ".svn", ".jj", ".ralph", "node_modules", "__pycache__", ".venv"];
    NAMES.contains(&name) || folder.join("CACHEDIR.TAG").is_file()
}

/// Digests of the contents of these files, in order.
pub(super) fn ids(files: &[Unread<'_>], until: Instant) -> Option<Vec<String>> {
    let bytes: u64 = files.iter().map(|file| file.meta.len()).sum();
    if bytes > MOST_BYTES {
        return None;
    }
    files.iter().map(|file| id(&file.at, until)).collect()
}

fn id(path: &Path, until: Instant) -> Option<String> {
    let (mut file, _) = files::open_regular(path).ok()?;
    let mut whole = digest::Running::default();
    let mut part = vec![0; 1 << 16];
    loop {
        // A file that grows as fast as it is read has no end.
        if Instant::now() > until {
            return None;
        }
        match file.read(&mut part).ok()? {
            0 => return Some(whole.finish()),
            n => whole.add(&part[..n]),
        }
    }
}
