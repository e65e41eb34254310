//! The lines of a transcript from its end, block by block: a transcript of 1 GB costs what one of 100 KB costs.

use std::{
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

use super::line::{Line, has};
use crate::sys::files;

/// Bytes read at a time; the first block is smaller, because it is mostly enough.
pub(super) const BLOCK: usize = 64 * 1024;
const FIRST_BLOCK: usize = 16 * 1024;

/// How far back one iteration is followed. One that is longer has used a tool long before.
pub(super) const REACH: u64 = 16 * 1024 * 1024;

/// Of a longer line only the head is read: it is a tool's result.
const MAX_LINE: u64 = 1024 * 1024;

/// The least that a line costs, in bytes of [`REACH`]: it bounds the number of lines.
pub(super) const LINE_COST: u64 = 64;

/// Lines between two looks at the clock.
pub(super) const LINES_A_LOOK: u32 = 256;

/// The end of a transcript may be read for so long: the client waits for the answer.
const LONGEST: Duration = Duration::from_secs(1);

/// Bytes at a place of a file, or of a buffer.
pub(crate) trait Source {
    fn size(&self) -> u64;
    /// Fills `buf` from `offset` on; returns how many bytes there were.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize;
    /// The session that is asked about; `None`: any.
    fn session(&self) -> Option<&str> {
        None
    }
    /// Whether the time for reading is over.
    fn is_over(&self) -> bool {
        false
    }
}

impl Source for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        let from = usize::try_from(offset).map_or(self.len(), |o| o.min(self.len()));
        let n = buf.len().min(self.len() - from);
        buf[..n].copy_from_slice(&self[from..from + n]);
        n
    }
}

/// An open transcript.
pub(crate) struct OpenFile {
    file: File,
    size: u64,
    session: Option<String>,
    until: Option<Instant>,
}

impl OpenFile {
    pub(crate) fn open(path: impl AsRef<Path>) -> Option<Self> {
        let (file, size) = files::open_regular(path.as_ref()).ok()?;
        Some(OpenFile { file, size, session: None, until: None })
    }

    /// The same for a hook that asks about a session: only that one's lines count, and only those that can be read in time.
    pub(crate) fn of_session(path: impl AsRef<Path>, session: Option<&str>) -> Option<Self> {
        let file = OpenFile::open(path)?;
        Some(OpenFile { session: session.map(str::to_owned), until: Some(Instant::now() + LONGEST), ..file })
    }
}

impl Source for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        use std::os::unix::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) | Err(_) => break,
                Ok(n) => done += n,
            }
        }
        done
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        use std::os::windows::fs::FileExt;
        self.file.seek_read(buf, offset).unwrap_or(0)
    }
}

/// The place of a line in the file, without its line break.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The lines of a source from its end, one block in memory at a time.
pub(super) struct LinesBack<'s, S: ?Sized> {
    source: &'s S,
    block: Vec<u8>,
    /// The place of the block in the source.
    block_start: u64,
    /// Everything from here on has been handed out.
    pub(super) end: u64,
    /// How far back to go.
    floor: u64,
    /// The rest of [`REACH`].
    budget: u64,
    looks: u32,
    /// There is more, and it was not read.
    pub(super) cut: bool,
    pub(super) torn: bool,
    scratch: Vec<u8>,
}

impl<'s, S: Source + ?Sized> LinesBack<'s, S> {
    pub(super) fn new(source: &'s S) -> Self {
        let size = source.size();
        let mut last = [b'\n'];
        let torn = size > 0 && source.read_at(size - 1, &mut last) == 1 && last[0] != b'\n';
        LinesBack {
            source,
            block: Vec::new(),
            block_start: size,
            end: size,
            floor: size.saturating_sub(REACH),
            budget: REACH,
            looks: 0,
            cut: false,
            torn,
            scratch: Vec::new(),
        }
    }

