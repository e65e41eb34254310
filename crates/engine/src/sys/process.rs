//! Other processes: is one alive, who started this one, what git says, and one that shows a text.

use std::{
    io::Write,
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

/// Hands a text to a program that shows it to the person, and waits until they have seen enough. `false`: it could not be shown.
#[expect(clippy::disallowed_methods, reason = "the one place that runs a reader")]
pub fn show_with(program: &str, args: &[&str], text: &[u8]) -> bool {
    let Ok(mut child) = Command::new(program).args(args).stdin(Stdio::piped()).spawn() else { return false };
    leave_interrupts_to_the_reader();
    if let Some(mut pipe) = child.stdin.take() {
        // Somebody who has read enough closes it.
        let _ = pipe.write_all(text);
    }
    child.wait().is_ok_and(|status| status.success())
}

/// In a pager Ctrl-C stops a search. The terminal sends it to us as well, and whoever dies of it leaves the pager and the shell fighting for the keys.
#[cfg(unix)]
fn leave_interrupts_to_the_reader() {
    use std::ffi::c_int;
    const SIGINT: c_int = 2;
    const SIGQUIT: c_int = 3;
    const SIG_IGN: usize = 1;
    unsafe extern "C" {
        fn signal(signal: c_int, handler: usize) -> usize;
    }
    for number in [SIGINT, SIGQUIT] {
        // SAFETY: a valid signal, and a disposition that needs no handler function.
        unsafe { signal(number, SIG_IGN) };
    }
}

#[cfg(not(unix))]
fn leave_interrupts_to_the_reader() {}
