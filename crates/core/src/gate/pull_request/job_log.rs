//! The log of a job without what the forge adds: a time before each line, marks, and the cleaning up after the failure.

/// Output after a failure is held back, up to this.
const MOST_HELD: usize = 256 << 10;

const FAILED: &[u8] = b"##[error]";

/// Reads a job's log as it comes.
#[derive(Default)]
pub struct JobLog {
    /// A line that is not whole yet.
    line: Vec<u8>,
    /// Output after the last failure.
    held: Vec<u8>,
    has_failed: bool,
}

/// No line is kept longer than this before it is passed on.
const LONGEST_LINE: usize = 64 << 10;

impl JobLog {
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > LONGEST_LINE {
                let line = std::mem::take(&mut self.line);
                self.take(&line, sink);
            }
        }
    }

    fn take(&mut self, line: &[u8], sink: &mut dyn FnMut(&[u8])) {
        let text = without_stamp(line);
        if let Some(error) = text.strip_prefix(FAILED) {
            sink(&std::mem::take(&mut self.held));
            sink(b"error: ");
            sink(error);
            self.has_failed = true;
        } else if !self.has_failed {
            sink(without_mark(text));
        } else {
            self.held.extend_from_slice(without_mark(text));
            if self.held.len() > MOST_HELD {
                // So much is more than cleaning up.
                sink(&std::mem::take(&mut self.held));
                self.has_failed = false;
            }
        }
    }

    pub fn finish(mut self, sink: &mut dyn FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take(&line, sink);
        }
    }
}

/// `2026-11-15T20:18:03.1234567Z text`, at the very beginning after a mark of the encoding.
fn without_stamp(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let Some(end) = line.iter().take(40).position(|b| *b == b' ') else { return line };
    let stamp = &line[..end];
    let is_stamp = stamp.len() >= 20 && stamp.ends_with(b"Z") && stamp[4] == b'-' && stamp[10] == b'T' && stamp[0].is_ascii_digit();
    if is_stamp { &line[end + 1..] } else { line }
}

/// `##[group]Run cargo test`, `##[endgroup]`.
fn without_mark(text: &[u8]) -> &[u8] {
    let Some(rest) = text.strip_prefix(b"##[") else { return text };
    rest.iter().take(20).position(|b| *b == b']').map_or(text, |end| &rest[end + 1..])
}
