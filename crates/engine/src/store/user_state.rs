//! State files: what ralph keeps about a project and relies on later, such as verdicts, seals and proven items.
//!
//! They are in the user's state folder, not in the project: an agent that may edit the project must not be able to write that its work is done.
//! Without a state folder, or with one that others can write into, nothing is kept and nothing is believed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    store::{Error, place::Place, private, project::Project, trouble},
    sys::{digest, files, lock::Lock},
};

/// The file that names the project's root; [`super::projects`] lists projects by it.
pub(super) const ROOT: &str = "root";

/// The folder of all projects, in the user's state folder.
pub(super) const PROJECTS: &str = "projects";

/// A larger file is not one of ralph's.
const LARGEST: usize = 16 << 20;

/// How long [`Project::update`] waits for another process. It goes on without the lock then: a lost note is made again.
const PATIENCE: Duration = Duration::from_secs(1);

impl Project {
    /// The path of a state file (`verdicts/x`), if its folders exist and can be believed.
    pub(crate) fn state_file(&self, path: &str) -> Option<PathBuf> {
        let file = self.state_folder()?.join(path);
        // In a folder that only this user can write into, a real folder of the user's is where it seems to be.
        let is_believed = file.ancestors().skip(1).take(path.split('/').count() - 1).all(private::is_own_folder);
        is_believed.then_some(file)
    }

    /// The same, creating the folders. Most callers go on without the file, so a failure is logged here.
    pub(crate) fn make_state_file(&self, path: &str) -> Result<PathBuf, Error> {
        self.state_file(path).map_or_else(|| self.make_folders(path).inspect_err(trouble::missed), Ok)
    }

    fn make_folders(&self, path: &str) -> Result<PathBuf, Error> {
        let place = Place::of(self);
        let own = self.state().ok_or(Error::NoHome)?.join(PROJECTS).join(folder_name(place.root()));
        let file = own.join(path);
        let folders: Vec<&Path> = file.ancestors().skip(1).take(path.split('/').count() + 1).collect();
        folders.iter().rev().try_for_each(|folder| private::make(folder, &place))?;
        let root = own.join(ROOT);
        if !root.exists() {
            let _ = files::replace_private(&root, &[place.root().as_os_str().as_encoded_bytes(), b"\n"].concat());
        }
        Ok(file)
    }

    /// Whether anything can be kept at all: there is a state folder, and it is not in the project.
    pub(crate) fn keeps_state(&self) -> bool {
        self.state_folder().is_some() || self.state().is_some_and(|state| private::may_be_made(state, &Place::of(self)))
    }

    /// Adds the project to those that `--all` lists.
    pub(crate) fn introduce(&self) {
        if !self.state_file(ROOT).is_some_and(|root| root.exists()) {
            let _ = self.make_folders(ROOT).inspect_err(trouble::missed);
        }
    }

    /// The contents of a state file; `None`: it is missing, or not one of ralph's.
    pub fn load<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        serde_json::from_slice(&files::read(&self.state_file(path)?, LARGEST).ok()?).ok()
    }

    pub fn save(&self, path: &str, value: &impl Serialize) -> Result<(), Error> {
        self.write(path, value).map(drop)
    }

    /// The same for one of many: the oldest files beside it go, until `kept` are left.
    pub(crate) fn save_one_of(&self, path: &str, value: &impl Serialize, kept: usize) {
        if let Ok(file) = self.write(path, value) {
            files::prune_beside(&file, kept);
        }
    }

    fn write(&self, path: &str, value: &impl Serialize) -> Result<PathBuf, Error> {
        let file = self.make_state_file(path)?;
        let json = serde_json::to_vec(value).map_err(|e| Error::io("write", &file)(e.into()))?;
        files::replace_private(&file, &json).map_err(Error::io("write", &file)).inspect_err(trouble::missed)?;
        Ok(file)
    }

    /// Changes a state file while other processes wait. `change` returns whether there is anything to write.
    pub fn update<T: Default + Serialize + DeserializeOwned>(&self, path: &str, change: impl FnOnce(&mut T) -> bool) {
        let _alone = self.make_state_file(path).ok().and_then(|file| Lock::of_folder(file.parent()?, PATIENCE).ok()?);
        let mut value = self.load(path).unwrap_or_default();
        if change(&mut value) {
            // A note that cannot be written is made again.
            let _ = self.save(path, &value);
        }
    }

    pub fn delete(&self, path: &str) {
        let _ = self.state_file(path).map(fs::remove_file);
    }

    /// The folder of this project, if it exists and can be believed: checked once for each process.
    fn state_folder(&self) -> Option<&Path> {
        if let Some(folder) = self.state_folder.get() {
            return Some(folder);
        }
        let place = Place::of(self);
        let folder = self.state()?.join(PROJECTS).join(folder_name(place.root()));
        private::is_believed(&folder, &place).then(|| self.state_folder.get_or_init(|| folder).as_path())
    }
}

/// The name of a project's folder: a digest of its root.
pub(super) fn folder_name(root: &Path) -> String {
    digest::short(root.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::sys::temp_dir::Scratch;

    #[test]
    fn it_lies_with_the_user_and_for_the_user_alone() {
        let scratch = Scratch::create("ralph-kept-", false).unwrap();
        let root = scratch.path().join("project");
        fs::create_dir(&root).unwrap();
        let project = Project::with_state(&root, &scratch.path().join("state/ralph"));
        assert_eq!(project.state_file("verdicts/x"), None, "nothing was kept yet");
        let path = project.make_state_file("verdicts/x").unwrap();
        assert_eq!(project.state_file("verdicts/x").as_ref(), Some(&path));
        let own = path.parent().and_then(Path::parent).unwrap();
        assert!(own.starts_with(scratch.path().join("state/ralph/projects")));
        assert_eq!(own.file_name().unwrap().len(), 32);
        let whose = own.join(ROOT);
        assert_eq!(fs::read_to_string(&whose).unwrap().trim_end(), root.canonicalize().unwrap().display().to_string());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(own), mode(&whose)), (0o700, 0o600));
        fs::set_permissions(own, fs::Permissions::from_mode(0o777)).unwrap();
        let project = Project::with_state(&root, &scratch.path().join("state/ralph"));
        assert_eq!(project.state_file("verdicts/x"), None, "others can write there");
        assert!(project.make_state_file("verdicts/x").is_err());
    }

    #[test]
    fn neither_links_nor_a_state_folder_in_the_project_are_believed() {
        let scratch = Scratch::create("ralph-kept-", false).unwrap();
        let root = scratch.path().join("project");
        fs::create_dir(&root).unwrap();
        let inside = Project::with_state(&root, &root.join("state"));
        assert!(inside.make_state_file("fresh.json").is_err());
        assert_eq!(inside.state_file("fresh.json"), None);
        let nobodys = Project::with_state(&root, &scratch.path().join("ralph"));
        let elsewhere = scratch.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let own = nobodys.make_state_file("fresh.json").unwrap().parent().unwrap().to_owned();
        std::os::unix::fs::symlink(&elsewhere, own.join("baseline")).unwrap();
        assert!(nobodys.make_state_file("baseline/a.json").is_err());
        assert_eq!(nobodys.state_file("baseline/a.json"), None);
    }
}
