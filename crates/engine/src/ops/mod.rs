//! What can be done to a loop, by whoever asks for it: a command, or a person's words in the agent's session.

pub mod cancel;
pub mod pause;
pub mod resume;
pub mod start;
pub mod view;

use std::fmt;

use ralph_core::journal::Actor;

use crate::{
    store::{
        Error,
        loops::{self, Found},
        project::Project,
    },
    sys::process,
};

/// Who asks, and from where.
#[derive(Debug, Clone, Default)]
pub struct Asker {
    pub by: Option<Actor>,
    /// The session that the request comes from.
    pub session: Option<String>,
    pub client_pid: Option<u32>,
    /// Fingerprint of the typed command: a client may report it twice.
    pub command: Option<String>,
}

impl Asker {
    pub fn actor(&self) -> Actor {
        self.by.unwrap_or(Actor::CommandLine)
    }
}

/// Why nothing was done.
#[derive(Debug)]
pub enum Refusal {
    /// There is no loop to do it to.
    NoLoop,
    /// There is more than one, and it was not said which.
    Which {
        names: Vec<String>,
    },
    /// A sentence that says what is the matter and what to do.
    Because(String),
    Store(Error),
}

impl From<Error> for Refusal {
    fn from(e: Error) -> Self {
        Refusal::Store(e)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoLoop => f.write_str("No active Ralph loop"),
            Refusal::Which { names } => write!(f, "there are several loops here; say which one with --name: {}", names.join(", ")),
            Refusal::Because(why) => f.write_str(why),
            Refusal::Store(e) => e.fmt(f),
        }
    }
}

/// The loop that is meant: the named one, the asking session's own, or the only one.
pub fn choose(project: &Project, name: Option<&str>, session: Option<&str>) -> Result<Found, Refusal> {
    if let Some(name) = name {
        return loops::read(project, name)?.ok_or(Refusal::NoLoop);
    }
    let mut all = loops::all(project);
    if let Some(own) = session.and_then(|s| all.iter().position(|f| view::owner(project, f).as_deref() == Some(s))) {
        return Ok(all.swap_remove(own));
    }
    match all.len() {
        0 => Err(Refusal::NoLoop),
        1 => all.pop().ok_or(Refusal::NoLoop),
        _ => Err(Refusal::Which { names: all.into_iter().map(|f| f.name).collect() }),
    }
}

/// Whether the session that a loop belongs to may still be there.
pub fn owner_may_live(state: &ralph_core::journal::State) -> bool {
    !state.left_behind && state.client_pid.is_none_or(process::is_alive)
}
