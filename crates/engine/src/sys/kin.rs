//! The processes that a program started, and theirs: to be ended with it, even where they left its group.
//!
//! On Linux this process can ask to inherit orphans, so that nothing that a command started can slip away unseen. Elsewhere the group has to do.

use std::{
    io,
    process::{Child, Command},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Whether orphans come to this process. Without that, a child that it does not know is somebody else's business.
static INHERITS: AtomicBool = AtomicBool::new(false);

/// The programs that this process runs right now.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// One of them, for as long as this value lives.
pub(super) struct Known(u32);

/// Starts a program. It is known from its first moment on: another thread that ends strays at that time must not take it for one.
pub(super) fn start(command: &mut Command) -> io::Result<(Child, Known)> {
    running(|pids| {
        let child = command.spawn()?;
        pids.push(child.id());
        let known = Known(child.id());
        Ok((child, known))
    })
}

impl Drop for Known {
    fn drop(&mut self) {
        running(|pids| pids.retain(|pid| *pid != self.0));
    }
}

fn running<T>(look: impl FnOnce(&mut Vec<u32>) -> T) -> T {
    look(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on what loses its parent becomes a child of this process, so that [`kill_strays`] finds it.
pub fn inherit_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    INHERITS.store(true, Ordering::Relaxed);
}

#[cfg(unix)]
fn pid_of(pid: u32) -> Option<rustix::process::Pid> {
    i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn signal_group(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = pid_of(pid) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

#[cfg(unix)]
pub(super) fn kill_group(pid: u32) {
    signal_group(pid, rustix::process::Signal::KILL);
}

#[cfg(unix)]
pub(super) fn ask_group_to_end(pid: u32) {
    signal_group(pid, rustix::process::Signal::TERM);
}

#[cfg(not(unix))]
pub(super) fn kill_group(_pid: u32) {}

#[cfg(not(unix))]
pub(super) fn ask_group_to_end(_pid: u32) {}

#[cfg(unix)]
pub(super) fn kill_all(pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| pid_of(*pid)) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(super) fn kill_all(_pids: &[u32]) {}

/// Everything that descends from a process and still hangs together with it.
#[cfg(target_os = "linux")]
pub(super) fn descendants(pid: u32) -> Vec<u32> {
    let all = parents();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        at += 1;
    }
    found
}

#[cfg(not(target_os = "linux"))]
pub(super) fn descendants(_pid: u32) -> Vec<u32> {
    Vec::new()
}

/// Ends the children of this process that it did not start itself: orphans that it inherited. While other programs run nothing is done, because an orphan may be
/// theirs; the last one to end finds it.
#[cfg(target_os = "linux")]
pub(super) fn kill_strays() {
    const ROUNDS: usize = 50;
    for _ in 0..ROUNDS {
        // Nobody starts anything meanwhile.
        let inherits = INHERITS.load(Ordering::Relaxed);
        if !inherits || !running(|pids| pids.len() <= 1 && has_children() && kill_children_but(pids)) {
            return;
        }
    }
}

/// Whether there were any.
#[cfg(target_os = "linux")]
fn kill_children_but(mine: &[u32]) -> bool {
    use rustix::process::{WaitOptions, getpid, waitpid};
    let own = u32::try_from(getpid().as_raw_nonzero().get()).unwrap_or(0);
    let is_stray = |(child, parent): &(u32, u32)| *parent == own && !mine.contains(child);
    let strays: Vec<u32> = parents().into_iter().filter(is_stray).map(|(child, _)| child).collect();
    kill_all(&strays);
    for pid in strays.iter().filter_map(|pid| pid_of(*pid)) {
        let _ = waitpid(Some(pid), WaitOptions::empty());
    }
    !strays.is_empty()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_strays() {}

/// One call instead of a look at all processes: mostly there are none.
#[cfg(target_os = "linux")]
fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(rustix::io::Errno::CHILD))
}

/// Every process and its parent.
#[cfg(target_os = "linux")]
fn parents() -> Vec<(u32, u32)> {
    let parent = |pid: u32| {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The command's name stands in brackets and may hold anything.
        let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(parent).collect()
}
