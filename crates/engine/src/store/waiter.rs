//! The background process that waits for what a parked loop waits for. The newest one counts; an older one ends when it sees that.

use serde::{Deserialize, Serialize};

use crate::{
    store::{Error, project::Project},
    sys::{clock, process},
};

/// A process in the background of a session, beside the hook that judges the same stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiter {
    /// Fingerprint of the stop.
    pub stop: String,
    pub pid: u32,
    /// `None` where the system does not tell.
    #[serde(default)]
    born_ms: Option<u64>,
}

fn path(loop_id: &str) -> String {
    format!("waiters/{loop_id}.json")
}

/// The process that waits for this loop, if it still runs.
pub(crate) fn of(project: &Project, loop_id: &str) -> Option<Waiter> {
    noted(project, loop_id).filter(|waiter| process::is_same(waiter.pid, waiter.born_ms))
}

fn noted(project: &Project, loop_id: &str) -> Option<Waiter> {
    project.load(&path(loop_id))
}

impl Waiter {
    /// This process, for that stop.
    pub(crate) fn this(stop: String) -> Self {
        let pid = std::process::id();
        Waiter { stop, pid, born_ms: clock::birth_of(pid) }
    }

    /// Takes over from the process that waited before.
    pub(crate) fn begin(&self, project: &Project, loop_id: &str) -> Result<(), Error> {
        project.save(&path(loop_id), self)
    }

    /// Whether no other process has taken over. Removing the file is not taking over.
    pub(crate) fn is_newest(&self, project: &Project, loop_id: &str) -> bool {
        noted(project, loop_id).is_none_or(|newest| newest == *self)
    }

    /// Removes the file, unless it is another process's.
    pub(crate) fn end(&self, project: &Project, loop_id: &str) {
        if noted(project, loop_id).as_ref() == Some(self) {
            project.delete(&path(loop_id));
        }
    }
}
