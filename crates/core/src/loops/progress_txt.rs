//! `progress.txt`: how far the loop of a feature folder is (S4-2).
//!
//! Agents and people write into this file as they like. Ralph reads the first line of each key that has a valid value, changes that value in place and keeps
//! every other byte; a missing key is added at the end.

use std::ops::Range;

use super::settings::{Kind, LoopSettings, Setting, words};

/// The limit of a folder that sets none (S4-2).
pub const DEFAULT_MAX_ITERATIONS: u64 = 15;

words! {
    /// The state of the loop. A file without one, or with any other word, is being worked on.
    Status {
        InProgress = "IN_PROGRESS",
        Complete = "COMPLETE",
        ReachedLimit = "REACHED_LIMIT",
        Paused = "PAUSED",
        Cancelled = "CANCELLED",
    }
}

/// A value that ralph reads and changes.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    Iteration,
    Setting(&'static Setting),
    Status,
}

impl Key {
    /// The settings that have a line of their own.
    pub fn settings() -> impl Iterator<Item = &'static Setting> {
        Setting::ALL.iter().filter(|setting| setting.progress.is_some())
    }

    fn name(self) -> &'static str {
        match self {
            Key::Iteration => "Iteration:",
            Key::Setting(setting) => setting.progress.unwrap_or(setting.key),
            Key::Status => "Status:",
        }
    }

    /// The length of the value at the start of `text`; `None` if it is not valid.
    fn value(self, text: &str) -> Option<usize> {
        let end = |is_part: fn(&char) -> bool| text.chars().take_while(is_part).map(char::len_utf8).sum::<usize>();
        match self {
            Key::Status => {
                let word = end(|c| c.is_ascii_alphabetic() || *c == '_');
                Some(if Status::of(&text[..word]).is_some() { word } else { text.trim_end().len() }).filter(|len| *len > 0)
            }
            Key::Setting(Setting { kind: Kind::Hours | Kind::Dollars, .. }) => {
                Some(end(|c| c.is_ascii_digit() || *c == '.')).filter(|len| text[..*len].parse::<f64>().is_ok())
            }
            Key::Iteration | Key::Setting(_) => Some(end(char::is_ascii_digit)).filter(|len| text[..*len].parse::<u64>().is_ok()),
        }
    }
}

/// The values of a `progress.txt`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    pub iteration: Option<u64>,
    pub settings: LoopSettings,
    pub status: Option<Status>,
}

impl Progress {
    /// Any bytes are a progress file; an invalid value counts as missing.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = |key| match place(bytes, key) {
            Some(Place::Value(span)) => bytes.get(span).and_then(|b| std::str::from_utf8(b).ok()),
            _ => None,
        };
        let mut settings = LoopSettings::default();
        for setting in Key::settings() {
            let _ = text(Key::Setting(setting)).map(|value| setting.set(&mut settings, value));
        }
        Progress { iteration: text(Key::Iteration).and_then(|t| t.parse().ok()), settings, status: text(Key::Status).and_then(Status::of) }
    }
}

/// Warnings about lines whose value should be a number and is none: they are passed over.
pub fn odd(bytes: &[u8]) -> Vec<String> {
    let keys = [Key::Iteration].into_iter().chain(Key::settings().map(Key::Setting));
    let odd = |key: Key| {
        let mut lines = bytes.split(|b| *b == b'\n').filter_map(|line| Some(line[after_key(line, key.name())?..].trim_ascii()));
        let told = String::from_utf8_lossy(lines.find(|value| !value.is_empty())?).into_owned();
        place(bytes, key).is_none().then(|| format!("\"{} {told}\" has no number that makes sense, and is passed over", key.name()))
    };
    keys.filter_map(odd).collect()
}

/// The file with one value changed, and no other byte.
pub fn with(bytes: &[u8], key: Key, value: &str) -> Vec<u8> {
    let mut out = bytes.to_vec();
    match place(bytes, key) {
        Some(Place::Value(span)) => {
            out.splice(span, value.bytes());
        }
        Some(Place::Empty(at)) => {
            let gap = if bytes[..at].ends_with(b":") { " " } else { "" };
            out.splice(at..at, format!("{gap}{value}").bytes());
        }
        None => {
            let end = if bytes.windows(2).any(|w| w == b"\r\n") { "\r\n" } else { "\n" };
            if !out.is_empty() && !out.ends_with(b"\n") {
                out.extend_from_slice(end.as_bytes());
            }
            out.extend_from_slice(format!("{} {value}{end}", key.name()).as_bytes());
        }
    }
    out
}

/// The place of a key's value.
enum Place {
    Value(Range<usize>),
    /// The key is there, and nothing after it.
    Empty(usize),
}

/// The first line of the key with a valid value, else the first without any.
fn place(bytes: &[u8], key: Key) -> Option<Place> {
    let mut empty = None;
    let mut at = 0;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let start = at;
        at += line.len();
        let Some(after) = after_key(line, key.name()) else { continue };
        // Up to the first byte that is no text.
        let valid = line[after..].utf8_chunks().next().map_or("", |chunk| chunk.valid()).trim_end_matches(['\r', '\n']);
        let text = valid.trim_start_matches([' ', '\t', '*', '_']);
        let from = start + after + valid.len() - text.len();
        match key.value(text) {
            Some(len) => return Some(Place::Value(from..from + len)),
            None if text.is_empty() => empty = empty.or(Some(Place::Empty(from))),
            None => {}
        }
    }
    empty
}

