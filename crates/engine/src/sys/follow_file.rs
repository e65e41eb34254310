//! Follows a file that others write: every whole line is handed on once, and nothing is read twice.
//!
//! If the file is missing, cut short or replaced by another one, reading starts again. It is not kept open in between.

use std::{
    fs::Metadata,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use ralph_core::text::Lines;

use crate::sys::files;

const BLOCK: usize = 256 << 10;

/// How many of the last bytes are kept, to recognise the file.
const REMEMBERED: usize = 64;

#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    longest_line: usize,
    /// Device and inode, where the system has them.
    file: Option<(u64, u64)>,
    at: u64,
    /// The last bytes before `at`.
    last: Vec<u8>,
    lines: Lines,
    /// At first only so much of the end is read.
    reach: Option<u64>,
    is_whole: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<'a> {
    /// The file was replaced, cut short or removed: forget the lines before.
    Anew,
    Line(&'a [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    pub is_there: bool,
    /// [`Seen::Anew`] was handed on.
    pub anew: bool,
    pub lines: u64,
    /// There is more to read than was asked for.
    pub more: bool,
    /// When the file was last changed, in milliseconds since the epoch.
    pub changed: u64,
}

impl Follower {
    /// From the beginning. Longer lines are skipped.
    pub fn new(path: impl Into<PathBuf>, longest_line: usize) -> Self {
        Follower {
            path: path.into(),
            longest_line,
            file: None,
            at: 0,
            last: Vec::new(),
            lines: Lines::new(longest_line),
            reach: None,
            is_whole: true,
        }
    }

    /// The same, but of the existing file only the last `reach` bytes.
    pub(crate) fn from_end(path: impl Into<PathBuf>, longest_line: usize, reach: u64) -> Self {
        Follower { reach: Some(reach), ..Follower::new(path, longest_line) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all lines of the file were handed on, from its beginning.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Hands on the whole lines that are new, of about `most` bytes.
    pub fn look(&mut self, most: u64, mut see: impl FnMut(Seen<'_>)) -> Look {
        let Ok((mut file, size)) = files::open_regular(&self.path) else {
            let anew = self.at > 0;
            self.begin(None, 0);
            if anew {
                see(Seen::Anew);
            }
            return Look { anew, ..Look::default() };
        };
        let Ok(meta) = file.metadata() else { return Look::default() };
        let is_same = self.file == id(&meta) && size >= self.at && self.knows(&mut file);
        let anew = !is_same && self.at > 0;
        if !is_same || self.at == 0 {
            self.begin(id(&meta), size);
        }
        if anew {
            see(Seen::Anew);
        }
        let mut look = Look { is_there: true, anew, changed: files::changed_ms(&meta), ..Look::default() };
        let mut block = vec![0; BLOCK.min(usize::try_from(size - self.at).unwrap_or(BLOCK).max(1))];
        let mut left = most;
        if file.seek(SeekFrom::Start(self.at)).is_err() {
            return look;
        }
        while left > 0 {
            let Ok(n @ 1..) = file.read(&mut block) else { return look };
            self.lines.feed(&block[..n], |whole| {
                look.lines += 1;
                see(Seen::Line(whole));
            });
            self.remember(&block[..n]);
            left = left.saturating_sub(n as u64);
        }
        look.more = self.at < size;
        look
    }

    /// Starts with a file of this size.
    fn begin(&mut self, file: Option<(u64, u64)>, size: u64) {
        let from = self.reach.map_or(0, |reach| size.saturating_sub(reach));
        self.file = file;
        self.is_whole = from == 0;
        self.last.clear();
        // One byte earlier, to see whether a line begins there.
        self.at = from.saturating_sub(1);
        self.lines = if from == 0 { Lines::new(self.longest_line) } else { Lines::from_the_middle(self.longest_line) };
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(REMEMBERED)..]);
        let forgotten = self.last.len().saturating_sub(REMEMBERED);
        self.last.drain(..forgotten);
    }

    /// Whether the last bytes are still there: a file that was cut and has grown since is another one.
    fn knows(&self, file: &mut std::fs::File) -> bool {
        let mut there = vec![0; self.last.len()];
        let from = self.at.saturating_sub(self.last.len() as u64);
        file.seek(SeekFrom::Start(from)).and_then(|_| file.read_exact(&mut there)).is_ok() && there == self.last
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is none")]
fn id(meta: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn id(_meta: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::temp_dir::Scratch;

    fn seen(follower: &mut Follower) -> (Vec<String>, Look) {
        let mut lines = Vec::new();
        let look = follower.look(u64::MAX, |seen| {
            if let Seen::Line(line) = seen {
                lines.push(String::from_utf8_lossy(line).into_owned());
            }
        });
        (lines, look)
    }

    #[test]
    fn eyes_1_a_growing_file_is_read_once_line_by_line() {
        let scratch = Scratch::create("ralph-follow-", false).unwrap();
        let path = scratch.path().join("log");
        let mut follower = Follower::new(&path, 100);
        assert_eq!(seen(&mut follower), (vec![], Look::default()), "it is not there yet");
        files::append(&path, b"one\ntw").unwrap();
        assert_eq!(seen(&mut follower).0, ["one"]);
        files::append(&path, b"o\nthree\n").unwrap();
        assert_eq!(seen(&mut follower).0, ["two", "three"]);
        assert_eq!(seen(&mut follower).0, Vec::<String>::new());
        files::append(&path, [[b'x'; 200].as_slice(), b"\nfour\n"].concat().as_slice()).unwrap();
        assert_eq!(seen(&mut follower).0, ["four"], "a line that is too long is passed over");
    }

    #[test]
    fn eyes_1_a_file_that_was_cut_replaced_or_removed_is_read_anew() {
        let scratch = Scratch::create("ralph-follow-", false).unwrap();
        let (path, other) = (scratch.path().join("log"), scratch.path().join("other"));
        files::append(&path, b"one\ntwo\n").unwrap();
        let mut follower = Follower::new(&path, 100);
        seen(&mut follower);
        std::fs::File::create(&path).unwrap();
        files::append(&path, b"longer than before\n").unwrap();
        let (lines, look) = seen(&mut follower);
        assert_eq!((lines, look.anew), (vec!["longer than before".to_owned()], true), "cut, and grown since");
        files::append(&other, b"longer than before\nreplaced\n").unwrap();
        std::fs::rename(&other, &path).unwrap();
        let (lines, look) = seen(&mut follower);
        assert_eq!((lines.len(), look.anew), (2, true));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(seen(&mut follower).1, Look { anew: true, ..Look::default() });
        files::append(&path, b"back\n").unwrap();
        assert_eq!(seen(&mut follower).0, ["back"]);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(!seen(&mut follower).1.is_there, "a folder is no file");
    }

    #[test]
    fn eyes_1_a_long_file_is_read_from_its_end() {
        let scratch = Scratch::create("ralph-follow-", false).unwrap();
        let path = scratch.path().join("log");
        files::append(&path, b"one\ntwo\nthree\n").unwrap();
        for (reach, wanted) in
            [(5, vec![]), (6, vec!["three"]), (7, vec!["three"]), (10, vec!["two", "three"]), (14, vec!["one", "two", "three"])]
        {
            let mut follower = Follower::from_end(&path, 100, reach);
            assert_eq!(seen(&mut follower).0, wanted, "{reach}");
            assert_eq!(follower.is_whole(), reach == 14);
        }
        let mut follower = Follower::new(&path, 100);
        let look = follower.look(1, |_| {});
        assert!(!look.more, "a block at a time");
        assert_eq!(look.lines, 3);
    }
}
