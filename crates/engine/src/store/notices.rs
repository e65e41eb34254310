//! Lines that a person has yet to see. The client does not show what a hook says at a subagent's stop, so it is said again when the session stops.
//!
//! Failing to keep one never changes an answer; the hook's log has it in any case.

use ralph_core::text::{self, time::Millis};
use serde::{Deserialize, Serialize};

use crate::{
    store::{Error, project::Project, project_lock::Locked},
    sys::secrets,
};

/// Older lines are dropped.
const FORGOTTEN_MS: Millis = 24 * 3_600_000;

const MAX_LINES: usize = 20;

const MAX_LINE: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Notice {
    session: String,
    at: Millis,
    line: String,
}

const FILE: &str = "notices.json";

/// Keeps these lines until the session stops.
pub(crate) fn keep(project: &Project, session: &str, now: Millis, said: &str) -> Result<(), Error> {
    change(project, now, |all| {
        for line in secrets::mask(said).lines() {
            if !all.iter().any(|other| other.session == session && other.line == line) {
                all.push(Notice { session: session.to_owned(), at: now, line: line.to_owned() });
            }
        }
    })
}

/// The lines that wait for a session, the oldest first. They are told once, and cleaned.
pub(crate) fn take(project: &Project, session: &str, now: Millis) -> Vec<String> {
    // Mostly there are none: then nothing is locked and nothing is made.
    if !read(project).iter().any(|notice| notice.session == session) {
        return Vec::new();
    }
    let mut taken = Vec::new();
    let changed = change(project, now, |all| {
        taken = all.extract_if(.., |notice| notice.session == session).map(|notice| text::opening(&notice.line, MAX_LINE)).collect();
        taken.drain(..taken.len().saturating_sub(MAX_LINES));
    });
    if changed.is_ok() { taken } else { Vec::new() }
}

fn read(project: &Project) -> Vec<Notice> {
    project.load(FILE).unwrap_or_default()
}

fn change(project: &Project, now: Millis, change: impl FnOnce(&mut Vec<Notice>)) -> Result<(), Error> {
    let _locked = Locked::acquire(project)?;
    let mut all = read(project);
    all.retain(|notice| now.saturating_sub(notice.at) < FORGOTTEN_MS);
    change(&mut all);
    let excess = all.len().saturating_sub(MAX_LINES);
    all.drain(..excess);
    project.save(FILE, &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{files, temp_dir::Scratch};

    #[test]
    fn s3_5_a_line_is_told_once_to_its_own_session() {
        let scratch = Scratch::create("ralph-notices-test-", false).unwrap();
        let project = Project::with_state(scratch.path().join("project"), &scratch.path().join("state"));
        std::fs::create_dir(project.root()).unwrap();
        assert_eq!(take(&project, "a", 0), Vec::<String>::new());
        assert!(!project.own().exists(), "nothing is made for nothing");
        for (session, line) in [("a", "1"), ("b", "2"), ("a", "3"), ("a", "1")] {
            keep(&project, session, 1_000, line).unwrap();
        }
        assert_eq!(take(&project, "a", 1_001), ["1", "3"]);
        assert_eq!(take(&project, "a", 1_001), Vec::<String>::new());
        assert_eq!(take(&project, "b", FORGOTTEN_MS + 2_000), Vec::<String>::new(), "nobody waits for it any more");
        for n in 0..50 {
            keep(&project, "a", 1_000, &n.to_string()).unwrap();
        }
        assert_eq!(take(&project, "a", 1_001).len(), MAX_LINES);
        let forged =
            serde_json::json!([{"session": "a", "at": 1_000, "line": format!("\u{1b}[2Jall\n\u{202e}is well{}", "!".repeat(5_000))}]);
        let path = project.make_state_file(FILE).unwrap();
        files::write_whole(&path, forged.to_string().as_bytes()).unwrap();
        let taken = take(&project, "a", 1_001);
        assert!(taken.len() == 1 && taken[0].starts_with("[2Jall is well!") && taken[0].chars().count() == MAX_LINE + 1, "{taken:?}");
        keep(&project, "a", 1_000, "one\ntwo").unwrap();
        assert_eq!(take(&project, "a", 1_001), ["one", "two"]);
        files::write_whole(&path, b"garbage").unwrap();
        assert_eq!(take(&project, "a", 1_001), Vec::<String>::new());
        keep(&project, "a", 1_000, "x").unwrap();
        assert_eq!(take(&project, "a", 1_001), ["x"]);
    }
}
