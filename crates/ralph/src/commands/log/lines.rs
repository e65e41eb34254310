//! The lines of a file that somebody may be writing.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

pub(super) struct Lines {
    file: BufReader<File>,
    /// The beginning of a line whose end is not there yet.
    begun: Vec<u8>,
}

impl Lines {
    pub(super) fn of(file: File) -> Self {
        Lines { file: BufReader::new(file), begun: Vec::new() }
    }

    /// The next line that is not blank; `None`: there is no more now. One without an end counts, unless whoever writes it is waited for.
    pub(super) fn next(&mut self, only_whole: bool) -> io::Result<Option<Vec<u8>>> {
        if self.begun.is_empty() {
            self.skip_breaks()?;
        }
        self.file.read_until(b'\n', &mut self.begun)?;
        let is_there = self.begun.ends_with(b"\n") || (!only_whole && !self.begun.is_empty());
        Ok(is_there.then(|| std::mem::take(&mut self.begun)))
    }

    /// Passes over line breaks, however many there are.
    fn skip_breaks(&mut self) -> io::Result<()> {
        loop {
            let waiting = self.file.fill_buf()?;
            let breaks = waiting.iter().position(|byte| *byte != b'\n').unwrap_or(waiting.len());
            let is_over = breaks < waiting.len() || waiting.is_empty();
            self.file.consume(breaks);
            if is_over {
                return Ok(());
            }
        }
    }
}
