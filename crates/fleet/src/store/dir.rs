//! A folder as the store: for one machine, without a server. Not for network file systems.
//!
//! `keys/<key>/<n>` is revision n of a key. A writer links a finished file to the name after the one that it saw; a name is given once, because `link` never
//! replaces, and no revision is removed while the fleet lives, because a writer that slept could be given its number again; old ones are emptied. So the numbers of
//! a key have no gap, and the newest one is found by halving. `changes` names the keys in the order in which they were written. A writer that dies before its line is in there
//! is made good by a look at everything, now and then.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use ralph_engine::sys::random;

use super::{Changes, Cursor, Entry, Error, Hold, Holder, Put, Revision, Store, is_key, is_word};

/// How long changes are followed, at least, before everything is listed anew.
const TRUSTED_FOR: Duration = Duration::from_secs(5);

/// And how many times as long as the last list took: what is large is not listed all the time.
const LIST_SHARE: u32 = 20;

/// How long a worker tries to take its name: someone may be looking whether it is free.
const PATIENCE: Duration = Duration::from_secs(2);

/// So many revisions of a key have their values: to see what happened. Readers want the newest alone.
const KEPT: Revision = 64;

#[derive(Debug)]
pub struct Dir {
    root: PathBuf,
    stretch: Mutex<Stretch>,
}

/// A time for which changes are followed. When it is over, a reader lists everything.
#[derive(Debug)]
struct Stretch {
    number: u64,
    ends: Instant,
    /// How long the last list of everything took.
    list_took: Duration,
}

/// The lock of a worker's file, which no child inherits.
#[derive(Debug)]
struct Name(#[expect(dead_code, reason = "it is held, not read")] File);

impl Hold for Name {}

impl Dir {
    /// Opens the store in a folder, which is made if need be, for its user alone.
    pub fn open(root: &Path) -> Result<Self, Error> {
        for folder in ["keys", "logs", "workers", "unfinished"] {
            make(&root.join(folder)).map_err(|e| told(&e, "make", &root.join(folder)))?;
        }
        let stretch = Stretch { number: 1, ends: Instant::now() + TRUSTED_FOR, list_took: Duration::ZERO };
        Ok(Dir { root: root.to_owned(), stretch: Mutex::new(stretch) })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self, key: &str) -> Result<PathBuf, Error> {
        if is_key(key) { Ok(self.root.join("keys").join(key)) } else { Err(Error::Broken(format!("“{key}” is no key"))) }
    }

    /// Writes the value to a file of its own, whole and on the disk.
    fn write_unlinked(&self, value: &[u8]) -> Result<PathBuf, Error> {
        // Machines and containers that share the folder have the same process ids.
        let path = self.root.join("unfinished").join(random::uuid());
        let written = (|| {
            let mut file = private().write(true).create_new(true).open(&path)?;
            file.write_all(value)?;
            file.sync_data()
        })();
        match written {
            Ok(()) => Ok(path),
            Err(e) => {
                let _ = fs::remove_file(&path);
                Err(told(&e, "write", &path))
            }
        }
    }

    fn stretch(&self) -> MutexGuard<'_, Stretch> {
        let mut stretch = self.stretch.lock().unwrap_or_else(PoisonError::into_inner);
        if stretch.ends <= Instant::now() {
            stretch.number += 1;
            stretch.ends = Instant::now() + TRUSTED_FOR.max(stretch.list_took * LIST_SHARE);
        }
        stretch
    }
}

