//! The processes that a program started, and theirs: they are ended with it, even where they left its group.
//!
//! On Linux this process can ask to inherit orphans, so that nothing that a command started can slip away unseen. Elsewhere the group has to do.

use std::{
    collections::BTreeSet,
    fs, io,
    process::{Child, Command},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::sys::{clock, files};

pub(crate) use platform::has_children;
#[cfg(unix)]
pub(in crate::sys) use platform::is_ending;
use platform::{has_in_environment, is_zombie, parent_of, parents, reap};
pub(super) use signals::{ask_group_to_end, ask_group_to_stop, kill_all, kill_group};

/// Whether orphans come to this process. Without that, an unknown child is not ralph's.
static INHERITS: AtomicBool = AtomicBool::new(false);

/// The processes that this one started. Hold it to start or end one.
static ALL: Mutex<All> = Mutex::new(All { running: Vec::new(), left: Vec::new(), marks: Vec::new() });

struct All {
    /// The programs that run right now.
    running: Vec<u32>,
    /// Processes that may live on.
    left: Vec<u32>,
    /// So may those that have one of these in their environment: some of them are not born yet when they are left alone.
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

/// From now on orphans become children of this process, so that [`kill_strays`] finds them.
pub(crate) fn inherit_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    INHERITS.store(true, Ordering::Relaxed);
}

/// A process and everything that descends from it.
pub(super) fn descendants(pid: u32) -> Vec<u32> {
    descendants_in(&parents(), pid, |_| false)
}

fn descendants_in(all: &[(u32, u32)], pid: u32, is_spared: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|(child, of)| *of == parent && !is_spared(*child)).map(|(child, _)| *child));
        at += 1;
    }
    found
}

/// Of processes that were found a while ago, those that still descend from this one: the others are gone, and their numbers may be reused.
pub(super) fn still_ours(pids: &[u32]) -> Vec<u32> {
    let ours = descendants(std::process::id());
    pids.iter().copied().filter(|pid| ours.contains(pid)).collect()
}

/// The processes of a program that has just ended may live on: those that exist now, and all that have `mark` in their environment.
pub(super) fn leave_running(mark: &str) {
    with_all(|all| {
        let strays = all.strays();
        all.left.extend(strays);
        all.marks.push(mark.to_owned());
    });
}

/// Ends what descends from this process and from no running program: inherited orphans. While any program runs nothing is done, because an orphan may be
/// its; the last one to end finds it. The wait is short, because some processes cannot be ended: another user's, or one in the middle of a call.
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

impl All {
    /// All that descends from this process, but what runs and what is left alone.
    fn strays(&self) -> Vec<u32> {
        let has_mark =
            |pid: u32| !self.marks.is_empty() && has_in_environment(pid, |var| self.marks.iter().any(|mark| mark.as_bytes() == var));
        let is_spared = |pid: u32| self.running.contains(&pid) || self.left.contains(&pid) || has_mark(pid);
        let mut found = descendants_in(&parents(), std::process::id(), is_spared);
        found.remove(0);
        found
    }

    /// Returns whether there were any.
    fn kill_strays(&self) -> bool {
        let strays = self.strays();
        kill_all(&strays);
        reap(strays.iter());
        !strays.is_empty()
    }
}

/// Whether a process has a child that was started after that time, in milliseconds since the machine was, and has run for a while: many programs start others for
/// moments. `false` where the system does not tell.
pub(crate) fn has_child_since(pid: u32, since_ms: u64) -> bool {
    const A_WHILE_MS: u64 = 2_000;
    let born = |child: u32| clock::birth_of(child).is_some_and(|born| born > since_ms && born + A_WHILE_MS < clock::uptime_ms());
    parents().into_iter().any(|(child, parent)| parent == pid && born(child) && !is_zombie(child))
}

/// Starts a program that lives on when this process ends.
pub(super) fn start_and_leave(command: &mut Command) -> io::Result<Child> {
    with_all(|all| {
        let child = command.spawn()?;
        all.left.push(child.id());
        Ok(child)
    })
}

