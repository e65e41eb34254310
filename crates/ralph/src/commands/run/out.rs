//! Standard output whose reader may be stuck: a full pipe or a stopped terminal makes the agent wait, but never a person who wants the end.

use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

/// How soon a request to end is seen.
const STEP: Duration = Duration::from_millis(100);

/// How long a reader has for the last words.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Writes in a thread of its own. Each write waits until its bytes are out, unless the end is wanted.
pub(super) struct Out {
    send: Sender<Vec<u8>>,
    written: Receiver<io::Result<()>>,
    wants_end: fn() -> bool,
    /// The reader is stuck: everything from now on is lost.
    is_stuck: bool,
}

impl Out {
    pub(super) fn new(mut out: impl Write + Send + 'static, wants_end: fn() -> bool) -> Self {
        let (send, bytes) = channel::<Vec<u8>>();
        let (done, written) = channel();
        thread::spawn(move || {
            for bytes in bytes {
                if done.send(out.write_all(&bytes).and_then(|()| out.flush())).is_err() {
                    return;
                }
            }
        });
        Out { send, written, wants_end, is_stuck: false }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        if self.is_stuck {
            return Err(gone());
        }
        self.send.send(bytes.to_vec()).map_err(|_| gone())?;
        let mut left = LAST_WORDS;
        loop {
            match self.written.recv_timeout(STEP) {
                Ok(written) => return written.map(|()| bytes.len()),
                Err(_) if left.is_zero() => {
                    self.is_stuck = true;
                    return Err(gone());
                }
                Err(_) if (self.wants_end)() => left = left.saturating_sub(STEP),
                Err(_) => {}
            }
        }
    }

    /// Nothing is kept back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            loop {
                thread::park();
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_written_is_out() {
        let kept = Kept::default();
        let mut out = Out::new(kept.clone(), || true);
        out.write_all(b"one ").and_then(|()| out.write_all(b"two")).unwrap();
        assert_eq!(*kept.0.lock().unwrap(), b"one two");
    }

    #[test]
    fn s4_6_whoever_wants_the_end_does_not_wait_for_a_reader() {
        let mut out = Out::new(Stuck, || true);
        assert!(out.write_all(b"one").is_err() && out.write_all(b"two").is_err());
    }
}
