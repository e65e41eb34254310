//! Finds the real `gh`: on the path, or from the distribution's package, unpacked into the cache without root.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::client::{cache_dir, find_on_path};
use crate::github::GitHub;
use crate::process::run_bounded;
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
        let found = FOUND.get_or_init(|| find_on_path("gh").map_or_else(unpack_once, Ok));
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

fn unpack_once() -> Result<PathBuf, Skip> {
    let cache = cache_dir();
    let binary = cache.join("gh/usr/bin/gh");
    if binary.exists() {
        return Ok(binary);
    }
    let io = |error: std::io::Error| Skip(format!("the cache {} is not usable: {error}", cache.display()));
    fs::create_dir_all(&cache).map_err(io)?;
    let lock = File::create(cache.join("gh.lock")).map_err(io)?;
    lock.lock().map_err(io)?;
    // Another process may have finished it while this one waited for the lock.
    if binary.exists() {
        return Ok(binary);
    }
    let staging = tempfile::Builder::new().prefix("unpacking-").tempdir_in(&cache).map_err(io)?;
    unpack(staging.path())?;
    let place = cache.join("gh");
    let _ = fs::remove_dir_all(&place);
    fs::rename(staging.path().join("root"), &place).map_err(io)?;
    Ok(binary)
}

/// Fetches the package into `dir` and unpacks it to `dir/root`.
fn unpack(dir: &Path) -> Result<(), Skip> {
    tool(dir, "apt-get", &["download", "gh"])?;
    let mut files = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let package = files.find(|path| path.extension().is_some_and(|ext| ext == "deb"));
    let package = package.ok_or_else(|| Skip("apt-get left no package of gh".to_owned()))?;
    tool(dir, "dpkg-deb", &["-x", &package.to_string_lossy(), "root"])?;
    if dir.join("root/usr/bin/gh").exists() { Ok(()) } else { Err(Skip("the package of gh has no gh".to_owned())) }
}

fn tool(dir: &Path, program: &str, args: &[&str]) -> Result<(), Skip> {
    let path = find_on_path(program).ok_or_else(|| Skip(format!("gh is not installed, nor is {program}")))?;
    let output = run_bounded(Command::new(path).current_dir(dir).args(args), b"", Duration::from_mins(2));
    let reason = output.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    if output.success() { Ok(()) } else { Err(Skip(format!("gh is not installed, and {program} fails: {reason}"))) }
}
