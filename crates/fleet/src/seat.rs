//! A number that a slot has to itself on this machine, whichever fleet it works for: its ports and databases go by it.

use std::{
    fs::{File, TryLockError},
    path::Path,
    sync::Arc,
};

use ralph_engine::sys::{env, files};

use crate::{
    problem::{Problem, Result},
    settings::make,
};

/// The most workers of a machine, over all its fleets.
pub const MOST: usize = 256;

/// A number, for as long as a slot with it lives.
#[derive(Debug, Clone)]
pub struct Seat {
    pub number: usize,
    /// Closed by the system when the process dies, and not inherited by what it starts.
    _lock: Arc<File>,
}

impl Seat {
    /// The lowest free numbers from 1 on.
    pub fn of_workers(count: usize) -> Result<Vec<Seat>> {
        let free: Vec<Seat> = free(1..=MOST).take(count).collect::<Result<_>>()?;
        if free.len() < count {
            return Err(Problem::new(format!("this machine has {MOST} slots, and {} of them are free: ask for fewer workers", free.len())));
        }
        Ok(free)
    }

    /// 0, and for the landers of further fleets what comes after the workers.
    pub fn of_lander() -> Result<Seat> {
        let first = free([0].into_iter().chain(MOST + 1..=MOST + 128)).next();
        first.unwrap_or_else(|| Err(Problem::new("more than a hundred fleets land on this machine: end some of them")))
    }
}

/// The numbers that no process has.
fn free(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = Result<Seat>> {
    numbers.filter_map(|number| take(number).transpose())
}

fn take(number: usize) -> Result<Option<Seat>> {
    let none = || Problem::new("there is no home folder for slots: set HOME");
    let folder = env::cache_dir().ok_or_else(none)?.join("fleets/numbers");
    make(&folder)?;
    Ok(lock(&folder.join(number.to_string()))?.map(|lock| Seat { number, _lock: Arc::new(lock) }))
}

/// Takes the lock of a file. `None`: another process has it.
pub(crate) fn lock(path: &Path) -> Result<Option<File>> {
    let file = files::options().create(true).append(true).open(path).map_err(Problem::when(path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(Problem::when(path.display())(e)),
    }
}
