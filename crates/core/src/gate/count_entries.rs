//! Counts the entries of a text: items of lists, rows of tables, paragraphs. Headings, rules and placeholders do not count.

use crate::text::markdown;

/// Words in the place of something that is still to be written.
const PLACEHOLDERS: [&str; 7] = ["todo", "tbd", "n/a", "none", "fixme", "xxx", "wip"];

/// Counts the entries of a Markdown text.
pub(super) fn count_entries(text: &str) -> u64 {
    let text = without_comments(text);
    let lines: Vec<&str> = text.lines().map(unquoted).collect();
    let mut counter = Counter::default();
    let mut at = without_front_matter(&lines);
    while let Some(line) = lines.get(at) {
        let below = lines.get(at + 1).copied().unwrap_or_default();
        counter.take(line, below);
        at += 1;
    }
    counter.close();
    counter.entries
}

/// The state of the count.
#[derive(Default)]
struct Counter {
    entries: u64,
    /// The paragraph that is being read says something.
    paragraph: Option<bool>,
    /// Within a table, below its header.
    in_table: bool,
    /// The end of the block of code, and whether anything is in it.
    fence: Option<(&'static str, bool)>,
}

impl Counter {
    fn take(&mut self, line: &str, below: &str) {
        let trimmed = line.trim();
        if let Some((mark, says)) = self.fence {
            if trimmed.starts_with(mark) {
                self.fence = None;
                // A block belongs to the paragraph or the item above it, if there is one.
                if self.paragraph.is_none() {
                    self.entries += u64::from(says);
                }
            } else {
                self.fence = Some((mark, says || !is_empty(trimmed)));
            }
            return;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            self.fence = Some((mark, false));
        } else if trimmed.is_empty() || is_heading(trimmed) || is_rule(trimmed) {
            self.close();
        } else if is_underlined(trimmed, below) {
            self.close();
            self.paragraph = Some(false);
        } else if trimmed.starts_with('|') || (trimmed.contains('|') && (self.in_table || is_separator(below.trim()))) {
            self.row(trimmed, below.trim());
        } else if let Some(item) = item(trimmed) {
            self.close();
            self.paragraph = Some(says_something(item));
        } else {
            self.in_table = false;
            self.paragraph = Some(self.paragraph.unwrap_or(false) || says_something(trimmed));
        }
    }

    fn row(&mut self, row: &str, below: &str) {
        if is_separator(row) {
            self.in_table = true;
            self.paragraph = None;
        } else if self.in_table {
            self.entries += u64::from(row.split('|').any(says_something));
        } else if !is_separator(below) {
            self.paragraph = Some(self.paragraph.unwrap_or(false) || row.split('|').any(says_something));
        }
    }

    /// Ends what is being read.
    fn close(&mut self) {
        self.entries += u64::from(self.paragraph.take().unwrap_or(false));
        self.in_table = false;
    }
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        out.push_str(before);
        // One that does not end hides all that follows.
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// The first line after a block of settings at the very top.
fn without_front_matter(lines: &[&str]) -> usize {
    let is_edge = |line: &&&str| line.trim_end() == "---";
    if !lines.first().as_ref().is_some_and(is_edge) {
        return 0;
    }
    lines.iter().skip(1).position(|line| is_edge(&line)).map_or(0, |end| end + 2)
}

fn unquoted(line: &str) -> &str {
    let mut rest = line;
    while let Some(inner) = rest.trim_start().strip_prefix('>') {
        rest = inner;
    }
    rest
}

fn is_heading(line: &str) -> bool {
    let marks = line.bytes().take_while(|b| *b == b'#').count();
    (1..=6).contains(&marks) && line[marks..].chars().next().is_none_or(char::is_whitespace)
}

/// A title whose line below is drawn.
fn is_underlined(line: &str, below: &str) -> bool {
    let below = below.trim();
    let is_drawn = |mark: char| below.len() >= 3 && below.chars().all(|c| c == mark);
    (is_drawn('=') || is_drawn('-')) && item(line).is_none()
}

fn is_rule(line: &str) -> bool {
    let plain: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    plain.len() >= 3 && ["-", "*", "_", "="].iter().any(|mark| plain.replace(mark, "").is_empty())
}

fn is_separator(row: &str) -> bool {
    row.contains('-') && row.contains('|') && row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// The words of a list's item. A box that is not ticked is a plan, and says nothing yet.
fn item(line: &str) -> Option<&str> {
    let rest = markdown::entry(line)?;
    Some(match rest.strip_prefix("[ ]") {
        Some(_) => "",
        None => rest.strip_prefix("[x]").or_else(|| rest.strip_prefix("[X]")).unwrap_or(rest),
    })
}

fn is_empty(text: &str) -> bool {
    !text.chars().any(char::is_alphanumeric)
}

/// Whether there are words, and no placeholder.
fn says_something(text: &str) -> bool {
    let plain = text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let first = plain.split(|c: char| !c.is_alphanumeric() && c != '/').next().unwrap_or_default();
    !is_empty(text) && !matches!(first, "todo" | "tbd" | "fixme") && !PLACEHOLDERS.contains(&plain.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s2_2_evidence_is_what_says_something() {
        #[rustfmt::skip]
        let table: &[(&str, u64)] = &[
            ("", 0),
            ("# Evidence\n\n", 0),
            ("# Evidence\n\n<!-- one entry\nfor each -->\n", 0),
            ("Evidence\n========\n", 0),
            ("Evidence\n--------\n\n- \n*\n1.\n", 0),
            ("# Evidence\n\nTODO\n", 0),
            ("- TODO: run the tests\n- TBD\n- n/a\n- ...\n", 0),
            ("- [ ] run the tests\n", 0),
            ("- [x] ran the tests: 12 pass\n", 1),
            ("# Evidence\n\n- `cargo test`: 12 pass\n  see the log\n- a screenshot\n", 2),
            ("1. one\n2) two\n10. ten\n", 3),
            ("| what | result |\n|---|---|\n", 0),
            ("| what | result |\n|---|---|\n|  |  |\n| TODO | TODO |\n", 0),
            ("| what | result |\n|:---|---:|\n| tests | 12 pass |\n| lint | clean |\n", 2),
            ("what | result\n--- | ---\ntests | pass\n", 1),
            ("A paragraph of\ntwo lines.\n\nAnother one.\n", 2),
            ("> quoted: it works\n", 1),
            ("```\n$ cargo test\n12 passed\n```\n", 1),
            ("```\n```\n", 0),
            ("I ran it:\n```\nok\n```\n", 1),
            ("![screenshot](a.png)\n", 1),
            ("---\ntitle: x\n---\n", 0),
            ("---\ntitle: x\n---\n- it works\n", 1),
            ("***\n---\n___\n", 0),
            ("#1234 was mended\n", 1),
            ("<!-- never closed\n- hidden\n", 0),
            ("- todos are listed elsewhere\n", 1),
        ];
        for (text, entries) in table {
            assert_eq!(count_entries(text), *entries, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_counted(text in "(?s).{0,300}") {
            let _ = count_entries(&text);
        }

        #[test]
        fn odd_markdown_is_counted(text in "[-|#>`~*=<!\n 1.x]{0,200}") {
            prop_assert!(count_entries(&text) <= text.lines().count() as u64);
        }
    }
}
