//! The terminal of this process: waiting for input, and stepping aside for the shell.

use std::io;

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until there is something to read on standard input. `false`: the terminal is gone.
pub fn wait_for_input() -> io::Result<bool> {
    #[cfg(unix)]
    loop {
        let stdin = rustix::stdio::stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut asked, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
            Ok(_) => return Ok(!asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
        }
    }
    #[cfg(not(unix))]
    Ok(true)
}

/// Asks, and waits for the answer. `false`: Ctrl-C came first, which does not end this process meanwhile.
pub fn wait_for_answer(ask: impl FnOnce()) -> bool {
    // Before the question is seen: who answers it with Ctrl-C at once has answered it.
    #[cfg(unix)]
    let interrupt = super::signals::Held::new();
    ask();
    #[cfg(unix)]
    loop {
        let stdin = rustix::stdio::stdin();
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 })) {
            _ if interrupt.came() => return false,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // What went wrong is told by the read that follows.
            Ok(_) | Err(_) => return true,
        }
    }
    #[cfg(not(unix))]
    true
}

/// Stops this process, as Ctrl-Z does outside of a full-screen program. Without a shell that could continue it, the system ignores this.
pub fn step_aside() {
    #[cfg(unix)]
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}
