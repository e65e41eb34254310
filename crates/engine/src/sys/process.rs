//! Other processes: is one alive, who started this one, and what git says.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::sys::env;

/// The process that started this one.
#[cfg(unix)]
pub fn parent_pid() -> Option<u32> {
    rustix::process::getppid().and_then(|p| u32::try_from(p.as_raw_nonzero().get()).ok())
}

#[cfg(not(unix))]
pub fn parent_pid() -> Option<u32> {
    None
}

/// Whether a process with this id exists; unknown counts as alive.
#[cfg(unix)]
pub fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
pub fn is_alive(_pid: u32) -> bool {
    true
}

/// Where a program of that name is found, as a shell or a client would find it.
pub fn which(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    env::search_path().into_iter().filter(|dir| dir.is_absolute()).map(|dir| dir.join(&file)).find(|path| is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Whether git tracks `file`, which lies in `root`. `None`: there is a repository, and git could not be asked.
///
/// Links are resolved first: a folder that is reached through one, or that is one, lies where it really lies.
#[expect(clippy::disallowed_methods, reason = "the one place that runs git")]
pub fn git_tracks(root: &Path, file: &Path) -> Option<bool> {
    let Ok(root) = root.canonicalize() else { return Some(false) };
    let Ok(file) = file.canonicalize() else { return Some(false) };
    let Some(folder) = file.parent().filter(|folder| folder.starts_with(&root)) else { return Some(true) };
    // Within a repository of its own (a submodule), or outside of any.
    let is_repository = |dir: &Path| dir.join(".git").exists();
    if folder.ancestors().take_while(|dir| *dir != root).any(is_repository) {
        return Some(true);
    }
    if !root.ancestors().any(is_repository) {
        return Some(false);
    }
    // What lies in the repository must not make git run anything: neither its configuration, nor a bare repository planted in a folder, nor a fetch.
    let mut git = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        git.env_remove(name);
    }
    let status = git
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "safe.bareRepository=explicit",
            "-c",
            "safe.directory=*",
            "ls-files",
            "--error-unmatch",
            "--",
        ])
        .arg(&file)
        .current_dir(&root)
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    match status.code() {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    }
}
