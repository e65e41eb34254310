//! Changes to files that others change at the same time: a deleted file never comes back, and another writer's version stays.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use crate::sys::files::{make_private, named_options, options};

/// The outcome of a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Swapped {
    Done,
    /// The file was removed meanwhile. It stays removed.
    Gone,
    /// The file was changed meanwhile. The other version stays.
    Changed,
}

/// How often another writer's newer version is put back. One that writes faster than this for so long never stops.
const ATTEMPTS_TO_GIVE_BACK: usize = 1_000;

/// Replaces the contents of `path`, which were `old`, by `new`. Afterwards `backup` holds the version before.
///
/// The new version is written to `backup` and then *exchanged* with the old one in a single step. An exchange fails where there is nothing to exchange
/// with, so a deleted file cannot come back, not even in a race; and what comes out of the exchange shows whether it was the version that the change
/// was made from.
///
/// The caller holds a lock that keeps other ralph processes from `path` and `backup`: between the exchange and its undoing a third writer could build on
/// a version that is about to go. Editors and agents know no lock; against them the exchange does what can be done.
pub(crate) fn swap(path: &Path, backup: &Path, old: &[u8], new: &[u8]) -> io::Result<Swapped> {
    copy_mode(path, &write_synced(backup, new, Mode::LikeItsTarget)?);
    match exchange(path, backup) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Swapped::Gone),
        Err(e) if is_unsupported(&e) => return swap_by_rename(path, backup, old, new),
        other => other?,
    }
    let mut theirs = fs::read(backup)?;
    if theirs == old {
        return Ok(Swapped::Done);
    }
    // Put the other version back. Meanwhile there may be a newer one still: what comes out must be what was put in, or it goes back too.
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

/// The same where `backup` is one of ralph's own files.
pub(crate) fn swap_keeping(path: &Path, backup: &Path, old: &[u8], new: &[u8]) -> io::Result<Swapped> {
    let swapped = swap(path, backup, old, new);
    make_private(backup);
    swapped
}

/// For file systems that cannot exchange (some network ones), and where the two files are on different ones: look, then rename. A deletion can be lost
/// only between these two.
fn swap_by_rename(path: &Path, backup: &Path, old: &[u8], new: &[u8]) -> io::Result<Swapped> {
    let beside = path.with_extension("ralph-new");
    copy_mode(path, &write_synced(&beside, new, Mode::LikeItsTarget)?);
    let swapped = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Swapped::Gone),
        Err(e) => Err(e),
        Ok(current) if current != old => Ok(Swapped::Changed),
        Ok(_) => fs::rename(&beside, path).map(|()| Swapped::Done),
    };
    match swapped {
        Ok(Swapped::Done) => drop(write_synced(backup, old, Mode::LikeItsTarget)?),
        _ => fs::remove_file(&beside)?,
    }
    swapped
}

/// Writes a file that must not exist yet; it is complete from the moment that it has its name.
pub(crate) fn create_new(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    write_synced(temporary, bytes, Mode::Usual)?;
    move_new(temporary, path).inspect_err(|_| drop(fs::remove_file(temporary)))
}

/// Writes a small file of ralph's own that changes all the time, in one step. `previous` is on the same file system; it gets the version before, and is
/// written over the next time.
///
/// A new file that replaces the old one would cost many times as much: some file systems then begin to write it to the disk at once. That is what this one
/// gives up: after a power cut the file may be older, or broken, and `previous` is the one before it. For readers, and for a writer that is killed, it is
/// always whole. The caller holds a lock that keeps other writers away.
pub(crate) fn rewrite(path: &Path, previous: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = options().write(true).create(true).truncate(false).open(previous)?;
    overwrite(&mut file, bytes)?;
    match exchange(path, previous) {
        Err(e) if e.kind() == io::ErrorKind::NotFound || is_unsupported(&e) => fs::rename(previous, path),
        other => other,
    }
}

/// Moves a file to a name that must be free. To another file system it is copied, and the old one goes only when the new one is on the disk.
pub(crate) fn move_new(from: &Path, to: &Path) -> io::Result<()> {
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

/// Permissions of a new file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Usual,
    /// Private, until it gets the permissions of the file that it replaces: that one may hold secrets.
    LikeItsTarget,
}

/// Writes `bytes` to `path` and waits until they are on the disk: a rename that survives a power cut must not name an empty file.
fn write_synced(path: &Path, bytes: &[u8], mode: Mode) -> io::Result<File> {
    // A loop file that was a link is here after its first change, as the link that it was.
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
        fs::remove_file(path)?;
    }
    let mut options = if mode == Mode::LikeItsTarget { options() } else { named_options() };
    let mut file = options.write(true).create(true).truncate(false).open(path)?;
    overwrite(&mut file, bytes)?;
    file.sync_data()?;
    Ok(file)
}

/// Gives a file this content. Its length is set only where it was longer: to set it costs some file systems as much as the write, even to what it was.
fn overwrite(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    if file.metadata()?.len() > bytes.len() as u64 { file.set_len(bytes.len() as u64) } else { Ok(()) }
}

/// Gives a new version the permissions and, as far as that is allowed, the owner of the file: root works on other people's files.
fn copy_mode(from: &Path, to: &File) {
    let (Ok(theirs), Ok(ours)) = (fs::symlink_metadata(from), to.metadata()) else { return };
    if !theirs.is_file() {
        return;
    }
    // The owner first, while the file is private; this also drops bits that must not come with another owner.
    #[cfg(unix)]
    copy_owner(&theirs, &ours, to);
    if ours.permissions() != theirs.permissions() {
        let _ = to.set_permissions(theirs.permissions());
    }
}

/// Makes no system call where owner and group are the same already.
#[cfg(unix)]
fn copy_owner(theirs: &fs::Metadata, ours: &fs::Metadata, to: &File) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let uid = Some(theirs.uid()).filter(|uid| *uid != ours.uid());
    let gid = Some(theirs.gid()).filter(|gid| *gid != ours.gid());
    if uid.is_some() && fchown(to, uid, gid).is_ok() {
        return;
    }
    // Without being root, one can still give a file to a group that one is in.
    if gid.is_some() {
        let _ = fchown(to, None, gid);
    }
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

/// Exchanges two files in one step, where the system can.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).map_err(io::Error::from)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn is_unsupported(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput | io::ErrorKind::CrossesDevices)
}
