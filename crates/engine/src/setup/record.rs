//! Records of changes to files that are not ralph's own, to undo them byte for byte: one for each file, in the user's state folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::loops::fnv1a;
use serde::{Deserialize, Serialize};

use crate::{
    setup::Problem,
    sys::{env, files, lock::Lock},
};

/// A file before and after ralph's change; `None` where there was no file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: String,
    /// The folders that had to be made for it, the innermost first.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
}

/// The folder of records. Without a home there is none, and changes are undone from the files alone.
#[derive(Debug, Clone)]
pub struct Records {
    folder: Option<PathBuf>,
}

impl Records {
    pub fn of_user() -> Self {
        Records { folder: env::state_dir().map(|dir| dir.join("setup")) }
    }

    pub(crate) fn are_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// Keeps other setups of this user away for as long as the result lives, and waits for one that is running. The home folder itself is locked, because it always
    /// exists; a file system without locks goes without.
    pub fn alone() -> Option<Lock> {
        Lock::of_folder(&env::home()?, Duration::from_secs(3)).ok()?
    }

    pub fn get(&self, path: &Path) -> Option<Record> {
        let bytes = fs::read(self.file(path)?).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &Record| record.path == real(path))
    }

    /// The files that have a record.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let files = self.folder.as_deref().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let read = |file: fs::DirEntry| serde_json::from_slice(&fs::read(file.path()).ok()?).ok();
        files.filter_map(read).map(|record: Record| record.path).collect()
    }

    /// Written before the change itself, and readable by the user alone: settings can hold secrets.
    pub fn put(&self, record: &Record) -> Result<(), Problem> {
        let Some(file) = self.file(&record.path) else { return Ok(()) };
        let record = Record { path: real(&record.path), ..record.clone() };
        let folder = file.parent().unwrap_or(&file);
        files::make_folder(folder).map_err(Problem::io("created", folder))?;
        let text = serde_json::to_vec_pretty(&record).map_err(|e| Problem::new(&file, e))?;
        files::replace_private(&file, &text).map_err(Problem::io("written", &file))
    }

    pub fn forget(&self, path: &Path) -> Result<(), Problem> {
        let Some(file) = self.file(path) else { return Ok(()) };
        match fs::remove_file(&file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Problem::io("removed", &file)(e)),
            _ => {}
        }
        // With the last record the folder goes too, and ralph's. This removes only empty folders.
        for folder in file.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    fn file(&self, path: &Path) -> Option<PathBuf> {
        let name = format!("{:016x}.json", fnv1a(real(path).as_os_str().as_encoded_bytes()));
        Some(self.folder.as_deref()?.join(name))
    }
}

/// The path of a file without links in its folders: a file with several paths has one record.
pub(super) fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The folder may not exist yet.
    let known = path.ancestors().skip(1).find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    match known.and_then(|(folder, real)| Some(real.join(path.strip_prefix(folder).ok()?))) {
        Some(real) => real,
        None => path,
    }
}
