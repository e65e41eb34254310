//! The stage of the demo: colours, line breaks, and how fast it comes. In a pipe it is plain lines without any delay.

use std::{
    io::{IsTerminal, Write, stdout},
    thread::sleep,
    time::Duration,
};

use anstyle::{AnsiColor, Style};

use crate::{
    term::width::{columns, wrap},
    ui::{self, BOLD, DIM},
};

/// Between two letters that are typed.
const LETTER: Duration = Duration::from_millis(12);
/// Before something that belongs to what is there already.
const BEAT: Duration = Duration::from_millis(400);
/// Before something new, so that one can read what is there.
const REST: Duration = Duration::from_millis(750);
/// Between two lines of a command's output.
const TICK: Duration = Duration::from_millis(60);

const PLAIN: Style = Style::new();
const TAG: Style = AnsiColor::Cyan.on_default();
const PROMPT: Style = AnsiColor::Magenta.on_default().bold();

pub(super) struct Stage {
    width: usize,
    /// A person watches it happen; in a pipe, or when the reader has gone, nothing waits.
    live: bool,
}

impl Stage {
    pub(super) fn new(fast: bool) -> Self {
        // No wider than the eye follows well.
        Stage { width: ui::width().unwrap_or(80).clamp(40, 100), live: stdout().is_terminal() && !fast }
    }

    pub(super) fn title(&mut self, text: &str, under: &str) {
        self.show("", text, BOLD);
        self.show("", under, DIM);
    }

    /// The person types after this prompt.
    pub(super) fn types(&mut self, prompt: &str, text: &str) {
        self.scene();
        for (n, line) in wrap(text, self.width - prompt.len(), 0).lines().enumerate() {
            self.put(&if n == 0 { paint(prompt, PROMPT) } else { " ".repeat(prompt.len()) });
            for letter in line.chars() {
                self.wait(LETTER);
                // Each ends its own colour: a person who interrupts the demo gets the terminal back as it was.
                self.put(&paint(&letter.to_string(), BOLD));
            }
            self.put("\n");
        }
    }

    pub(super) fn tool(&mut self, text: &str) {
        self.scene();
        self.show(&ui::good("● "), text, PLAIN);
    }

    pub(super) fn agent(&mut self, text: &str) {
        self.wait(BEAT);
        self.show("● ", text, PLAIN);
    }

    pub(super) fn hook(&mut self, line: &str, aside: &str) {
        self.wait(BEAT);
        self.show(&ui::dim("  └ "), line, PLAIN);
        self.show("    ", aside, DIM);
    }

    /// The lines that a command printed, each with its time.
    pub(super) fn output(&mut self, text: &str) {
        for line in text.lines() {
            self.wait(TICK);
            let (time, text) = line.split_at_checked("2026-11-15 09:30:00Z ".len()).unwrap_or(("", line));
            self.show(&ui::dim(time), text, PLAIN);
        }
    }

    pub(super) fn summary(&mut self, text: &str) {
        self.scene();
        self.show("", text, BOLD);
    }

    pub(super) fn hint(&mut self, command: &str, text: &str) {
        self.show("", &format!("{} {}", paint(command, TAG), ui::dim(text)), PLAIN);
    }

    fn scene(&mut self) {
        self.wait(REST);
        self.put("\n");
    }

    /// A paragraph with a mark before its first line.
    fn show(&mut self, mark: &str, text: &str, style: Style) {
        let hang = columns(mark);
        for (n, line) in text.lines().filter(|line| !line.is_empty()).enumerate() {
            let margin = if n == 0 { mark.to_owned() } else { " ".repeat(hang) };
            let line = wrap(&format!("{margin}{}", highlight(line, style)), self.width, hang);
            self.put(&format!("{line}\n"));
        }
    }

    fn put(&mut self, text: &str) {
        let mut out = anstream::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.live &= written.is_ok();
    }

    fn wait(&self, time: Duration) {
        if self.live {
            sleep(time);
        }
    }
}

fn paint(text: &str, style: Style) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}

/// A text with its promise tags in a colour of their own: they are what the story is about.
fn highlight(text: &str, style: Style) -> String {
    const END: &str = "</promise>";
    let Some((before, rest)) = text.find("<promise>").map(|at| text.split_at(at)) else { return paint(text, style) };
    let Some(end) = rest.find(END).map(|at| at + END.len()) else { return paint(text, style) };
    format!("{}{}{}", paint(before, style), paint(&rest[..end], TAG), highlight(&rest[end..], style))
}
