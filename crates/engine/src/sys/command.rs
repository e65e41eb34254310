//! Programs that run within a time limit. What they started dies with them.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use ralph_core::gate::Stream;

use crate::sys::process_tree;

/// Enough for most programs.
pub(crate) const USUAL_OUTPUT: usize = 1 << 20;

/// How long to read on while a process that left the group holds a pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The grace period in a hook: clients kill it a second after they asked it to end, and Claude Code 2.1.197 leaves its children running.
pub(crate) const HURRY: Duration = Duration::from_millis(300);

/// How often the caller is asked whether it still wants the program.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Input that fits into any pipe is written at once; more needs a thread that waits for the reader.
const FITS_INTO_A_PIPE: usize = 4096;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Task<'a> {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub folder: &'a Path,
    /// Variables in addition to those of this process.
    pub vars: Vec<(OsString, OsString)>,
    /// Variables of this process that it does not get.
    pub hidden: Vec<OsString>,
    pub input: Vec<u8>,
    pub limit: Duration,
    /// How much of each of its outputs [`Task::run`] keeps.
    pub most_output: usize,
}

/// A program that ended by itself.
#[derive(Debug)]
pub struct Ran {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Whether `stdout` is all that it wrote there.
    pub whole: bool,
    pub took: Duration,
}

/// How a program ended whose output went to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Whether all its output was read: a process that left the group can hold a pipe for as long as it lives.
    pub whole: bool,
    pub took: Duration,
}

#[derive(Debug)]
pub enum Failure {
    CannotStart(io::Error),
    TookTooLong,
    /// The caller cancelled it.
    Cancelled,
}

/// Gets a program's output while it comes, from two threads.
pub type Listener = Arc<dyn Fn(Stream, &[u8]) + Send + Sync>;

/// How a program is ended.
#[derive(Clone, Copy)]
pub struct Leave<'a> {
    /// Polled: whether the caller has cancelled it.
    pub cancelled: &'a dyn Fn() -> bool,
    /// The time between the request to end and the kill, after the limit.
    pub grace: Duration,
    /// The same, after a cancel.
    pub hurry: Duration,
    /// Called when it has to be ended.
    pub asked: &'a dyn Fn() -> Asked,
    /// Its children may live on after it has ended by itself; they have this in their environment: `NAME=value`.
    pub leave_running: Option<&'a str>,
}

/// How a program is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// SIGTERM.
    ToEnd,
    /// SIGINT, as from a person at a terminal, and SIGTERM if that did not help: an interrupted agent tidies up and says what it did.
    ToStop,
    /// No request: it has nothing left to say, and would only begin something new.
    Not,
}

impl Ran {
    /// Standard output as text, without blanks around it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim().to_owned()
    }
}