    pub(super) fn next(&mut self) -> Option<Place> {
        self.looks = self.looks.wrapping_add(1);
        let is_late = !self.skip_breaks() || (self.looks.is_multiple_of(LINES_A_LOOK) && self.source.is_over());
        if self.end <= self.floor || self.budget == 0 || is_late {
            self.cut |= self.end > 0;
            return None;
        }
        let end = self.end;
        let start = self.line_start(end);
        // The line break before this line belongs to no line.
        self.end = start.saturating_sub(1);
        self.budget = self.budget.saturating_sub((end - start).max(LINE_COST));
        Some(Place { start, end })
    }

    /// The end of the last complete line.
    pub(super) fn complete(&mut self) -> u64 {
        if self.torn { self.line_start(self.end) } else { self.end }
    }

    /// Whether the line at `place` has these bytes in it.
    pub(super) fn has(&mut self, place: Place, needle: &[u8]) -> bool {
        self.bytes(place).is_some_and(|bytes| has(bytes, needle))
    }

    /// Skips line breaks, however many; `false`: the time was over first.
    fn skip_breaks(&mut self) -> bool {
        while self.end > self.floor {
            if self.end <= self.block_start || self.block.is_empty() {
                if self.source.is_over() {
                    return false;
                }
                self.load(self.end);
            }
            let within = usize::try_from(self.end - self.block_start).map_or(0, |n| n.min(self.block.len()));
            match self.block[..within].iter().rposition(|byte| *byte != b'\n') {
                Some(at) => {
                    self.end = self.block_start + at as u64 + 1;
                    return true;
                }
                None => self.end = self.block_start,
            }
        }
        true
    }

    /// The line at `place`, as far as it matters to the session that is asked about.
    pub(super) fn line(&mut self, place: Place) -> Option<Line> {
        let long = place.end - place.start > MAX_LINE;
        let line = Line::of_talk(self.bytes(place)?, long)?;
        let is_anothers = |line: &Line| matches!((&line.session_id, self.source.session()), (Some(its), Some(session)) if its != session);
        (!is_anothers(&line)).then_some(line)
    }

    /// Reads the line at `place`, from the block in memory if all of it is there; of a long one only the head.
    pub(super) fn bytes(&mut self, place: Place) -> Option<&[u8]> {
        let long = place.end - place.start > MAX_LINE;
        let len = usize::try_from(if long { BLOCK as u64 } else { place.end - place.start }).ok()?;
        if let Some(start) = place.start.checked_sub(self.block_start).and_then(|n| usize::try_from(n).ok())
            && let Some(bytes) = self.block.get(start..start + len)
        {
            return Some(bytes);
        }
        self.scratch.resize(len, 0);
        let n = self.source.read_at(place.start, &mut self.scratch);
        Some(&self.scratch[..n])
    }

    /// The place after the last line break before `end`.
    fn line_start(&mut self, end: u64) -> u64 {
        let mut upto = end;
        loop {
            if upto <= self.block_start || self.block.is_empty() {
                if upto <= self.floor {
                    return self.floor;
                }
                self.load(upto);
            }
            let within = usize::try_from(upto - self.block_start).map_or(0, |n| n.min(self.block.len()));
            match memchr::memrchr(b'\n', &self.block[..within]) {
                Some(at) => return self.block_start + at as u64 + 1,
                None if self.block_start <= self.floor => return self.floor,
                None => upto = self.block_start,
            }
        }
    }

    /// Loads the block that ends at `end`.
    fn load(&mut self, end: u64) {
        let wanted = if self.block.is_empty() { FIRST_BLOCK } else { BLOCK };
        let start = end.saturating_sub(wanted as u64).max(self.floor);
        let len = usize::try_from(end - start).unwrap_or(wanted);
        self.block.resize(len, 0);
        let n = self.source.read_at(start, &mut self.block);
        // A file that shrank under us: what is missing reads as line breaks.
        self.block[n..].fill(b'\n');
        self.block_start = start;
    }
}
