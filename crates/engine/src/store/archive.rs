//! The archive: where a loop's file goes when the loop ends, and comes back from. Nothing is ever removed from it.

use std::{fs, path::Path};

use ralph_core::{judge::Ending, loops::file_of};

use crate::{
    store::{
        Error, feature_folder,
        loops::{self, LoopOnDisk},
        project::Project,
        project_lock::Locked,
        seal,
    },
    sys::{exchange, files},
};

impl Locked<'_> {
    /// Moves a file from the archive back into its place, in one step. `None`: a loop of that name exists.
    pub fn bring_back(&self, archived: &Path, name: &str, id: &str) -> Result<Option<LoopOnDisk>, Error> {
        let folder = self.project.claude();
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let path = folder.join(file_of(name));
        match exchange::move_new(archived, &path) {
            Ok(()) => {
                seal::close(self.project, name);
                Ok(loops::read(self.project, name)?.map(|found| if seal::is_known(self.project, id) { found.known_as(id) } else { found }))
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(None),
            Err(e) => Err(Error::io("bring back", archived)(e)),
        }
    }
}

/// Ends a loop: its file moves to the archive, or its folder says so. `false`: it was gone before.
pub(crate) fn end(project: &Project, found: &LoopOnDisk, id: &str, ending: Ending) -> Result<bool, Error> {
    if found.is_folder() { feature_folder::end(project, found, ending) } else { archive(project, found, id) }
}

/// Moves a loop's file to the archive. `false`: the file was deleted before.
///
/// Needs no lock: the move is one step, and a process that holds the lock finds the file gone and leaves it so. That is why a cancel always wins.
pub(crate) fn archive(project: &Project, found: &LoopOnDisk, id: &str) -> Result<bool, Error> {
    let folder = project.archive();
    for n in 1.. {
        let name = if n == 1 { format!("{id}.md") } else { format!("{id}.{n}.md") };
        let to = folder.join(name);
        match exchange::move_new(&found.path, &to) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(Error::io("archive", &found.path)(e)),
            Ok(()) => {
                files::make_private(&to);
                return Ok(true);
            }
        }
    }
    Ok(false)
}
