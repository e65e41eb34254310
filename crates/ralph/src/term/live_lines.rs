//! Lines at the bottom of a terminal that are drawn in place, while others go by above them.

use std::{
    io::{Write, stdout},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use super::{ui, width::columns};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Drawn in place.
    Terminal,
    /// In a pipe: a line when something changes.
    Lines,
    /// Programs read the output.
    Silent,
}

impl Form {
    pub(crate) fn of(silent: bool) -> Self {
        match ui::width() {
            _ if silent => Form::Silent,
            Some(_) => Form::Terminal,
            None => Form::Lines,
        }
    }
}

/// Something that looks different as time passes.
pub(crate) trait Redraw: Send + 'static {
    /// Draws it, and returns the pause until the next time.
    fn redraw(&mut self) -> Duration;
}

/// A shared state that is drawn again and again by a thread of its own.
pub(crate) struct Live<S> {
    state: Arc<Mutex<S>>,
    /// The thread ends when this is dropped.
    ticking: Mutex<Option<Sender<()>>>,
}

impl<S> Live<S> {
    /// Only events change what is drawn.
    pub(crate) fn still(state: S) -> Self {
        Live { state: Arc::new(Mutex::new(state)), ticking: Mutex::new(None) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self) {
        self.ticking.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl<S: Redraw> Live<S> {
    /// Drawn again and again only where it is drawn at all.
    pub(crate) fn of(form: Form, state: S, first: Duration) -> Self {
        if form == Form::Terminal { Live::ticking(state, first) } else { Live::still(state) }
    }

    pub(crate) fn ticking(state: S, first: Duration) -> Self {
        let live = Live::still(state);
        let (sender, gone) = channel();
        let state = Arc::clone(&live.state);
        thread::spawn(move || {
            let mut pause = first;
            while gone.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = state.lock().unwrap_or_else(PoisonError::into_inner).redraw();
            }
        });
        *live.ticking.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        live
    }
}

/// A terminal, and the lines at its bottom.
pub(crate) struct Terminal {
    out: Box<dyn Write + Send>,
    width: fn() -> usize,
    /// It may understand nothing but characters.
    pub(crate) plain: bool,
    /// The cursor is where the first of these lines begins, or after them on a plain terminal.
    drawn: Vec<String>,
    /// The last line that went by has no end yet: nothing is drawn behind it.
    pub(crate) open: bool,
}

impl Terminal {
    pub(crate) fn new(out: Box<dyn Write + Send>, width: fn() -> usize, plain: bool) -> Self {
        Terminal { out, width, plain, drawn: Vec::new(), open: false }
    }

    pub(crate) fn on(out: Box<dyn Write + Send>) -> Self {
        Terminal::new(out, || ui::width().unwrap_or(80), ui::is_plain())
    }

    pub(crate) fn stdout() -> Self {
        Terminal::on(Box::new(stdout()))
    }

    /// The width for a line. One column stays free: some terminals go to the next line after the last one.
    pub(crate) fn width(&self) -> usize {
        (self.width)().saturating_sub(1).max(1)
    }

    /// Lets `above` go by, and draws `lines` below it. Each has to fit the width. Nothing is written where nothing changes.
    pub(crate) fn write(&mut self, above: &[u8], lines: Vec<String>) {
        // Something that a person typed may be where the line at the bottom begins.
        let start: &[u8] = if self.open { b"" } else { b"\r" };
        if let Some(last) = above.last() {
            self.open = *last != b'\n';
        }
        let bytes = self.after(above, if self.open { Vec::new() } else { lines });
        if !bytes.is_empty() {
            // A terminal that has gone away misses it.
            let _ = self.out.write_all(&[start, &bytes].concat()).and_then(|()| self.out.flush());
        }
    }

    fn after(&mut self, above: &[u8], mut lines: Vec<String>) -> Vec<u8> {
        if self.plain {
            // Only the last line can be drawn over.
            lines.drain(..lines.len().saturating_sub(1));
        }
        if above.is_empty() && lines == self.drawn {
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.drawn, lines);
        let mut out = Vec::new();
        if self.plain {
            let taken = before.last().map_or(0, |line| columns(line));
            if taken > 0 {
                out.extend(format!("\r{}\r", " ".repeat(taken)).into_bytes());
            }
            out.extend_from_slice(above);
            out.extend(self.drawn.concat().into_bytes());
            return out;
        }
        // Drawn over where possible: what is erased first flickers. The place and the colour stay as they were left above.
        if !before.is_empty() && (!above.is_empty() || self.drawn.len() != before.len()) {
            out.extend_from_slice(b"\x1b7\x1b[0m\x1b[J\x1b8");
        }
        out.extend_from_slice(above);
        if !self.drawn.is_empty() {
            out.extend(self.drawing().into_bytes());
        }
        out
    }

    fn drawing(&self) -> String {
        let further = self.drawn.len() - 1;
        // The place that is returned to must not scroll away meanwhile.
        let room = if further == 0 { String::new() } else { format!("{}\x1b[{further}A", "\n".repeat(further)) };
        format!("{room}\x1b7\x1b[0m{}\x1b[K\x1b8", self.drawn.join("\x1b[K\r\n"))
    }
}
