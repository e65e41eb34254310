//! The loop files of a project: finding and reading them.

use std::{fs, io, path::PathBuf};

use ralph_core::{
    front_matter::{self, Problem},
    loop_file::{self, LoopFile, MAX_FILE_BYTES},
};

use crate::{
    store::{Error, project::Project},
    sys::files,
};

/// A loop file as it was read.
#[derive(Debug, Clone)]
pub struct Found {
    pub name: String,
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub parsed: Result<LoopFile, Problem>,
}

impl Found {
    /// The id of the loop, even of one that cannot be read.
    pub fn id(&self) -> String {
        match &self.parsed {
            Ok(file) => file.id(&self.name),
            Err(_) => loop_file::salvage(&self.bytes, &self.name).id,
        }
    }

    /// The session that the file names.
    pub fn session(&self) -> Option<String> {
        match &self.parsed {
            Ok(file) => file.session_id.clone(),
            Err(_) => loop_file::salvage(&self.bytes, &self.name).session_id,
        }
    }
}

/// The names of the loops that have a file, the unnamed one first. Cheap: this is what every hook call pays, loop or no loop.
pub fn names(project: &Project) -> Vec<String> {
    let Ok(entries) = fs::read_dir(project.claude()) else { return Vec::new() };
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|t| t.is_file() || t.is_symlink());
    let name = |entry: fs::DirEntry| entry.file_name().to_str().and_then(loop_file::name_of).map(str::to_owned).filter(|_| is_file(&entry));
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort_by(|a, b| (a != "main", a).cmp(&(b != "main", b)));
    names
}

/// Reads the loop file of that name; `None` if there is none.
pub fn read(project: &Project, name: &str) -> Result<Option<Found>, Error> {
    let path = project.claude().join(loop_file::file_of(name));
    match files::read(&path, MAX_FILE_BYTES) {
        Ok(bytes) => Ok(Some(Found { name: name.to_owned(), parsed: LoopFile::parse(&bytes), path, bytes })),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &path)(e)),
    }
}

/// Reads a loop file again. Mostly nothing has changed, and then it need not be parsed again.
pub fn reread(project: &Project, found: Found) -> Result<Option<Found>, Error> {
    match files::read(&found.path, MAX_FILE_BYTES) {
        Ok(bytes) if bytes == found.bytes => Ok(Some(found)),
        _ => read(project, &found.name),
    }
}

/// All loops of the project. One that cannot be opened counts as one that cannot be parsed.
pub fn all(project: &Project) -> Vec<Found> {
    let unreadable = |name: &str, e: &Error| {
        let path = project.claude().join(loop_file::file_of(name));
        // Whose it is stands in its head, however long the rest is.
        let bytes = files::read_head(&path, front_matter::MAX_BYTES).unwrap_or_default();
        Found { name: name.to_owned(), path, bytes, parsed: Err(Problem::new(None, e.to_string())) }
    };
    names(project).iter().filter_map(|name| read(project, name).unwrap_or_else(|e| Some(unreadable(name, &e)))).collect()
}

/// Whether a loop is still wanted, as far as its file tells: it is there, and nobody paused it.
pub fn is_wanted(found: &Found) -> bool {
    match files::read(&found.path, MAX_FILE_BYTES) {
        Ok(bytes) => bytes == found.bytes || LoopFile::parse(&bytes).is_ok_and(|file| file.active),
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}
