//! Other processes: is one alive, who started this one, and what git says.

use std::{
    path::Path,
    process::{Command, Stdio},
};

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

/// Whether git tracks `file`, which lies in `root`. `None`: there is a repository, and git could not be asked.
#[expect(clippy::disallowed_methods, reason = "the one place that runs git")]
pub fn git_tracks(root: &Path, file: &Path) -> Option<bool> {
    if !root.ancestors().any(|dir| dir.join(".git").exists()) {
        return Some(false);
    }
    // A repository's own configuration must not make git run anything.
    let status = Command::new("git")
        .args(["-c", "core.fsmonitor=false", "ls-files", "--error-unmatch", "--"])
        .arg(file)
        .current_dir(root)
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
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
