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
#[cfg(target_os = "linux")]
use std::{
    thread,
    time::{Duration, Instant},
};

/// Whether orphans come to this process. Without that, a child that it does not know is somebody else's business.
static INHERITS: AtomicBool = AtomicBool::new(false);

/// What this process started. Whoever changes anything about it, starting and ending included, holds this.
static ALL: Mutex<All> = Mutex::new(All {
    running: Vec::new(),
    #[cfg(target_os = "linux")]
    left: Vec::new(),
    #[cfg(target_os = "linux")]
    marks: Vec::new(),
});

struct All {
    /// The programs that run right now.
    running: Vec<u32>,
    /// Processes that may live on.
    #[cfg(target_os = "linux")]
    left: Vec<u32>,
    /// So may those that have one of these in their environment: some of them are not born yet when their time comes to be left alone.
    #[cfg(target_os = "linux")]
    marks: Vec<String>,
}

/// A program that runs, for as long as this value lives.
pub(super) struct Known(u32);

/// Starts a program. It is known from its first moment on: another thread that ends strays at that time must not take it for one.
pub(super) fn start(command: &mut Command) -> io::Result<(Child, Known)> {
    with_all(|all| {
        let child = command.spawn()?;
        all.running.push(child.id());
        let known = Known(child.id());
        Ok((child, known))
    })
}

impl Drop for Known {
    fn drop(&mut self) {
        with_all(|all| all.running.retain(|pid| *pid != self.0));
    }
}

fn with_all<T>(work: impl FnOnce(&mut All) -> T) -> T {
    work(&mut ALL.lock().unwrap_or_else(PoisonError::into_inner))
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

#[cfg(unix)]
pub(super) fn ask_group_to_stop(pid: u32) {
    signal_group(pid, rustix::process::Signal::INT);
}

#[cfg(not(unix))]
pub(super) fn kill_group(_pid: u32) {}

#[cfg(not(unix))]
pub(super) fn ask_group_to_end(_pid: u32) {}

#[cfg(not(unix))]
pub(super) fn ask_group_to_stop(_pid: u32) {}

#[cfg(unix)]
pub(super) fn kill_all(pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| pid_of(*pid)) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(super) fn kill_all(_pids: &[u32]) {}

/// Everything that descends from a process and still hangs together with it, itself included.
#[cfg(target_os = "linux")]
pub(super) fn descendants(pid: u32) -> Vec<u32> {
    descendants_but(pid, |_| false)
}

#[cfg(target_os = "linux")]
fn descendants_but(pid: u32, is_spared: impl Fn(u32) -> bool) -> Vec<u32> {
    descendants_in(&parents(), pid, is_spared)
}

#[cfg(target_os = "linux")]
fn descendants_in(all: &[(u32, u32)], pid: u32, is_spared: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|(child, of)| *of == parent && !is_spared(*child)).map(|(child, _)| *child));
        at += 1;
    }
    found
}

#[cfg(not(target_os = "linux"))]
pub(super) fn descendants(_pid: u32) -> Vec<u32> {
    Vec::new()
}

/// Of processes that were found a while ago, those that still descend from this one: the others are gone, and their numbers may be somebody else's.
pub(super) fn still_ours(pids: &[u32]) -> Vec<u32> {
    let ours = descendants(std::process::id());
    pids.iter().copied().filter(|pid| ours.contains(pid)).collect()
}

/// What a program started that has just ended may live on: what is there now, and whatever has `mark` in its environment.
#[cfg(target_os = "linux")]
pub(super) fn leave_running(mark: &str) {
    with_all(|all| {
        let strays = all.strays();
        all.left.extend(strays);
        all.marks.push(mark.to_owned());
    });
}

#[cfg(not(target_os = "linux"))]
pub(super) fn leave_running(_mark: &str) {}

