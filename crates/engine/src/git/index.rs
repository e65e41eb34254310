//! Git's index, read without git: which paths it tracks, and how their files looked when it was written.

use std::{
    fs::{self, Metadata},
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use ralph_core::text::find_byte;

use super::{Ask, Folders, Repository, command, repository::HASTE};
use crate::sys::{files, temp_dir::Scratch};

/// No system opens a longer one.
const LONGEST_PATH: usize = 4_096;

/// An index of some million files.
const LARGEST: usize = 512 << 20;

/// A file that changed so shortly before the index was written, or later, may look to it as it did before.
pub(crate) const MARGIN: Duration = Duration::from_secs(2);

/// Git's modes of a repository within, and of a folder of which a sparse checkout has nothing.
const REPOSITORY: u32 = 0o160_000;
const FOLDER: u32 = 0o040_000;

/// Flags: assume that the file never changes; there are more flags; do not check the file out.
const ASSUMED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const NOT_CHECKED_OUT: u16 = 0x4000;

#[derive(Debug)]
pub(crate) struct Index {
    /// In git's order.
    pub(crate) entries: Vec<Entry>,
    bytes: Vec<u8>,
    id_length: usize,
    written: SystemTime,
    /// The tree that all entries make up, where git knew it.
    tree: Option<Vec<u8>>,
    /// A part of it is in another file.
    is_split: bool,
}

/// The index entry of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    /// The id of the content, in bytes.
    pub(crate) id: Vec<u8>,
    /// Other than 0 in the middle of a merge.
    pub(crate) stage: u8,
    /// Not to be checked out, in a sparse checkout.
    pub(crate) is_kept_out: bool,
    /// Git was told to assume that it never changes.
    is_assumed: bool,
    /// Both times in seconds and nanoseconds, inode, user, group and size of the file.
    facts: [u32; 8],
    /// Where the entry begins in the index, and where its flags do.
    at: usize,
    flags_at: usize,
}

impl Entry {
    pub(crate) fn is_repository(&self) -> bool {
        self.mode == REPOSITORY
    }

    /// A folder that stands for all that is in it.
    pub(crate) fn is_folder(&self) -> bool {
        self.mode == FOLDER
    }

    pub(crate) fn hex(&self) -> String {
        hex(&self.id)
    }

    /// Git was told not to look at the file.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.is_assumed || self.is_kept_out
    }

    /// Whether the file looks as it did when it was put into the index: never known here.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "only Unix has what git keeps of a file")]
    pub(crate) fn looks_like(&self, _meta: &Metadata) -> bool {
        false
    }

    /// Whether the file looks as it did when it was put into the index.
    #[cfg(unix)]
    pub(crate) fn looks_like(&self, meta: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        let mode = match meta.mode() {
            _ if meta.is_symlink() => 0o120_000,
            mode if mode & 0o100 != 0 => 0o100_755,
            _ => 0o100_644,
        };
        let times = [meta.ctime(), meta.ctime_nsec(), meta.mtime(), meta.mtime_nsec()].map(i64::cast_unsigned);
        let others = [meta.ino(), u64::from(meta.uid()), u64::from(meta.gid()), meta.size()];
        // Git keeps the lower half of each number.
        let is_same = |(kept, number): (&u32, &u64)| u64::from(*kept) == number & u64::from(u32::MAX);
        self.mode == mode && self.facts.iter().zip(times.iter().chain(&others)).all(is_same)
    }
}

