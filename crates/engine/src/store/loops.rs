//! The loops of a project: finding and reading them.

use std::{
    io,
    path::{Path, PathBuf},
};

use ralph_core::{
    loops::{LoopFile, MAX_FILE_BYTES, MAX_FRONT_MATTER, file_of, name_of, salvage},
    text::Problem,
};

use crate::{
    store::{
        Error,
        feature_folder::{self, Folder},
        project::Project,
        seal,
    },
    sys::{env, files},
};

/// A loop as it was read.
#[derive(Debug, Clone)]
pub struct LoopOnDisk {
    pub name: String,
    /// The loop file, or the list of a feature folder.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub parsed: Result<LoopFile, Problem>,
    pub storage: Storage,
    /// The id of the loop that ralph knows under this name, if the file has another one.
    pub(crate) known_as: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Storage {
    /// A loop file: it is the loop.
    File,
    /// A feature folder: the loop's values are read from its files.
    Folder(Folder),
}

impl LoopOnDisk {
    /// The id of the loop, even of one that cannot be read.
    pub fn id(&self) -> String {
        self.known_as.clone().unwrap_or_else(|| self.own_id())
    }

    /// The id that the file itself gives.
    fn own_id(&self) -> String {
        match (&self.storage, &self.parsed) {
            (Storage::Folder(folder), _) => folder.id.clone(),
            (Storage::File, Ok(file)) => file.id(&self.name),
            (Storage::File, Err(_)) => salvage(&self.bytes, &self.name).id,
        }
    }

    /// The session that the file names.
    pub fn session(&self) -> Option<String> {
        match (&self.storage, &self.parsed) {
            (Storage::Folder(_), _) => None,
            (Storage::File, Ok(file)) => file.session_id.clone(),
            (Storage::File, Err(_)) => salvage(&self.bytes, &self.name).session_id,
        }
    }

    /// A loop file cannot pose as another loop while the one that ralph started under its name lives: it would begin again, without that one's limits.
    fn recognised(self, project: &Project) -> Self {
        match seal::head(project, &self.name).filter(|head| head.is_named) {
            Some(head) => self.known_as(&head.id),
            None => self,
        }
    }

    /// The file that holds the loop's limits.
    pub(crate) fn own_file(&self) -> PathBuf {
        match &self.storage {
            Storage::File => self.path.clone(),
            Storage::Folder(folder) => folder.dir.join("progress.txt"),
        }
    }

    /// The file that holds the task. A feature folder has none: ralph says itself what to do there.
    pub(crate) fn file_of_task(&self) -> Option<&Path> {
        (!self.is_folder()).then_some(&self.path)
    }

    /// The same as the loop `id`, whatever the file says.
    #[must_use]
    pub(crate) fn known_as(mut self, id: &str) -> Self {
        if self.own_id() != id {
            self.known_as = Some(id.to_owned());
            if let Ok(file) = &mut self.parsed {
                file.loop_id = Some(id.to_owned());
            }
        }
        self
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self.storage, Storage::Folder(_))
    }

    /// Nothing was changed between these two reads.
    pub fn is_same(&self, other: &LoopOnDisk) -> bool {
        if self.is_folder() { feature_folder::is_same(self, other) } else { self.bytes == other.bytes }
    }
}

/// The contents of the client's folder.
struct Listing {
    names: Vec<String>,
    /// There may be a feature folder.
    folder: bool,
}

/// Every hook call pays for this, loop or no loop.
fn listing(project: &Project) -> Listing {
    let mut listing = Listing { names: Vec::new(), folder: env::loop_dir().is_some() };
    for (file_name, is_file) in files::names(&project.claude()).unwrap_or_default() {
        let Some(file_name) = file_name.to_str() else { continue };
        if file_name == feature_folder::WITHIN {
            listing.folder = true;
        } else if let Some(name) = name_of(file_name).filter(|_| is_file) {
            listing.names.push(name.to_owned());
        }
    }
    listing.names.sort_by(|a, b| (a != "main", a).cmp(&(b != "main", b)));
    listing
}

/// Whether a folder holds a loop of its own, without reading it.
pub(crate) fn mark(project: &Project) -> bool {
    !listing(project).names.is_empty() || feature_folder::marks(project.root())
}

/// Whether there is any loop.
pub(crate) fn any(project: &Project) -> bool {
    let listing = listing(project);
    !listing.names.is_empty() || (listing.folder && feature_folder::live(project).is_some())
}

/// Reads the loop file of that name; `None` if there is none.
pub(crate) fn read(project: &Project, name: &str) -> Result<Option<LoopOnDisk>, Error> {
    let path = project.claude().join(file_of(name));
    match files::read(&path, MAX_FILE_BYTES) {
        Ok(bytes) => {
            let parsed = LoopFile::parse(&bytes);
            let found = LoopOnDisk { name: name.to_owned(), parsed, path, bytes, storage: Storage::File, known_as: None };
            Ok(Some(found.recognised(project)))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &path)(e)),
    }
}

/// Reads a loop again, and parses it only if it has changed.
pub(crate) fn reread(project: &Project, found: LoopOnDisk) -> Result<Option<LoopOnDisk>, Error> {
    if let Storage::Folder(folder) = &found.storage {
        return Ok(feature_folder::again(project, folder));
    }
    match files::read(&found.path, MAX_FILE_BYTES) {
        Ok(bytes) if bytes == found.bytes => Ok(Some(found)),
        _ => read(project, &found.name),
    }
}

/// The loop of the feature folder, even if it has ended.
pub fn of_folder(project: &Project) -> Option<LoopOnDisk> {
    feature_folder::read(project, feature_folder::Want::Any)
}

/// The feature folder whose loop has that id, even if the loop has ended; `None`: it is no folder's.
pub fn folder_of(project: &Project, id: &str) -> Option<LoopOnDisk> {
    of_folder(project).into_iter().chain(feature_folder::others(project, feature_folder::Want::Any)).find(|found| found.id() == id)
}

/// All loops of the project. One that cannot be opened counts as one that cannot be parsed.
pub fn all(project: &Project) -> Vec<LoopOnDisk> {
    let unreadable = |name: &str, e: &Error| {
        let path = project.claude().join(file_of(name));
        // Its head names the session, however long the rest is.
        let bytes = files::read_head(&path, MAX_FRONT_MATTER).unwrap_or_default();
        let parsed = Err(Problem::new(None, e.to_string()));
        LoopOnDisk { name: name.to_owned(), path, bytes, parsed, storage: Storage::File, known_as: None }.recognised(project)
    };
    let listing = listing(project);
    let files = listing.names.iter().filter_map(|name| read(project, name).unwrap_or_else(|e| Some(unreadable(name, &e))));
    files.chain(listing.folder.then(|| feature_folder::live(project)).flatten()).collect()
}

/// The same with the feature folders of other sessions, for people who look or name one.
pub(crate) fn known(project: &Project) -> Vec<LoopOnDisk> {
    let mut all = all(project);
    all.extend(feature_folder::others(project, feature_folder::Want::Live));
    all
}

/// Whether a loop is still wanted: its file exists, and is not paused.
pub fn is_wanted(found: &LoopOnDisk) -> bool {
    if let Storage::Folder(folder) = &found.storage {
        return feature_folder::is_wanted(folder);
    }
    match files::read(&found.path, MAX_FILE_BYTES) {
        Ok(bytes) => bytes == found.bytes || LoopFile::parse(&bytes).is_ok_and(|file| file.active),
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}