impl Task<'_> {
    /// Runs it and collects its output.
    pub fn run(self) -> Result<Ran, Failure> {
        self.collected(LAST_WORDS * 4, &|| false)
    }

    /// The same, until it is cancelled: then it is asked to end, and killed if it does not.
    pub fn run_until(self, cancelled: &dyn Fn() -> bool) -> Result<Ran, Failure> {
        self.collected(LAST_WORDS * 4, cancelled)
    }

    /// The same for a program that leaves nothing running: a busy machine may take its time to hand over the rest.
    pub(crate) fn run_whole(self) -> Result<Ran, Failure> {
        self.collected(LAST_WORDS * 20, &|| false)
    }

    fn collected(self, last_words: Duration, cancelled: &dyn Fn() -> bool) -> Result<Ran, Failure> {
        let kept = Arc::new([Mutex::new(Vec::new()), Mutex::new(Vec::new())]);
        let most = self.most_output;
        let listener = {
            let kept = Arc::clone(&kept);
            Arc::new(move |stream: Stream, bytes: &[u8]| {
                // Read on even when enough is kept: a closed pipe would end the program.
                let mut kept = kept[stream as usize].lock().unwrap_or_else(PoisonError::into_inner);
                let room = (most + 1).saturating_sub(kept.len()).min(bytes.len());
                kept.extend_from_slice(&bytes[..room]);
            })
        };
        // It may have programs of its own to end.
        let leave = Leave { cancelled, grace: Duration::ZERO, hurry: HURRY * 10, asked: &|| Asked::ToEnd, leave_running: None };
        let ended = self.run_until_silence(&(listener as Listener), leave, last_words, None)?;
        let heard = |stream: Stream| {
            let mut bytes = std::mem::take(&mut *kept[stream as usize].lock().unwrap_or_else(PoisonError::into_inner));
            let fits = bytes.len() <= most;
            bytes.truncate(most);
            (bytes, fits)
        };
        let ((stdout, fits), (stderr, _)) = (heard(Stream::Out), heard(Stream::Err));
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(Ran { code: ended.code, stdout, stderr, whole: fits && ended.whole, took: ended.took })
    }

    /// Runs it while `listener` gets its output.
    pub fn run_heard(self, listener: &Listener, leave: Leave<'_>) -> Result<Ended, Failure> {
        self.run_until_silence(listener, leave, LAST_WORDS, None)
    }

    /// The same, while it gets more input. Its input is closed when the last sender of it is gone.
    pub fn run_in_conversation(self, listener: &Listener, leave: Leave<'_>, more: Receiver<Vec<u8>>) -> Result<Ended, Failure> {
        self.run_until_silence(listener, leave, LAST_WORDS, Some(more))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that runs programs under a limit")]
    fn run_until_silence(
        self,
        listener: &Listener,
        leave: Leave<'_>,
        last_words: Duration,
        more: Option<Receiver<Vec<u8>>>,
    ) -> Result<Ended, Failure> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(self.folder);
        for name in &self.hidden {
            command.env_remove(name);
        }
        command.envs(self.vars);
        // Without input there is no pipe, and no thread that feeds it.
        command.stdin(if self.input.is_empty() && more.is_none() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        in_a_group_of_its_own(&mut command);
        let begun = Instant::now();
        let (mut child, known) = process_tree::start(&mut command).map_err(Failure::CannotStart)?;
        let is_small = more.is_none() && self.input.len() <= FITS_INTO_A_PIPE;
        if let Some(mut stdin) = child.stdin.take() {
            let parts = std::iter::once(self.input).chain(more.into_iter().flatten());
            // A program may end without reading it.
            let write = move || drop(parts.into_iter().try_for_each(|part| stdin.write_all(&part)));
            if is_small { write() } else { drop(thread::spawn(write)) }
        }
        let (sender, silence) = channel();
        let busy = Arc::new(AtomicUsize::new(0));
        hear(child.stdout.take(), Stream::Out, listener, &busy, sender.clone());
        hear(child.stderr.take(), Stream::Err, listener, &busy, sender);
        let ended = wait(&mut child, begun, self.limit, leave);
        match leave.leave_running.filter(|_| ended.is_ok()) {
            Some(mark) => process_tree::leave_running(mark),
            None => process_tree::kill_group(child.id()),
        }
        // It has ended, and strays would hold the other ends of the pipes.
        drop(known);
        process_tree::kill_strays();
        let patience = if leave.leave_running.is_some() { last_words } else { leave.grace.max(last_words) };
        let whole = heard_out(&silence, patience, &busy);
        ended.map(|ended| Ended { whole, ..ended })
    }
}

/// Waits until both pipes are closed; `false`: a process holds one. A slow listener is waited for.
fn heard_out(silence: &Receiver<()>, patience: Duration, busy: &AtomicUsize) -> bool {
    let mut last_word = Instant::now() + patience;
    loop {
        match silence.recv_timeout(last_word.saturating_duration_since(Instant::now())) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) if busy.load(Ordering::Relaxed) > 0 => last_word = Instant::now() + patience,
            Err(e) => return e == RecvTimeoutError::Disconnected,
        }
    }
}

/// Waits for the end of a program, or ends it.
fn wait(child: &mut Child, begun: Instant, limit: Duration, leave: Leave<'_>) -> Result<Ended, Failure> {
    let end_of = EndOf::program(child);
    loop {
        end_of.wait(begun.elapsed(), LOOK_EVERY.min(limit.saturating_sub(begun.elapsed())));
        if let Some(status) = child.try_wait().map_err(Failure::CannotStart)? {
            return Ok(Ended { code: status.code(), signal: signal_of(status), whole: true, took: begun.elapsed() });
        }
        let too_long = begun.elapsed() > limit;
        if too_long || (leave.cancelled)() {
            end(child, if too_long { leave.grace } else { leave.hurry }, (leave.asked)());
            return Err(if too_long { Failure::TookTooLong } else { Failure::Cancelled });
        }
    }
}

