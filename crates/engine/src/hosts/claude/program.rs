//! The client's own program: where it is, and which version.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::sys::{
    command::{Task, USUAL_OUTPUT},
    env, process,
};

/// The client is a large program, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the client is: on the PATH, or where its own installer puts it.
pub fn find() -> Option<PathBuf> {
    process::which("claude").or_else(installed)
}

/// The same, but never a program in the project: anyone who can push may have written that.
pub(crate) fn find_outside(project: &Path) -> Option<PathBuf> {
    process::which_outside("claude", project).or_else(installed)
}

fn installed() -> Option<PathBuf> {
    let file = format!("claude{}", std::env::consts::EXE_SUFFIX);
    let home = env::home()?;
    [".local/bin", ".claude/local"].iter().map(|place| home.join(place).join(&file)).find(|path| path.is_file())
}

/// The answer to `--version`; `None`: there was none.
pub fn said_version(path: &Path) -> Option<String> {
    let task = Task {
        program: path.into(),
        args: vec!["--version".into()],
        // Neither the project nor the folder for temporary files: anybody could have put something there that the client reads.
        folder: Path::new("/"),
        vars: Vec::new(),
        hidden: Vec::new(),
        input: Vec::new(),
        limit: PATIENCE,
        most_output: USUAL_OUTPUT,
    };
    task.run().ok().map(|ran| ran.text())
}