/// The first of these variables that is set in the environment of a process above this one, as it was when that one was started.
pub(crate) fn set_above(names: &[&'static str]) -> Option<&'static str> {
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

/// Ends every process of this user's that has `variable` (`NAME=value`) in its environment, and what descends from it, but not this process. Returns how
/// many there were. The wait for those that cannot be ended is short.
pub(crate) fn end_marked(variable: &str) -> usize {
    const PATIENCE: Duration = Duration::from_secs(2);
    let until = Instant::now() + PATIENCE;
    let mut ended = BTreeSet::new();
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

/// The processes with this in their environment, and their descendants, but neither this process nor what it started otherwise.
fn marked(variable: &str) -> Vec<u32> {
    let this = std::process::id();
    let is_marked = |pid: &u32| {
        *pid != this
            && fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| files::is_mine(&meta))
            && has_in_environment(*pid, |var| var == variable.as_bytes())
    };
    let all = parents();
    let roots = all.iter().map(|(pid, _)| *pid).filter(is_marked);
    let found: BTreeSet<u32> = roots.flat_map(|root| descendants_in(&all, root, |pid| pid == this)).collect();
    found.into_iter().filter(|pid| !is_zombie(*pid)).collect()
}

#[cfg(unix)]
mod signals {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    pub(super) fn pid_of(pid: u32) -> Option<Pid> {
        i32::try_from(pid).ok().and_then(Pid::from_raw)
    }

    fn signal_group(pid: u32, signal: Signal) {
        if let Some(pid) = pid_of(pid) {
            let _ = kill_process_group(pid, signal);
        }
    }

    pub(in crate::sys) fn kill_group(pid: u32) {
        signal_group(pid, Signal::KILL);
    }

    pub(in crate::sys) fn ask_group_to_end(pid: u32) {
        signal_group(pid, Signal::TERM);
    }

    pub(in crate::sys) fn ask_group_to_stop(pid: u32) {
        signal_group(pid, Signal::INT);
    }

    pub(in crate::sys) fn kill_all(pids: &[u32]) {
        for pid in pids.iter().filter_map(|pid| pid_of(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
mod signals {
    pub(in crate::sys) fn kill_group(_pid: u32) {}

    pub(in crate::sys) fn ask_group_to_end(_pid: u32) {}

    pub(in crate::sys) fn ask_group_to_stop(_pid: u32) {}

    pub(in crate::sys) fn kill_all(_pids: &[u32]) {}
}

/// The processes of the machine, as /proc shows them.
#[cfg(target_os = "linux")]
mod platform {
    use rustix::process::{WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};

    use super::{fs, signals::pid_of};

    pub(super) fn has_in_environment(pid: u32, wanted: impl Fn(&[u8]) -> bool) -> bool {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| environ.split(|byte| *byte == 0).any(wanted))
    }

    /// The fields of a process after its command's name, which is in brackets and may hold anything.
    fn stat(pid: u32) -> Option<String> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some(String::from_utf8_lossy(&stat).rsplit(')').next()?.trim_start().to_owned())
    }

    /// It has ended, and only its parent can let it go.
    pub(super) fn is_zombie(pid: u32) -> bool {
        stat(pid).is_none_or(|fields| fields.starts_with(['Z', 'X']) || fields.is_empty())
    }

    /// It was killed and does nothing any more, but still has its number: while it is taken apart, and until its parent asks for it. Where no parent does, as in
    /// a container without an init, that is for ever.
    pub(in crate::sys) fn is_ending(pid: u32) -> bool {
        /// The kernel's `PF_EXITING`, in the ninth field of the line, the seventh after the name.
        const EXITING: u64 = 0x4;
        stat(pid).is_some_and(|fields| {
            let flags: Option<u64> = fields.split_whitespace().nth(6).and_then(|flags| flags.parse().ok());
            fields.starts_with(['Z', 'X']) || flags.is_some_and(|flags| flags & EXITING != 0)
        })
    }

    pub(super) fn parent_of(pid: u32) -> Option<u32> {
        stat(pid)?.split_whitespace().nth(1)?.parse().ok()
    }

    /// Every process and its parent.
    pub(super) fn parents() -> Vec<(u32, u32)> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
    }

    pub(super) fn reap<'a>(pids: impl Iterator<Item = &'a u32>) {
        for pid in pids.filter_map(|pid| pid_of(*pid)) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }

    /// One call instead of a look at all processes: mostly there are none.
    pub(crate) fn has_children() -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::All, look), Err(rustix::io::Errno::CHILD))
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    pub(super) fn has_in_environment(_pid: u32, _wanted: impl Fn(&[u8]) -> bool) -> bool {
        false
    }

    pub(super) fn is_zombie(_pid: u32) -> bool {
        false
    }

    #[cfg(unix)]
    pub(in crate::sys) fn is_ending(_pid: u32) -> bool {
        false
    }

    pub(super) fn parent_of(_pid: u32) -> Option<u32> {
        None
    }

    pub(super) fn parents() -> Vec<(u32, u32)> {
        Vec::new()
    }

    pub(super) fn reap<'a>(_pids: impl Iterator<Item = &'a u32>) {}

    pub(crate) fn has_children() -> bool {
        false
    }
}
