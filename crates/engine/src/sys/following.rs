//! A file that somebody else writes line by line, read on as it grows.

use std::{
    fs::Metadata,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use crate::sys::files;

/// So much is read at a time: whoever looks on has a screen to draw in between.
const PIECE: u64 = 1 << 20;

/// A longer line is passed over.
const LONGEST: usize = 16 << 20;

/// How far a file was read.
#[derive(Debug)]
pub struct Following {
    path: PathBuf,
    /// Where the first line begins that was not read whole.
    offset: u64,
    file: Option<Identity>,
    /// What was read of it.
    begun: Vec<u8>,
    /// The line that goes on is too long to be kept.
    skips: bool,
}

/// What was added since the last look.
#[derive(Debug, Default)]
pub struct Added {
    pub lines: Vec<Vec<u8>>,
    /// The file is another one, or shorter than it was: these lines are its first, and what was read before is not in it.
    pub anew: bool,
    /// There is more to read at once.
    pub more: bool,
}

impl Following {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Following { path: path.into(), offset: 0, file: None, begun: Vec::new(), skips: false }
    }

    /// Begins where the last `most` bytes of the file do, with the next whole line.
    pub fn from_end(path: impl Into<PathBuf>, most: u64) -> Self {
        let mut following = Following::new(path);
        if let Ok((file, size)) = files::open_regular(&following.path)
            && size > most
        {
            following.offset = size - most;
            following.file = file.metadata().ok().map(|meta| Identity::of(&meta));
            following.skips = true;
        }
        following
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that were added, up to a piece of the file. A file that is not there has none.
    pub fn read_on(&mut self) -> io::Result<Added> {
        let (mut file, size) = match files::open_regular(&self.path) {
            Err(e) if files::is_missing(&e) => return Ok(Added::default()),
            opened => opened?,
        };
        let identity = Identity::of(&file.metadata()?);
        let read_to = self.offset + self.begun.len() as u64;
        let anew = self.file.as_ref().is_some_and(|known| *known != identity) || size < read_to;
        if anew {
            *self = Following::new(std::mem::take(&mut self.path));
        }
        self.file = Some(identity);
        let from = if anew { 0 } else { read_to };
        file.seek(SeekFrom::Start(from))?;
        let mut piece = Vec::new();
        file.take(PIECE).read_to_end(&mut piece)?;
        let more = from + (piece.len() as u64) < size;
        Ok(Added { lines: self.split(piece), anew, more })
    }

    fn split(&mut self, piece: Vec<u8>) -> Vec<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend(piece);
        let mut lines = Vec::new();
        let mut rest = &bytes[..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, next) = rest.split_at(end + 1);
            self.offset += line.len() as u64;
            if !std::mem::take(&mut self.skips) {
                lines.push(line.trim_ascii_end().to_vec());
            }
            rest = next;
        }
        if rest.len() > LONGEST || self.skips {
            self.offset += rest.len() as u64;
            self.skips = true;
        } else {
            self.begun = rest.to_vec();
        }
        lines
    }
}

/// Which file it is: another one may stand in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Identity(meta.dev(), meta.ino())
    }

    /// Files have no numbers that could be asked for; one that was made at another time is another.
    #[cfg(not(unix))]
    fn of(meta: &Metadata) -> Self {
        let made = meta.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        Identity(0, made.map_or(0, |at| at.as_nanos() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::scratch::Scratch;

    fn lines(following: &mut Following) -> (Vec<String>, bool) {
        let added = following.read_on().unwrap();
        (added.lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect(), added.anew)
    }

    #[test]
    fn eyes_1_only_what_is_new_is_read_and_half_lines_wait() {
        let scratch = Scratch::create("ralph-following-", false).unwrap();
        let path = scratch.path().join("journal.jsonl");
        let mut following = Following::new(&path);
        assert_eq!(lines(&mut following), (vec![], false), "it is not there yet");
        files::append(&path, b"one\ntw").unwrap();
        assert_eq!(lines(&mut following), (vec!["one".to_owned()], false));
        files::append(&path, b"o\n\nthree\n").unwrap();
        assert_eq!(lines(&mut following), (vec!["two".to_owned(), String::new(), "three".to_owned()], false));
        assert_eq!(lines(&mut following), (vec![], false));
    }

    #[test]
    fn eyes_1_another_file_in_its_place_is_read_from_its_beginning() {
        let scratch = Scratch::create("ralph-following-", false).unwrap();
        let path = scratch.path().join("journal.jsonl");
        files::append(&path, b"one\ntwo\n").unwrap();
        let mut following = Following::new(&path);
        assert_eq!(lines(&mut following).0.len(), 2);
        files::replace(&path, &scratch.path().join("new"), b"another one, longer than it\n").unwrap();
        assert_eq!(lines(&mut following), (vec!["another one, longer than it".to_owned()], true));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(lines(&mut following), (vec![], false), "it is gone for now");
        files::append(&path, b"x\n").unwrap();
        assert_eq!(lines(&mut following), (vec!["x".to_owned()], true));
    }

    #[test]
    fn eyes_1_a_large_file_comes_in_pieces_and_its_end_alone_on_request() {
        let scratch = Scratch::create("ralph-following-", false).unwrap();
        let path = scratch.path().join("journal.jsonl");
        let line = format!("{}\n", "x".repeat(99_999));
        files::append(&path, line.repeat(30).as_bytes()).unwrap();
        let mut following = Following::new(&path);
        let first = following.read_on().unwrap();
        assert!(first.more && first.lines.len() == 10, "{}", first.lines.len());
        let mut all = first.lines.len();
        while let Added { lines, more: true, .. } = following.read_on().unwrap() {
            all += lines.len();
        }
        assert!(all >= 20, "{all}");
        assert_eq!(Following::from_end(&path, 250_000).read_on().unwrap().lines.len(), 2, "the first of them is not whole");
    }
}
