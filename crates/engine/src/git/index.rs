//! Git's index, read without git: which paths it tracks. What it says about their contents and times is not believed.

use std::path::Path;

use crate::sys::files;

/// No system opens a longer one.
const LONGEST_PATH: usize = 4_096;

/// An index of some million files.
const LARGEST: usize = 512 << 20;

/// What the index has for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    /// The id of the content, in bytes.
    pub(crate) id: Vec<u8>,
    /// Other than 0 in the middle of a merge.
    pub(crate) stage: u8,
}

/// Git's modes of a repository within, and of a folder of which a sparse checkout has nothing.
pub(crate) const REPOSITORY: u32 = 0o160_000;
const FOLDER: u32 = 0o040_000;

impl Entry {
    pub(crate) fn is_repository(&self) -> bool {
        self.mode == REPOSITORY
    }

    /// A folder that stands for all that is in it.
    pub(crate) fn is_folder(&self) -> bool {
        self.mode == FOLDER
    }

    pub(crate) fn hex(&self) -> String {
        use std::fmt::Write as _;
        self.id.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Why an index cannot be read here.
#[derive(Debug)]
pub(crate) enum Unread {
    /// A part of it is in another file; git can put them together.
    Split,
    Broken,
    CannotRead,
}

/// All entries in order. No index: nothing is tracked.
pub(crate) fn read(path: &Path, id_length: usize) -> Result<Vec<Entry>, Unread> {
    match files::read(path, LARGEST) {
        Ok(bytes) => parse(&bytes, id_length),
        Err(e) if files::is_missing(&e) => Ok(Vec::new()),
        Err(_) => Err(Unread::CannotRead),
    }
}

fn parse(bytes: &[u8], id_length: usize) -> Result<Vec<Entry>, Unread> {
    let mut reader = Reader { bytes, at: 0 };
    let (entries, is_split) = reader.all(id_length).ok_or(Unread::Broken)?;
    if is_split { Err(Unread::Split) } else { Ok(entries) }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn all(&mut self, id_length: usize) -> Option<(Vec<Entry>, bool)> {
        if self.take(4)? != b"DIRC" {
            return None;
        }
        let (version, count) = (self.number()?, self.number()?);
        if !(2..=4).contains(&version) {
            return None;
        }
        let mut entries: Vec<Entry> = Vec::with_capacity(usize::try_from(count).ok()?.min(self.bytes.len() / 62));
        for _ in 0..count {
            let before = entries.last().map(|entry| entry.path.as_slice()).unwrap_or_default();
            let entry = self.entry(version, id_length, before)?;
            entries.push(entry);
        }
        Some((entries, self.is_split(id_length)?))
    }

    fn entry(&mut self, version: u32, id_length: usize, before: &[u8]) -> Option<Entry> {
        const EXTENDED: u16 = 0x4000;
        let begun = self.at;
        // Times, device and inode.
        self.take(24)?;
        let mode = self.number()?;
        // User, group and size.
        self.take(12)?;
        let id = self.take(id_length)?.to_vec();
        let flags = self.short()?;
        if version > 2 && flags & EXTENDED != 0 {
            self.take(2)?;
        }
        let mut path = Vec::new();
        if version == 4 {
            let dropped = self.variable()?;
            path.extend(before.get(..before.len().checked_sub(dropped)?)?);
        }
        let rest = &self.bytes[self.at..];
        let name = rest.get(..memchr::memchr(0, rest)?)?;
        path.extend(name);
        // Each entry of the newest format repeats as much of the one before as it likes: together they could ask for any amount of memory.
        if path.len() > LONGEST_PATH {
            return None;
        }
        self.take(name.len() + 1)?;
        if version < 4 {
            // With zeros up to a multiple of eight.
            self.take((8 - (self.at - begun) % 8) % 8)?;
        }
        Some(Entry { path, mode, id, stage: u8::try_from(flags >> 12 & 3).ok()? })
    }

    /// Git's number of variable length.
    fn variable(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut value = usize::from(byte & 127);
        while byte & 128 != 0 {
            byte = *self.take(1)?.first()?;
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        }
        Some(value)
    }

    /// Whether one of the extensions says that the rest is elsewhere. The last thing is a checksum.
    fn is_split(&mut self, id_length: usize) -> Option<bool> {
        while self.at + id_length + 8 <= self.bytes.len() {
            let name = self.take(4)?;
            let length = usize::try_from(self.number()?).ok()?;
            if name == b"link" {
                return Some(true);
            }
            self.take(length)?;
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        git::command::in_test,
        sys::{files::write_whole, temp_dir::Scratch},
    };

    #[test]
    fn t8_an_index_is_read_as_git_wrote_it() {
        for (format, version) in [("sha1", "2"), ("sha1", "3"), ("sha1", "4"), ("sha256", "2"), ("sha256", "4")] {
            let scratch = Scratch::create("ralph-index-", false).unwrap();
            let git = |args: &[&str]| in_test(scratch.path(), args, &[]);
            git(&["init", "-q", &format!("--object-format={format}")]);
            let names =
                ["a", "a/b", "dir/sub/deep.txt", "dir/sub/deeper.txt", "größe", &format!("{}/{}", "x".repeat(200), "y".repeat(200))]
                    .map(str::to_owned);
            for name in names.iter().filter(|name| *name != "a") {
                write_whole(&scratch.path().join(name), name.as_bytes()).unwrap();
            }
            git(&["add", "-A"]);
            git(&["update-index", "--index-version", version]);
            if version != "2" {
                git(&["update-index", "--skip-worktree", "größe"]);
            }
            let length = if format == "sha1" { 20 } else { 32 };
            let read = read(&scratch.path().join(".git/index"), length).unwrap();
            let told = git(&["ls-files", "-z", "--stage"]);
            let line =
                |entry: &Entry| [format!("{:06o} {} {}\t", entry.mode, entry.hex(), entry.stage).as_bytes(), &entry.path, b"\0"].concat();
            let ours: Vec<u8> = read.iter().flat_map(line).collect();
            assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&told), "{format} {version}");
            git(&["update-index", "--split-index"]);
            assert!(matches!(super::read(&scratch.path().join(".git/index"), length), Err(Unread::Split)), "{format} {version}");
        }
        assert!(read(Path::new("/nowhere/index"), 20).unwrap().is_empty());
    }

    #[test]
    fn t8_a_broken_index_says_nothing() {
        for bytes in [b"".as_slice(), b"DIRC", b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\x02\xff\xff\xff\xff", &[0; 64]] {
            assert!(matches!(parse(bytes, 20), Err(Unread::Broken)), "{bytes:?}");
        }
    }
}
