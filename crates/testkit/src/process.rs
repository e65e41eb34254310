//! Runs a child process to its end within a time limit, without pipe deadlocks and without leaving descendants behind.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a finished (or killed) process left.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit code; `None` when a signal ended the process.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub duration: Duration,
    /// The time limit was reached and the process tree was killed.
    pub timed_out: bool,
}

impl Output {
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

/// Runs `command` in a process group of its own. Whatever it leaves running when `timeout` is over is killed.
pub fn run_bounded(command: &mut Command, stdin: &[u8], timeout: Duration) -> Output {
    run(command, stdin, timeout, ORPHANS).0
}

/// The same for a program that may leave no process behind that holds its pipes: that counts as if it were still running.
pub fn run_alone(command: &mut Command, stdin: &[u8], timeout: Duration) -> Output {
    run(command, stdin, timeout, Duration::MAX).0
}

/// The same for a program that prints no text: what it printed, byte for byte.
pub(crate) fn run_bytes(command: &mut Command, stdin: &[u8], timeout: Duration) -> Vec<u8> {
    run(command, stdin, timeout, ORPHANS).1
}

/// An orphan that inherited the pipes may keep them open for ever, so the wait for their end is short.
const ORPHANS: Duration = Duration::from_secs(2);

/// How often a program that prints nothing is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Less than a pipe holds.
const SMALL: usize = 32 * 1024;

fn run(command: &mut Command, stdin: &[u8], timeout: Duration, orphans: Duration) -> (Output, Vec<u8>) {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
    feed(&mut child, stdin);
    let mut pipes = [Drained::of(child.stdout.take().unwrap()), Drained::of(child.stderr.take().unwrap())];
    let (status, timed_out) = listen(&mut child, &mut pipes, start + timeout, orphans);
    let [stdout, stderr] = pipes.map(|pipe| pipe.bytes);
    let output = Output {
        code: status.code(),
        signal: status.signal(),
        stdout: text(&stdout),
        stderr: text(&stderr),
        duration: start.elapsed(),
        timed_out,
    };
    (output, stdout)
}

fn feed(child: &mut Child, stdin: &[u8]) {
    let mut pipe = child.stdin.take().unwrap();
    // A child that never reads its input closes the pipe: that is its right, not an error.
    if stdin.len() < SMALL {
        return drop(pipe.write_all(stdin));
    }
    let bytes = stdin.to_vec();
    thread::spawn(move || drop(pipe.write_all(&bytes)));
}

/// The end of a pipe, and all that came out of it.
struct Drained {
    /// `None`: it is closed.
    pipe: Option<File>,
    bytes: Vec<u8>,
}

impl Drained {
    fn of(pipe: impl Into<OwnedFd>) -> Self {
        Drained { pipe: Some(File::from(pipe.into())), bytes: Vec::new() }
    }

    fn read(&mut self) {
        let mut block = [0; 8192];
        match self.pipe.as_mut().map(|pipe| pipe.read(&mut block)) {
            Some(Ok(n)) if n > 0 => self.bytes.extend(&block[..n]),
            _ => self.pipe = None,
        }
    }
}

/// Reads the pipes to their ends and waits for the program, without threads: the suites make tens of thousands of short runs.
fn listen(child: &mut Child, pipes: &mut [Drained], deadline: Instant, orphans: Duration) -> (ExitStatus, bool) {
    let (mut ended, mut timed_out, mut orphans): (Option<(ExitStatus, Instant)>, _, _) = (None, false, orphans);
    while pipes.iter().any(|drained| drained.pipe.is_some()) {
        read_what_is_there(pipes);
        let now = Instant::now();
        if ended.is_none() {
            ended = child.try_wait().unwrap().map(|status| (status, now));
        }
        if ended.is_some_and(|(_, at)| now.duration_since(at) >= orphans) {
            break;
        }
        if now >= deadline && !timed_out {
            kill_tree(child.id());
            (timed_out, orphans) = (true, orphans.min(ORPHANS));
        }
    }
    let (status, is_late) = ended.map_or_else(|| wait_until(child, deadline), |(status, _)| (status, false));
    (status, timed_out || is_late)
}

/// Waits for something to read, not for long, and reads it.
fn read_what_is_there(pipes: &mut [Drained]) {
    // A negative number is not looked at.
    let number = |drained: &Drained| drained.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    let mut asked: Vec<libc::pollfd> =
        pipes.iter().map(|drained| libc::pollfd { fd: number(drained), events: libc::POLLIN, revents: 0 }).collect();
    let (count, wait) = (asked.len() as libc::nfds_t, i32::try_from(LOOK.as_millis()).unwrap());
    // SAFETY: the kernel writes into as many live structures as it is told of.
    unsafe { libc::poll(asked.as_mut_ptr(), count, wait) };
    for (drained, asked) in pipes.iter_mut().zip(asked) {
        if asked.revents != 0 {
            drained.read();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wait_until(child: &mut Child, deadline: Instant) -> (ExitStatus, bool) {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, false);
        }
        if Instant::now() >= deadline {
            kill_tree(child.id());
            return (child.wait().unwrap(), true);
        }
        // Most programs take some milliseconds: look often at first.
        thread::sleep((begun.elapsed() / 8).clamp(Duration::from_micros(200), Duration::from_millis(5)));
    }
}

/// Kills a process, its group and (where `/proc` tells) all its descendants: the client starts hooks and tools in
/// sessions of their own, which a kill of the group alone would leave running.
pub fn kill_tree(pid: u32) {
    let mut all = vec![pid];
    let parents = parents();
    let mut next = 0;
    while next < all.len() {
        let parent = all[next];
        all.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(c, _)| *c));
        next += 1;
    }
    let Ok(group) = i32::try_from(pid) else { return };
    // SAFETY: `kill` has no memory effects; the pids are those of our own child and of its descendants.
    unsafe {
        libc::kill(-group, libc::SIGKILL);
        for pid in all.into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
            libc::kill(pid, libc::SIGKILL);
        }
    }
}

/// All `(process, parent)` pairs; empty where there is no `/proc`.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The command name is in brackets and may hold anything; the fields after it are state and parent.
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            Some((pid, parent.parse().ok()?))
        })
        .collect()
}

/// The methods of a program in the making, for a struct with a `command`.
macro_rules! command_methods {
    () => {
        #[must_use]
        pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
            self.command.arg(arg);
            self
        }

        #[must_use]
        pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Self {
            self.command.args(args);
            self
        }

        #[must_use]
        pub fn env(mut self, name: impl AsRef<std::ffi::OsStr>, value: impl AsRef<std::ffi::OsStr>) -> Self {
            self.command.env(name, value);
            self
        }

        #[must_use]
        pub fn cwd(mut self, dir: impl AsRef<std::path::Path>) -> Self {
            self.command.current_dir(dir);
            self
        }
    };
}

/// The methods of a program that is fed and then waited for, for a struct with `stdin` and `timeout`.
macro_rules! bounded_methods {
    () => {
        #[must_use]
        pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
            self.stdin = bytes.into();
            self
        }

        /// A time limit of one's own. At the limit the program and all that it started are killed.
        #[must_use]
        pub fn timeout(mut self, limit: std::time::Duration) -> Self {
            self.timeout = limit;
            self
        }
    };
}

pub(crate) use {bounded_methods, command_methods};
