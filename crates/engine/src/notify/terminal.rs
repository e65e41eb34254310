//! A notification by the terminal itself: escape sequences that many terminals show, also over ssh, and a bell for the others.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    sync::mpsc,
    thread,
    time::Instant,
};

use super::News;
use crate::sys::env;

pub(super) fn tell(news: &News<'_>, until: Instant) -> Result<(), String> {
    let Some(mut terminal) = shown_in() else { return Err("no notification in the terminal: the run is shown in none".to_owned()) };
    let bytes = sequences(&news.title(), &news.body(), Multiplexer::of_session());
    let (done, written) = mpsc::channel();
    // A terminal that was halted (Ctrl-S) takes no output until it goes on.
    thread::spawn(move || done.send(terminal.write_all(bytes.as_bytes()).and_then(|()| terminal.flush())));
    match written.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(e)) => Err(format!("no notification in the terminal: {e}")),
        Err(_) => Err("no notification in the terminal: it takes no output".to_owned()),
    }
}

/// The terminal of the run, opened again, so that a blocked write holds no lock of stderr.
#[cfg(unix)]
fn shown_in() -> Option<File> {
    use std::os::fd::AsFd;
    let again = if io::stderr().is_terminal() {
        io::stderr().as_fd().try_clone_to_owned()
    } else if io::stdout().is_terminal() {
        io::stdout().as_fd().try_clone_to_owned()
    } else {
        return None;
    };
    again.ok().map(File::from)
}

#[cfg(not(unix))]
fn shown_in() -> Option<File> {
    let is_shown = io::stderr().is_terminal() || io::stdout().is_terminal();
    is_shown.then(|| File::options().write(true).open("CONOUT$").ok()).flatten()
}

/// A program between this one and the terminal that passes on only what is wrapped for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Multiplexer {
    None,
    Tmux,
    Screen,
}

impl Multiplexer {
    fn of_session() -> Self {
        match () {
            () if env::is_in_tmux() => Multiplexer::Tmux,
            () if env::is_in_screen() => Multiplexer::Screen,
            () => Multiplexer::None,
        }
    }

    fn wrap(self, sequence: &str) -> String {
        match self {
            Multiplexer::None => sequence.to_owned(),
            Multiplexer::Tmux => format!("\u{1b}Ptmux;{}\u{1b}\\", sequence.replace('\u{1b}', "\u{1b}\u{1b}")),
            Multiplexer::Screen => format!("\u{1b}P{sequence}\u{1b}\\"),
        }
    }
}

/// OSC 9 (iTerm2, Windows Terminal, …), OSC 777 (urxvt, foot, VTE, …) and a bell, which every multiplexer understands. The texts are clean already; a
/// semicolon would end the title.
fn sequences(title: &str, body: &str, multiplexer: Multiplexer) -> String {
    let nine = multiplexer.wrap(&format!("\u{1b}]9;{title}: {body}\u{7}"));
    let three_sevens = multiplexer.wrap(&format!("\u{1b}]777;notify;{};{body}\u{7}", title.replace(';', ",")));
    format!("{nine}{three_sevens}\u{7}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_8_multiplexers_get_it_wrapped() {
        let plain = "\u{1b}]9;a;b: c\u{7}\u{1b}]777;notify;a,b;c\u{7}\u{7}";
        assert_eq!(sequences("a;b", "c", Multiplexer::None), plain);
        let wrapped = sequences("t", "c", Multiplexer::Tmux);
        assert!(wrapped.starts_with("\u{1b}Ptmux;\u{1b}\u{1b}]9;t: c\u{7}\u{1b}\\\u{1b}Ptmux;"), "{wrapped:?}");
        let wrapped = sequences("t", "c", Multiplexer::Screen);
        assert!(wrapped.starts_with("\u{1b}P\u{1b}]9;t: c\u{7}\u{1b}\\\u{1b}P"), "{wrapped:?}");
    }
}
