//! The mark of the last ending: what a second hook on the same stop, or a second event of the same command, still has to answer when the
//! loop's file is already in the archive.

use std::{fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    store::{Error, project::Project},
    sys::files,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEnding {
    #[serde(rename = "loop")]
    pub loop_id: String,
    pub session: Option<String>,
    /// Fingerprint of the stop or of the typed command that ended the loop.
    pub cause: String,
    pub uptime_ms: u64,
    /// What was answered.
    pub line: String,
}

fn path(project: &Project) -> PathBuf {
    project.own().join("last-ending.json")
}

pub fn read(project: &Project) -> Option<LastEnding> {
    serde_json::from_slice(&fs::read(path(project)).ok()?).ok()
}

pub fn write(project: &Project, ending: &LastEnding) -> Result<(), Error> {
    let path = path(project);
    let bytes = serde_json::to_vec(ending).unwrap_or_default();
    files::replace(&path, &path.with_extension("json.new"), &bytes).map_err(Error::io("write", &path))
}
