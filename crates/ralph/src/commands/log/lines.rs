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

    /// The next line; `None`: there is no more now. One without an end counts, unless whoever writes it is waited for.
    pub(super) fn next(&mut self, only_whole: bool) -> io::Result<Option<Vec<u8>>> {
        self.file.read_until(b'\n', &mut self.begun)?;
        let is_there = self.begun.ends_with(b"\n") || (!only_whole && !self.begun.is_empty());
        Ok(is_there.then(|| std::mem::take(&mut self.begun)))
    }
}
