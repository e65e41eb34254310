//! How often a check agent has been sent back: `{task, iteration, started_at}` beside the settings that asked for its proof (S3-4).
//!
//! The top of the file is about the agent that stopped last, as the old format has it. Each agent has an entry of its own, so that two at once do
//! not share a count. A file that cannot be read starts again: a lost count costs some iterations, never an endless loop.
//!
//! An agent may write there, so the file can only make ralph stricter: of each count, the lower one of the file and of ralph's own copy in the user's state folder counts.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use ralph_core::text::{
    self,
    time::{self, Millis},
};
use serde::{Deserialize, Serialize};

use crate::{
    store::{Error, project::Project, project_lock::Locked},
    sys::{clock, files, process},
};

/// A larger file is not ralph's.
const MAX_BYTES: usize = 256 * 1024;

/// An agent that has not stopped for this long does not come back.
const FORGOTTEN_MS: Millis = 24 * 3_600_000;

/// More agents than this do not run at once.
const MAX_AGENTS: usize = 64;

/// The counts beside one settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerifyState<'p> {
    project: &'p Project,
    path: PathBuf,
    /// Ralph's own copy, in the user's state folder.
    kept: String,
}

/// One stop of a check agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop<'a> {
    pub agent: &'a str,
    /// The file that asks for its proof.
    pub(crate) asked_by: &'a str,
    pub task: Option<&'a str>,
    /// Tells this stop from the next, together with who reports it.
    pub fingerprint: &'a str,
    /// The registration that reports it.
    pub via: &'a str,
}

/// Whether a stop with the same words, reported by these registrations and answered then, is this very stop.
pub(crate) type IsSecondReport<'a> = &'a dyn Fn(&[String], u64) -> bool;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Iteration {
    Counted {
        /// From 1.
        iteration: u64,
        started_at: Millis,
        /// Why the file could not be used.
        anew: Option<String>,
    },
    /// Another hook process measures this very stop, or has just answered it.
    Repeated,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    #[serde(flatten)]
    latest: Entry,
    #[serde(default)]
    agents: BTreeMap<String, Entry>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    iteration: u64,
    #[serde(default)]
    started_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop: Option<Measured>,
    /// The agent may stop. If it is called again its count starts again; only a second report of its last stop is still recognised.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    let_go: bool,
}

/// The stop that was counted last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    fingerprint: String,
    /// The process that measures it, as long as it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// When it was answered, on the clock that is never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered_ms: Option<u64>,
    /// The registrations that have reported it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
}

impl Entry {
    /// Its last stop has been answered.
    fn answered(&mut self) {
        if let Some(stop) = &mut self.stop {
            stop.pid = None;
            stop.answered_ms = Some(clock::uptime_ms());
        }
    }
}

impl Measured {
    fn is_same(&self, stop: &Stop<'_>, is_second_report: IsSecondReport<'_>) -> bool {
        let under_way = self.pid.is_some_and(|pid| pid != std::process::id() && process::is_alive(pid));
        let is_anothers = || !self.via.iter().any(|via| via == stop.via);
        let is_second = (under_way && is_anothers()) || self.answered_ms.is_some_and(|at| is_second_report(&self.via, at));
        self.fingerprint == stop.fingerprint && is_second
    }
}

impl<'p> VerifyState<'p> {
    /// The counts beside the settings in `folder` (`.ideal`, `.trellis`); in ralph's own folder for `None`.
    pub(crate) fn beside(project: &'p Project, folder: Option<&str>) -> Self {
        let path = match folder {
            Some(folder) => project.root().join(folder).join(".verify-state.json"),
            None => project.own().join("verify-state.json"),
        };
        let kept = format!("verify/{}.json", folder.unwrap_or("ralph").trim_start_matches('.'));
        VerifyState { project, path, kept }
    }

