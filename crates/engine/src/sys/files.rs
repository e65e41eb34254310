//! Files that are written whole or not at all, and never through a link that somebody planted.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use crate::sys::random;

/// Reads a whole file; a larger one than `max` is an error.
pub fn read(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let (file, size) = open_regular(path)?;
    // One byte more than is expected, so that the end is seen without another growth of the buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(max).min(max) + 1);
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

/// The first bytes of a file, at most `max`.
pub fn read_head(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.0.take(max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether an error says that there is no such file.
pub fn is_missing(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The last bytes of a file, at most so many.
pub fn read_end(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let (mut file, size) = open_regular(path)?;
    file.seek(SeekFrom::Start(size.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a plain file to read, and says how long it is. Anything else, a pipe above all, could keep a hook waiting for ever.
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let mut options = File::options();
    flags::do_not_wait(options.read(true));
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta.len())) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file")) }
}

/// Whether some process holds the lock of a file. One that died does not.
pub fn is_locked(path: &Path) -> bool {
    open_regular(path).is_ok_and(|(file, _)| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether files can be made in a folder, without trying.
#[cfg(unix)]
pub fn may_write_into(folder: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
pub fn may_write_into(_folder: &Path) -> bool {
    true
}

/// Options for files of ralph's own: they do not follow a link in the last component, and what they make is for this user alone.
pub fn options() -> OpenOptions {
    let mut options = named_options();
    flags::private(&mut options);
    options
}

/// The same for files that a person named: who may read those is the person's affair.
fn named_options() -> OpenOptions {
    let mut options = File::options();
    flags::do_not_follow(&mut options);
    options
}

/// Makes a folder of ralph's own, and those around it, for this user alone.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    flags::private_folder(builder.recursive(true));
    builder.create(folder)
}

/// Takes from others what they may do with a file or folder of ralph's own; whether they could do anything.
pub fn make_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| flags::make_private(path, &meta))
}

/// Whether others can read or change it.
pub fn is_open_to_others(meta: &Metadata) -> bool {
    flags::is_open_to_others(meta)
}

#[cfg(unix)]
mod flags {
    use std::{
        fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
        io,
        os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
        path::Path,
    };

    use rustix::fs::OFlags;

    /// Nor wait: a pipe in the place of a file is an error, not a reason to hang.
    pub(super) fn do_not_follow(options: &mut OpenOptions) {
        set(options, OFlags::NOFOLLOW | OFlags::NONBLOCK);
    }

    pub(super) fn do_not_wait(options: &mut OpenOptions) {
        set(options, OFlags::NONBLOCK);
    }

    pub(super) fn private(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    pub(super) fn private_folder(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    pub(super) fn is_open_to_others(meta: &Metadata) -> bool {
        !meta.is_symlink() && meta.permissions().mode() & 0o077 != 0
    }

    /// Another user's file stays as it is.
    pub(super) fn make_private(path: &Path, meta: &Metadata) -> bool {
        // Where modes cannot be changed, nothing was: who asks need not look any further.
        is_open_to_others(meta)
            && fs::set_permissions(path, Permissions::from_mode(meta.permissions().mode() & 0o700)).is_ok()
            && fs::symlink_metadata(path).is_ok_and(|now| !is_open_to_others(&now))
    }

    /// Everybody may run it, whatever the mask says: that is what it was asked for.
    pub(super) fn make_runnable(file: &File) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(0o755))
    }

    fn set(options: &mut OpenOptions, flags: OFlags) {
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
}

/// Windows makes links only for those who may do more than that, and has no pipes among its files.
#[cfg(not(unix))]
mod flags {
    use std::{
        fs::{DirBuilder, File, Metadata, OpenOptions},
        io,
        path::Path,
    };

    pub(super) fn do_not_follow(_options: &mut OpenOptions) {}

    pub(super) fn do_not_wait(_options: &mut OpenOptions) {}

    /// The user's own folders are private there.
    pub(super) fn private(_options: &mut OpenOptions) {}

    pub(super) fn private_folder(_builder: &mut DirBuilder) {}

    pub(super) fn is_open_to_others(_meta: &Metadata) -> bool {
        false
    }

    pub(super) fn make_private(_path: &Path, _meta: &Metadata) -> bool {
        false
    }

    #[expect(clippy::unnecessary_wraps, reason = "the same shape as elsewhere")]
    pub(super) fn make_runnable(_file: &File) -> io::Result<()> {
        Ok(())
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

/// Adds a line to a log. One that is longer than `max` then is put aside as `.log.old`.
pub fn append_bounded(path: &Path, line: &[u8], max: u64) -> io::Result<()> {
    let mut file = options().append(true).create(true).open(path)?;
    file.write_all(line)?;
    // Several processes may find it full at the same moment: the one that locks the file while that still has this name puts it aside.
    let is_full = file.metadata()?.len() > max;
    if is_full && wait_for_lock(&file, Duration::from_millis(100))? && has_name(&file, path) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    Ok(())
}

/// Whether an open file is the one that has this name now.
#[cfg(unix)]
fn has_name(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |meta: Metadata| (meta.dev(), meta.ino());
    file.metadata().ok().map(id) == fs::symlink_metadata(path).ok().map(id)
}

/// By its size, where files have no number.
#[cfg(not(unix))]
fn has_name(file: &File, path: &Path) -> bool {
    file.metadata().ok().map(|meta| meta.len()) == fs::symlink_metadata(path).ok().map(|meta| meta.len())
}

/// Takes the lock of an open file, which has it until it is closed. `false`: somebody else held it for as long as `patience`.
pub fn wait_for_lock(file: &File, patience: Duration) -> io::Result<bool> {
    let mut waited = Duration::ZERO;
    let mut pause = Duration::from_micros(200);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if waited < patience => {
                thread::sleep(pause);
                waited += pause;
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Keeps other ralph processes away from the files of a folder for as long as the result lives. The folder itself is what is locked: everybody who can write
/// there agrees on it, whichever project, worktree or home they come from, and nothing is left behind. `None`: it cannot be locked, or is not free in time.
pub fn alone_in(folder: &Path, patience: Duration) -> Option<File> {
    let folder = File::open(folder).ok()?;
    wait_for_lock(&folder, patience).ok()?.then_some(folder)
}

/// Whether a file was last changed longer ago than that.
pub fn is_older(meta: &Metadata, age: Duration) -> bool {
    meta.modified().is_ok_and(|at| at.elapsed().is_ok_and(|passed| passed > age))
}

/// When a file was last changed, in milliseconds since the epoch; 0 where nobody knows.
pub fn changed_ms(meta: &Metadata) -> u64 {
    meta.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).map_or(0, ralph_core::text::time::millis)
}

/// Adds whole lines to the end of a text file, making it and its folder if need be.
pub fn add_lines(path: &Path, lines: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let ends_open = fs::read(path).is_ok_and(|text| text.last().is_some_and(|b| *b != b'\n'));
    append_named(path, format!("{}{lines}", if ends_open { "\n" } else { "" }).as_bytes())
}

/// Writes a file that must not be there yet: complete from the moment that it has its name.
pub fn create_new(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    write_synced(temporary, bytes, Mode::Usual)?;
    let result = move_new(temporary, path);
    if result.is_err() {
        let _ = fs::remove_file(temporary);
    }
    result
}

/// Writes a small file of ralph's own, replacing the old one at once.
pub fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(&mut options(), path, temporary, bytes)
}

/// The same for a file that a person named.
pub fn replace_named(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(&mut named_options(), path, temporary, bytes)
}

fn replace_with(options: &mut OpenOptions, path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = options.write(true).create(true).truncate(true).open(temporary).and_then(|mut file| file.write_all(bytes));
    // What could not be written, or not be put there, is of no use to anybody.
    written.and_then(|()| fs::rename(temporary, path)).inspect_err(|_| drop(fs::remove_file(temporary)))
}

/// Writes to a place that a person named. A terminal, a pipe or the like is written to, and stays what it is.
pub fn write_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    write_whole(path, bytes)
}

/// Writes a file that a person asked for, whole, making its folder.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    replace_named(path, &path.with_extension(format!("new-{}", std::process::id())), bytes)
}

/// Writes a file of ralph's own, whole, making its folder.
pub fn write_own(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    replace_private(path, bytes)
}

/// Copies a program to its place, making its folder. Beside first, then in its place: a program that runs cannot be written to. The file beside is a new
/// one, under a name that nobody can have put a link at.
pub fn place_program(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = to.with_file_name(format!(".ralph-{}-{:016x}", std::process::id(), random::number()));
    let mut file = options().write(true).create_new(true).open(&beside)?;
    let copied = File::open(from).and_then(|mut from| io::copy(&mut from, &mut file)).and_then(|_| flags::make_runnable(&file));
    drop(file);
    let placed = copied.and_then(|()| fs::rename(&beside, to));
    if placed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    placed
}

/// Writes a small file of ralph's own that nobody else may read.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Two threads of one process may write the same file.
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    replace(path, &path.with_extension(format!("new-{}-{number}", std::process::id())), bytes)
}

/// How an attempt to change a file that others change too came out.
#[derive(Debug, PartialEq, Eq)]
pub enum Swapped {
    Done,
    /// Somebody removed the file meanwhile. It stays removed.
    Gone,
    /// Somebody changed the file meanwhile. Their version stays.
    Changed,
}

/// Replaces the contents of `path`, which were `old`, by `new`. Afterwards `backup` holds the version before.
///
/// The new version is written beside and then *exchanged* with the old one in a single step. An exchange fails where there is nothing to
/// exchange with, so a file that somebody deleted can never come back, not even in a race; and what comes out of the exchange shows
/// whether it was really the version that the change was made from.
///
/// Whoever calls this holds a lock that keeps other ralph processes from `path` and from `backup`: between the exchange and its undoing a third writer
/// could build on a version that is about to go. Editors and agents know no lock; against them the exchange does what can be done.
pub fn swap(path: &Path, backup: &Path, old: &[u8], new: &[u8]) -> io::Result<Swapped> {
    write_synced(backup, new, Mode::LikeItsTarget)?;
    copy_mode(path, backup);
    match exchange(path, backup) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Swapped::Gone),
        Err(e) if is_unsupported(&e) => return swap_by_rename(path, backup, old, new),
        other => other?,
    }
    let mut theirs = fs::read(backup)?;
    if theirs == old {
        return Ok(Swapped::Done);
    }
    // Back with what somebody else wrote. Meanwhile there may be something newer still: what comes out must be what was put in, or it goes back too.
    let mut ours = new.to_vec();
    for _ in 0..ATTEMPTS_TO_GIVE_BACK {
        exchange(path, backup)?;
        let out = fs::read(backup)?;
        if out == ours {
            break;
        }
        ours = std::mem::replace(&mut theirs, out);
    }
    Ok(Swapped::Changed)
}

/// The same where the version before is kept among ralph's own files.
pub fn swap_keeping(path: &Path, backup: &Path, old: &[u8], new: &[u8]) -> io::Result<Swapped> {
    let swapped = swap(path, backup, old, new);
    make_private(backup);
    swapped
}

/// Whether somebody writes into a file within that time.
pub fn changes_within(path: &Path, time: Duration) -> bool {
    let before = fs::read(path).ok();
    thread::sleep(time);
    before.is_some() && fs::read(path).ok().is_some_and(|now| Some(now) != before)
}

/// Somebody who writes faster than this for so long writes for ever.
const ATTEMPTS_TO_GIVE_BACK: usize = 1_000;

/// Where the file system cannot exchange (some network ones), or the two lie on different ones: look, then rename. Between the two lies the only
/// gap in which a deletion could be lost.
fn swap_by_rename(path: &Path, backup: &Path, old: &[u8], new: &[u8]) -> io::Result<Swapped> {
    let beside = path.with_extension("ralph-new");
    write_synced(&beside, new, Mode::LikeItsTarget)?;
    copy_mode(path, &beside);
    let swapped = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Swapped::Gone),
        Err(e) => Err(e),
        Ok(current) if current != old => Ok(Swapped::Changed),
        Ok(_) => fs::rename(&beside, path).map(|()| Swapped::Done),
    };
    match swapped {
        Ok(Swapped::Done) => write_synced(backup, old, Mode::LikeItsTarget)?,
        _ => fs::remove_file(&beside)?,
    }
    swapped
}

