//! Free space on a disk.

use std::path::Path;

/// Bytes that an ordinary user can still write at `path`; `None`: unknown.
#[cfg_attr(not(unix), expect(unused_variables, reason = "it is unknown"))]
pub fn free(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let info = rustix::fs::statvfs(path).ok()?;
        // Without free inodes no file can be made either. A file system without that limit says 0 of 0.
        let is_full = info.f_files > 0 && info.f_favail == 0;
        Some(if is_full { 0 } else { info.f_bavail.saturating_mul(info.f_frsize) })
    }
    #[cfg(not(unix))]
    None
}

/// For people.
#[expect(clippy::cast_precision_loss, reason = "one digit after the point")]
pub fn in_gb(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