    /// Counts a stop. The lock is held only for the count.
    pub(crate) fn count(&self, stop: &Stop<'_>, now: Millis, is_second_report: IsSecondReport<'_>) -> Result<Iteration, Error> {
        let _locked = Locked::acquire(self.project)?;
        let (mut contents, anew) = self.read();
        let last = contents.agents.get_mut(stop.agent).and_then(|entry| entry.stop.as_mut());
        if let Some(last) = last.filter(|last| last.is_same(stop, is_second_report)) {
            last.via.push(stop.via.to_owned());
            self.write(&contents)?;
            return Ok(Iteration::Repeated);
        }
        let known = contents.agents.get(stop.agent).filter(|entry| !entry.let_go && time::parse(&entry.started_at).is_some());
        let started_at = known.and_then(|entry| time::parse(&entry.started_at)).unwrap_or(now);
        let entry = Entry {
            task: stop.task.map(str::to_owned),
            iteration: known.map_or(0, |entry| entry.iteration).saturating_add(1),
            started_at: time::format(started_at),
            asked_by: Some(stop.asked_by.to_owned()),
            stop: Some(Measured {
                fingerprint: stop.fingerprint.to_owned(),
                pid: Some(std::process::id()),
                answered_ms: None,
                via: vec![stop.via.to_owned()],
            }),
            let_go: false,
        };
        let iteration = entry.iteration;
        contents.latest = Entry { asked_by: None, stop: None, ..entry.clone() };
        contents.agents.insert(stop.agent.to_owned(), entry);
        forget(&mut contents.agents, stop.agent, now);
        self.write(&contents)?;
        Ok(Iteration::Counted { iteration, started_at, anew })
    }

    /// The agent was sent back. A second report of the same stop will be recognised.
    pub(crate) fn sent_back(&self, agent: &str) -> Result<(), Error> {
        self.change(|contents| {
            if let Some(entry) = contents.agents.get_mut(agent) {
                entry.answered();
            }
        })
    }

    /// Whether an agent was sent back and not let go since.
    pub(crate) fn knows(&self, agent: &str) -> bool {
        self.entry(agent).is_some()
    }

    /// The file that asked for the proof of such an agent.
    pub(crate) fn asked_by(&self, agent: &str) -> Option<String> {
        self.entry(agent)?.asked_by
    }

    /// The entry of such an agent, from the file or, if that was removed, from ralph's own copy.
    fn entry(&self, agent: &str) -> Option<Entry> {
        let known = |mut contents: Contents| contents.agents.remove(agent).filter(|entry| !entry.let_go);
        known(self.read().0).or_else(|| known(self.own_copy()))
    }

    /// The agent was let go: if it is called again, its count starts again.
    pub(crate) fn let_go(&self, agent: &str) -> Result<(), Error> {
        self.change(|contents| match contents.agents.get_mut(agent).filter(|entry| entry.stop.is_some()) {
            Some(entry) => {
                entry.answered();
                entry.let_go = true;
            }
            None => {
                contents.agents.remove(agent);
            }
        })
    }

    /// Nothing is asked of the agent any more.
    pub(crate) fn remove(&self, agent: &str) -> Result<(), Error> {
        self.change(|contents| {
            contents.agents.remove(agent);
        })
    }

    fn change(&self, change: impl FnOnce(&mut Contents)) -> Result<(), Error> {
        let _locked = Locked::acquire(self.project)?;
        let (mut contents, _) = self.read();
        change(&mut contents);
        self.write(&contents)
    }

