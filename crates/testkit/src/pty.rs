//! A real pseudo terminal with a screen: starts a program in it, types, and reads what a person would see.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::kill_tree;

/// A program in a terminal of its own; dropping it kills the program and all it started.
pub struct Pty {
    child: Mutex<Child>,
    master: File,
    screen: Arc<Screen>,
}

struct Screen {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser,
    begun: Instant,
    /// What came, and how long after the beginning.
    parts: Vec<(Duration, Vec<u8>)>,
    closed: bool,
}

impl std::fmt::Debug for Pty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pty").field("master", &self.master).finish_non_exhaustive()
    }
}

impl Pty {
    pub fn spawn(mut command: Command, rows: u16, cols: u16) -> Self {
        let (master, slave) = open_pair(rows, cols);
        let terminal = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(terminal()).stdout(terminal()).stderr(terminal());
        // SAFETY: `take_terminal` makes two system calls and touches no memory shared with the parent.
        unsafe { command.pre_exec(take_terminal) };
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
        // The command keeps the slave's descriptors, and the reader sees the end only when all of them are closed.
        drop(command);
        drop(slave);
        let screen = Arc::new(Screen {
            state: Mutex::new(State {
                parser: vt100::Parser::new(size(rows), size(cols), 10_000),
                begun: Instant::now(),
                parts: Vec::new(),
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let reader = master.try_clone().unwrap();
        let for_thread = Arc::clone(&screen);
        thread::spawn(move || read_all(&reader, &for_thread));
        Self { child: Mutex::new(child), master, screen }
    }

    /// Types.
    pub fn send(&self, text: &str) {
        // A program that has ended takes no input; the screen will tell the test.
        let _ = (&self.master).write_all(text.as_bytes());
    }

    /// What the terminal shows now, line by line, without colours.
    pub fn screen(&self) -> String {
        self.screen.state.lock().unwrap().parser.screen().contents()
    }

    /// Every byte the program ever wrote, for what a screen does not show (titles, bells).
    pub fn raw(&self) -> Vec<u8> {
        self.recording().into_iter().flat_map(|(_, bytes)| bytes).collect()
    }

    /// The same, in the parts in which it came, each with its time since the beginning.
    pub fn recording(&self) -> Vec<(Duration, Vec<u8>)> {
        self.screen.state.lock().unwrap().parts.clone()
    }

    /// Waits until the program and all that shares its terminal have closed it: nothing more will come.
    pub fn wait_closed(&self, timeout: Duration) -> bool {
        let state = self.screen.state.lock().unwrap();
        self.screen.changed.wait_timeout_while(state, timeout, |state| !state.closed).unwrap().0.closed
    }

    /// Waits until the screen satisfies `wanted`; the screen as it is, as `Err`, if that does not happen in time.
    pub fn wait_for(&self, wanted: impl Fn(&str) -> bool, timeout: Duration) -> Result<String, String> {
        let deadline = Instant::now() + timeout;
        let mut state = self.screen.state.lock().unwrap();
        loop {
            let contents = state.parser.screen().contents();
            if wanted(&contents) {
                return Ok(contents);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.closed {
                return Err(contents);
            }
            state = self.screen.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Changes the size, of the terminal and of the screen; the program gets its signal from the kernel.
    pub fn resize(&self, rows: u16, cols: u16) {
        self.screen.state.lock().unwrap().parser.screen_mut().set_size(size(rows), size(cols));
        set_size(self.master.as_raw_fd(), rows, cols);
    }

    pub fn pid(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// Waits for the program's end; its exit code, or `None` if it still runs (or a signal ended it). What it wrote last has been read then, unless
    /// something that it left behind keeps the terminal open.
    pub fn wait_exit(&self, timeout: Duration) -> Option<i32> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.lock().unwrap().try_wait().unwrap() {
                self.wait_closed(Duration::from_secs(1));
                return status.code();
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let Ok(child) = self.child.get_mut() else { return };
        if matches!(child.try_wait(), Ok(None)) {
            kill_tree(child.id());
            let _ = child.wait();
        }
    }
}

fn read_all(mut terminal: &File, screen: &Screen) {
    let mut bytes = [0; 8192];
    loop {
        // Linux reports the end of a terminal as an I/O error.
        let n = terminal.read(&mut bytes).unwrap_or(0);
        let mut state = screen.state.lock().unwrap();
        if n == 0 {
            state.closed = true;
        } else {
            state.parser.process(&bytes[..n]);
            let at = state.begun.elapsed();
            state.parts.push((at, bytes[..n].to_vec()));
            answer_queries(&bytes[..n], terminal);
        }
        screen.changed.notify_all();
        if n == 0 {
            return;
        }
    }
}

/// Answers the one question that programs wait for an answer to: who are you (primary device attributes).
fn answer_queries(output: &[u8], mut terminal: &File) {
    let asked = |query: &[u8]| output.windows(query.len()).any(|part| part == query);
    if asked(b"\x1b[c") || asked(b"\x1b[0c") {
        let _ = terminal.write_all(b"\x1b[?62;22c");
    }
}

/// In the child: a session of its own with the terminal (its standard input) as the controlling one.
fn take_terminal() -> std::io::Result<()> {
    // SAFETY: plain system calls, allowed between fork and exec.
    let failed = unsafe { libc::setsid() == -1 || libc::ioctl(0, libc::TIOCSCTTY as _, 0) == -1 };
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn open_pair(rows: u16, cols: u16) -> (File, OwnedFd) {
    let (mut master, mut slave): (RawFd, RawFd) = (-1, -1);
    let mut window = window(rows, cols);
    // SAFETY: the descriptors are written to live variables; name and termios may be null.
    let result = unsafe { libc::openpty(&raw mut master, &raw mut slave, std::ptr::null_mut(), std::ptr::null_mut(), &raw mut window) };
    assert!(result == 0, "no pseudo terminal: {}", std::io::Error::last_os_error());
    for descriptor in [master, slave] {
        // SAFETY: both are open; without this the child would inherit the master and never see a hang-up.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: `openpty` succeeded, so both descriptors are open and ours alone.
    unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

fn set_size(descriptor: RawFd, rows: u16, cols: u16) {
    let window = window(rows, cols);
    // SAFETY: the descriptor is open and the pointer is to a live structure of the type this request reads.
    unsafe { libc::ioctl(descriptor, libc::TIOCSWINSZ as _, &raw const window) };
}

fn window(rows: u16, cols: u16) -> libc::winsize {
    libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 }
}

fn size(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has at least one row and one column")
}
