//! What git's configuration says, and from where: what the repository itself names to be run is not run.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    time::Duration,
};

use crate::sys::{bounded::USUAL_OUTPUT, process};

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub value: String,
    /// It stands in the repository's own configuration, and not in the user's.
    pub of_repository: bool,
}

/// The settings whose keys match, in order; later ones count. `None`: git could not answer.
pub fn read(folder: &Path, keys: &str, limit: Duration) -> Option<Vec<Setting>> {
    let args = ["config", "-z", "--show-scope", "--get-regexp", keys];
    let ran = process::git_raw(folder, &args.map(OsStr::new), &[], Vec::new(), limit, USUAL_OUTPUT).ok().filter(|ran| ran.whole)?;
    if !matches!(ran.code, Some(0 | 1)) {
        return None;
    }
    let told = String::from_utf8_lossy(&ran.stdout);
    let mut fields = told.split_terminator('\0');
    let mut settings = Vec::new();
    while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
        let (key, value) = setting.split_once('\n').unwrap_or((setting, "true"));
        settings.push(Setting { key: key.to_owned(), value: value.to_owned(), of_repository: matches!(scope, "local" | "worktree") });
    }
    Some(settings)
}

impl Setting {
    /// The filter that the repository itself names programs for.
    pub fn own_filter(&self) -> Option<&str> {
        let (name, _) = self.key.strip_prefix("filter.")?.rsplit_once('.')?;
        self.of_repository.then_some(name)
    }
}

/// The options under which git runs nothing for that filter. `None`: it has a name that cannot be said on a command line.
pub fn without_filter(name: &str) -> Option<Vec<OsString>> {
    let option = |nothing: &str| ["-c".into(), format!("filter.{name}.{nothing}").into()];
    (!name.contains('=')).then(|| ["clean=", "smudge=", "process=", "required=false"].into_iter().flat_map(option).collect())
}