/// Moves a file to a name that must be free, to another file system too: there it is copied, and the old one goes only when the new one is on the disk.
pub fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    match rename_new(from, to) {
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            let bytes = fs::read(from)?;
            let mut file = options().write(true).create_new(true).open(to)?;
            file.write_all(&bytes)?;
            file.sync_data()?;
            fs::remove_file(from)
        }
        other => other,
    }
}

/// Who may read a new file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Usual,
    /// Nobody else, until it has the permissions of the file that it will be: that one may hold secrets.
    LikeItsTarget,
}

/// Writes `bytes` to `path` and makes sure that they are on the disk: a rename that survives a power cut must not name an empty file.
fn write_synced(path: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    // A loop file that was a link lies here after its first change, as the link that it was.
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
        fs::remove_file(path)?;
    }
    let mut options = if mode == Mode::LikeItsTarget { options() } else { named_options() };
    let mut file = options.write(true).create(true).truncate(false).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_data()
}

/// Gives a new version what the file itself has: who may read it, and whose it is, as far as that is allowed. Root works on other people's files.
fn copy_mode(from: &Path, to: &Path) {
    let (Ok(theirs), Ok(ours)) = (fs::symlink_metadata(from), fs::symlink_metadata(to)) else { return };
    if !theirs.is_file() {
        return;
    }
    // First, while nobody else may read it; it also takes away bits that must not come with another owner.
    owner::copy(&theirs, &ours, to);
    if ours.permissions() != theirs.permissions() {
        let _ = fs::set_permissions(to, theirs.permissions());
    }
}