fn hex(id: &[u8]) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Index {
    /// The index of a working tree. No index: nothing is tracked.
    pub(crate) fn of(folders: &Folders, id_length: usize) -> io::Result<Self> {
        let path = folders.index();
        let written = fs::metadata(&path).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let bytes = match files::read(&path, LARGEST) {
            Err(e) if files::is_missing(&e) => {
                return Ok(Index { entries: Vec::new(), bytes: Vec::new(), id_length, written, tree: None, is_split: false });
            }
            other => other?,
        };
        let index = Index::parse(bytes, id_length, written).ok_or_else(broken)?;
        if index.is_split { index.rewritten(folders) } else { Ok(index) }
    }

    /// The same with an entry for each file, where a sparse checkout has one for a whole folder.
    pub(super) fn full(folders: &Folders, id_length: usize) -> io::Result<Self> {
        let index = Index::of(folders, id_length)?;
        if index.entries.iter().any(Entry::is_folder) { index.rewritten(folders) } else { Ok(index) }
    }

    /// Has git write it in one part and with all files.
    fn rewritten(self, folders: &Folders) -> io::Result<Self> {
        let bytes = rewritten(folders).map_err(io::Error::other)?;
        Index::parse(bytes, self.id_length, self.written).ok_or_else(broken)
    }

    fn parse(bytes: Vec<u8>, id_length: usize, written: SystemTime) -> Option<Self> {
        let mut reader = Reader { bytes: &bytes, at: 0, id_length };
        let entries = reader.entries()?;
        let Rest { is_split, tree } = reader.rest()?;
        Some(Index { entries, bytes, id_length, written, tree, is_split })
    }

    /// The tree that all entries make up, if git noted it.
    pub(crate) fn tree(&self) -> Option<String> {
        self.tree.as_deref().map(hex)
    }

    /// The system's own time of the last change is not older than the index: what that says may be about an earlier content.
    #[cfg(unix)]
    pub(crate) fn is_too_new(&self, meta: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        let changed = Duration::new(u64::try_from(meta.ctime()).unwrap_or(0), u32::try_from(meta.ctime_nsec()).unwrap_or(0));
        SystemTime::UNIX_EPOCH + changed + MARGIN >= self.written
    }

    #[cfg(not(unix))]
    pub(crate) fn is_too_new(&self, meta: &Metadata) -> bool {
        meta.modified().is_ok_and(|changed| changed + MARGIN >= self.written)
    }

    /// Makes git read the file of an entry: without any facts about it, and without being told not to look.
    pub(crate) fn doubt(&mut self, entry: usize) {
        let Some(entry) = self.entries.get(entry) else { return };
        // The mode stands between the times, device and inode, and user, group and size.
        for part in [entry.at..entry.at + 24, entry.at + 28..entry.at + 40] {
            self.bytes[part].fill(0);
        }
        let mut clear = |at: usize, flag: u16| self.bytes[at] &= !flag.to_be_bytes()[0];
        clear(entry.flags_at, ASSUMED);
        if entry.is_kept_out {
            clear(entry.flags_at + 2, NOT_CHECKED_OUT);
        }
    }

    /// Writes it to another place, with the time of the person's index: by that git tells which files may have changed in the very moment that it was written.
    pub(crate) fn write(&self, to: &Path) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let mut bytes = self.bytes.clone();
        // No checksum, which git does not ask for.
        let end = bytes.len().saturating_sub(self.id_length);
        bytes[end..].fill(0);
        files::write_whole(to, &bytes)?;
        fs::File::options().append(true).open(to)?.set_modified(self.written)
    }
}

fn broken() -> io::Error {
    io::Error::other("it is broken")
}

fn rewritten(folders: &Folders) -> Result<Vec<u8>, String> {
    let repository = Repository::around(&folders.top, HASTE)?.ok_or("its repository is gone")?;
    let scratch = Scratch::create(command::PREFIX, false).map_err(|e| e.to_string())?;
    let index = scratch.path().join("index");
    let copied = || -> io::Result<()> {
        fs::copy(folders.index(), &index)?;
        for entry in fs::read_dir(&folders.git_dir)?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.") {
                fs::copy(entry.path(), scratch.path().join(entry.file_name()))?;
            }
        }
        Ok(())
    };
    copied().map_err(|e| e.to_string())?;
    let args = ["update-index", "--no-split-index", "--force-write-index"];
    repository.answer(&args, Ask { index: Some(&index), ..Ask::default() })?;
    files::read(&index, LARGEST).map_err(|e| e.to_string())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    id_length: usize,
}

/// The extensions after the entries.
struct Rest {
    is_split: bool,
    tree: Option<Vec<u8>>,
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

    fn entries(&mut self) -> Option<Vec<Entry>> {
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
            let entry = self.entry(version, before)?;
            entries.push(entry);
        }
        Some(entries)
    }

    fn entry(&mut self, version: u32, before: &[u8]) -> Option<Entry> {
        let at = self.at;
        let mut numbers = [0; 10];
        for number in &mut numbers {
            *number = self.number()?;
        }
        let [changed, changed_ns, modified, modified_ns, _device, inode, mode, user, group, size] = numbers;
        let id = self.take(self.id_length)?.to_vec();
        let flags_at = self.at;
        let flags = self.short()?;
        let more = if version > 2 && flags & EXTENDED != 0 { self.short()? } else { 0 };
        let path = self.path(version, before)?;
        if version < 4 {
            // With zeros up to a multiple of eight.
            self.take((8 - (self.at - at) % 8) % 8)?;
        }
        Some(Entry {
            path,
            mode,
            id,
            stage: u8::try_from(flags >> 12 & 3).ok()?,
            is_kept_out: more & NOT_CHECKED_OUT != 0,
            is_assumed: flags & ASSUMED != 0,
            facts: [changed, changed_ns, modified, modified_ns, inode, user, group, size],
            at,
            flags_at,
        })
    }

    /// A path with a zero at its end. In the newest format it begins with a part of the one before.
    fn path(&mut self, version: u32, before: &[u8]) -> Option<Vec<u8>> {
        let mut path = Vec::new();
        if version == 4 {
            let dropped = self.variable()?;
            path.extend(before.get(..before.len().checked_sub(dropped)?)?);
        }
        let rest = &self.bytes[self.at..];
        let name = rest.get(..find_byte(0, rest)?)?;
        path.extend(name);
        // Together such paths could ask for any amount of memory.
        if path.len() > LONGEST_PATH {
            return None;
        }
        self.take(name.len() + 1)?;
        Some(path)
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

    /// Reads the extensions. The last thing is a checksum.
    fn rest(&mut self) -> Option<Rest> {
        let mut rest = Rest { is_split: false, tree: None };
        while self.at + self.id_length + 8 <= self.bytes.len() {
            let name = self.take(4)?;
            let length = usize::try_from(self.number()?).ok()?;
            let content = self.take(length)?;
            match name {
                b"link" => rest.is_split = true,
                b"TREE" => rest.tree = tree_of_all(content, self.id_length),
                _ => {}
            }
        }
        Some(rest)
    }
}

