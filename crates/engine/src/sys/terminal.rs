//! The terminal of this process: waiting for input, and stepping aside for the shell.

use std::io;

/// Waits until there is something to read on standard input. `false`: the terminal is gone.
#[cfg(unix)]
pub fn wait_for_input() -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        let stdin = rustix::stdio::stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut asked, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
            Ok(_) => return Ok(!asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
        }
    }
}

#[cfg(not(unix))]
pub fn wait_for_input() -> io::Result<bool> {
    Ok(true)
}

/// Asks, and waits for the answer. `false`: Ctrl-C came first, which does not end this process meanwhile.
#[cfg(unix)]
pub fn wait_for_answer(ask: impl FnOnce()) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    // Before the question is seen: who answers it with Ctrl-C at once has answered it.
    let interrupt = super::signals::Held::new();
    ask();
    let stdin = rustix::stdio::stdin();
    loop {
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK)) {
            _ if interrupt.came() => return false,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // What went wrong is told by the read that follows.
            Ok(_) | Err(_) => return true,
        }
    }
}

#[cfg(not(unix))]
pub fn wait_for_answer(ask: impl FnOnce()) -> bool {
    ask();
    true
}

/// Stops this process, as Ctrl-Z does outside of a full-screen program. Without a shell that could continue it, the system ignores this.
#[cfg(unix)]
pub fn step_aside() {
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}

#[cfg(not(unix))]
pub fn step_aside() {}
