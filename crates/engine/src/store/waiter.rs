//! Who waits for what a parked loop waits for: the newest one counts, and every older one ends when it sees that.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    store::{Error, project::Project},
    sys::{clock, files, process},
};

/// A larger file is not ours.
const MAX_BYTES: usize = 4 * 1024;

/// A process that waits in the background of a session, beside the hook that judges the same stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// Fingerprint of the stop.
    pub stop: String,
    pub pid: u32,
    /// When it was born, where the system tells.
    #[serde(default)]
    born_ms: Option<u64>,
}

fn path(project: &Project, loop_id: &str) -> PathBuf {
    project.own().join("locks").join(format!("{loop_id}.waiter"))
}

/// Who waits for this loop; whoever has ended does not.
pub fn of(project: &Project, loop_id: &str) -> Option<Waiter> {
    noted(project, loop_id).filter(Waiter::is_alive)
}

/// Who said last that it waits for this loop.
fn noted(project: &Project, loop_id: &str) -> Option<Waiter> {
    let bytes = files::read(&path(project, loop_id), MAX_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

impl Waiter {
    /// This process, for that stop.
    pub fn this(stop: String) -> Self {
        let pid = std::process::id();
        Waiter { stop, pid, born_ms: clock::birth_of(pid) }
    }

    /// Whether it runs, and is no other process with the same number.
    fn is_alive(&self) -> bool {
        process::is_alive(self.pid) && clock::birth_of(self.pid) == self.born_ms
    }

    /// Takes over from whoever waited before.
    pub fn begin(&self, project: &Project, loop_id: &str) -> Result<(), Error> {
        project.folder("locks")?;
        let path = path(project, loop_id);
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        files::write_own(&path, &bytes).map_err(Error::io("write", &path))
    }

    /// Whether nobody has taken over. Nobody did so by removing the file.
    pub fn is_newest(&self, project: &Project, loop_id: &str) -> bool {
        noted(project, loop_id).is_none_or(|newest| newest == *self)
    }

    /// Only one's own file is removed.
    pub fn end(&self, project: &Project, loop_id: &str) {
        if noted(project, loop_id).as_ref() == Some(self) {
            let _ = std::fs::remove_file(path(project, loop_id));
        }
    }
}
