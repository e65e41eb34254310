//! Free space on a disk.

use std::path::Path;

/// Bytes that an ordinary user can still write at `path`; `None`: unknown.
#[cfg(unix)]
pub fn free(path: &Path) -> Option<u64> {
    let info = rustix::fs::statvfs(path).ok()?;
    // Without free inodes no file can be made either. A file system without that limit says 0 of 0.
    if info.f_files > 0 && info.f_favail == 0 {
        return Some(0);
    }
    Some(info.f_bavail.saturating_mul(info.f_frsize))
}

#[cfg(not(unix))]
pub fn free(_path: &Path) -> Option<u64> {
    None
}

/// For people.
#[expect(clippy::cast_precision_loss, reason = "one digit after the point")]
pub fn in_gb(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
