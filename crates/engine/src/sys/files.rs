//! Files that are read within bounds and written whole or not at all, never through a planted link.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, DirEntry, File, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime},
};

use crate::sys::{lock, random};

/// Reads a whole file; a larger one than `max` is an error.
pub fn read(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let (file, size) = open_regular(path)?;
    // One byte more than expected, so that the end is seen without growing the buffer again.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(max).min(max) + 1);
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

/// The first bytes of a file, at most `max`.
pub(crate) fn read_head(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(max);
    open_regular(path)?.0.take(max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last bytes of a file, at most `max`.
pub(crate) fn read_end(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let (mut file, size) = open_regular(path)?;
    file.seek(SeekFrom::Start(size.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a plain file to read, and returns its size. Anything else, such as a pipe, could keep a hook waiting for ever.
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let mut options = File::options();
    platform::no_wait(options.read(true));
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta.len())) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file")) }
}

/// A path without links, as [`Path::canonicalize`] finds it. The usual path has none, and Linux tells that with one look; the C library looks at each part of it.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use std::path::Component;
    let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    let has_no_link = || openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS).is_ok();
    if is_plain && has_no_link() { Ok(path.components().collect()) } else { path.canonicalize() }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// The names in a folder, and whether each is that of a file or a link. On Unix without the C library, whose first piece of memory takes longer than all of this.
#[cfg(unix)]
pub(crate) fn names(folder: &Path) -> io::Result<Vec<(OsString, bool)>> {
    use rustix::fs::{Dir, FileType, Mode, OFlags, open};
    use std::os::unix::ffi::OsStrExt;
    let opened = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(opened)?.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        let is_file = match entry.file_type() {
            FileType::RegularFile | FileType::Symlink => true,
            // Some file systems do not say.
            FileType::Unknown => fs::symlink_metadata(folder.join(&name)).is_ok_and(|meta| meta.is_file() || meta.is_symlink()),
            _ => false,
        };
        names.push((name, is_file));
    }
    Ok(names)
}

#[cfg(not(unix))]
pub(crate) fn names(folder: &Path) -> io::Result<Vec<(OsString, bool)>> {
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_symlink());
    Ok(fs::read_dir(folder)?.flatten().map(|entry| (entry.file_name(), is_file(&entry))).collect())
}

/// Whether an error means that there is no such file.
pub(crate) fn is_missing(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Options for files of ralph's own: they do not follow a link in the last component, and what they make is private.
pub fn options() -> OpenOptions {
    let mut options = named_options();
    platform::private(&mut options);
    options
}

/// The same for files that a person named, with the usual permissions.
pub(crate) fn named_options() -> OpenOptions {
    let mut options = File::options();
    platform::no_follow_no_wait(&mut options);
    options
}

/// Makes a private folder, and those around it.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    private_folders().recursive(true).create(folder)
}

/// A builder of private folders.
pub(super) fn private_folders() -> DirBuilder {
    let mut builder = DirBuilder::new();
    platform::private_folder(&mut builder);
    builder
}

pub(crate) use platform::is_mine_alone;
pub use platform::{is_mine, is_open_to_others, may_write_into};

/// Makes a file or folder of ralph's own private; returns whether it was open to others before.
pub(crate) fn make_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| platform::make_private(path, &meta))
}

#[cfg(unix)]
mod platform {
    use std::{
        fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
        io,
        os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
        path::Path,
    };

    use rustix::fs::{Access, OFlags, access};

    /// A pipe in the place of a file is an error, not a reason to hang.
    pub(super) fn no_follow_no_wait(options: &mut OpenOptions) {
        set(options, OFlags::NOFOLLOW | OFlags::NONBLOCK);
    }

    pub(super) fn no_wait(options: &mut OpenOptions) {
        set(options, OFlags::NONBLOCK);
    }

    fn set(options: &mut OpenOptions, flags: OFlags) {
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }

    pub(super) fn private(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    pub(super) fn private_folder(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    /// Whether others can read or change it.
    pub fn is_open_to_others(meta: &Metadata) -> bool {
        !meta.is_symlink() && meta.permissions().mode() & 0o077 != 0
    }

    /// Whether it belongs to this user.
    pub fn is_mine(meta: &Metadata) -> bool {
        meta.uid() == rustix::process::geteuid().as_raw()
    }

    /// Whether it belongs to this user and others cannot change it.
    pub(crate) fn is_mine_alone(meta: &Metadata) -> bool {
        is_mine(meta) && meta.mode() & 0o022 == 0
    }

    /// Whether files can be made in a folder, without trying.
    pub fn may_write_into(folder: &Path) -> bool {
        access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    }

    /// Another user's file stays as it is, and so does one on a file system without modes: `false`.
    pub(super) fn make_private(path: &Path, meta: &Metadata) -> bool {
        is_open_to_others(meta)
            && fs::set_permissions(path, Permissions::from_mode(meta.permissions().mode() & 0o700)).is_ok()
            && fs::symlink_metadata(path).is_ok_and(|now| !is_open_to_others(&now))
    }

    /// For everybody, whatever the mask says.
    pub(super) fn make_runnable(file: &File) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(0o755))
    }

    /// Whether an open file is the one that has this name now.
    pub(super) fn has_name(file: &File, path: &Path) -> bool {
        let id = |meta: Metadata| (meta.dev(), meta.ino());
        file.metadata().ok().map(id) == fs::symlink_metadata(path).ok().map(id)
    }
}

