//! The commit that is checked out, and other refs, read without git.

use std::{fs, path::Path, time::Duration};

use super::{Folders, Repository};
use crate::sys::files;

/// A ref is one line.
const LONGEST: usize = 4 << 10;
/// A list of some hundred thousand refs.
const LONGEST_LIST: usize = 64 << 20;
/// A ref that leads to a ref that leads to a ref …
const DEEPEST: usize = 5;

/// The commit that is checked out in the repository around a folder. `None`: there is no repository, or no commit yet, or it cannot be told.
pub(crate) fn around(folder: &Path, limit: Duration) -> Option<String> {
    let folders = Folders::around(folder).ok()??;
    if folders.has_reftable() {
        // Only git can read its tables.
        return Repository::around(folder, limit).ok()??.head().ok()?;
    }
    of(&folders)
}

/// The same for known folders, if their refs are plain files.
pub(crate) fn of(folders: &Folders) -> Option<String> {
    let mut text = head(&folders.git_dir)?;
    for _ in 0..DEEPEST {
        let Some(name) = text.strip_prefix("ref:").map(str::trim) else { return Some(text).filter(|id| is_id(id)) };
        text = named(folders, name)?;
    }
    None
}

/// The branch that is checked out, as `refs/heads/…`, if refs are plain files.
pub(super) fn branch(folders: &Folders) -> Option<String> {
    let head = head(&folders.git_dir)?;
    head.strip_prefix("ref:").map(str::trim).filter(|name| is_name(name)).map(str::to_owned)
}

pub(super) fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.chars().any(|c| c.is_control() || c == ' ');
    name.starts_with("refs/") && name.split('/').all(is_part)
}

/// Reads HEAD: `ref: refs/heads/main`, or a commit. Very old repositories have a link there.
pub(super) fn head(git_dir: &Path) -> Option<String> {
    let path = git_dir.join("HEAD");
    if let Ok(target) = fs::read_link(&path) {
        return target.to_str().filter(|target| target.starts_with("refs/")).map(|target| format!("ref: {target}"));
    }
    line(&path)
}

/// The value of a ref, if refs are plain files.
pub(super) fn named(folders: &Folders, name: &str) -> Option<String> {
    if !is_name(name) {
        return None;
    }
    // A few refs belong to one working tree alone.
    let is_of_tree = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"].iter().any(|prefix| name.starts_with(prefix));
    let folder = if is_of_tree { &folders.git_dir } else { &folders.common };
    line(&folder.join(name)).or_else(|| packed(&folders.common, name))
}

fn packed(common: &Path, name: &str) -> Option<String> {
    let list = files::read(&common.join("packed-refs"), LONGEST_LIST).ok()?;
    let find = |line: &[u8]| {
        let (id, rest) = line.split_at_checked(line.iter().position(|b| *b == b' ')?)?;
        (rest.get(1..)? == name.as_bytes()).then(|| String::from_utf8_lossy(id).into_owned())
    };
    list.split(|b| *b == b'\n').find_map(find)
}

fn line(path: &Path) -> Option<String> {
    let text = String::from_utf8(files::read(path, LONGEST).ok()?).ok()?;
    Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
}

/// Whether a word is the id of a commit or another object.
pub(crate) fn is_id(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{git::command::in_test, sys::temp_dir::Scratch};

    #[test]
    fn t8_head_is_what_git_says() {
        let limit = Duration::from_mins(1);
        for format in ["files", "reftable"] {
            let scratch = Scratch::create("ralph-head-", false).unwrap();
            let git = |args: &[&str]| in_test(scratch.path(), args, &[]);
            git(&["init", "-q", &format!("--ref-format={format}")]);
            assert_eq!(around(scratch.path(), limit), None, "no commit yet");
            git(&["commit", "-q", "--allow-empty", "-m", "one"]);
            let says = |folder: &Path| String::from_utf8(in_test(folder, &["rev-parse", "HEAD"], &[])).unwrap().trim().to_owned();
            let is_right = |folder: &Path| assert_eq!(around(folder, limit), Some(says(folder)), "{format}");
            is_right(scratch.path());
            git(&["pack-refs", "--all"]);
            is_right(scratch.path());
            git(&["commit", "-q", "--allow-empty", "-m", "two"]);
            is_right(scratch.path());
            let linked = scratch.path().join("linked");
            git(&["worktree", "add", "-q", "-b", "other", "linked"]);
            in_test(&linked, &["commit", "-q", "--allow-empty", "-m", "three"], &[]);
            is_right(&linked);
            assert_ne!(around(&linked, limit), around(scratch.path(), limit));
            in_test(&linked, &["checkout", "-q", "--detach"], &[]);
            is_right(&linked);
        }
        assert_eq!(around(Path::new("/"), limit), None);
    }
}
