//! A program that is given some time and no more. What it started dies with it.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// More than this of a program's output is of no use to most who ask.
pub const USUAL_OUTPUT: usize = 1 << 20;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Task<'a> {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub folder: &'a Path,
    /// Variables beside the ones of this process.
    pub vars: Vec<(OsString, OsString)>,
    /// Variables of this process that it does not get.
    pub hidden: Vec<OsString>,
    pub input: Vec<u8>,
    pub limit: Duration,
    /// How much of each of its outputs is kept.
    pub most_output: usize,
}

/// How it came out.
#[derive(Debug)]
pub struct Ran {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// Whether `stdout` is all that it wrote there.
    pub whole: bool,
    pub took: Duration,
}

#[derive(Debug)]
pub enum Failure {
    CannotStart(io::Error),
    TookTooLong,
}

impl Task<'_> {
    #[expect(clippy::disallowed_methods, reason = "the one place that runs programs under a limit")]
    pub fn run(self) -> Result<Ran, Failure> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(self.folder);
        for name in &self.hidden {
            command.env_remove(name);
        }
        command.envs(self.vars);
        // Who gets nothing needs no pipe, and no thread that feeds it.
        command.stdin(if self.input.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        in_a_group_of_its_own(&mut command);
        let begun = Instant::now();
        let mut child = command.spawn().map_err(Failure::CannotStart)?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = self.input;
            // One that does not read its input closes it.
            thread::spawn(move || stdin.write_all(&input));
        }
        let (stdout, stderr) = (
            child.stdout.take().map(|pipe| collect(pipe, self.most_output)),
            child.stderr.take().map(|pipe| collect(pipe, self.most_output)),
        );
        let code = wait(&mut child, begun, self.limit)?;
        let took = begun.elapsed();
        // What it left running would hold the other ends of the pipes.
        kill_group(&mut child);
        let text = |output: Option<Output>| output.map(Output::text).unwrap_or_default();
        let ((stdout, whole), (stderr, _)) = (text(stdout), text(stderr));
        Ok(Ran { code, stdout, stderr, whole, took })
    }
}

fn wait(child: &mut Child, begun: Instant, limit: Duration) -> Result<Option<i32>, Failure> {
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::CannotStart)? {
            return Ok(status.code());
        }
        if begun.elapsed() > limit {
            kill_group(child);
            let _ = child.wait();
            return Err(Failure::TookTooLong);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// What comes out of a pipe, while it comes.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Says at the end whether all of it was kept.
    end: Receiver<bool>,
}

impl Output {
    /// Something that left the group can hold the other end for as long as it lives: what came until now has to do.
    fn text(self) -> (String, bool) {
        let whole = self.end.recv_timeout(Duration::from_millis(500)).unwrap_or(false);
        (String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned(), whole)
    }
}

fn collect(mut pipe: impl Read + Send + 'static, most: usize) -> Output {
    let (sender, end) = channel();
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&bytes);
    thread::spawn(move || {
        let mut part = [0; 8192];
        let mut whole = true;
        while let Ok(n @ 1..) = pipe.read(&mut part) {
            // Whoever writes on must not find a closed pipe, though nobody listens any more.
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = most.saturating_sub(kept.len()).min(n);
            whole &= room == n;
            kept.extend_from_slice(&part[..room]);
        }
        let _ = sender.send(whole);
    });
    Output { bytes, end }
}

#[cfg(unix)]
fn in_a_group_of_its_own(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn in_a_group_of_its_own(_command: &mut Command) {}

#[cfg(unix)]
fn kill_group(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(child: &mut Child) {
    let _ = child.kill();
}
