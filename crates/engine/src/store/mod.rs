//! Files on disk: loop files, journals, the archive, locks, the hook's log, trust, and state files.

pub(crate) mod archive;
pub(crate) mod check_task;
pub(crate) mod feature_folder;
pub(crate) mod hook_log;
pub mod journal;
pub mod known_projects;
pub(crate) mod last_ending;
pub mod loops;
pub(crate) mod measure_lock;
pub(crate) mod notices;
pub(crate) mod permission;
pub(crate) mod place;
mod private;
pub mod project;
pub mod project_lock;
pub(crate) mod repository_state;
pub mod run_options;
pub mod runner;
pub mod seal;
pub(crate) mod sessions;
pub mod trouble;
pub mod trust;
mod user_state;
pub(crate) mod verify_state;
pub(crate) mod waiter;

use std::{fmt, io, path::Path};

use ralph_core::text::Problem;

/// Why something could not be done, with its file.
#[derive(Debug)]
pub enum Error {
    Io {
        doing: &'static str,
        path: String,
        source: io::Error,
    },
    /// Another ralph process has held the lock for too long.
    Busy,
    /// A link or a file is in the place of one of ralph's folders.
    NotOurs {
        path: String,
    },
    /// There is no state folder.
    NoHome,
    /// A value could not be set in the loop file.
    File {
        path: String,
        problem: Problem,
    },
    /// The file changed at every attempt.
    Restless {
        path: String,
    },
}

impl Error {
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = path.display().to_string();
        move |source| Error::Io { doing, path, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { doing, path, source } => write!(f, "cannot {doing} {path}: {source}"),
            Error::Busy => f.write_str("another ralph process has held .ralph/lock for several seconds"),
            Error::NotOurs { path } => write!(f, "{path} is not a plain folder of ralph's own: move it away"),
            Error::NoHome => f.write_str("there is no home folder to remember it in: set HOME"),
            Error::File { path, problem } => write!(f, "{path}: {problem}"),
            Error::Restless { path } => write!(f, "{path} keeps changing while ralph reads it"),
        }
    }
}

impl std::error::Error for Error {}