/// The system tells when a program ends.
#[cfg(target_os = "linux")]
struct EndOf(Option<rustix::fd::OwnedFd>);

#[cfg(target_os = "linux")]
impl EndOf {
    fn program(child: &Child) -> Self {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        EndOf(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    /// Waits for the end, or for as long as `most`. Systems before Linux 5.3 do not tell.
    fn wait(&self, so_far: Duration, most: Duration) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(fd) = &self.0 else { return sleep(so_far, most) };
        let timeout = Timespec::try_from(most).ok();
        let _ = poll(&mut [PollFd::new(fd, PollFlags::IN)], timeout.as_ref());
    }
}

#[cfg(not(target_os = "linux"))]
struct EndOf;

#[cfg(not(target_os = "linux"))]
impl EndOf {
    fn program(_child: &Child) -> Self {
        EndOf
    }

    #[expect(clippy::unused_self, reason = "elsewhere the system tells")]
    fn wait(&self, so_far: Duration, most: Duration) {
        sleep(so_far, most);
    }
}

/// Sleeps before the next look at a program: the longer it has run, the longer.
fn sleep(so_far: Duration, most: Duration) {
    thread::sleep((so_far / 4).clamp(Duration::from_micros(100), Duration::from_millis(20)).min(most));
}

/// Asks a program and what it started to end, and after the grace makes them.
fn end(child: &mut Child, grace: Duration, asked: Asked) {
    let pid = child.id();
    let mut kin = process_tree::descendants(pid);
    if !grace.is_zero() && asked != Asked::Not {
        let stopping = if asked == Asked::ToStop { grace * 2 / 3 } else { Duration::ZERO };
        let stopped = asked == Asked::ToStop && {
            process_tree::ask_group_to_stop(pid);
            wait_within(child, stopping)
        };
        if !stopped {
            process_tree::ask_group_to_end(pid);
            if !wait_within(child, grace.saturating_sub(stopping)) {
                kin.extend(process_tree::descendants(pid));
            }
        }
        kin = process_tree::still_ours(&kin);
    }
    process_tree::kill_group(pid);
    process_tree::kill_all(&kin);
    let _ = child.kill();
    // A program that became another user's cannot be killed, and must not be waited for.
    wait_within(child, LAST_WORDS);
}

/// Whether it ended in time.
fn wait_within(child: &mut Child, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
            Ok(None) => return false,
            _ => return true,
        }
    }
}

/// Hands the output of a pipe to the listener, and drops the sender at its end.
fn hear(pipe: Option<impl Read + Send + 'static>, stream: Stream, listener: &Listener, busy: &Arc<AtomicUsize>, ended: Sender<()>) {
    let Some(mut pipe) = pipe else { return };
    let (listener, busy) = (Arc::clone(listener), Arc::clone(busy));
    thread::spawn(move || {
        let mut part = vec![0; 64 * 1024];
        loop {
            match pipe.read(&mut part) {
                Ok(0) => break,
                Ok(n) => {
                    busy.fetch_add(1, Ordering::Relaxed);
                    listener(stream, &part[..n]);
                    busy.fetch_sub(1, Ordering::Relaxed);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = ended.send(());
    });
}

/// The program that runs a line for the shell, and its arguments.
pub fn shell(line: &str) -> (OsString, Vec<OsString>) {
    let (program, option) = if cfg!(unix) { ("/bin/sh", "-c") } else { ("cmd", "/C") };
    (program.into(), vec![option.into(), line.into()])
}

#[cfg(unix)]
fn signal_of(status: std::process::ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_status: std::process::ExitStatus) -> Option<i32> {
    None
}

/// A Ctrl-C in the terminal of this process is not for the command.
#[cfg(unix)]
fn in_a_group_of_its_own(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
    if crate::sys::signals::notes_interrupts() {
        // Until the child has its own group, it shares ours, and a Ctrl-C reaches it. The quick way to start it (`posix_spawn`) keeps that signal back and
        // delivers it once the child has its own group: the command would die of it. With a step before `exec`, the child is forked, and notes the signal as
        // this process does.
        // SAFETY: the step does nothing, so it touches no memory and takes no lock between `fork` and `exec`.
        unsafe { command.pre_exec(|| Ok(())) };
    }
}

#[cfg(not(unix))]
fn in_a_group_of_its_own(_command: &mut Command) {}
