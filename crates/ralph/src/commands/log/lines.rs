//! The lines of a file that is still being written.

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

    /// The next line that is not blank; `None`: there is no more now. `only_whole`: a line without an end is still being written.
    pub(super) fn next(&mut self, only_whole: bool) -> io::Result<Option<Vec<u8>>> {
        loop {
            self.file.read_until(b'\n', &mut self.begun)?;
            if self.begun.is_empty() || (only_whole && !self.begun.ends_with(b"\n")) {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.begun);
            if line != b"\n" {
                return Ok(Some(line));
            }
        }
    }
}
