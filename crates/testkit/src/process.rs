//! Runs a child process to its end within a time limit, without pipe deadlocks and without leaving descendants behind.

use std::io::{Read, Write};
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
    run(command, stdin, timeout).0
}

/// The same for a program that prints no text: what it printed, byte for byte.
pub(crate) fn run_bytes(command: &mut Command, stdin: &[u8], timeout: Duration) -> Vec<u8> {
    run(command, stdin, timeout).1
}

fn run(command: &mut Command, stdin: &[u8], timeout: Duration) -> (Output, Vec<u8>) {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
    let writer = feed(&mut child, stdin);
    let stdout = drain(child.stdout.take().unwrap());
    let stderr = drain(child.stderr.take().unwrap());
    let (status, timed_out) = wait_until(&mut child, start + timeout);
    let _ = writer.join();
    let bytes = collect(&stdout);
    let output = Output {
        code: status.code(),
        signal: status.signal(),
        stdout: text(&bytes),
        stderr: text(&collect(&stderr)),
        duration: start.elapsed(),
        timed_out,
    };
    (output, bytes)
}

fn feed(child: &mut Child, stdin: &[u8]) -> thread::JoinHandle<()> {
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // A child that never reads its input closes the pipe: that is its right, not an error.
    thread::spawn(move || drop(pipe.write_all(&bytes)))
}

type Drained = std::sync::mpsc::Receiver<Vec<u8>>;

fn drain(mut pipe: impl Read + Send + 'static) -> Drained {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(n) = pipe.read(&mut bytes) {
            if n == 0 || sender.send(bytes[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Gathers what was read. An orphan that inherited the pipe may keep it open for ever, so the wait for the end is short.
fn collect(drained: &Drained) -> Vec<u8> {
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut bytes = Vec::new();
    while let Ok(part) = drained.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        bytes.extend(part);
    }
    bytes
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