/// Ends what descends from this process and from no program that runs: orphans that it inherited. While any program runs nothing is done, because an
/// orphan may be its; the last one to end finds it. Nobody waits for long, because there are processes that cannot be ended: those of another user, or
/// in the middle of a call.
#[cfg(target_os = "linux")]
pub(super) fn kill_strays() {
    const PATIENCE: Duration = Duration::from_secs(1);
    let until = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(100);
    while INHERITS.load(Ordering::Relaxed) && with_all(|all| all.running.is_empty() && has_children() && all.kill_strays()) {
        if Instant::now() > until {
            return;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_strays() {}

#[cfg(target_os = "linux")]
impl All {
    /// All that descends from this process, but what runs and what is left alone.
    fn strays(&self) -> Vec<u32> {
        let has_mark =
            |pid: u32| !self.marks.is_empty() && has_in_environment(pid, |var| self.marks.iter().any(|mark| mark.as_bytes() == var));
        let mut found = descendants_but(std::process::id(), |pid| self.running.contains(&pid) || self.left.contains(&pid) || has_mark(pid));
        found.remove(0);
        found
    }

    /// Whether there were any.
    fn kill_strays(&self) -> bool {
        let strays = self.strays();
        kill_all(&strays);
        reap(strays.iter());
        !strays.is_empty()
    }
}

#[cfg(target_os = "linux")]
fn has_in_environment(pid: u32, wanted: impl Fn(&[u8]) -> bool) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| environ.split(|byte| *byte == 0).any(wanted))
}

/// The first of these variables that is set in the environment of a process above this one, as it was when that one was started.
#[cfg(target_os = "linux")]
pub fn set_above(names: &[&'static str]) -> Option<&'static str> {
    const MOST: usize = 64;
    let is_set =
        |var: &[u8], name: &str| var.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")).is_some_and(|v| !v.is_empty());
    let mut pid = std::process::id();
    for _ in 0..MOST {
        pid = parent_of(pid).filter(|pid| *pid > 1)?;
        let found = names.iter().copied().find(|name| has_in_environment(pid, |var| is_set(var, name)));
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(not(target_os = "linux"))]
pub fn set_above(_names: &[&'static str]) -> Option<&'static str> {
    None
}

/// Ends every process of this user's that has `variable` (`NAME=value`) in its environment, and what descends from it, but not this process; says how many
/// there were. What cannot be ended is not waited for.
#[cfg(target_os = "linux")]
pub fn end_marked(variable: &str) -> usize {
    const PATIENCE: Duration = Duration::from_secs(2);
    let until = Instant::now() + PATIENCE;
    let mut ended = std::collections::BTreeSet::new();
    loop {
        let found = marked(variable);
        kill_all(&found);
        with_all(|all| reap(found.iter().filter(|pid| !all.running.contains(pid))));
        let is_done = found.is_empty();
        ended.extend(found);
        if is_done || Instant::now() > until {
            return ended.len();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(not(target_os = "linux"))]
pub fn end_marked(_variable: &str) -> usize {
    0
}

/// The processes with this in their environment, and their descendants, but neither this process nor what it started otherwise.
#[cfg(target_os = "linux")]
fn marked(variable: &str) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let this = std::process::id();
    let user = rustix::process::geteuid().as_raw();
    let is_marked = |pid: &u32| {
        *pid != this
            && std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == user)
            && has_in_environment(*pid, |var| var == variable.as_bytes())
    };
    let all = parents();
    let roots = all.iter().map(|(pid, _)| *pid).filter(is_marked);
    let mut found: Vec<u32> = roots.flat_map(|root| descendants_in(&all, root, |pid| pid == this)).collect();
    found.sort_unstable();
    found.dedup();
    found.retain(|pid| !is_zombie(*pid));
    found
}

/// It has ended, and only its parent can let it go.
#[cfg(target_os = "linux")]
fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    String::from_utf8_lossy(&stat).rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with(['Z', 'X']) || rest.is_empty())
}

#[cfg(target_os = "linux")]
fn reap<'a>(pids: impl Iterator<Item = &'a u32>) {
    use rustix::process::{WaitOptions, waitpid};
    for pid in pids.filter_map(|pid| pid_of(*pid)) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// One call instead of a look at all processes: mostly there are none.
#[cfg(target_os = "linux")]
pub fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(rustix::io::Errno::CHILD))
}

#[cfg(not(target_os = "linux"))]
pub fn has_children() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The command's name stands in brackets and may hold anything.
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Every process and its parent.
#[cfg(target_os = "linux")]
fn parents() -> Vec<(u32, u32)> {
    let parent = |pid: u32| Some((pid, parent_of(pid)?));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(parent).collect()
}
