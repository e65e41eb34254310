//! The terminal that this process stands in: whether somebody types, whether it is still there, and stepping aside for the shell.

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

/// Asks to be stopped, as Ctrl-Z does where nobody holds the whole screen. Where no shell could ever go on with it, the system lets it be.
#[cfg(unix)]
pub fn step_aside() {
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}

#[cfg(not(unix))]
pub fn step_aside() {}
