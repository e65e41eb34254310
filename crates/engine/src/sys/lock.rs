//! Locks of files and folders: held for as long as a value lives, and free again when its process dies.

use std::{
    fs::{File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    path::Path,
    time::Duration,
};

use crate::sys::{files, wait};

/// The lock of a file of ralph's own.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes it, making the file if need be. `None`: another process held it for as long as `patience`.
    pub(crate) fn take(path: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let file = files::options().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(wait_for(&file, patience)?.then_some(Lock(file)))
    }

    /// Locks a folder itself, against other ralph processes that change its files. All that can write there agree on it, whichever project, worktree
    /// or home they come from, and no lock file is left behind.
    pub(crate) fn of_folder(folder: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let folder = File::open(folder)?;
        Ok(wait_for(&folder, patience)?.then_some(Lock(folder)))
    }

    /// Writes this process's id into the file.
    pub(crate) fn sign(&mut self) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        writeln!(self.0, "{}", std::process::id())
    }

    /// The process that signed the file last.
    pub(crate) fn holder(path: &Path) -> Option<u32> {
        let mut text = String::new();
        files::open_regular(path).ok()?.0.take(20).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// Whether a living process holds the lock of a file.
    pub(crate) fn is_held(path: &Path) -> bool {
        files::open_regular(path).is_ok_and(|(file, _)| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Locks an open file until it is closed. `false`: another process held the lock for as long as `patience`.
pub(crate) fn wait_for(file: &File, patience: Duration) -> io::Result<bool> {
    let look = || match file.try_lock() {
        Ok(()) => Some(Ok(true)),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(e)) => Some(Err(e)),
    };
    wait::poll_more_rarely(patience, Duration::from_micros(200), wait::SOON, look).unwrap_or(Ok(false))
}
