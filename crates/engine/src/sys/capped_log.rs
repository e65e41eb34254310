//! A log with a largest size: it must not fill the disk.

use std::{fs::File, io::Write};

/// A log that is being written. Its first problem is kept, and nothing fails because of it.
#[derive(Debug)]
pub(crate) struct Growing {
    file: Option<File>,
    written: u64,
    most: u64,
    problem: Option<String>,
}

impl Growing {
    pub(crate) fn new(file: File, most: u64) -> Self {
        Growing { file: Some(file), written: 0, most, problem: None }
    }

    /// A log that could not be made.
    pub(crate) fn none(problem: String) -> Self {
        Growing { file: None, written: 0, most: 0, problem: Some(problem) }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let room = usize::try_from(self.most.saturating_sub(self.written)).unwrap_or(usize::MAX).min(bytes.len());
        if let Err(e) = file.write_all(&bytes[..room]) {
            // Make room on a full disk: other files are more important than the end of a log.
            let _ = file.set_len(self.written / 2);
            self.problem = Some(format!("the log is not whole: {e}"));
            self.file = None;
        } else if room < bytes.len() {
            let problem = format!("the log is not whole: it ends after {} MB", self.most >> 20);
            let _ = file.write_all(format!("\n# {problem}\n").as_bytes());
            self.problem = Some(problem);
            self.file = None;
        }
        self.written += room as u64;
    }

    /// How many bytes were written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Why it is not complete.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}
