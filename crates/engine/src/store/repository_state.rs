//! State files of a repository, for all of its clones: in the user's state folder, beside those of projects ([`super::user_state`]).

use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    store::{Error, place::Place, private, project::Project, trouble},
    sys::files,
};

/// The folder of all repositories, in the user's state folder.
const REPOSITORIES: &str = "repositories";

/// A larger file is not one of ralph's.
const LARGEST: usize = 16 << 20;

/// One state file, `folder/name`, of the repository `id`, as a clone of it sees it.
pub(crate) struct RepositoryState<'p> {
    pub project: &'p Project,
    pub id: String,
}

impl RepositoryState<'_> {
    fn file(&self, path: &str) -> Option<PathBuf> {
        Some(self.project.state()?.join(REPOSITORIES).join(&self.id).join(path))
    }

    /// Its contents; `None`: it is missing, or not one of ralph's.
    pub(crate) fn load<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        let file = self.file(path)?;
        let folder = file.parent()?;
        let is_believed = private::is_own_folder(folder) && private::is_believed(folder.parent()?, &Place::of(self.project));
        serde_json::from_slice(&files::read(&file, LARGEST).ok().filter(|_| is_believed)?).ok()
    }

    /// Keeps it, and drops the oldest files beside it until `kept` are left. What cannot be kept is missed by nobody.
    pub(crate) fn save_one_of(&self, path: &str, value: &impl Serialize, kept: usize) {
        let Some(file) = self.file(path) else { return };
        if self.write(&file, path, value).inspect_err(trouble::missed).is_ok() {
            files::prune_beside(&file, kept);
        }
    }

    fn write(&self, file: &Path, path: &str, value: &impl Serialize) -> Result<(), Error> {
        let place = Place::of(self.project);
        let folders: Vec<&Path> = file.ancestors().skip(1).take(path.split('/').count() + 1).collect();
        folders.iter().rev().try_for_each(|folder| private::make(folder, &place))?;
        let json = serde_json::to_vec(value).map_err(|e| Error::io("write", file)(e.into()))?;
        files::replace_private(file, &json).map_err(Error::io("write", file))
    }
}
