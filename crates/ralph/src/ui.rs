//! What people see: colour where the terminal has it, plain text in a pipe, and a broken pipe is no error.

use std::{
    fmt::Display,
    io::{Write, stdout},
};

use anstyle::{AnsiColor, Style};
use ralph_core::words::clean;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();

/// One line on standard output.
pub(crate) fn line(text: impl Display) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}

/// A line on standard output, and whether the reader is still there.
pub(crate) fn try_line(text: impl Display) -> bool {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

pub(crate) fn error(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{RED}error:{RED:#} {text}");
}

pub(crate) fn warning(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{YELLOW}warning:{YELLOW:#} {}", clean(text));
}

/// A word to the person beside the output.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{DIM}{text}{DIM:#}");
}

pub(crate) fn bold(text: impl Display) -> String {
    format!("{BOLD}{text}{BOLD:#}")
}

pub(crate) fn dim(text: impl Display) -> String {
    format!("{DIM}{text}{DIM:#}")
}

pub(crate) fn good(text: impl Display) -> String {
    format!("{GREEN}{text}{GREEN:#}")
}

pub(crate) fn bad(text: impl Display) -> String {
    format!("{RED}{text}{RED:#}")
}

pub(crate) fn warn(text: impl Display) -> String {
    format!("{YELLOW}{text}{YELLOW:#}")
}

/// How many columns there are for text: the terminal's, but no more than the eye follows well, or a usual one's in a pipe.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(stdout()).map_or(80, |(width, _)| usize::from(width.0)).clamp(40, 100)
}

/// A label and its value, aligned.
pub(crate) fn field(label: &str, value: impl Display) {
    line(format!("  {} {}", dim(format!("{label:<11}")), clean(&value.to_string())));
}

/// A value as pretty JSON on standard output.
pub(crate) fn json(value: &impl serde::Serialize) {
    line(serde_json::to_string_pretty(value).unwrap_or_default());
}
