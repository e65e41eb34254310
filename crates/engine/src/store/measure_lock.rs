//! The lock of a loop's gates: one process measures them at a time, whichever registration reports the stop.

use std::{fs, path::Path, time::Duration};

use crate::{
    store::{Error, project::Project},
    sys::{files, lock::Lock},
};

/// Takes the lock as soon as it is free. `None`: there is no place for one.
pub(crate) fn take(project: &Project, loop_id: &str, patience: Duration) -> Result<Option<Lock>, Error> {
    let Ok(folder) = project.folder("locks") else { return Ok(None) };
    remove_old(&folder);
    let path = folder.join(format!("{loop_id}.lock"));
    Lock::take(&path, patience).map_or(Ok(None), |lock| lock.ok_or(Error::Busy).map(Some))
}

/// Whether a process measures right now.
pub(crate) fn is_taken(project: &Project, loop_id: &str) -> bool {
    Lock::is_held(&project.own().join("locks").join(format!("{loop_id}.lock")))
}

/// Removes old lock files that are free. A lock is never written, so its age is that of the loop's first stop; a loop that lives on gets a new one.
fn remove_old(folder: &Path) {
    const OLD: Duration = Duration::from_hours(30 * 24);
    let is_old = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_file() && files::is_older(&meta, OLD));
    let locks = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in locks.filter(|path| path.extension().is_some_and(|e| e == "lock") && is_old(path)) {
        let is_free = files::open_regular(&path).is_ok_and(|(file, _)| file.try_lock().is_ok());
        if is_free {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{temp_dir::Scratch, wait};

    #[test]
    fn s2_5_who_measures_is_known_until_it_ends() {
        let scratch = Scratch::create("ralph-turn-test-", false).unwrap();
        let project = Project::at(scratch.path());
        assert!(!is_taken(&project, "main-1"));
        let turn = take(&project, "main-1", Duration::ZERO).unwrap();
        assert!(turn.is_some() && is_taken(&project, "main-1") && !is_taken(&project, "main-2"));
        assert!(take(&project, "main-1", Duration::ZERO).is_err());
        drop(turn);
        // Another test's child has a copy of the file for the moment between its fork and its exec.
        let free = || (!is_taken(&project, "main-1")).then_some(());
        assert!(wait::poll(Duration::from_mins(1), wait::SOON, free).is_some());
    }
}