    /// The contents of the file, and why it cannot be used.
    fn read(&self) -> (Contents, Option<String>) {
        let parsed = match files::read(&self.path, MAX_BYTES) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return (Contents::default(), None),
            Err(e) => Err(e.to_string()),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| e.to_string()),
        };
        match parsed {
            Ok(contents) => (self.as_far_as_known(contents), None),
            Err(problem) => {
                let what = format!("{} starts counting again: {problem}", shown(self.project.root(), &self.path));
                (Contents::default(), Some(text::opening(&what, 300)))
            }
        }
    }

    /// Ralph's own copy.
    fn own_copy(&self) -> Contents {
        self.project.load(&self.kept).unwrap_or_default()
    }

    /// The agents of ralph's own copy, with the lower count of both. Without a state folder there is only the file.
    fn as_far_as_known(&self, file: Contents) -> Contents {
        if !self.project.keeps_state() {
            return file;
        }
        let known = self.own_copy();
        let stricter = |(agent, entry): (String, Entry)| {
            let said = file.agents.get(&agent).filter(|said| time::parse(&said.started_at).is_some())?;
            let iteration = said.iteration.min(entry.iteration);
            Some((agent, Entry { iteration, ..entry }))
        };
        Contents { latest: file.latest.clone(), agents: known.agents.into_iter().filter_map(stricter).collect() }
    }

    fn write(&self, contents: &Contents) -> Result<(), Error> {
        if self.project.keeps_state() {
            self.project.save(&self.kept, contents)?;
        }
        let failed = |e| Error::io("write", &self.path)(e);
        let mut bytes = serde_json::to_vec_pretty(contents).map_err(|e| failed(e.into()))?;
        bytes.push(b'\n');
        files::replace_private(&self.path, &bytes).map_err(failed)
    }
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Drops agents that do not come back: old ones, those with an unreadable time, and the oldest of too many. Never `but`.
fn forget(agents: &mut BTreeMap<String, Entry>, but: &str, now: Millis) {
    let age = |entry: &Entry| time::parse(&entry.started_at).map_or(Millis::MAX, |at| now.saturating_sub(at));
    agents.retain(|id, entry| id == but || age(entry) < FORGOTTEN_MS);
    while agents.len() > MAX_AGENTS {
        let oldest = agents.iter().filter(|(id, _)| *id != but).max_by_key(|(_, entry)| age(entry)).map(|(id, _)| id.clone());
        let Some(oldest) = oldest else { break };
        agents.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sys::temp_dir::Scratch;

    struct Bed {
        _folder: Scratch,
        project: Project,
    }

    fn bed() -> Bed {
        let folder = Scratch::create("ralph-verify-test-", false).unwrap();
        fs::create_dir(folder.path().join(".ideal")).unwrap();
        Bed { project: Project::at(folder.path()), _folder: folder }
    }

    fn stop<'a>(agent: &'a str, fingerprint: &'a str) -> Stop<'a> {
        Stop { agent, asked_by: "ralph.toml", task: Some("t1"), fingerprint, via: "user" }
    }

    fn count(state: &VerifyState<'_>, agent: &str, now: Millis) -> Iteration {
        let fingerprint = now.to_string();
        state.count(&stop(agent, &fingerprint), now, &|_, _| false).unwrap()
    }

    fn nth(iteration: u64, started_at: Millis) -> Iteration {
        Iteration::Counted { iteration, started_at, anew: None }
    }

    #[test]
    fn s3_4_each_agent_has_its_own_count_and_the_top_is_the_latest() {
        let bed = bed();
        let state = VerifyState::beside(&bed.project, Some(".ideal"));
        assert_eq!(count(&state, "a", 1_000), nth(1, 1_000));
        assert_eq!(count(&state, "b", 2_000), nth(1, 2_000));
        assert_eq!(count(&state, "a", 3_000), nth(2, 1_000));
        let file = bed.project.root().join(".ideal/.verify-state.json");
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!((&json["task"], &json["iteration"]), (&"t1".into(), &2.into()));
        assert_eq!(json["started_at"], "1970-01-01T00:00:01.000Z");
        assert_eq!(json["agents"]["b"]["iteration"], 1);
        state.let_go("a").unwrap();
        assert_eq!(count(&state, "a", 4_000), nth(1, 4_000), "an agent that is called again begins anew");
        assert_eq!(count(&state, "b", 5_000), nth(2, 2_000));
        assert_eq!(fs::read_dir(bed.project.root().join(".ideal")).unwrap().count(), 1, "nothing lies beside it");
    }

    #[test]
    fn s3_4_what_cannot_be_read_begins_anew_and_says_so() {
        let bed = bed();
        let state = VerifyState::beside(&bed.project, Some(".ideal"));
        let file = bed.project.root().join(".ideal/.verify-state.json");
        for (text, is_told) in [
            (&b"{\"task\": \"x\", \"iteration\": 4, \"started_at\": \"2026-11-15T09:30:00\"}"[..], false),
            (b"{}", false),
            (b"{\"agents\": {\"a\": {\"iteration\": 9, \"started_at\": \"long ago\"}}}", false),
            (b"", true),
            (b"{\"agents\": 7}", true),
            (b"{\"iteration\": -1}", true),
            (b"[]", true),
            (b"\xff\x00", true),
            (&vec![b' '; MAX_BYTES + 1], true),
        ] {
            files::write_whole(&file, text).unwrap();
            let Iteration::Counted { iteration: 1, started_at: 7_000, anew } = count(&state, "a", 7_000) else { panic!("{text:?}") };
            assert_eq!(anew.is_some(), is_told, "{anew:?}");
            assert!(anew.is_none_or(|what| what.starts_with(".ideal/.verify-state.json starts counting again: ")));
            assert_eq!(count(&state, "a", 8_000), nth(2, 7_000));
        }
        // A folder in its place can be neither read nor written: an error, not a loop without end.
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(state.count(&stop("a", "x"), 0, &|_, _| false).is_err());
    }

    #[test]
    fn s3_4_old_agents_are_forgotten_and_the_file_stays_small() {
        let bed = bed();
        let state = VerifyState::beside(&bed.project, None);
        count(&state, "old", 0);
        for n in 0..100_u32 {
            count(&state, &format!("agent-{n}"), FORGOTTEN_MS + Millis::from(n));
        }
        let (contents, _) = state.read();
        assert_eq!(contents.agents.len(), MAX_AGENTS);
        assert!(
            contents.agents.contains_key("agent-99") && !contents.agents.contains_key("old") && !contents.agents.contains_key("agent-3")
        );
        assert!(bed.project.own().join("verify-state.json").is_file());
    }

    /// Two hooks that are registered for one event: the second neither counts nor runs anything.
    #[test]
    fn s3_4_one_stop_counts_once() {
        let bed = bed();
        let state = VerifyState::beside(&bed.project, None);
        state.count(&stop("a", "f"), 0, &|_, _| true).unwrap();
        let of_another = |pid: Option<u32>, answered_ms| {
            state
                .change(|contents| {
                    let entry = contents.agents.get_mut("a").unwrap();
                    entry.stop = Some(Measured { fingerprint: "f".into(), pid, answered_ms, via: vec!["plugin".into()] });
                })
                .unwrap();
        };
        let parent = process::parent_pid();
        of_another(parent, None);
        assert_eq!(state.count(&stop("a", "f"), 1, &|_, _| false).unwrap(), Iteration::Repeated, "it is being measured");
        of_another(None, Some(5));
        let by_the_plugin = |via: &[String], at: u64| via.len() == 1 && via[0] == "plugin" && at == 5;
        assert_eq!(state.count(&stop("a", "f"), 1, &by_the_plugin).unwrap(), Iteration::Repeated, "it has been answered");
        assert_eq!(state.read().0.agents["a"].stop.as_ref().unwrap().via, ["plugin", "user"], "both have reported it now");
        assert_eq!(state.count(&stop("a", "f"), 1, &|_, _| false).unwrap(), nth(2, 0), "the same words again");
        of_another(Some(4_194_303), None);
        assert_eq!(state.count(&stop("a", "f"), 1, &|_, _| false).unwrap(), nth(3, 0), "whoever measured it is gone");
        of_another(parent, None);
        assert_eq!(state.count(&stop("a", "g"), 1, &|_, _| true).unwrap(), nth(4, 0), "another stop");
        let again = Stop { via: "plugin", ..stop("a", "f") };
        of_another(parent, None);
        assert_eq!(
            state.count(&again, 1, &|_, _| false).unwrap(),
            nth(5, 0),
            "t13: the registration that measures it reports the next one"
        );
        state.sent_back("a").unwrap();
        assert!(state.read().0.agents["a"].stop.as_ref().is_some_and(|s| s.pid.is_none() && s.answered_ms.is_some()));
    }

    /// The first hook let the agent go when its iterations were used up; the second one, which comes late, does not begin anew with it.
    #[test]
    fn t13_a_late_second_report_of_an_agent_that_was_let_go_counts_nothing() {
        let bed = bed();
        let state = VerifyState::beside(&bed.project, None);
        let reported = |via: &[String], _: u64| !via.iter().any(|via| via == "plugin");
        state.count(&stop("a", "f"), 0, &|_, _| false).unwrap();
        state.let_go("a").unwrap();
        assert!(!state.knows("a") && state.asked_by("a").is_none());
        let late = Stop { via: "plugin", ..stop("a", "f") };
        assert_eq!(state.count(&late, 1, &reported).unwrap(), Iteration::Repeated);
        assert_eq!(state.count(&late, 2, &reported).unwrap(), nth(1, 2), "called again, with the same words");
    }
}
