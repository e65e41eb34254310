//! Other processes: whether one is alive, the parent, programs on the PATH, this program again, pagers and browsers.

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::sys::{clock, env, process_tree};

/// The process that started this one.
#[cfg(unix)]
pub(crate) fn parent_pid() -> Option<u32> {
    rustix::process::getppid().and_then(|p| u32::try_from(p.as_raw_nonzero().get()).ok())
}

#[cfg(not(unix))]
pub(crate) fn parent_pid() -> Option<u32> {
    None
}

/// Whether a process is a shell, as far as the system tells: clients start hooks through one.
pub(crate) fn is_shell(pid: u32) -> bool {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ash", "ksh", "fish"];
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| SHELLS.contains(&name.trim_end()))
}

/// Whether a process with this id runs; unknown counts as alive.
#[cfg_attr(not(unix), expect(unused_variables, reason = "it is unknown"))]
pub fn is_alive(pid: u32) -> bool {
    #[cfg(unix)]
    {
        let Some(at) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
        !matches!(rustix::process::test_kill_process(at), Err(rustix::io::Errno::SRCH)) && !process_tree::is_ending(pid)
    }
    #[cfg(not(unix))]
    true
}

/// Whether a process runs and is the one that was born then, not another one with the same number.
pub(crate) fn is_same(pid: u32, born_ms: Option<u64>) -> bool {
    is_alive(pid) && clock::birth_of(pid) == born_ms
}

pub(crate) fn is_this_program(path: &Path) -> bool {
    let this = || std::env::current_exe().ok()?.canonicalize().ok();
    path.is_absolute() && path.canonicalize().is_ok_and(|path| Some(path) == this())
}

/// Finds a program on the PATH, as a shell or a client would.
pub fn which(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    env::search_path().into_iter().filter(|dir| dir.is_absolute()).map(|dir| dir.join(&file)).find(|path| is_executable(path))
}

/// The same, but never in `folder`, where a repository can put programs.
pub(crate) fn which_outside(name: &str, folder: &Path) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // If the project is the whole disk, there is no outside.
    let is_inside = |dir: &Path| folder.parent().is_some() && dir.canonicalize().is_ok_and(|dir| dir.starts_with(&folder));
    let dirs = env::search_path().into_iter().filter(|dir| dir.is_absolute() && !is_inside(dir));
    dirs.map(|dir| dir.join(&file)).find(|path| is_executable(path))
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

#[cfg(unix)]
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
pub(crate) fn is_root() -> bool {
    false
}

/// Ends every process of this user's that has this variable with this value, and what descends from it. Returns how many there were.
pub fn end_marked(name: &str, value: &OsStr) -> usize {
    value.to_str().map_or(0, |value| process_tree::end_marked(&format!("{name}={value}")))
}

/// Runs another program in place of this one, with the same terminal and environment. Where a system cannot do that, its exit code comes back.
#[expect(clippy::disallowed_methods, reason = "the one place that hands over to another program")]
pub fn run_instead(program: &Path, args: impl Iterator<Item = std::ffi::OsString>) -> io::Result<u8> {
    let mut command = Command::new(program);
    command.args(args);
    #[cfg(unix)]
    return Err(std::os::unix::process::CommandExt::exec(&mut command));
    #[cfg(not(unix))]
    Ok(command.status()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Runs this program in `folder` with `input` and `vars`, and nothing of this process's own environment.
#[expect(clippy::disallowed_methods, reason = "the one place that runs this program again")]
pub fn run_self(args: &[&str], folder: &Path, vars: &[(&str, &OsStr)], input: &[u8]) -> io::Result<Output> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).current_dir(folder).env_clear().envs(env::for_any_program()).envs(vars.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // It fails if the program closes its input unread; its output and exit code tell why.
        let _ = stdin.write_all(input);
    }
    child.wait_with_output()
}

/// Starts this program in a process group of its own, with this environment and `input`, and leaves it to itself: it lives on when this process ends.
#[expect(clippy::disallowed_methods, reason = "the one place that leaves this program running")]
pub(crate) fn leave_self(args: &[&OsStr], input: &[u8]) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = process_tree::start_and_leave(&mut command)?;
    child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input))
}

/// Shows a text in a pager, and waits for it. `false`: it could not be shown.
///
/// A program of that name in the current folder is never used, even if the PATH has an empty part.
#[expect(clippy::disallowed_methods, reason = "the one place that runs a reader")]
pub fn show_with(program: &str, args: &[&str], text: &[u8]) -> bool {
    let Some(program) = which(program) else { return false };
    let Ok(mut child) = Command::new(program).args(args).stdin(Stdio::piped()).spawn() else { return false };
    leave_interrupts_to_the_reader();
    if let Some(mut pipe) = child.stdin.take() {
        // It fails if the reader closes the pager early.
        let _ = pipe.write_all(text);
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Opens a file in the browser, without waiting, and says with which program. `None`: there is none. A program in `project` is not used.
#[expect(clippy::disallowed_methods, reason = "the one place that starts a browser")]
pub fn open_in_browser(file: &Path, project: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let named = env::browsers().into_iter().map(|name| (name, Vec::new()));
    let usual: &[(&str, &[&str])] = if cfg!(target_os = "macos") {
        &[("open", &[])]
    } else if cfg!(windows) {
        &[("explorer", &[])]
    } else if env::has_display() {
        &[("xdg-open", &[]), ("wslview", &[]), ("gio", &["open"])]
    } else {
        // The others would start, and show nothing.
        &[("wslview", &[])]
    };
    let usual = usual.iter().map(|(name, args)| ((*name).to_owned(), args.to_vec()));
    let mut found = named.chain(usual).filter_map(|(name, args)| Some((browser(&name, project)?, args)));
    let started = found.find(|(program, args)| {
        let mut command = Command::new(program);
        command.args(args).arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().is_ok()
    });
    started.map(|(program, _)| program)
}

fn browser(name: &str, project: &Path) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.is_absolute() { is_executable(path).then(|| path.to_owned()) } else { which_outside(name, project) }
}

/// In a pager Ctrl-C stops a search. The terminal sends it to this process as well; if it died, the pager and the shell would both read the keys.
#[cfg(unix)]
pub(crate) fn leave_interrupts_to_the_reader() {
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
pub(crate) fn leave_interrupts_to_the_reader() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a child that nobody has asked for yet is what the test is about")]
    fn s4_6_what_was_killed_is_not_alive_although_its_parent_has_not_asked_for_it() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let born = clock::birth_of(child.id());
        assert!(is_alive(child.id()) && is_same(child.id(), born));
        child.kill().unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        while is_alive(child.id()) && Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!is_alive(child.id()) && !is_same(child.id(), born));
        assert!(Path::new(&format!("/proc/{}", child.id())).exists(), "the test has not asked for it yet");
        child.wait().unwrap();
    }
}
