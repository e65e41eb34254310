//! Other processes: is one alive, who started this one, what git says, and this program once more.

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::{Command, Output, Stdio},
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

/// Runs this very program in `folder`, as an agent or a person there would: with `vars` and nothing of this process's own environment, and with
/// `input` on its standard input.
#[expect(clippy::disallowed_methods, reason = "the one place that runs this program again")]
pub fn run_self(args: &[&str], folder: &Path, vars: &[(&str, &OsStr)], input: &[u8]) -> io::Result<Output> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).current_dir(folder).env_clear().envs(env::for_any_program()).envs(vars.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read its input closes it; what it says and its exit code tell why.
        let _ = stdin.write_all(input);
    }
    child.wait_with_output()
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
