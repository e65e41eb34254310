//! Writes a ref without git, where refs are plain files.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Folders,
    head::{is_id, is_name},
};
use crate::sys::{files, wait};

/// The refs that only ralph writes.
const OWN: &str = "refs/ralph/";

/// A lock of ralph's own is held for microseconds. One that is still there after this time was left by a process that was killed.
const STALE: Duration = Duration::from_secs(5);

/// Points a ref that all working trees share to a commit, as git does: into a lock file beside it, which then takes its name. `false`: only git can
/// do it.
pub(super) fn write(folders: &Folders, name: &str, commit: &str) -> bool {
    if folders.has_reftable() || !is_name(name) || !is_id(commit) {
        return false;
    }
    let Some(path) = place(&folders.common, name) else { return false };
    let lock = path.with_extension("lock");
    let free = || files::named_options().write(true).create_new(true).open(&lock);
    let taken = free().or_else(|e| if name.starts_with(OWN) { after_the_holder(&lock, free) } else { Err(e) });
    let Ok(mut file) = taken else { return false };
    let written = file.write_all(format!("{commit}\n").as_bytes()).and_then(|()| fs::rename(&lock, &path));
    written.inspect_err(|_| drop(fs::remove_file(&lock))).is_ok()
}

/// Waits for the process that holds a lock; takes it from one that was killed.
fn after_the_holder(lock: &Path, free: impl Fn() -> io::Result<File>) -> io::Result<File> {
    if let Some(file) = wait::poll(STALE, wait::SOON, || free().ok()) {
        return Ok(file);
    }
    fs::remove_file(lock)?;
    free()
}

/// The path of a ref, whose folders are made if need be. `None`: a link is on the way, or something that is no folder.
fn place(common: &Path, name: &str) -> Option<PathBuf> {
    let mut path = common.to_owned();
    let (folders, last) = name.rsplit_once('/')?;
    // A dot would make another name of the lock's.
    if last.contains('.') {
        return None;
    }
    for part in folders.split('/') {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => fs::create_dir(&path).ok()?,
            Ok(_) | Err(_) => return None,
        }
    }
    path.push(last);
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{git::command::in_test, sys::temp_dir::Scratch};

    #[test]
    fn s4_git_finds_a_ref_that_was_written_without_it() {
        let scratch = Scratch::create("ralph-refs-", false).unwrap();
        let git = |args: &[&str]| String::from_utf8(in_test(scratch.path(), args, &[])).unwrap().trim().to_owned();
        git(&["init", "-q", "--ref-format=files"]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let one = git(&["rev-parse", "HEAD"]);
        git(&["commit", "-q", "--allow-empty", "-m", "two"]);
        let two = git(&["rev-parse", "HEAD"]);
        let folders = Folders::around(scratch.path()).unwrap().unwrap();
        let name = "refs/ralph/main-1/3";
        assert!(write(&folders, name, &one));
        assert_eq!(git(&["rev-parse", name]), one);
        git(&["pack-refs", "--all"]);
        assert!(write(&folders, name, &two), "it counts before a packed one");
        assert_eq!(git(&["rev-parse", name]), two);
        assert_eq!(git(&["for-each-ref", "--format=%(refname)", "refs/ralph"]), name);
        git(&["fsck", "--strict"]);
    }

    #[test]
    #[cfg(unix)]
    fn s4_a_ref_is_not_written_over_a_link_or_beside_a_lock() {
        let scratch = Scratch::create("ralph-refs-", false).unwrap();
        let git = |args: &[&str]| in_test(scratch.path(), args, &[]);
        git(&["init", "-q", "--ref-format=files"]);
        let folders = Folders::around(scratch.path()).unwrap().unwrap();
        let id = "1".repeat(40);
        let elsewhere = scratch.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folders.common.join("refs/ralph")).unwrap();
        assert!(!write(&folders, "refs/ralph/3", &id));
        assert!(fs::read_dir(&elsewhere).unwrap().next().is_none());
        for wrong in ["refs/../3", "heads/3", "refs/own/3.lock", "refs/own/ 3"] {
            assert!(!write(&folders, wrong, &id), "{wrong}");
        }
        assert!(!write(&folders, "refs/own/3", "1234"));
        fs::create_dir_all(folders.common.join("refs/own")).unwrap();
        files::append(&folders.common.join("refs/own/3.lock"), b"").unwrap();
        assert!(!write(&folders, "refs/own/3", &id), "another process writes it");
        assert!(folders.common.join("refs/own/3.lock").exists());
    }

    #[test]
    fn s4_6_a_lock_that_a_killed_process_left_is_removed_after_a_while() {
        let scratch = Scratch::create("ralph-refs-", false).unwrap();
        in_test(scratch.path(), &["init", "-q", "--ref-format=files"], &[]);
        let folders = Folders::around(scratch.path()).unwrap().unwrap();
        let lock = folders.common.join("refs/ralph/main-1/3.lock");
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        files::append(&lock, b"").unwrap();
        assert!(write(&folders, "refs/ralph/main-1/3", &"1".repeat(40)));
        assert!(!lock.exists());
    }
}