#[cfg(unix)]
mod owner {
    use std::{
        fs::Metadata,
        os::unix::fs::{MetadataExt, lchown},
        path::Path,
    };

    /// Nothing is asked of the system where owner and group are the same already.
    pub(super) fn copy(theirs: &Metadata, ours: &Metadata, to: &Path) {
        let uid = Some(theirs.uid()).filter(|uid| *uid != ours.uid());
        let gid = Some(theirs.gid()).filter(|gid| *gid != ours.gid());
        if uid.is_some() && lchown(to, uid, gid).is_ok() {
            return;
        }
        // A group that one is in oneself may be given without being root.
        if gid.is_some() {
            let _ = lchown(to, None, gid);
        }
    }
}

#[cfg(not(unix))]
mod owner {
    use std::{fs::Metadata, path::Path};

    pub(super) fn copy(_theirs: &Metadata, _ours: &Metadata, _to: &Path) {}
}

/// Moves a file to a name that must be free.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        Err(e) if is_unsupported(&e) && e.kind() != io::ErrorKind::CrossesDevices => link_new(from, to),
        other => other,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    link_new(from, to)
}

/// A hard link never replaces anything either.
fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Lets two files change places in one step, where the system can.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).map_err(io::Error::from)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn is_unsupported(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput | io::ErrorKind::CrossesDevices)
}

/// Removes the oldest files of a file's folder until there are no more than `kept`.
pub fn prune_beside(file: &Path, kept: usize) {
    let mut all: Vec<(Duration, PathBuf)> = file
        .parent()
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?, entry.path())))
        .collect();
    if all.len() > kept {
        all.sort();
        for (_, path) in &all[..all.len() - kept] {
            let _ = fs::remove_file(path);
        }
    }
}
