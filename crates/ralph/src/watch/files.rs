//! Which folders are watched for changes. What the system cannot watch, such as a network's folders, is looked at now and then anyway.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind};

use crate::watch::events::{Changed, Happening};

pub(super) struct Watched {
    /// `None`: this system has none left to give.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
}

impl Watched {
    pub(super) fn new(changed: Changed, sender: Sender<Happening>) -> Self {
        let tell = move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            // Opening a file, as we do, changes nothing.
            let is_change = match event.kind {
                EventKind::Access(_) => false,
                EventKind::Modify(kind) => !matches!(kind, ModifyKind::Metadata(_)),
                _ => true,
            };
            if is_change && changed.note(event.paths) {
                let _ = sender.send(Happening::Files);
            }
        };
        Watched { watcher: notify::recommended_watcher(tell).ok(), folders: BTreeSet::new() }
    }

    /// From now on these, and no others. One that is not there is watched for in the nearest folder above it that is.
    pub(super) fn only(&mut self, wanted: impl IntoIterator<Item = PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        let wanted: BTreeSet<PathBuf> = wanted.into_iter().filter_map(|folder| nearest(&folder)).collect();
        for gone in self.folders.difference(&wanted) {
            let _ = watcher.unwatch(gone);
        }
        self.folders = wanted
            .into_iter()
            .filter(|folder| self.folders.contains(folder) || watcher.watch(folder, RecursiveMode::NonRecursive).is_ok())
            .collect();
    }

    /// A folder that was removed is not watched any more, even if another one takes its place.
    pub(super) fn forget(&mut self, gone: &Path) {
        if self.folders.remove(gone)
            && let Some(watcher) = &mut self.watcher
        {
            let _ = watcher.unwatch(gone);
        }
    }
}

/// The folder as the system calls it, which is how changes in it are told.
fn nearest(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| folder.is_dir()).and_then(|folder| folder.canonicalize().ok())
}
