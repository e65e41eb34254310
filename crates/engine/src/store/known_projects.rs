//! The projects of this user in which a loop was started, adopted or run, and that still exist.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    store::{
        place::Place,
        private,
        project::Project,
        user_state::{PROJECTS, ROOT, folder_name},
    },
    sys::{env, files},
};

const LONGEST: usize = 16 << 10;

/// All of them, by folder, except those that are gone or have no `.ralph` any more.
pub(crate) fn remembered() -> Vec<Project> {
    env::state_dir().map(|state| within(&state)).unwrap_or_default()
}

/// The same with the current project, which may never have been noted.
pub fn with(here: &Project) -> Vec<Project> {
    let mut all = remembered();
    let place = Place::of(here);
    if here.is_in_use() && !all.iter().any(|project| project.root() == place.root()) {
        all.insert(0, Project::at(place.root()));
    }
    all
}

fn within(state: &Path) -> Vec<Project> {
    let entries = fs::read_dir(state.join(PROJECTS)).into_iter().flatten().flatten();
    let mut all: Vec<Project> = entries.filter_map(|entry| project_of(&entry.path())).collect();
    all.sort_by(|a, b| a.root().cmp(b.root()));
    all
}

/// The project of a folder of state files. The folder's name is the digest of the project's root, so that neither can be swapped for another.
fn project_of(kept: &Path) -> Option<Project> {
    let bytes = files::read(&kept.join(ROOT), LONGEST).ok()?;
    let root = path_of(bytes.strip_suffix(b"\n")?)?;
    let is_named_so = || kept.file_name().is_some_and(|name| name == folder_name(&root).as_str());
    let project = Project::at(&root);
    let place = Place::of(&project);
    (root.is_absolute() && project.is_in_use() && is_named_so() && private::is_believed(kept, &place)).then_some(project)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere not all bytes are a path")]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(bytes.to_vec()).into())
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    String::from_utf8(bytes.to_vec()).ok().map(OsString::from).map(PathBuf::from)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::{ffi::OsStrExt, fs::PermissionsExt};

    use super::*;
    use crate::sys::temp_dir::Scratch;

    #[test]
    fn eyes_3_only_projects_that_are_there_and_that_the_user_alone_wrote_down_are_remembered() {
        let scratch = Scratch::create("ralph-projects-", false).unwrap();
        let state = scratch.path().join("state/ralph");
        let strange = std::ffi::OsStr::from_bytes(b"new\nline \xff");
        let project = |name: &std::ffi::OsStr| {
            let root = scratch.path().join(name);
            fs::create_dir_all(root.join(".ralph")).unwrap();
            let project = Project::with_state(root.canonicalize().unwrap(), &state);
            project.introduce();
            project
        };
        let all = ["a", "b", "c", "d"].map(|name| project(name.as_ref()));
        let odd = project(strange);
        let roots = || within(&state).iter().map(|project| project.root().to_owned()).collect::<Vec<_>>();
        assert_eq!(roots(), all.iter().chain([&odd]).map(|project| project.root().to_owned()).collect::<Vec<_>>());
        fs::remove_dir(all[0].own()).unwrap();
        let kept = |project: &Project| project.make_state_file(ROOT).unwrap().parent().unwrap().to_owned();
        fs::set_permissions(kept(&all[1]), fs::Permissions::from_mode(0o777)).unwrap_or_default();
        // Somebody points to another project.
        files::replace_private(&kept(&all[2]).join(ROOT), odd.root().as_os_str().as_encoded_bytes()).unwrap();
        assert_eq!(roots(), [all[3].root().to_owned(), odd.root().to_owned()]);
        fs::create_dir(all[0].own()).unwrap();
        assert_eq!(roots().len(), 3, "what came back is remembered");
    }
}
