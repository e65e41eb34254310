//! Acts on a loop, for a command and for a person's words in the agent's session alike.

pub mod bundle;
pub mod cancel;
pub mod changes;
pub mod command_sources;
pub mod item;
pub mod manual_measure;
pub mod pause;
pub mod resume;
pub mod rollback;
pub mod start;
pub mod steer;
pub(crate) mod take_over;
pub mod worktree;

use std::fmt;

use ralph_core::{journal::Actor, messages::Reader, text};

use crate::{
    git,
    store::{
        Error,
        loops::{self, LoopOnDisk},
        project::Project,
        project_lock::{Locked, Loop},
    },
    view,
};

#[derive(Debug, Clone, Default)]
pub struct Asker {
    pub by: Option<Actor>,
    /// The session that the request comes from.
    pub session: Option<String>,
    pub client_pid: Option<u32>,
    /// Fingerprint of the typed command: a client may report it twice.
    pub command: Option<String>,
    /// A person entered it, in the session that it comes from.
    pub typed: bool,
}

impl Asker {
    pub fn actor(&self) -> Actor {
        self.by.unwrap_or(Actor::CommandLine)
    }

    /// Where the answer is read.
    pub fn reader(&self) -> Reader {
        if self.actor() == Actor::Session { Reader::Session } else { Reader::Terminal }
    }
}

/// Why nothing was done.
#[derive(Debug)]
pub enum Refusal {
    NoLoop,
    /// There are several, and none was named.
    Which {
        names: Vec<String>,
    },
    NoSuch {
        name: String,
        names: Vec<String>,
    },
    /// A sentence: what is wrong, and what to do.
    Because(String),
    Store(Error),
}

/// Why no file of a loop's is written here.
fn linked_elsewhere(project: &Project) -> Option<String> {
    let told = || ".claude is a link that came with the repository, and the loop's file would be written where it leads: remove it, or make it a folder";
    git::tracked::is_link_of_repository(project.root(), ".claude").then(|| told().to_owned())
}

impl From<git::Problem> for Refusal {
    fn from(problem: git::Problem) -> Self {
        Refusal::Because(problem.to_string())
    }
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
            Refusal::Which { names } => write!(f, "there are several loops here: {}. Say which one, by its name", names.join(", ")),
            Refusal::NoSuch { name, names } if names.is_empty() => write!(f, "there is no loop \"{name}\" here, nor any other"),
            Refusal::NoSuch { name, names } => write!(f, "there is no loop \"{name}\" here; there are: {}", names.join(", ")),
            Refusal::Because(why) => f.write_str(why),
            Refusal::Store(e) => e.fmt(f),
        }
    }
}

/// The loop that is meant: the named one, the session's own, or the only one.
pub fn choose(project: &Project, name: Option<&str>, session: Option<&str>) -> Result<LoopOnDisk, Refusal> {
    let mut all = loops::known(project);
    if let Some(name) = name {
        let names = all.iter().map(|f| f.name.clone()).collect();
        let found = all.into_iter().find(|f| f.name == name || f.id() == name);
        return found.ok_or_else(|| Refusal::NoSuch { name: text::opening(name, 64), names });
    }
    if let Some(own) = session.and_then(|s| all.iter().position(|f| view::owner(project, f).as_deref() == Some(s))) {
        return Ok(all.swap_remove(own));
    }
    match all.len() {
        0 => Err(Refusal::NoLoop),
        1 => all.pop().ok_or(Refusal::NoLoop),
        _ => Err(Refusal::Which { names: all.into_iter().map(|f| f.name).collect() }),
    }
}

/// Takes the project's lock and opens a loop as it is now.
fn open(project: &Project, found: LoopOnDisk) -> Result<(Locked<'_>, Box<Loop>), Refusal> {
    let locked = Locked::acquire(project)?;
    let found = loops::reread(project, found)?.ok_or(Refusal::NoLoop)?;
    let l = locked.open(found).map_err(|found| unreadable(&found))?;
    Ok((locked, l))
}

fn unreadable(found: &LoopOnDisk) -> Refusal {
    let problem = found.parsed.as_ref().err().map(ToString::to_string).unwrap_or_default();
    Refusal::Because(format!("{} cannot be read: {problem}. Fix it and try again", found.path.display()))
}