/// On Windows the user's own folders are private, links need special rights, and there are no pipes among files.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as elsewhere")]
mod platform {
    use std::{
        fs::{self, DirBuilder, File, Metadata, OpenOptions},
        io,
        path::Path,
    };

    pub(super) fn no_follow_no_wait(_options: &mut OpenOptions) {}

    pub(super) fn no_wait(_options: &mut OpenOptions) {}

    pub(super) fn private(_options: &mut OpenOptions) {}

    pub(super) fn private_folder(_builder: &mut DirBuilder) {}

    pub fn is_open_to_others(_meta: &Metadata) -> bool {
        false
    }

    pub fn is_mine(_meta: &Metadata) -> bool {
        true
    }

    pub(crate) fn is_mine_alone(_meta: &Metadata) -> bool {
        true
    }

    pub fn may_write_into(_folder: &Path) -> bool {
        true
    }

    pub(super) fn make_private(_path: &Path, _meta: &Metadata) -> bool {
        false
    }

    pub(super) fn make_runnable(_file: &File) -> io::Result<()> {
        Ok(())
    }

    /// By its size, where files have no number.
    pub(super) fn has_name(file: &File, path: &Path) -> bool {
        file.metadata().ok().map(|meta| meta.len()) == fs::symlink_metadata(path).ok().map(|meta| meta.len())
    }
}

/// Adds `bytes` to the end of a file in one write.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    options().append(true).create(true).open(path)?.write_all(bytes)
}

/// The same for a file that a person named.
pub fn append_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    named_options().append(true).create(true).open(path)?.write_all(bytes)
}

/// Adds a line to a log. When that is longer than `max`, it is put aside as `.log.old`.
pub fn append_bounded(path: &Path, line: &[u8], max: u64) -> io::Result<()> {
    let mut file = options().append(true).create(true).open(path)?;
    file.write_all(line)?;
    // Several processes may find it full at the same moment: the one that locks the file while it still has this name puts it aside.
    let is_full = file.metadata()?.len() > max;
    if is_full && lock::wait_for(&file, Duration::from_millis(100))? && platform::has_name(&file, path) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    Ok(())
}

/// Adds whole lines to the end of a text file, making it and its folder if need be.
pub fn add_lines(path: &Path, lines: &str) -> io::Result<()> {
    make_parent(path)?;
    let ends_open = fs::read(path).is_ok_and(|text| text.last().is_some_and(|b| *b != b'\n'));
    append_named(path, format!("{}{lines}", if ends_open { "\n" } else { "" }).as_bytes())
}

/// Whether a file was last changed longer ago than that.
pub fn is_older(meta: &Metadata, age: Duration) -> bool {
    meta.modified().is_ok_and(|at| at.elapsed().is_ok_and(|passed| passed > age))
}

/// When a file was last changed, in milliseconds since the epoch; 0 where that is unknown.
pub(crate) fn changed_ms(meta: &Metadata) -> u64 {
    meta.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).map_or(0, ralph_core::text::time::millis)
}

/// Writes a small file of ralph's own, private, replacing the old one in one step.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(&mut options(), path, bytes)
}

/// Writes a file that a person asked for, whole, making its folder.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_parent(path)?;
    replace(&mut named_options(), path, bytes)
}

/// Writes to a place that a person named. A terminal, a pipe or the like is written to, and stays what it is.
pub fn write_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    write_whole(path, bytes)
}

fn replace(options: &mut OpenOptions, path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Two threads of one process may write the same file.
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("new-{}-{number}", std::process::id()));
    let written = options.write(true).create(true).truncate(true).open(&temporary).and_then(|mut file| file.write_all(bytes));
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Copies a program to its place, making its folder. It is copied beside first, because a running program cannot be written to; the file beside is a new
/// one, under a name that cannot be guessed and linked before.
pub fn place_program(from: &Path, to: &Path) -> io::Result<()> {
    make_parent(to)?;
    let beside = to.with_file_name(format!(".ralph-{}-{:016x}", std::process::id(), random::number()));
    let mut file = options().write(true).create_new(true).open(&beside)?;
    let copied = File::open(from).and_then(|mut from| io::copy(&mut from, &mut file)).and_then(|_| platform::make_runnable(&file));
    drop(file);
    copied.and_then(|()| fs::rename(&beside, to)).inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Removes the oldest files of a file's folder if there are more than `kept`; then a few more, so that not every new file has to ask for the age of all.
pub(crate) fn prune_beside(file: &Path, kept: usize) {
    prune_others(file, kept, &|_| false);
}

/// The same, but for files with names that are `needed`, however old they are.
pub(crate) fn prune_others(file: &Path, kept: usize, needed: &dyn Fn(&str) -> bool) {
    let folder = file.parent().and_then(|folder| fs::read_dir(folder).ok());
    let entries: Vec<DirEntry> = folder.into_iter().flatten().flatten().collect();
    if entries.len() <= kept {
        return;
    }
    let mut all: Vec<(SystemTime, PathBuf)> =
        entries.iter().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    all.sort();
    let is_needed = |path: &Path| path.file_name().and_then(OsStr::to_str).is_some_and(needed);
    let old = &all[..all.len().saturating_sub(kept - kept / 10)];
    for (_, path) in old.iter().filter(|(_, path)| !is_needed(path)) {
        let _ = fs::remove_file(path);
    }
}
