//! Folders that only their user can have written into: what lies there decides, and neither a repository nor an agent that edits one may decide.

use std::{
    fs::{self, DirBuilder},
    path::Path,
};

use crate::{
    store::{Error, trust::place::Place},
    sys::env,
};

pub(super) use mine::{for_me_alone, is_mine_alone};

/// Whether a folder that decides about `place` may be made there.
pub(super) fn may_be_made(folder: &Path, place: &Place) -> bool {
    let there = folder.ancestors().find(|folder| folder.exists());
    !there.is_some_and(|there| is_within(there, place)) || holds_home(place)
}

/// Makes a folder, and those around it, for this user alone.
pub(super) fn make(folder: &Path, place: &Place) -> Result<(), Error> {
    if !may_be_made(folder, place) {
        return Err(Error::NotOurs { path: folder.display().to_string() });
    }
    let mut builder = DirBuilder::new();
    for_me_alone(builder.recursive(true));
    builder.create(folder).map_err(Error::io("create", folder))?;
    check(folder, place)
}

/// The folder has to be a real one of this user's, into which nobody else can write, and outside of what it decides about: settings of a
/// repository can set variables.
pub(super) fn check(folder: &Path, place: &Place) -> Result<(), Error> {
    let meta = fs::symlink_metadata(folder).map_err(Error::io("look at", folder))?;
    let is_ours = meta.is_dir() && is_mine_alone(&meta) && (!is_within(folder, place) || holds_home(place));
    if is_ours { Ok(()) } else { Err(Error::NotOurs { path: folder.display().to_string() }) }
}

/// Whether a folder is a real one of this user's, into which nobody else can write.
pub(super) fn is_own_folder(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir() && is_mine_alone(&meta))
}

fn is_within(folder: &Path, place: &Place) -> bool {
    folder.canonicalize().is_ok_and(|real| real.starts_with(place.top()))
}

/// Some keep their home folder in git.
fn holds_home(place: &Place) -> bool {
    env::home().and_then(|home| home.canonicalize().ok()).is_some_and(|home| home.starts_with(place.top()))
}

#[cfg(unix)]
mod mine {
    use std::{
        fs::{DirBuilder, Metadata},
        os::unix::fs::{DirBuilderExt, MetadataExt},
    };

    /// Whether it belongs to this user and nobody else can change it.
    pub(in crate::store) fn is_mine_alone(meta: &Metadata) -> bool {
        meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
    }

    pub(in crate::store) fn for_me_alone(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }
}

/// A user's own folders are private on Windows.
#[cfg(not(unix))]
mod mine {
    use std::fs::{DirBuilder, Metadata};

    pub(in crate::store) fn is_mine_alone(_meta: &Metadata) -> bool {
        true
    }

    pub(in crate::store) fn for_me_alone(_builder: &mut DirBuilder) {}
}
