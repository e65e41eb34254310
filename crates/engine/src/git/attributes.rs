//! Whether any attributes speak of filters, found without git: mostly none do, and then git need not be asked for those of every file.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{Folders, config, index::Index, repository::path_of};
use crate::sys::files;

const NAME: &[u8] = b".gitattributes";

/// A larger file is asked about, whatever it says.
const LARGEST: usize = 4 << 20;

/// Whether attributes that count for files of this index name a filter. In doubt they do.
pub(super) fn name_filters(folders: &Folders, index: &Index) -> bool {
    let mut in_tree = BTreeSet::from([NAME.to_vec()]);
    for path in index.entries.iter().map(|entry| &entry.path) {
        in_tree.extend(memchr::memrchr(b'/', path).map(|end| [&path[..=end], NAME].concat()));
    }
    let elsewhere = [Some("/etc/gitattributes".into()), config::of_the_person("attributesfile", "attributes")];
    // Git takes what is not on the disk from the index.
    index.entries.iter().any(|entry| in_tree.contains(&entry.path) && !folders.top.join(path_of(&entry.path)).exists())
        || in_tree.iter().any(|path| names_one(&folders.top.join(path_of(path))))
        || elsewhere.into_iter().flatten().chain([folders.common.join("info/attributes")]).any(|file: PathBuf| names_one(&file))
}

fn names_one(file: &Path) -> bool {
    match files::read(file, LARGEST) {
        Ok(text) => memchr::memmem::find(&text, b"filter").is_some(),
        Err(e) => !files::is_missing(&e),
    }
}
