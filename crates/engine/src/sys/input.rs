//! One JSON object from standard input, taken as soon as it is complete.
//!
//! Some callers keep the pipe open while they wait for the answer: reading to its end would be a deadlock.

use std::{io, time::Duration};

#[cfg(unix)]
use super::object_end::ObjectEnd;

/// The longest wait for a caller that stops in the middle or says nothing.
pub const SILENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Input {
    pub bytes: Vec<u8>,
    /// The pipe is open, and no object is complete.
    pub(crate) fell_silent: bool,
}

impl From<&[u8]> for Input {
    fn from(bytes: &[u8]) -> Self {
        Input { bytes: bytes.to_vec(), fell_silent: false }
    }
}

/// Most events fit in, and one call reads them.
#[cfg(unix)]
const FIRST: usize = 8 * 1024;

/// Reads one object from standard input, at most `max` bytes.
#[cfg(unix)]
pub fn read(max: usize, silence: Duration) -> io::Result<Input> {
    from(rustix::stdio::stdin(), max, silence)
}

#[cfg(unix)]
fn from(fd: impl std::os::fd::AsFd, max: usize, silence: Duration) -> io::Result<Input> {
    let mut bytes = Vec::with_capacity(FIRST);
    let mut end = ObjectEnd::default();
    while bytes.len() < max {
        if !is_ready(fd.as_fd(), silence)? {
            return Ok(Input { bytes, fell_silent: true });
        }
        bytes.reserve(FIRST.max(bytes.len()).min(max - bytes.len()));
        match rustix::io::read(&fd, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
            Err(e) => return Err(e.into()),
        }
        if let Some(len) = end.find(&bytes) {
            bytes.truncate(len);
            break;
        }
    }
    bytes.truncate(max);
    Ok(Input { bytes, fell_silent: false })
}

/// Waits until standard input ends or breaks; what comes is dropped.
#[cfg(unix)]
pub(super) fn wait_for_the_end() {
    const LONG: Duration = Duration::from_hours(1);
    let (stdin, mut dropped) = (rustix::stdio::stdin(), [0; 1024]);
    loop {
        match is_ready(stdin, LONG).map(|is_ready| is_ready.then(|| rustix::io::read(stdin, &mut dropped))) {
            Ok(None | Some(Ok(1..) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN))) => {}
            Ok(Some(Ok(0) | Err(_))) | Err(_) => return,
        }
    }
}

#[cfg(not(unix))]
pub(super) fn wait_for_the_end() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

/// Waits for input or its end; `false`: there was neither in time.
#[cfg(unix)]
fn is_ready(fd: std::os::fd::BorrowedFd<'_>, silence: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = std::time::Instant::now() + silence;
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(std::time::Instant::now())).ok();
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Without `poll` the caller has to close its end.
#[cfg(not(unix))]
pub fn read(max: usize, _silence: Duration) -> io::Result<Input> {
    use std::io::Read;
    let mut bytes = Vec::new();
    io::stdin().lock().take(max as u64).read_to_end(&mut bytes)?;
    Ok(Input { bytes, fell_silent: false })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;

    const SOON: Duration = Duration::from_mins(1);

    #[test]
    fn t14_an_object_is_taken_when_it_is_complete_though_the_pipe_stays_open() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"\xEF\xBB\xBF {\"a\": {\"b\": \"}\\\"{\"}").unwrap();
        let reads = std::thread::spawn(move || from(reader, 1 << 20, SOON).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        writer.write_all(b"} \n{\"next\": 1}").unwrap();
        let input = reads.join().unwrap();
        assert_eq!(String::from_utf8_lossy(&input.bytes), "\u{feff} {\"a\": {\"b\": \"}\\\"{\"}}");
        assert!(!input.fell_silent);
        drop(writer);
    }

    #[test]
    fn t14_who_stops_in_the_middle_is_not_waited_for() {
        for said in ["", "{\"a\": ", "[1, 2]", "words"] {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(said.as_bytes()).unwrap();
            let input = from(reader, 1 << 20, Duration::from_millis(50)).unwrap();
            assert!(input.fell_silent && input.bytes == said.as_bytes(), "{said}");
        }
    }

    #[test]
    fn t14_what_ends_or_is_too_long_is_taken_as_it_is() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"{\"a\": ").unwrap();
        drop(writer);
        let input = from(reader, 1 << 20, SOON).unwrap();
        assert!(!input.fell_silent && input.bytes == b"{\"a\": ");
        let (reader, mut writer) = io::pipe().unwrap();
        let writes = std::thread::spawn(move || writer.write_all(&vec![b'{'; 300_000]));
        assert_eq!(from(reader, 100_000, SOON).unwrap().bytes.len(), 100_000);
        let _ = writes.join();
    }
}
