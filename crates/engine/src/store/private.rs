//! Folders that only their user can write into: files in them are believed, and neither a repository nor an agent that edits one may write those.

use std::{fs, path::Path};

use crate::{
    store::{Error, place::Place},
    sys::{env, files},
};

/// Whether a folder with decisions about `place` may be made there.
pub(super) fn may_be_made(folder: &Path, place: &Place) -> bool {
    let there = folder.ancestors().find(|folder| folder.exists());
    !there.is_some_and(|there| is_within(there, place)) || holds_home(place)
}

/// Makes a private folder, and those around it.
pub(super) fn make(folder: &Path, place: &Place) -> Result<(), Error> {
    if !may_be_made(folder, place) {
        return Err(Error::NotOurs { path: folder.display().to_string() });
    }
    files::make_folder(folder).map_err(Error::io("create", folder))?;
    check(folder, place)
}

/// The folder has to be a real one of this user's, which others cannot write into, and outside of the place that it decides about: settings of a
/// repository can set variables.
pub(super) fn check(folder: &Path, place: &Place) -> Result<(), Error> {
    let meta = fs::symlink_metadata(folder).map_err(Error::io("look at", folder))?;
    let is_ours = meta.is_dir() && files::is_mine_alone(&meta) && (!is_within(folder, place) || holds_home(place));
    if is_ours { Ok(()) } else { Err(Error::NotOurs { path: folder.display().to_string() }) }
}

/// Whether a folder and the one around it can be believed. A real folder outside of `place` is not within one that is inside, so one look at its path is
/// enough.
pub(super) fn is_believed(folder: &Path, place: &Place) -> bool {
    folder.parent().is_some_and(is_own_folder) && check(folder, place).is_ok()
}

/// Whether a folder is a real one of this user's, which others cannot write into.
pub(super) fn is_own_folder(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir() && files::is_mine_alone(&meta))
}

fn is_within(folder: &Path, place: &Place) -> bool {
    files::real_path(folder).is_ok_and(|real| real.starts_with(place.top()))
}

/// Some people keep their home folder in git.
fn holds_home(place: &Place) -> bool {
    env::home().and_then(|home| home.canonicalize().ok()).is_some_and(|home| home.starts_with(place.top()))
}
