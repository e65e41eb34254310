//! The stage of the demo: what stands where, in which colour, and how fast it comes. In a pipe it is plain lines without any delay.

use std::{
    io::{IsTerminal, Write, stdout},
    thread::sleep,
    time::Duration,
};

use anstyle::{AnsiColor, Style};

use crate::{term::width::wrap, ui};

/// Between two letters that are typed.
const LETTER: Duration = Duration::from_millis(12);
/// Before something that belongs to what is there already.
const BEAT: Duration = Duration::from_millis(400);
/// Before something new, so that one can read what is there.
const REST: Duration = Duration::from_millis(750);
/// Between two lines of a command's output.
const TICK: Duration = Duration::from_millis(60);

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const TAG: Style = AnsiColor::Cyan.on_default();

/// What a word means for the person.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => DIM,
            Tone::Good => AnsiColor::Green.on_default().bold(),
            Tone::Warn => AnsiColor::Yellow.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// A terminal to play on.
pub(super) struct Stage {
    width: usize,
    /// Somebody watches it happen; in a pipe, or when the reader has gone, nothing waits.
    live: bool,
}

/// A paragraph: its mark stands before the first line, its label begins the text.
struct Block<'a> {
    mark: &'a str,
    mark_style: Style,
    label: &'a str,
    label_style: Style,
    text: &'a str,
    style: Style,
}

const BLOCK: Block<'static> = Block { mark: "", mark_style: PLAIN, label: "", label_style: PLAIN, text: "", style: PLAIN };

impl Stage {
    pub(super) fn new(fast: bool) -> Self {
        // No more than the eye follows well; a usual terminal's in a pipe.
        Stage { width: ui::width().unwrap_or(80).clamp(40, 100), live: stdout().is_terminal() && !fast }
    }

    pub(super) fn title(&mut self, text: &str, under: &str) {
        self.show(&Block { text, style: BOLD, ..BLOCK });
        self.show(&Block { text: under, style: DIM, ..BLOCK });
    }

    /// The person types a message to the agent.
    pub(super) fn person(&mut self, text: &str) {
        self.scene();
        self.type_out("> ", AnsiColor::Magenta.on_default().bold(), text);
    }

    /// The person types a command into a shell.
    pub(super) fn command(&mut self, text: &str) {
        self.scene();
        self.type_out("$ ", AnsiColor::Magenta.on_default().bold(), text);
    }

    /// The agent uses a tool, and this is what came of it.
    pub(super) fn tool(&mut self, name: &str, result: &str, tone: Tone) {
        self.scene();
        self.show(&Block {
            mark: "● ", mark_style: Tone::Good.style(), label: name, label_style: BOLD, text: result, style: tone.style()
        });
    }

    /// The agent speaks.
    pub(super) fn agent(&mut self, text: &str) {
        self.wait(BEAT);
        self.show(&Block { mark: "● ", text, ..BLOCK });
    }

    /// The hook answers.
    pub(super) fn hook(&mut self, verdict: Option<(&str, Tone)>, text: &str) {
        self.wait(BEAT);
        let (label, tone) = verdict.unwrap_or(("", Tone::Plain));
        self.show(&Block { mark: "  └ ", mark_style: DIM, label, label_style: tone.style(), text, ..BLOCK });
    }

    /// What else the hook answered.
    pub(super) fn aside(&mut self, text: &str) {
        self.show(&Block { mark: "    ", text, style: DIM, ..BLOCK });
    }

    /// What a command printed.
    pub(super) fn output(&mut self, text: &str) {
        for line in text.lines() {
            self.wait(TICK);
            // The time comes first, as faint as the command itself shows it on a terminal.
            let (time, text) = line.split_at_checked("2026-11-15 09:30:00Z ".len()).unwrap_or(("", line));
            self.show(&Block { mark: time, mark_style: DIM, text, ..BLOCK });
        }
    }

    pub(super) fn moral(&mut self, text: &str) {
        self.scene();
        self.show(&Block { text, style: BOLD, ..BLOCK });
    }

    /// A command to try next.
    pub(super) fn hint(&mut self, command: &str, text: &str) {
        self.show(&Block { label: command, label_style: TAG, text, style: DIM, ..BLOCK });
    }

    /// Something new begins.
    fn scene(&mut self) {
        self.wait(REST);
        self.put("\n");
    }

    fn show(&mut self, block: &Block<'_>) {
        let (head, rest) = (paint(block.mark, block.mark_style), " ".repeat(block.mark.chars().count()));
        let full = if block.label.is_empty() { block.text.to_owned() } else { format!("{} {}", block.label, block.text) };
        for (n, line) in lines(&full, self.width - rest.len()).iter().enumerate() {
            let label = if n == 0 && line.starts_with(block.label) { block.label } else { "" };
            let margin = if n == 0 { &head } else { &rest };
            let text = highlight(&line[label.len()..], block.style);
            self.put(&format!("{margin}{}{text}\n", paint(label, block.label_style)));
        }
    }

    fn type_out(&mut self, mark: &str, mark_style: Style, text: &str) {
        let rest = " ".repeat(mark.len());
        for (n, line) in lines(text, self.width - mark.len()).iter().enumerate() {
            self.put(&if n == 0 { paint(mark, mark_style) } else { rest.clone() });
            for letter in line.chars() {
                self.wait(LETTER);
                // Each has its own end of the colour: whoever interrupts the demo gets their terminal back as it was.
                self.put(&paint(&letter.to_string(), BOLD));
            }
            self.put("\n");
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

/// The lines of a text, broken between words where they are too long.
fn lines(text: &str, width: usize) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.flat_map(|line| wrap(line, width, 0).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}
