//! A program that is given some time and no more. What it started dies with it.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

/// More than this of a program's output is of no use to anybody here.
const MAX_OUTPUT: u64 = 1 << 20;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Task<'a> {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub folder: &'a Path,
    /// Variables beside the ones of this process.
    pub vars: Vec<(OsString, OsString)>,
    pub input: Vec<u8>,
    pub limit: Duration,
}

/// How it came out.
#[derive(Debug)]
pub struct Ran {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
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
        command.args(&self.args).current_dir(self.folder).envs(self.vars);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        in_a_group_of_its_own(&mut command);
        let begun = Instant::now();
        let mut child = command.spawn().map_err(Failure::CannotStart)?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = self.input;
            // One that does not read its input closes it.
            thread::spawn(move || stdin.write_all(&input));
        }
        let (stdout, stderr) = (child.stdout.take().map(collect), child.stderr.take().map(collect));
        let code = wait(&mut child, begun, self.limit)?;
        let took = begun.elapsed();
        let text = |output: Option<Receiver<Vec<u8>>>| {
            // A grandchild can hold the other end for as long as it lives: what came until now has to do.
            let bytes = output.and_then(|output| output.recv_timeout(Duration::from_millis(500)).ok()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(Ran { code, stdout: text(stdout), stderr: text(stderr), took })
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

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
        // Whoever writes on must not find a closed pipe.
        let _ = io::copy(&mut pipe, &mut io::sink());
    });
    receiver
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
