//! A command's output in whole lines: that of commands that run side by side is shown line by line.

/// A line that goes on for longer than this is shown in pieces.
const LONGEST: usize = 4_096;

/// Bytes that are not a whole line yet.
#[derive(Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut whole = Vec::new();
        for line in all.split_inclusive(|byte| *byte == b'\n') {
            if line.ends_with(b"\n") || line.len() > LONGEST {
                whole.push(last_words(line));
            } else {
                self.begun = line.to_vec();
            }
        }
        whole
    }

    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.begun);
        (!rest.is_empty()).then(|| last_words(&rest))
    }
}

/// A line as it would look in the end: what was drawn over is gone.
fn last_words(line: &[u8]) -> Vec<u8> {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let begin = line[..end].iter().rposition(|byte| *byte == b'\r').map_or(0, |at| at + 1);
    line[begin..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: Vec<Vec<u8>>) -> Vec<String> {
        lines.into_iter().map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
    }

    #[test]
    fn lines_come_whole_however_they_were_cut() {
        let mut lines = Lines::default();
        assert_eq!(text(lines.feed(b"one\ntw")), ["one"]);
        assert_eq!(text(lines.feed(b"o\r\n\nthr")), ["two", ""]);
        assert_eq!(lines.rest(), Some(b"thr".to_vec()));
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn a_bar_that_is_drawn_over_is_one_line() {
        assert_eq!(text(Lines::default().feed(b"10 %\r50 %\r100 %\n")), ["100 %"]);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let mut lines = Lines::default();
        assert_eq!(lines.feed(&[b'x'; LONGEST + 1]).len(), 1);
        assert_eq!(lines.rest(), None);
    }
}
