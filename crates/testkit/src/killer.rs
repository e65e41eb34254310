//! Kills a program at its n-th system call, so that a test can prove that a crash at *any* point leaves a sound state.
//!
//! The program runs under `ptrace` (Linux only). A program killed at a call's entry has not made that call: going
//! through all n from 1 to [`count_syscalls`] shows every state that a crash can leave on disk. Only the program's first
//! thread is traced, not its children; those that outlive it are waited for, so that they do not disturb what comes next.
//!
//! [`pause_at_syscall`] holds the program there instead and lets something else happen: a race without luck.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::nightly;

/// Which system calls count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    Any,
    /// Only those after which the disk can differ: they change files, or start a process that may. What is printed is not on it.
    Writes,
    /// Only those that start a process or a thread.
    Spawns,
    /// Those that change, lock or sync files, and those that open, read or close them: what another process does to a file shows here first.
    Files,
}

impl Filter {
    /// Where a crash is tried. Between two writes the disk cannot differ, so a crash at each write shows every state; the nightly run does not
    /// rely on that and tries all calls.
    pub fn crash_points() -> Self {
        nightly::amount(Self::Writes, Self::Any)
    }

    /// Where a program is held while another one does something.
    pub fn pause_points() -> Self {
        nightly::amount(Self::Files, Self::Any)
    }
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The n-th call was reached and not made.
    Killed {
        /// The call's number, as in `libc::SYS_…`.
        syscall: i64,
        stdout: String,
    },
    /// The program ended before its n-th call; `code` is `None` if a signal ended it.
    Finished { stdout: String, code: Option<i32> },
}

/// A traced program that takes longer than this is killed; it shows as `Finished` without a code.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs `command` and kills it when it enters its `n`-th (from 1) call that `filter` counts.
pub fn kill_at_syscall(command: &mut Command, filter: Filter, n: usize, stdin: &[u8]) -> Outcome {
    trace(command, filter, n, KILL, stdin).0
}

/// Runs `command` to its end, and has `meanwhile` happen when it enters its `n`-th (from 1) call that `filter` counts.
pub fn pause_at_syscall(command: &mut Command, filter: Filter, n: usize, stdin: &[u8], meanwhile: impl FnMut()) -> Outcome {
    trace(command, filter, n, At::Pause(meanwhile), stdin).0
}

/// Runs `command` to its end and counts its calls.
pub fn count_syscalls(command: &mut Command, filter: Filter, stdin: &[u8]) -> usize {
    trace(command, filter, usize::MAX, KILL, stdin).1
}

/// What happens at the n-th call.
enum At<F> {
    Kill,
    Pause(F),
}

const KILL: At<fn()> = At::Kill;

fn trace(command: &mut Command, filter: Filter, n: usize, at: At<impl FnMut()>, stdin: &[u8]) -> (Outcome, usize) {
    // Files instead of pipes: nobody has to feed or drain them while the tracer loops.
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(stdin).unwrap();
    input.seek(SeekFrom::Start(0)).unwrap();
    let output = tempfile::tempfile().unwrap();
    command.stdin(input).stdout(output.try_clone().unwrap()).stderr(Stdio::null()).process_group(0);
    let pid = start_traced(command);
    let watchdog = watch(pid);
    let (end, count) = step_through(pid, filter, n, at);
    drop(watchdog);
    if matches!(end, End::Killed(_)) {
        outlive_orphans(pid);
    }
    let stdout = read_back(output);
    let outcome = match end {
        End::Killed(syscall) => Outcome::Killed { syscall, stdout },
        End::Exited(code) => Outcome::Finished { stdout, code },
    };
    (outcome, count)
}

fn start_traced(command: &mut Command) -> libc::pid_t {
    // SAFETY: one system call without pointers, allowed between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    #[expect(clippy::zombie_processes, reason = "`step_through` waits for it, with the tracer's own wait")]
    let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
    let pid = i32::try_from(child.id()).unwrap();
    // The first stop is the exec itself.
    let status = wait(pid);
    assert!(libc::WIFSTOPPED(status), "the tracee did not stop: {status:#x}");
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    // SAFETY: the tracee is stopped; the options are passed by value.
    let set = unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
    assert!(set == 0, "no tracing: {}", std::io::Error::last_os_error());
    pid
}

/// Kills the tracee when the limit is over, unless the returned sender is dropped before.
fn watch(pid: libc::pid_t) -> Sender<()> {
    let (sender, receiver) = channel::<()>();
    thread::spawn(move || {
        if receiver.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            kill(pid);
        }
    });
    sender
}

/// Waits (not for ever) until nothing of a killed program's process group runs.
fn outlive_orphans(group: libc::pid_t) {
    let is_in_group = |entry: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let (state, of) = (fields.next()?, fields.nth(1)?);
        (state != "Z" && of.parse() == Ok(group)).then_some(())
    };
    let runs = || std::fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| is_in_group(entry).is_some());
    let (deadline, mut pause) = (Instant::now() + Duration::from_secs(10), Duration::from_millis(1));
    // SAFETY: no pointers, and signal 0 only asks.
    while unsafe { libc::kill(-group, 0) } == 0 && runs() && Instant::now() < deadline {
        thread::sleep(pause);
        // A look at all processes is not for nothing.
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

enum End {
    Killed(i64),
    Exited(Option<i32>),
}

fn step_through(pid: libc::pid_t, filter: Filter, n: usize, mut at: At<impl FnMut()>) -> (End, usize) {
    let (mut count, mut killed, mut signal) = (0, None, 0);
    loop {
        resume(pid, signal);
        signal = 0;
        let status = wait(pid);
        if libc::WIFEXITED(status) {
            return (End::Exited(Some(libc::WEXITSTATUS(status))), count);
        }
        if libc::WIFSIGNALED(status) {
            return (killed.map_or(End::Exited(None), End::Killed), count);
        }
        match libc::WSTOPSIG(status) {
            stop if stop == libc::SIGTRAP | 0x80 => {
                if let Some(call) = entered(pid).filter(|call| call.counts(filter)) {
                    count += 1;
                    match &mut at {
                        _ if count != n => {}
                        At::Pause(meanwhile) => {
                            meanwhile();
                            let status = release(pid);
                            return (End::Exited(libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))), count);
                        }
                        At::Kill => {
                            killed = Some(call.number);
                            kill(pid);
                        }
                    }
                }
            }
            libc::SIGTRAP => {}
            other => signal = other,
        }
    }
}

