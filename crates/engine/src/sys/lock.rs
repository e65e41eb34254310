//! Lock files: held for as long as a value lives, and free again when its process dies.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    path::Path,
    time::Duration,
};

use crate::sys::files;

/// The lock of a file of ralph's own.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes it, making the file if need be. `None`: another process held it for as long as `patience`.
    pub fn take(path: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let file = files::options().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(files::wait_for_lock(&file, patience)?.then_some(Lock(file)))
    }

    /// Writes down who holds it.
    pub fn sign(&mut self) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        writeln!(self.0, "{}", std::process::id())
    }

    /// The process that signed it last.
    pub fn holder(path: &Path) -> Option<u32> {
        let mut text = String::new();
        files::open_regular(path).ok()?.0.take(20).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }
}
