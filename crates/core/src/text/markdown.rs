//! Markdown as far as ralph reads it line by line: fenced code, and the markers of lists.

/// The fenced code that is open at a line.
#[derive(Debug, Default)]
pub(crate) struct Fence(Option<(char, usize)>);

impl Fence {
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the line, without blanks around it, is part of fenced code: its beginning, its end or within.
    pub(crate) fn takes(&mut self, line: &str) -> bool {
        let mark = mark(line);
        match (self.0, mark) {
            (Some((open, least)), Some((c, n))) if c == open && n >= least && line.len() == n => self.0 = None,
            (Some(_), _) => {}
            // Backticks with backticks after them are code within a line.
            (None, Some((c, _))) if c == '~' || !line.trim_start_matches('`').contains('`') => self.0 = mark,
            _ => return false,
        }
        true
    }
}

/// A run of three or more backticks or tildes at the start of a line.
fn mark(line: &str) -> Option<(char, usize)> {
    let c = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let n = line.chars().take_while(|other| *other == c).count();
    (n >= 3).then_some((c, n))
}

/// The text of a list's entry: after `-`, `*`, `+`, `1.` or `1)` and a blank.
pub(crate) fn entry(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match line.as_bytes().get(digits) {
        Some(b'.' | b')') if (1..=9).contains(&digits) => &line[digits + 1..],
        Some(b'-' | b'*' | b'+') if digits == 0 => &line[1..],
        _ => return None,
    };
    let text = rest.trim_start_matches([' ', '\t']);
    (text.is_empty() || text.len() < rest.len()).then_some(text)
}
