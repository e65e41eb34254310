//! The `JUnit` files that a command writes: one file, or a folder with one for each class, as Maven and Gradle do it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ralph_core::gate::test_results::TestResults;

use crate::sys::files;

/// Larger reports are not read, nor more than this of a folder.
const MAX_BYTES: usize = 64 << 20;

/// More files than this are not read.
const MOST_FILES: usize = 10_000;

/// The place of a report, and what was there before the command ran.
pub(super) struct Report {
    path: PathBuf,
    before: BTreeMap<PathBuf, SystemTime>,
}

impl Report {
    pub(super) fn before(path: PathBuf) -> Self {
        let before = written(&path).unwrap_or_default();
        Report { path, before }
    }

    /// The results of the files that were written since. `None`: there are none, or one of them cannot be read.
    pub(super) fn results(&self) -> Option<TestResults> {
        let now = written(&self.path)?;
        let new: Vec<&Path> = now.iter().filter(|(path, at)| self.before.get(*path) != Some(at)).map(|(path, _)| path.as_path()).collect();
        let mut room = MAX_BYTES;
        let mut all: Option<TestResults> = None;
        for path in new {
            let bytes = files::read(path, room).ok()?;
            room = room.saturating_sub(bytes.len());
            all.get_or_insert_default().add(&TestResults::of_junit(&bytes).ok()?)?;
        }
        all
    }
}

/// The file, or the `.xml` files of the folder, and when they were written.
fn written(path: &Path) -> Option<BTreeMap<PathBuf, SystemTime>> {
    let at = |path: PathBuf| {
        let at = path.metadata().ok().filter(fs::Metadata::is_file)?.modified().ok()?;
        Some((path, at))
    };
    if !path.is_dir() {
        return Some(at(path.to_owned()).into_iter().collect());
    }
    let is_xml = |path: &PathBuf| path.extension().is_some_and(|end| end == "xml");
    let mut all = fs::read_dir(path).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_xml);
    let found = all.by_ref().take(MOST_FILES).filter_map(at).collect();
    all.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::temp_dir::Scratch;

    #[test]
    fn u3_a_folder_of_junit_files_is_one_report() {
        let scratch = Scratch::create("ralph-junit-", false).unwrap();
        let folder = scratch.path().join("reports");
        let write = |name: &str, text: &str| files::replace_private(&folder.join(name), text.as_bytes()).unwrap();
        let suite = |name: &str, inner: &str| format!("<testsuite><testcase classname='{name}' name='t'>{inner}</testcase></testsuite>");
        assert_eq!(Report::before(folder.clone()).results(), None, "nothing there");
        fs::create_dir(&folder).unwrap();
        write("TEST-Old.xml", &suite("Old", "<failure/>"));
        let report = Report::before(folder.clone());
        assert_eq!(report.results(), None, "nothing new");
        write("TEST-A.xml", &suite("A", ""));
        write("TEST-B.xml", &suite("B", "<failure/>"));
        write("notes.txt", "no report");
        let results = report.results().unwrap();
        assert_eq!((results.passed, results.failed.iter().map(String::as_str).collect::<Vec<_>>()), (1, vec!["B::t"]));
        write("TEST-C.xml", "<testsuite>");
        assert_eq!(report.results(), None, "half of the results are none");
        let one = Report::before(scratch.path().join("junit.xml"));
        files::replace_private(&scratch.path().join("junit.xml"), suite("A", "<skipped/>").as_bytes()).unwrap();
        assert_eq!(one.results().map(|results| results.ignored), Some(1));
    }
}