/// Where the key ends in a line that begins with it, perhaps as a heading, a list's entry or in bold letters.
fn after_key(line: &[u8], name: &str) -> Option<usize> {
    let line_start = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let skipped = line_start.iter().take_while(|b| b" \t#*_>-".contains(b)).count();
    let at = line.len() - line_start.len() + skipped;
    line.get(at..at + name.len()).filter(|key| key.eq_ignore_ascii_case(name.as_bytes())).map(|_| at + name.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn s4_2_reads_what_people_and_agents_write() {
        let text = "# Ralph\n\nIteration: 3\nMax Iterations: 12\nStatus: IN_PROGRESS\n\nIteration: 2 was fine\nStatus: bad\n";
        let read = Progress::parse(text.as_bytes());
        assert_eq!((read.iteration, read.settings.max_iterations, read.status), (Some(3), Some(12), Some(Status::InProgress)));
        let other =
            Progress::parse(b"\xEF\xBB\xBF**Iteration:** 4\r\n- max iterations: 9\r\nStatus:\tcomplete (all)\r\nMax Hours: 1.5\r\n");
        assert_eq!((other.iteration, other.settings.max_iterations, other.status), (Some(4), Some(9), Some(Status::Complete)));
        assert_eq!(other.settings.max_hours, Some(1.5));
        let none = Progress::parse(b"Iteration: soon\nMax Iterations: -1\nThe Iteration: 3\nStatus: busy\n");
        assert_eq!(none, Progress::default());
        assert_eq!(Progress::parse(b"Iteration: first\nIteration: 7\n").iteration, Some(7));
        assert_eq!(Progress::parse(b"Iteration: 99999999999999999999999\n").iteration, None);
    }

    #[test]
    fn t20_a_value_that_makes_no_sense_is_named() {
        assert_eq!(odd(b"Iteration: 3\nMax Iterations: 9\nStatus: busy\nIteration: soon\n"), [""; 0]);
        assert_eq!(
            odd(b"Iteration: soon\nMax Iterations: -1\n"),
            [
                "\"Iteration: soon\" has no number that makes sense, and is passed over",
                "\"Max Iterations: -1\" has no number that makes sense, and is passed over"
            ]
        );
        assert!(odd(b"\xff\xfe Iteration").is_empty());
    }

    #[test]
    fn s4_2_changes_one_value_in_place() {
        let change = |text: &str, key, value| String::from_utf8_lossy(&with(text.as_bytes(), key, value)).into_owned();
        let cases = [
            ("a\nIteration: 3 # n\nStatus: IN_PROGRESS\n", Key::Iteration, "4", "a\nIteration: 4 # n\nStatus: IN_PROGRESS\n"),
            ("Iteration: 3\r\nStatus:  IN_PROGRESS (x)\r\nz", Key::Status, "COMPLETE", "Iteration: 3\r\nStatus:  COMPLETE (x)\r\nz"),
            ("Status: in progress \n", Key::Status, "PAUSED", "Status: PAUSED \n"),
            ("Max Iterations: 3\n", Key::Iteration, "4", "Max Iterations: 3\nIteration: 4\n"),
            ("Iteration:\nx", Key::Iteration, "4", "Iteration: 4\nx"),
            ("Iteration: \r\nx", Key::Iteration, "4", "Iteration: 4\r\nx"),
            ("notes\r\nmore", Key::Status, "PAUSED", "notes\r\nmore\r\nStatus: PAUSED\r\n"),
            ("", Key::Iteration, "2", "Iteration: 2\n"),
            ("**Status:** COMPLETE", Key::Status, "PAUSED", "**Status:** PAUSED"),
        ];
        for (before, key, value, after) in cases {
            assert_eq!(change(before, key, value), after, "{before:?}");
        }
    }

    proptest! {
        #[test]
        fn a_change_is_read_back_and_keeps_the_rest(bytes in proptest::collection::vec(any::<u8>(), 0..80), n in 0u64..1_000_000, head in "(Iteration:|Status: |\n|\r\n|\\*\\*){0,4}") {
            let bytes = [head.as_bytes(), &bytes].concat();
            let changed = with(&bytes, Key::Iteration, &n.to_string());
            prop_assert_eq!(Progress::parse(&changed).iteration, Some(n));
            let same_head = bytes.iter().zip(&changed).take_while(|(a, b)| a == b).count();
            let same_tail = bytes.iter().rev().zip(changed.iter().rev()).take_while(|(a, b)| a == b).count();
            prop_assert!(same_head + same_tail + 20 >= bytes.len());
            let paused = with(&bytes, Key::Status, Status::Paused.as_str());
            prop_assert_eq!(Progress::parse(&paused).status, Some(Status::Paused));
        }
    }
}
