//! The digests of files when they were read last: a file that looks the same is not read again.
//!
//! It is kept with the user, where no agent can write. A file is believed to be the same only if its inode, size, mode, and both its times are, to the
//! nanosecond; only the system sets the second of them (the *change* time). And nothing is kept about a file that changed in the two seconds before it
//! was read: it could change once more in the same tick of the clock and look the same.

use std::{
    collections::HashMap,
    fs::{File, Metadata},
    io::Read,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    store::project::Project,
    sys::{clock, digest, files},
};

/// No file system has a coarser clock.
const MARGIN: Duration = Duration::from_secs(2);

/// Some million files.
const LARGEST: usize = 512 << 20;

/// So many trees of a project are remembered: its own, and working trees.
const TREES: usize = 16;

/// The file's first bytes. Another number means another format, which is not read.
const MAGIC: &[u8] = b"ralph tree 1\n";

/// How a file looks from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat([u64; 8]);

const MODE: usize = 2;
const SIZE: usize = 3;
const MODIFIED: usize = 4;
const CHANGED: usize = 6;

impl Stat {
    #[cfg(unix)]
    pub(super) fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()].map(i64::cast_unsigned);
        Stat([meta.dev(), meta.ino(), u64::from(meta.mode()), meta.size(), times[0], times[1], times[2], times[3]])
    }

    /// Without a time that only the system sets nothing can be believed.
    #[cfg(not(unix))]
    pub(super) fn of(meta: &Metadata) -> Self {
        Stat([0, 0, 0, meta.len(), 0, 0, u64::MAX, 0])
    }

    pub(super) fn size(&self) -> u64 {
        self.0[SIZE]
    }

    /// Its size and when it was written.
    pub(super) fn digest(&self) -> [u8; 32] {
        let numbers = [self.0[SIZE], self.0[MODIFIED], self.0[MODIFIED + 1]];
        digest::raw(&numbers.map(u64::to_be_bytes).concat())
    }

    pub(super) fn is_runnable(&self) -> bool {
        self.0[MODE] & 0o100 != 0
    }

    /// Whether both times are so long ago that a later change would show.
    fn is_settled(&self, now_ms: i64) -> bool {
        let limit = now_ms.saturating_sub(i64::try_from(MARGIN.as_millis()).unwrap_or(i64::MAX));
        [MODIFIED, CHANGED].iter().all(|at| {
            let (seconds, nanoseconds) = (self.0[*at].cast_signed(), self.0[at + 1].cast_signed());
            seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000) < limit
        })
    }
}

#[derive(Debug)]
pub(super) struct Seen {
    files: HashMap<String, (Stat, [u8; 32])>,
    name: String,
    is_new: bool,
}

impl Seen {
    pub(super) fn none(root: &Path) -> Self {
        let name = format!("trees/{}", digest::short(root.as_os_str().as_encoded_bytes()));
        Seen { files: HashMap::new(), name, is_new: false }
    }

    /// What the project remembers about the tree at `root`.
    pub(super) fn load(project: &Project, root: &Path) -> Self {
        let none = Seen::none(root);
        let bytes = || files::read(&project.state_file(&none.name)?, LARGEST).ok();
        let files = bytes().and_then(|bytes| read(&bytes)).unwrap_or_default();
        Seen { files, ..none }
    }

    /// The digest of a file's content. `None`: it cannot be read, or not in time.
    pub(super) fn digest(&mut self, root: &Path, path: &str, stat: &Stat, until: Instant) -> Option<[u8; 32]> {
        if let Some((_, digest)) = self.files.get(path).filter(|(then, _)| then == stat && cfg!(unix)) {
            return Some(*digest);
        }
        let now = clock::now();
        let (file, _) = files::open_regular(&root.join(path)).ok()?;
        let before = Stat::of(&file.metadata().ok()?);
        let digest = content(&file, until)?;
        let after = Stat::of(&file.metadata().ok()?);
        if before == *stat && after == *stat && stat.is_settled(now) {
            self.files.insert(path.to_owned(), (*stat, digest));
            self.is_new = true;
        } else {
            self.files.remove(path);
        }
        Some(digest)
    }

    #[cfg(test)]
    pub(super) fn knows(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Keeps what is known about the files that are there. If that cannot be, they are read again.
    pub(super) fn save(&mut self, project: &Project, is_there: impl Fn(&str) -> bool) {
        if !std::mem::take(&mut self.is_new) {
            return;
        }
        self.files.retain(|path, _| is_there(path));
        let Ok(path) = project.make_state_file(&self.name) else { return };
        if files::replace_private(&path, &self.written()).is_ok() {
            files::prune_beside(&path, TREES);
        }
    }

    fn written(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for (path, (stat, digest)) in &self.files {
            let length = u32::try_from(path.len()).unwrap_or(0);
            out.extend(length.to_be_bytes());
            out.extend(path.as_bytes());
            out.extend(stat.0.iter().flat_map(|number| number.to_be_bytes()));
            out.extend(digest);
        }
        out
    }
}

/// Reads what [`Seen::written`] wrote; anything else says nothing.
fn read(bytes: &[u8]) -> Option<HashMap<String, (Stat, [u8; 32])>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut all = HashMap::with_capacity(rest.len() / 160);
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (path, after) = after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        let (stat, after) = after.split_first_chunk::<64>()?;
        let (digest, after) = after.split_first_chunk::<32>()?;
        let mut numbers = [0; 8];
        for (number, bytes) in numbers.iter_mut().zip(stat.chunks_exact(8)) {
            *number = u64::from_be_bytes(bytes.try_into().ok()?);
        }
        all.insert(String::from_utf8(path.to_vec()).ok()?, (Stat(numbers), *digest));
        rest = after;
    }
    Some(all)
}

fn content(mut file: &File, until: Instant) -> Option<[u8; 32]> {
    let mut whole = digest::Running::default();
    let mut part = vec![0; 1 << 16];
    loop {
        // A file that grows as fast as it is read has no end.
        if Instant::now() > until {
            return None;
        }
        match file.read(&mut part).ok()? {
            0 => return Some(whole.finish_raw()),
            n => whole.add(&part[..n]),
        }
    }
}
