//! Lines at the bottom of a terminal that are drawn in place, while others go by above them.

use std::{
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

use crate::term::width::columns;

/// Draws again and again, in a thread of its own, until the sender is gone; `draw` says how long until the next time.
pub(crate) fn redraw_every(first: Duration, draw: impl Fn() -> Duration + Send + 'static) -> Sender<()> {
    let (sender, gone) = channel();
    thread::spawn(move || {
        let mut pause = first;
        while gone.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = draw();
        }
    });
    sender
}

/// What is drawn there now. The cursor stands where the first of these lines begins, or after them on a terminal that knows no sequences.
#[derive(Default)]
pub(crate) struct Bottom {
    /// The terminal may understand nothing but characters.
    plain: bool,
    drawn: Vec<String>,
}

impl Bottom {
    pub(crate) fn new(plain: bool) -> Self {
        Bottom { plain, drawn: Vec::new() }
    }

    /// What to write so that `above` goes by and `lines` stand below it. A plain terminal gets the last of them only. Each has to fit the width;
    /// nothing is written where nothing changes.
    pub(crate) fn after(&mut self, above: &[u8], mut lines: Vec<String>) -> Vec<u8> {
        if self.plain {
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
        // Drawn over where possible: what is erased first flickers. Whoever wrote above finds the place and the colour that it left.
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