/// The first tree of the extension: an empty path, the number of its entries (-1: not known) and of the trees within, and its id.
fn tree_of_all(content: &[u8], id_length: usize) -> Option<Vec<u8>> {
    let content = content.strip_prefix(b"\0")?;
    let end = find_byte(b'\n', content)?;
    let is_known = !content.starts_with(b"-");
    content.get(end + 1..end + 1 + id_length).filter(|_| is_known).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        git::{command::in_test, repository::path_of},
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
            let folders = Folders::at(scratch.path()).unwrap().unwrap();
            let line = |entry: &Entry| {
                let tag = if entry.is_kept_out { "S" } else { "H" };
                [format!("{tag} {:06o} {} {}\t", entry.mode, entry.hex(), entry.stage).as_bytes(), &entry.path, b"\0"].concat()
            };
            let is_read_as_told = || {
                let index = Index::of(&folders, length).unwrap();
                let ours: Vec<u8> = index.entries.iter().flat_map(line).collect();
                let told = git(&["ls-files", "-z", "-t", "--stage"]);
                assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&told), "{format} {version}");
                index
            };
            let index = is_read_as_told();
            let looks = |entry: &Entry| entry.looks_like(&fs::symlink_metadata(scratch.path().join(path_of(&entry.path))).unwrap());
            assert!(index.entries.iter().all(looks), "{format} {version}");
            assert_eq!(index.tree(), None, "nothing is committed");
            git(&["commit", "-q", "-m", "all"]);
            let tree = String::from_utf8(git(&["rev-parse", "HEAD^{tree}"])).unwrap();
            assert_eq!(is_read_as_told().tree().as_deref(), Some(tree.trim()), "{format} {version}");
            git(&["update-index", "--split-index"]);
            is_read_as_told();
        }
    }

    #[test]
    fn t8_git_reads_a_file_that_is_doubted() {
        for version in ["2", "3", "4"] {
            let scratch = Scratch::create("ralph-index-", false).unwrap();
            let git = |args: &[&str]| in_test(scratch.path(), args, &[]);
            git(&["init", "-q"]);
            for name in ["assumed", "kept out", "z"] {
                write_whole(&scratch.path().join(name), b"one").unwrap();
            }
            git(&["add", "-A"]);
            git(&["update-index", "--index-version", version]);
            git(&["update-index", "--assume-unchanged", "assumed"]);
            git(&["update-index", "--skip-worktree", "kept out"]);
            let mut index = Index::of(&Folders::at(scratch.path()).unwrap().unwrap(), 20).unwrap();
            assert_eq!(index.entries.iter().map(Entry::is_unwatched).collect::<Vec<_>>(), [true, true, false]);
            (0..3).for_each(|n| index.doubt(n));
            index.write(&scratch.path().join(".git/index")).unwrap();
            let told = git(&["ls-files", "-v", "--debug"]);
            let told = String::from_utf8_lossy(&told).into_owned();
            assert_eq!(told.matches("H ").count(), 3, "{told}");
            assert_eq!(told.matches("size: 0").count(), 3, "{told}");
        }
    }

    #[test]
    fn t8_a_broken_index_says_nothing() {
        for bytes in [b"".as_slice(), b"DIRC", b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\x02\xff\xff\xff\xff", &[0; 64]] {
            assert!(Index::parse(bytes.to_vec(), 20, SystemTime::UNIX_EPOCH).is_none(), "{bytes:?}");
        }
    }
}