/// The system call a stopped tracee is about to make.
struct Call {
    pid: libc::pid_t,
    number: i64,
    args: [u64; 6],
}

/// `struct ptrace_syscall_info` of the kernel, as far as an entry stop fills it. It spares us the registers, which are
/// different on every architecture.
#[repr(C)]
#[derive(Default)]
struct SyscallInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
    args: [u64; 6],
}

const PTRACE_GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const PTRACE_SYSCALL_INFO_ENTRY: u8 = 1;

/// The call, if this stop is a call's entry and not its end.
fn entered(pid: libc::pid_t) -> Option<Call> {
    let mut info = SyscallInfo::default();
    // SAFETY: the kernel writes at most the given size into a live structure of that size.
    let got = unsafe { libc::ptrace(PTRACE_GET_SYSCALL_INFO as _, pid, size_of::<SyscallInfo>(), &raw mut info) };
    if got == -1 {
        // The watchdog killed it in this moment; the next wait tells.
        return None;
    }
    (info.op == PTRACE_SYSCALL_INFO_ENTRY).then(|| Call { pid, number: i64::try_from(info.number).unwrap_or(-1), args: info.args })
}

impl Call {
    fn counts(&self, filter: Filter) -> bool {
        match filter {
            Filter::Any => true,
            Filter::Spawns => SPAWNS.contains(&self.number),
            Filter::Writes => self.creates() || (WRITES.contains(&self.number) && !self.prints()),
            Filter::Files => READS.contains(&self.number) || LOCKS.contains(&self.number) || self.counts(Filter::Writes),
        }
    }

    /// Whether it writes to what has no name on any disk: our file for its output, or a device.
    fn prints(&self) -> bool {
        let to = std::fs::metadata(format!("/proc/{}/fd/{}", self.pid, self.args[0]));
        let is_nameless = |meta: std::fs::Metadata| meta.file_type().is_char_device() || (meta.is_file() && meta.nlink() == 0);
        matches!(self.number, libc::SYS_write | libc::SYS_writev) && to.is_ok_and(is_nameless)
    }

    fn creates(&self) -> bool {
        let flags = match self.number {
            libc::SYS_openat => self.args[2],
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.args[1],
            _ => 0,
        };
        flags & u64::from((libc::O_CREAT | libc::O_TRUNC).cast_unsigned()) != 0
    }
}

#[rustfmt::skip]
const SPAWNS: &[i64] = &[
    libc::SYS_clone, libc::SYS_clone3,
    #[cfg(target_arch = "x86_64")] libc::SYS_fork,
    #[cfg(target_arch = "x86_64")] libc::SYS_vfork,
];

#[rustfmt::skip]
const WRITES: &[i64] = &[
    libc::SYS_write, libc::SYS_writev, libc::SYS_pwrite64, libc::SYS_pwritev, libc::SYS_pwritev2,
    libc::SYS_copy_file_range, libc::SYS_sendfile, libc::SYS_fallocate, libc::SYS_truncate, libc::SYS_ftruncate,
    libc::SYS_renameat2, libc::SYS_unlinkat, libc::SYS_mkdirat, libc::SYS_linkat, libc::SYS_symlinkat,
    libc::SYS_fchmod, libc::SYS_fchmodat,
    libc::SYS_renameat, libc::SYS_utimensat, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_mknodat,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr,
    libc::SYS_clone, libc::SYS_clone3,
    #[cfg(target_arch = "x86_64")] libc::SYS_fork,
    #[cfg(target_arch = "x86_64")] libc::SYS_vfork,
    #[cfg(target_arch = "x86_64")] libc::SYS_rename,
    #[cfg(target_arch = "x86_64")] libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_link,
    #[cfg(target_arch = "x86_64")] libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_creat,
    #[cfg(target_arch = "x86_64")] libc::SYS_chmod,
];

/// A program that is killed holds no lock any more, and what it wrote is there for the others with or without a sync: the disk is the same before and after.
const LOCKS: &[i64] = &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_flock];

#[rustfmt::skip]
const READS: &[i64] = &[
    libc::SYS_openat, libc::SYS_read, libc::SYS_pread64, libc::SYS_close, libc::SYS_getdents64, libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")] libc::SYS_open,
];

fn resume(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: no pointers. It fails only if the tracee is already gone, which the next wait tells.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, signal) };
}

/// Lets it go on untraced, which is faster, to its end.
fn release(pid: libc::pid_t) -> libc::c_int {
    // SAFETY: no pointers. It fails only if the tracee is already gone, which the next wait tells.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0) };
    wait(pid)
}

fn kill(pid: libc::pid_t) {
    // SAFETY: no pointers; the tracee is our own child and not yet reaped.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

fn wait(pid: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    loop {
        // SAFETY: the status is written to a live variable.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        if waited == pid {
            return status;
        }
        let error = std::io::Error::last_os_error();
        assert!(error.kind() == std::io::ErrorKind::Interrupted, "no tracee: {error}");
    }
}

fn read_back(mut file: File) -> String {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
