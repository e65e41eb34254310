//! The task of a check agent in `.ideal` and `.trellis`: `.current-task`, and the task's `check.jsonl` (S3-4, S3-6).

use std::path::Path;

use ralph_core::{gate::completion_markers, text};

use crate::{
    store::{project::Project, trust},
    sys::files,
};

/// The folders that may have a current task, in this order.
pub(crate) const FOLDERS: [&str; 2] = [".ideal", ".trellis"];

const CURRENT: &str = ".current-task";
const CHECKS: &str = "check.jsonl";

/// A longer file names no task.
const MAX_BYTES: usize = 4 * 1024;

/// The task in `.current-task` of one of the [`FOLDERS`]: its first line that is not blank, cleaned.
pub(crate) fn current(project: &Project, folder: &str) -> Option<String> {
    let bytes = files::read(&project.root().join(folder).join(CURRENT), MAX_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(|line| text::clean(line.trim_matches(['\u{feff}', ' ', '\t']))).find(|line| !line.trim().is_empty())?;
    Some(line.chars().take(500).collect::<String>().trim().to_owned())
}

/// The completion markers of the current task, and the file that asks for them.
///
/// `.current-task` has the task's name (`.ideal/tasks/NAME` or `.ideal/NAME`), or the path of its folder or of a file in it, from the project's
/// root. A file outside of the project does not count.
pub(crate) fn markers(project: &Project, folder: &str) -> Option<(String, Vec<String>)> {
    let task = current(project, folder)?;
    let task = task.trim_end_matches('/');
    let beside = Path::new(task).parent().map(|parent| parent.join(CHECKS).display().to_string());
    let places = [format!("{folder}/tasks/{task}/{CHECKS}"), format!("{folder}/{task}/{CHECKS}"), format!("{task}/{CHECKS}")];
    // Of a task that is a file: the list beside it, unless it is the list itself.
    let is_list = Path::new(task).extension().is_some_and(|extension| extension == "jsonl");
    let of_file = beside.filter(|_| !is_list && project.root().join(task).is_file());
    let all = places.into_iter().chain(of_file).chain(is_list.then(|| task.to_owned()));
    all.into_iter().find_map(|path| {
        let markers = completion_markers(&trust::read(project, &path).ok()?);
        (!markers.is_empty()).then_some((path, markers))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::temp_dir::Scratch;

    #[test]
    fn s3_6_the_tasks_list_is_found_wherever_it_may_lie() {
        for (folder, task, list) in [
            (".ideal", "t1", ".ideal/tasks/t1/check.jsonl"),
            (".ideal", "t1\n", ".ideal/t1/check.jsonl"),
            (".trellis", ".trellis/tasks/01-16-login\n", ".trellis/tasks/01-16-login/check.jsonl"),
            (".trellis", "\u{feff}\n  .trellis/tasks/01-16-login/ \r\n", ".trellis/tasks/01-16-login/check.jsonl"),
            (".ideal", "docs/stories/003.md", "docs/stories/check.jsonl"),
            (".ideal", "docs/stories/check.jsonl", "docs/stories/check.jsonl"),
        ] {
            let scratch = Scratch::create("ralph-task-test-", false).unwrap();
            let project = Project::at(scratch.path());
            let put = |path: &str, text: &str| {
                files::write_whole(&scratch.path().join(path), text.as_bytes()).unwrap();
            };
            put(&format!("{folder}/.current-task"), task);
            if task.contains("stories/003") {
                put(task, "# story");
            }
            assert_eq!(markers(&project, folder), None, "{task}");
            put(list, "{\"reason\": \"lint\"}\n");
            assert_eq!(markers(&project, folder), Some((list.to_owned(), vec!["LINT_FINISH".to_owned()])), "{task}");
        }
    }

    #[test]
    fn s3_4_a_task_is_one_clean_bounded_line() {
        let scratch = Scratch::create("ralph-task-test-", false).unwrap();
        let project = Project::at(scratch.path().join("p"));
        let put = |text: &[u8]| files::write_whole(&scratch.path().join("p/.ideal/.current-task"), text).unwrap();
        assert_eq!(current(&project, ".ideal"), None);
        for (text, task) in [
            (&b"\n \n"[..], None),
            (b"t\x1b[31m1\xff\nmore", Some("t[31m1\u{fffd}".to_owned())),
            (&[b'x'; 1_000], Some("x".repeat(500))),
            (&[b'x'; MAX_BYTES + 1], None),
        ] {
            put(text);
            assert_eq!(current(&project, ".ideal"), task);
        }
        // A list outside of the project is nobody's.
        files::write_whole(&scratch.path().join("check.jsonl"), b"{\"reason\": \"lint\"}").unwrap();
        for task in ["..", "../check.jsonl", &scratch.path().display().to_string()] {
            put(task.as_bytes());
            assert_eq!(markers(&project, ".ideal"), None, "{task}");
        }
    }
}
