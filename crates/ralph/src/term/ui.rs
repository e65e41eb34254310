//! Printing: colour and line breaks on a terminal, plain text in a pipe. A broken pipe is no error.

use std::{
    borrow::Cow,
    fmt::{Display, Write as _},
    io::{IsTerminal, Write, stderr, stdout},
    path::Path,
};

use anstyle::{AnsiColor, Style};
use ralph_core::{
    gate::Verdict,
    text::{clean, is_unseen},
};
use ralph_engine::sys::env;
use terminal_size::{Width, terminal_size_of};

use crate::term::width::{cut, wrap};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Where a field's value begins.
pub(crate) const VALUE: usize = 14;
/// A terminal that is said to be narrower than this does not know its width.
const NARROWEST: usize = 20;

/// How wide the terminal is; `None` in a pipe, where nothing is cut or broken.
pub(crate) fn width() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    let told = terminal_size_of(stdout()).map(|(Width(columns), _)| usize::from(columns));
    told.filter(|w| *w >= NARROWEST).or_else(env::columns).filter(|w| *w >= NARROWEST)
}

/// Whether the terminal may understand nothing but characters.
pub(crate) fn is_plain() -> bool {
    anstream::stdout().current_choice() == anstream::ColorChoice::Never
}

/// A text with as much style as standard output has.
pub(crate) fn styled(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = write!(anstream::AutoStream::new(&mut bytes, anstream::stdout().current_choice()), "{text}");
    bytes
}

/// Decides about colour for everything that is printed from now on, help and errors included.
pub(crate) fn colour(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Whether colour was asked for, wherever the output goes.
pub(crate) fn is_forced() -> bool {
    anstream::ColorChoice::global() == anstream::ColorChoice::Always || !stdout().is_terminal()
}

pub(crate) fn line(text: impl Display) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}

/// A line on standard output, and whether the reader is still there.
pub(crate) fn try_line(text: impl Display) -> bool {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Sentences on standard output, broken between words on a terminal; the lines after the first are indented by `hang`.
pub(crate) fn paragraph(text: impl Display, hang: usize) {
    line(fitted(&text.to_string(), hang));
}

/// The same as one text.
pub(crate) fn fitted(text: &str, hang: usize) -> String {
    width().map_or_else(|| text.to_owned(), |width| wrap(text, width, hang))
}

pub(crate) fn error(text: &str) {
    aside(&format!("{RED}error:{RED:#} {}", harmless(text)));
}

pub(crate) fn warning(text: &str) {
    aside(&format!("{YELLOW}warning:{YELLOW:#} {}", harmless(text)));
}

/// Lines on standard error, each broken between words where that is a terminal.
fn aside(text: &str) {
    let width = stderr().is_terminal().then(|| terminal_size_of(stderr())).flatten().map(|(Width(columns), _)| usize::from(columns));
    let fitted = |line: &str| width.filter(|w| *w >= NARROWEST).map_or_else(|| line.to_owned(), |width| wrap(line, width, 0));
    let lines: Vec<String> = text.split('\n').map(fitted).collect();
    let _ = writeln!(anstream::stderr().lock(), "{}", lines.join("\n"));
}

/// A word to the person beside the output.
pub(crate) fn note(text: &str) {
    aside(&format!("{DIM}{}{DIM:#}", harmless(text)));
}

/// A message of any origin, with its line breaks and without anything else that could steer a terminal: messages name paths and files of strangers.
pub(crate) fn harmless(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

pub(crate) fn path(path: &Path) -> String {
    clean(&path.display().to_string())
}

/// The same, as short as people write it.
pub(crate) fn path_from_home(path: &Path) -> String {
    let home = env::home().and_then(|home| home.canonicalize().ok());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) if !below.as_os_str().is_empty() => clean(&format!("~/{}", below.display())),
        _ => self::path(path),
    }
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

/// In the colour of a verdict.
pub(crate) fn judged(verdict: Verdict, text: impl Display) -> String {
    match verdict {
        Verdict::Pass => good(text),
        Verdict::Fail => bad(text),
        Verdict::Wait | Verdict::Unknown => warn(text),
    }
}

/// A label and its value, aligned.
pub(crate) fn field(label: &str, value: impl Display) {
    field_with(label, value, "");
}

/// The same, with something drawn after the value.
pub(crate) fn field_with(label: &str, value: impl Display, after: &str) {
    paragraph(format!("{}{after}", labelled(label, &clean(&value.to_string()))), VALUE);
}

/// A label and a value that is clean and styled already.
pub(crate) fn drawn(label: &str, value: &str) {
    line(labelled(label, value));
}

/// A label and a foreign text: on a terminal its beginning is enough.
pub(crate) fn excerpt(label: &str, value: impl Display) {
    let value = clean(&value.to_string());
    line(labelled(label, &width().map_or(value.clone(), |width| cut(&value, width.saturating_sub(VALUE)))));
}

fn labelled(label: &str, value: &str) -> String {
    format!("  {} {value}", dim(format!("{label:<11}")))
}

/// A value as pretty JSON on standard output.
pub(crate) fn json(value: &impl serde::Serialize) {
    try_json(
        &serde_json::to_string_pretty(value)
            .unwrap_or_else(|e| serde_json::json!({ "error": { "kind": "failed", "message": e.to_string() } }).to_string()),
    );
}

/// JSON as it is, and whether the reader is still there. No style ever gets into it, whatever was asked for.
pub(crate) fn try_json(text: &str) -> bool {
    try_raw(&escaped(text))
}

/// A text in a form of its own, byte for byte, and whether the reader is still there.
pub(crate) fn try_raw(text: &str) -> bool {
    let mut out = stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Some characters may stand in JSON as they are, and would steer a terminal or hide from who reads it. They stand in strings only, so they can be spelled
/// there.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    let (mut rest, mut out) = (json, String::new());
    while let Some((at, c)) = first_unseen(rest) {
        out.push_str(&rest[..at]);
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
        rest = &rest[at + c.len_utf8()..];
    }
    if out.is_empty() { Cow::Borrowed(json) } else { Cow::Owned(out + rest) }
}

/// The first character that must not stand in JSON as it is. Nearly all others are ASCII, and are passed over by their bytes.
fn first_unseen(text: &str) -> Option<(usize, char)> {
    let mut at = 0;
    loop {
        at += text.as_bytes()[at..].iter().position(|byte| *byte >= 0x7f)?;
        let c = text[at..].chars().next()?;
        if matches!(c, '\u{7f}'..='\u{9f}') || is_unseen(c) {
            return Some((at, c));
        }
        at += c.len_utf8();
    }
}
