//! Who waits for what a parked loop waits for: the newest one counts, and every older one ends when it sees that.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    store::{Error, project::Project},
    sys::{files, process},
};

/// A larger file is not ours.
const MAX_BYTES: usize = 4 * 1024;

/// A process that waits in the background of a session, beside the hook that judges the same stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// Fingerprint of the stop.
    pub stop: String,
    pub pid: u32,
}

fn path(project: &Project, loop_id: &str) -> Result<PathBuf, Error> {
    Ok(project.folder("locks")?.join(format!("{loop_id}.waiter")))
}

/// Who waits for this loop; whoever has ended does not.
pub fn of(project: &Project, loop_id: &str) -> Option<Waiter> {
    let bytes = files::read(&project.own().join("locks").join(format!("{loop_id}.waiter")), MAX_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok().filter(|waiter: &Waiter| process::is_alive(waiter.pid))
}

impl Waiter {
    /// This process, for that stop.
    pub fn this(stop: String) -> Self {
        Waiter { stop, pid: std::process::id() }
    }

    /// Takes over from whoever waited before.
    pub fn begin(&self, project: &Project, loop_id: &str) -> Result<(), Error> {
        let path = path(project, loop_id)?;
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        files::write_whole(&path, &bytes).map_err(Error::io("write", &path))
    }

    /// Whether nobody has taken over.
    pub fn is_newest(&self, project: &Project, loop_id: &str) -> bool {
        of(project, loop_id).as_ref() == Some(self)
    }

    /// Nobody is told to end by a file that is gone, so only one's own is removed.
    pub fn end(&self, project: &Project, loop_id: &str) {
        if self.is_newest(project, loop_id)
            && let Ok(path) = path(project, loop_id)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}
