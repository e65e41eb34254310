//! The page that a loop's report is written to while the loop goes on, so that there is one whatever happens to anybody.
//!
//! Writing it takes longer than a hook may, and a runner has better things to do: a process beside them does it. One at a time, and not more often than
//! every few seconds: whoever is asked to write while another one is about to leaves it to that one, which reads the journal after that.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::PathBuf,
    process::Child,
    time::Duration,
};

use crate::{
    store::{Error, project::Project},
    sys::{env, files, process},
};

/// A page that is younger than this is left as it is for the time being.
pub const YOUNG: Duration = Duration::from_secs(5);

/// The folder of all pages, in ralph's own.
const FOLDER: &str = "reports";

/// Where the page of a loop lies.
pub fn of(project: &Project, loop_id: &str) -> PathBuf {
    project.own().join(FOLDER).join(format!("{loop_id}.html"))
}

/// The same, in a folder that is made if need be.
pub fn place(project: &Project, loop_id: &str) -> Result<PathBuf, Error> {
    Ok(project.folder(FOLDER)?.join(format!("{loop_id}.html")))
}

/// How old the page is; `None`: there is none.
pub fn age(project: &Project, loop_id: &str) -> Option<Duration> {
    fs::metadata(of(project, loop_id)).ok()?.modified().ok()?.elapsed().ok()
}

/// The right to write a page, for as long as the value lives.
#[derive(Debug)]
pub struct Writing(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// Takes the right. `None`: somebody else has it, or there is no place for a lock.
pub fn begin(project: &Project, loop_id: &str) -> Option<Writing> {
    // Whoever names a loop that there is not shall not make files of that name.
    fs::symlink_metadata(project.journal(loop_id)).ok().filter(|_| !loop_id.contains(['/', '\\']))?;
    let path = project.folder("locks").ok()?.join(lock_name(loop_id));
    let file = files::options().write(true).create(true).truncate(false).open(path).ok()?;
    file.try_lock().ok().map(|()| Writing(file))
}

/// Whether nothing has happened since it was written.
fn is_up_to_date(project: &Project, loop_id: &str) -> bool {
    let changed = |path: PathBuf| fs::metadata(path).ok()?.modified().ok();
    // One from the future was put there by somebody.
    let Some(page) = changed(of(project, loop_id)).filter(|at| at.elapsed().is_ok()) else { return false };
    changed(project.journal(loop_id)).is_none_or(|journal| journal < page)
}

fn is_about_to_be_written(project: &Project, loop_id: &str) -> bool {
    files::is_locked(&project.own().join("locks").join(lock_name(loop_id)))
}

fn lock_name(loop_id: &str) -> String {
    format!("{loop_id}.page")
}

/// Sees to it that the page tells what has happened by now, soon and by another process. `None`: that is seen to, or nobody wants it.
pub fn bring_up_to_date(project: &Project, loop_id: &str) -> Option<Child> {
    if !env::wants_pages() || is_up_to_date(project, loop_id) || is_about_to_be_written(project, loop_id) {
        return None;
    }
    let root = project.root().as_os_str();
    let args: [&OsStr; 5] = ["-C".as_ref(), root, "report".as_ref(), "--keep".as_ref(), loop_id.as_ref()];
    // Nobody waits for a page: if it cannot be written, `ralph report` says why.
    process::start_self_beside(&args).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::scratch::Scratch;

    #[test]
    fn eyes_2_one_process_writes_a_page() {
        let scratch = Scratch::create("ralph-page-", false).unwrap();
        let project = Project::at(scratch.path());
        assert!(!is_about_to_be_written(&project, "main-1"));
        assert!(begin(&project, "main-1").is_none(), "there is no such loop");
        for id in ["main-1", "main-2"] {
            let path = project.folder("journal").unwrap().join(format!("{id}.jsonl"));
            files::append(&path, b"{}").unwrap();
        }
        let writing = begin(&project, "main-1");
        assert!(writing.is_some() && is_about_to_be_written(&project, "main-1") && !is_about_to_be_written(&project, "main-2"));
        assert!(begin(&project, "main-1").is_none());
        drop(writing);
        assert!(begin(&project, "main-1").is_some());
    }
}
