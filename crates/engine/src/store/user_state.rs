//! What ralph remembers about a project and believes later: verdicts, beginnings of loops, proven items, sightings of reports.
//!
//! It lies in the user's state folder and not in the project: an agent that may edit the project must not be able to write down that its work is done.
//! Without a state folder, or with one that anybody else can write into, nothing is kept and nothing is believed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    store::{Error, private, project::Project, trouble, trust::place::Place},
    sys::{digest, files},
};

/// Which project it is; [`super::projects`] lists them by it.
pub(super) const WHOSE: &str = "root";

/// The folder of all projects, in the user's state folder.
pub(super) const ALL: &str = "projects";

impl Project {
    /// The file at this place (`verdicts/x`, for instance), in folders that can be believed.
    pub fn kept(&self, path: &str) -> Option<PathBuf> {
        let file = self.folder_of_kept()?.join(path);
        // In a folder that only this user can write into, a real folder of the user's is where it seems to be.
        let is_believed = within(&file, path).all(private::is_own_folder);
        is_believed.then_some(file)
    }

    /// The same, with its folders made. Most go on without it, so that it could not be done is noted here.
    pub fn keep(&self, path: &str) -> Result<PathBuf, Error> {
        if let Some(file) = self.kept(path) {
            return Ok(file);
        }
        self.make_kept(path).inspect_err(trouble::missed)
    }

    fn make_kept(&self, path: &str) -> Result<PathBuf, Error> {
        let place = Place::of(self);
        let own = self.state().ok_or(Error::NoHome)?.join(ALL).join(name_of(place.root()));
        let file = own.join(path);
        folders(&file, path).iter().rev().try_for_each(|folder| private::make(folder, &place))?;
        let whose = own.join(WHOSE);
        if path != WHOSE && !whose.exists() {
            let _ = files::replace_private(&whose, &whose_it_is(&place));
        }
        Ok(file)
    }

    /// Whether anything can be kept at all: there is a state folder, and it is not in the project.
    pub fn may_keep(&self) -> bool {
        self.folder_of_kept().is_some() || self.state().is_some_and(|state| private::may_be_made(state, &Place::of(self)))
    }

    /// Makes the project one of those that this user is shown together. What cannot be written is missed by nobody but `--all`.
    pub fn introduce(&self) {
        if self.kept(WHOSE).is_some_and(|whose| whose.exists()) {
            return;
        }
        if let Ok(whose) = self.keep(WHOSE) {
            let _ = files::replace_private(&whose, &whose_it_is(&Place::of(self)));
        }
    }

    /// What a file there says, if it can be believed.
    pub fn recall<T: DeserializeOwned>(&self, path: &str, max: usize) -> Option<T> {
        serde_json::from_slice(&files::read(&self.kept(path)?, max).ok()?).ok()
    }

    /// Writes it down, and tells where.
    pub fn remember(&self, path: &str, what: &impl Serialize) -> Result<PathBuf, Error> {
        let path = self.keep(path)?;
        let json = serde_json::to_vec(what).map_err(|e| Error::io("write", &path)(e.into()))?;
        files::replace_private(&path, &json).map_err(Error::io("write", &path)).inspect_err(trouble::missed)?;
        Ok(path)
    }

    /// Nothing is known any more.
    pub fn forget(&self, path: &str) {
        let _ = self.kept(path).map(fs::remove_file);
    }

    /// The folder of this project, if it is there and can be believed: looked at once for each process.
    fn folder_of_kept(&self) -> Option<&Path> {
        if let Some(folder) = self.kept_in.get() {
            return Some(folder);
        }
        let place = Place::of(self);
        let folder = self.state()?.join(ALL).join(name_of(place.root()));
        let is_believed =
            [Some(folder.as_path()), folder.parent()].into_iter().flatten().all(|folder| private::check(folder, &place).is_ok());
        is_believed.then(|| self.kept_in.get_or_init(|| folder).as_path())
    }
}

/// How the folder of what is kept about a project is called.
pub(super) fn name_of(root: &Path) -> String {
    digest::short(root.as_os_str().as_encoded_bytes())
}

fn whose_it_is(place: &Place) -> Vec<u8> {
    [place.root().as_os_str().as_encoded_bytes(), b"\n"].concat()
}

/// The folders of a kept file within that of its project.
fn within<'f>(file: &'f Path, path: &str) -> impl Iterator<Item = &'f Path> {
    file.ancestors().skip(1).take(path.split('/').count() - 1)
}

/// The folders that a kept file lies in, from the inside out, up to that of all projects.
fn folders<'f>(file: &'f Path, path: &str) -> Vec<&'f Path> {
    file.ancestors().skip(1).take(path.split('/').count() + 1).collect()
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
        assert_eq!(project.kept("verdicts/x"), None, "nothing was kept yet");
        let path = project.keep("verdicts/x").unwrap();
        assert_eq!(project.kept("verdicts/x").as_ref(), Some(&path));
        let own = path.parent().and_then(Path::parent).unwrap();
        assert!(own.starts_with(scratch.path().join("state/ralph/projects")));
        assert_eq!(own.file_name().unwrap().len(), 32);
        let whose = own.join(WHOSE);
        assert_eq!(fs::read_to_string(&whose).unwrap().trim_end(), root.canonicalize().unwrap().display().to_string());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(own), mode(&whose)), (0o700, 0o600));
        fs::set_permissions(own, fs::Permissions::from_mode(0o777)).unwrap();
        let project = Project::with_state(&root, &scratch.path().join("state/ralph"));
        assert_eq!(project.kept("verdicts/x"), None, "others can write there");
        assert!(project.keep("verdicts/x").is_err());
    }

    #[test]
    fn neither_links_nor_a_state_folder_in_the_project_are_believed() {
        let scratch = Scratch::create("ralph-kept-", false).unwrap();
        let root = scratch.path().join("project");
        fs::create_dir(&root).unwrap();
        let inside = Project::with_state(&root, &root.join("state"));
        assert!(inside.keep("fresh.json").is_err());
        assert_eq!(inside.kept("fresh.json"), None);
        let nobodys = Project::with_state(&root, &scratch.path().join("ralph"));
        let elsewhere = scratch.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let own = nobodys.keep("fresh.json").unwrap().parent().unwrap().to_owned();
        std::os::unix::fs::symlink(&elsewhere, own.join("baseline")).unwrap();
        assert!(nobodys.keep("baseline/a.json").is_err());
        assert_eq!(nobodys.kept("baseline/a.json"), None);
    }
}
