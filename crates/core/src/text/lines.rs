//! Bytes put together to lines, as they come. A line that is too long is passed over, so that memory does not grow with it.

/// Collects bytes to lines.
#[derive(Debug)]
pub struct Lines {
    begun: Vec<u8>,
    most: usize,
    /// The line that has begun is too long.
    skips: bool,
}

impl Lines {
    /// Lines that are longer than `most` bytes are passed over.
    pub fn new(most: usize) -> Self {
        Lines { begun: Vec::new(), most, skips: false }
    }

    /// Begins in the middle of a line, whose rest is passed over.
    pub fn from_the_middle(most: usize) -> Self {
        Lines { skips: true, ..Lines::new(most) }
    }

    /// Takes some bytes, and hands on every line that they end.
    pub fn feed(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (first, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            if self.begun.is_empty() && !self.skips {
                if first.len() <= self.most {
                    line(first);
                }
                continue;
            }
            self.keep(first);
            if !std::mem::take(&mut self.skips) {
                line(&self.begun);
            }
            self.begun.clear();
            // A long line must not keep its room for ever.
            self.begun.shrink_to(64 << 10);
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.skips |= self.begun.len() + bytes.len() > self.most;
        if self.skips {
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(bytes);
        }
    }

    /// The last line, if nothing ended it.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let last = std::mem::take(&mut self.begun);
        (!last.is_empty() && !std::mem::take(&mut self.skips)).then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_6_lines_come_whole_however_the_bytes_come() {
        let text = b"one\n\ntwo two\nthis is too long\nthree\r\nlast";
        for size in 1..text.len() {
            let mut lines = Lines::new(8);
            let mut seen = Vec::new();
            for part in text.chunks(size) {
                lines.feed(part, |line| seen.push(String::from_utf8_lossy(line).into_owned()));
            }
            assert_eq!(seen, ["one", "", "two two", "three\r"], "in pieces of {size}");
            assert_eq!(lines.finish().as_deref(), Some(b"last".as_slice()));
            assert_eq!(lines.finish(), None);
        }
    }
}
