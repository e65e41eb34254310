//! Finds the real `gh`: on the path, or from the distribution's package, unpacked into the cache without root.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::client::find_on_path;
use crate::fetch::{cached, debian};
use crate::github::GitHub;
use crate::project::{PATH, Project, Run};
use crate::skip::Skip;

/// An installed `gh`.
#[derive(Debug, Clone)]
pub struct Gh {
    pub binary: PathBuf,
}

impl Gh {
    /// Where it is; `Skip` where it cannot be had, a panic instead where `RALPH_REQUIRE_GH=1` says that it must.
    pub fn installed() -> Result<Self, Skip> {
        static FOUND: OnceLock<Result<PathBuf, Skip>> = OnceLock::new();
        let found = FOUND.get_or_init(|| find_on_path("gh").map_or_else(|| cached("gh", "usr/bin/gh", |dir| debian("gh", dir)), Ok));
        let required = std::env::var_os("RALPH_REQUIRE_GH").is_some_and(|value| value == "1");
        assert!(!required || found.is_ok(), "RALPH_REQUIRE_GH is set, but {found:?}");
        found.clone().map(|binary| Self { binary })
    }

    /// The `PATH` of a process that shall find it.
    pub fn path(&self) -> OsString {
        let folder = self.binary.parent().into_iter().map(Path::to_path_buf);
        std::env::join_paths(folder.chain(std::env::split_paths(PATH))).unwrap()
    }

    /// Prepares a run in the project, against the scripted GitHub.
    pub fn run(&self, project: &Project, hub: &GitHub) -> Run {
        hub.env().into_iter().fold(project.run(&self.binary), |run, (name, value)| run.env(name, value))
    }
}