impl Store for Dir {
    fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        let folder = self.folder(key)?;
        loop {
            let revision = newest(&folder);
            if revision == 0 {
                return Ok(None);
            }
            let path = folder.join(revision.to_string());
            let value = fs::read(&path).map_err(|e| told(&e, "read", &path))?;
            // One that is newer: this one may have been emptied in the middle of the reading.
            if folder.join((revision + 1).to_string()).symlink_metadata().is_err() {
                return Ok(Some(Entry { revision, value }));
            }
        }
    }

    fn put_if(&self, key: &str, value: &[u8], revision: Revision) -> Result<Put, Error> {
        let folder = self.folder(key)?;
        if revision == 0 {
            make(&folder).map_err(|e| told(&e, "make", &folder))?;
        } else if !folder.join(revision.to_string()).exists() {
            return Err(Error::Broken(format!("{key} has no revision {revision}")));
        }
        let next = folder.join((revision + 1).to_string());
        if next.exists() {
            return Ok(Put::Lost);
        }
        let unlinked = self.write_unlinked(value)?;
        let linked = fs::hard_link(&unlinked, &next);
        let _ = fs::remove_file(&unlinked);
        match linked {
            Ok(()) => {
                // The value is there. Readers who miss this line find it when they list everything.
                let _ = append_to(&self.root.join("changes"), key);
                if revision >= KEPT {
                    empty(&folder, revision + 1 - KEPT);
                }
                Ok(Put::Stored(revision + 1))
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(Put::Lost),
            Err(e) => Err(told(&e, "write", &next)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, Entry)>, Error> {
        let (keys, began) = (self.root.join("keys"), Instant::now());
        let mut all = Vec::new();
        for entry in fs::read_dir(&keys).map_err(|e| told(&e, "read", &keys))? {
            let name = entry.map_err(|e| told(&e, "read", &keys))?.file_name();
            let Some(key) = name.to_str().filter(|key| key.starts_with(prefix) && is_key(key)) else { continue };
            if let Some(entry) = self.get(key)? {
                all.push((key.to_owned(), entry));
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        if prefix.is_empty() {
            self.stretch().list_took = began.elapsed();
        }
        Ok(all)
    }

    fn changes(&self, cursor: &mut Cursor) -> Result<Changes, Error> {
        let path = self.root.join("changes");
        let length = fs::metadata(&path).map_or(0, |file| file.len());
        let stretch = self.stretch().number;
        if cursor.of != stretch || length < cursor.at {
            *cursor = Cursor { at: length, of: stretch };
            return Ok(Changes::Unknown);
        }
        if length == cursor.at {
            return Ok(Changes::Of(Vec::new()));
        }
        let bytes = whole_lines(&path, cursor.at, length - cursor.at).map_err(|e| told(&e, "read", &path))?;
        let text = String::from_utf8_lossy(&bytes);
        let keys: BTreeSet<&str> = text.lines().collect();
        let mut changed = Vec::with_capacity(keys.len());
        for key in keys {
            changed.extend(self.get(key)?.map(|entry| (key.to_owned(), entry)));
        }
        // Only now: after an error the same changes are read again.
        cursor.at += bytes.len() as u64;
        Ok(Changes::Of(changed))
    }

    fn let_go(&self, key: &str) -> Result<(), Error> {
        let folder = self.folder(key)?;
        (1..newest(&folder)).for_each(|revision| empty(&folder, revision));
        Ok(())
    }

    fn append(&self, log: &str, line: &str) -> Result<(), Error> {
        if !is_key(log) {
            return Err(Error::Broken(format!("“{log}” is no name of a log")));
        }
        append_to(&self.root.join("logs").join(log), line)
    }

    fn log_since(&self, log: &str, from: &mut u64) -> Result<Vec<String>, Error> {
        let path = self.root.join("logs").join(log);
        match whole_lines(&path, *from, u64::MAX) {
            Ok(text) => {
                *from += text.len() as u64;
                Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(told(&e, "read", &path)),
        }
    }

    fn hold(&self, worker: &str) -> Result<Box<dyn Hold>, Error> {
        let path = lock_file(&self.root, worker)?;
        let file = private().read(true).append(true).create(true).open(&path).map_err(|e| told(&e, "make", &path))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Box::new(Name(file))),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
                Err(TryLockError::WouldBlock) => return Err(Error::Denied(format!("another worker has the name {worker}"))),
                Err(TryLockError::Error(e)) => return Err(told(&e, "lock", &path)),
            }
        }
    }

    fn is_gone(&self, holder: Holder<'_>) -> Result<bool, Error> {
        let path = lock_file(&self.root, holder.worker)?;
        match File::open(&path) {
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => Ok(true),
                Err(TryLockError::WouldBlock) => Ok(false),
                Err(TryLockError::Error(e)) => Err(told(&e, "lock", &path)),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(e) => Err(told(&e, "read", &path)),
        }
    }
}

/// Takes an old revision's value away. Its name stays, so that no writer is given its number again.
fn empty(folder: &Path, revision: Revision) {
    let path = folder.join(revision.to_string());
    if path.metadata().is_ok_and(|file| file.len() > 0) {
        let _ = OpenOptions::new().write(true).truncate(true).open(path);
    }
}

/// The lines of a file from there on, at most so many bytes of them. One that is still being written is read the next time.
fn whole_lines(path: &Path, from: u64, most: u64) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (File::open(path)?, Vec::new());
    file.seek(SeekFrom::Start(from))?;
    file.take(most).read_to_end(&mut bytes)?;
    bytes.truncate(bytes.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1));
    Ok(bytes)
}

fn append_to(path: &Path, line: &str) -> Result<(), Error> {
    let whole = format!("{}\n", line.replace('\n', " "));
    // One write of a line to a file that is opened for appending: lines of two writers do not mix.
    let done = private().append(true).create(true).open(path).and_then(|mut file| file.write_all(whole.as_bytes()));
    done.map_err(|e| told(&e, "write", path))
}

fn lock_file(root: &Path, worker: &str) -> Result<PathBuf, Error> {
    if is_word(worker) {
        Ok(root.join("workers").join(worker))
    } else {
        Err(Error::Broken(format!("“{worker}” is no name of a worker")))
    }
}

/// The newest revision of a key: its numbers begin with 1 and have no gap.
fn newest(folder: &Path) -> Revision {
    let exists = |n: Revision| folder.join(n.to_string()).symlink_metadata().is_ok();
    if !exists(1) {
        return 0;
    }
    let (mut there, mut step) = (1, 1);
    while exists(there + step) {
        there += step;
        step *= 2;
    }
    // It is there, and what lies `step` further is not: halve the way between them.
    while step > 1 {
        step /= 2;
        if exists(there + step) {
            there += step;
        }
    }
    // What was written meanwhile counts, too.
    while exists(there + 1) {
        there += 1;
    }
    there
}

fn told(error: &io::Error, verb: &str, path: &Path) -> Error {
    let words = format!("cannot {verb} {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full(words),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::Denied(words),
        _ => Error::Broken(words),
    }
}

/// Makes a folder for its user alone.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// How a file is opened that is for its user alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
