//! The loops that can be looked at: those of the project and its working trees, or of all the user's projects.

use std::{collections::VecDeque, path::PathBuf};

use ralph_core::text::time::Millis;
use ralph_engine::{
    store::{known_projects, project::Project},
    sys::clock,
    view::{self, Status, View, worktrees},
};

/// So many that ended are still shown.
const STAY: usize = 5;
/// So many of a project are in the list.
const LISTED: usize = 20;

pub(super) struct Entry {
    pub(super) project: Project,
    pub(super) view: View,
}

impl Entry {
    fn of(project: &Project, view: View) -> Self {
        Entry { project: project.clone(), view }
    }

    fn which(&self) -> Which {
        Which { root: self.view.project.clone(), id: self.view.id.clone() }
    }

    pub(super) fn is(&self, which: &Which) -> bool {
        self.view.id == which.id && self.view.project == which.root
    }
}

/// Names one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Which {
    pub(super) root: PathBuf,
    pub(super) id: String,
}

pub(super) struct Loops {
    pub(super) here: Project,
    /// Of all projects.
    pub(super) all: bool,
    /// The person named it.
    asked: Option<String>,
    projects: Vec<Project>,
    pub(super) entries: Vec<Entry>,
    pub(super) chosen: Option<Which>,
    /// It was over when it was chosen, because there was no live one.
    was_over: bool,
    /// Those that ended while a person looked: they stay, so that they can be brought back.
    stay: VecDeque<Which>,
    pub(super) seen: Millis,
    /// The list is on the screen: with those that ended before anybody looked.
    pub(super) with_ended: bool,
}

impl Loops {
    pub(super) fn of(here: &Project, asked: Option<&str>, all: bool) -> Self {
        let mut loops = Loops {
            here: here.clone(),
            all,
            asked: asked.map(str::to_owned),
            projects: Vec::new(),
            entries: Vec::new(),
            chosen: None,
            was_over: false,
            stay: VecDeque::new(),
            seen: clock::now(),
            with_ended: false,
        };
        loops.look();
        loops
    }

    /// Looks at all of them again. What is chosen stays chosen, even after it ended.
    pub(super) fn look(&mut self) {
        self.seen = clock::now();
        self.projects = self.projects();
        let mut entries: Vec<Entry> = self.projects.iter().flat_map(live).collect();
        self.note_those_that_ended(&entries);
        for which in self.stay.iter().chain(&self.chosen) {
            if entries.iter().any(|entry| entry.is(which)) {
                continue;
            }
            // Below the others of its project.
            let last = entries.iter().rposition(|entry| entry.view.project == which.root);
            if let Some(over) = ended(&Project::at(&which.root), |view| view.id == which.id) {
                entries.insert(last.map_or(entries.len(), |last| last + 1), over);
            }
        }
        if let Some(asked) = &self.asked
            && self.chosen.is_none()
            && !entries.iter().any(|entry| is_called(&entry.view, asked))
        {
            entries.extend(self.projects.iter().find_map(|project| ended(project, |view| is_called(view, asked))));
        }
        if entries.is_empty() {
            let lasts = self.projects.iter().filter_map(|project| ended(project, |_| true));
            entries.extend(lasts.max_by(|a, b| a.view.last_event_at.cmp(&b.view.last_event_at)));
        }
        if self.with_ended {
            entries = self.projects.iter().flat_map(|project| with_ended(project, &entries)).collect();
        }
        let is_known = |entry: &Entry| self.entries.iter().any(|known| known.is(&entry.which()));
        let has_begun = entries.iter().any(|entry| entry.view.file.is_some() && !is_known(entry));
        self.entries = entries;
        self.choose_one(has_begun);
    }

    fn note_those_that_ended(&mut self, live: &[Entry]) {
        let is_live = |which: &Which| live.iter().any(|entry| entry.is(which));
        self.stay.retain(|which| !is_live(which));
        let over = self.entries.iter().filter(|entry| entry.view.file.is_some()).map(Entry::which).filter(|which| !is_live(which));
        self.stay.extend(over);
        self.stay.drain(..self.stay.len().saturating_sub(STAY));
    }

    /// Without a choice, the loop that was busy last is shown, live ones first. `has_begun`: one of them is new.
    fn choose_one(&mut self, has_begun: bool) {
        let is_there = |which: &Which| self.entries.iter().any(|entry| entry.is(which));
        if self.chosen.as_ref().is_some_and(|chosen| is_there(chosen) && !self.has_successor(chosen, has_begun)) {
            return;
        }
        let is_meant = |entry: &&Entry| self.asked.as_deref().is_none_or(|asked| is_called(&entry.view, asked));
        let best = self.entries.iter().filter(is_meant).max_by_key(|entry| (entry.view.file.is_some(), entry.view.last_event_at.clone()));
        self.was_over = best.is_some_and(|entry| entry.view.file.is_none());
        self.chosen = best.map(Entry::which);
    }

    /// Whether a live loop should replace the one on the screen: that one was over before it was shown, was cancelled, or is over and a new loop has begun.
    /// One that a person asked for stays, and so does one that has just ended while others go on.
    fn has_successor(&self, chosen: &Which, has_begun: bool) -> bool {
        let status = self.chosen().map(|entry| (entry.view.file.is_none(), entry.view.status == Status::Cancelled));
        let (is_over, is_cancelled) = status.unwrap_or_default();
        let others = || self.entries.iter().any(|entry| entry.view.file.is_some() && !entry.is(chosen));
        self.asked.is_none() && (self.was_over || is_cancelled || (is_over && has_begun)) && others()
    }

    /// A name that no other one on the screen has: its own, with its folder where that tells it apart, or its id.
    pub(super) fn label(&self, entry: &Entry) -> String {
        let view = &entry.view;
        let namesakes: Vec<&View> = self.entries.iter().map(|other| &other.view).filter(|other| other.name == view.name).collect();
        let folder = view.project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match namesakes.len() {
            0 | 1 => view.name.clone(),
            _ if namesakes.iter().filter(|other| other.project == view.project).count() > 1 => view.id.clone(),
            _ => format!("{folder}/{}", view.name),
        }
    }

    fn projects(&self) -> Vec<Project> {
        let projects = if self.all { known_projects::with(&self.here) } else { vec![self.here.clone()] };
        let trees = |project: &Project| worktrees::folders(project).into_iter().map(|(_, folder)| Project::at(folder)).collect::<Vec<_>>();
        let mut every: Vec<Project> = Vec::new();
        for project in projects.iter().flat_map(|project| [vec![project.clone()], trees(project)].concat()) {
            if !every.contains(&project) {
                every.push(project);
            }
        }
        every
    }

    pub(super) fn chosen(&self) -> Option<&Entry> {
        let chosen = self.chosen.as_ref()?;
        self.entries.iter().find(|entry| entry.is(chosen))
    }

    pub(super) fn position(&self) -> usize {
        self.chosen.as_ref().and_then(|chosen| self.entries.iter().position(|entry| entry.is(chosen))).unwrap_or(0)
    }

    /// Chooses the one at that place; beyond the last comes the first.
    pub(super) fn choose(&mut self, at: usize) {
        if let Some(entry) = self.entries.get(at % self.entries.len().max(1)) {
            (self.chosen, self.was_over) = (Some(entry.which()), false);
        }
    }

    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let of = |project: &Project| [project.claude(), project.own().join("journal"), project.own().join("worktrees")];
        self.projects.iter().flat_map(of).collect()
    }

    /// Whether anybody works on any of them.
    pub(super) fn is_busy(&self) -> bool {
        self.entries.iter().any(|entry| is_busy(&entry.view))
    }
}

/// Whether something goes on that leaves no trace in a file, so that it has to be looked at.
pub(super) fn is_busy(view: &View) -> bool {
    matches!(view.status, Status::Active | Status::Parked) || view.is_in_its_last_iteration()
}

fn is_called(view: &View, name: &str) -> bool {
    view.id == name || view.name == name
}

fn live(project: &Project) -> Vec<Entry> {
    view::live(project).into_iter().map(|view| Entry::of(project, view)).collect()
}

/// The loops of a project that are known, and below them the newest of those that ended.
fn with_ended(project: &Project, known: &[Entry]) -> Vec<Entry> {
    let (here, ids): (Vec<&Entry>, Vec<&str>) =
        known.iter().filter(|entry| entry.project == *project).map(|entry| (entry, entry.view.id.as_str())).unzip();
    let further = view::ended(project).into_iter().filter(|view| !ids.contains(&view.id.as_str())).take(LISTED);
    here.into_iter().map(|entry| entry.view.clone()).chain(further).map(|view| Entry::of(project, view)).collect()
}

fn ended(project: &Project, is_meant: impl Fn(&View) -> bool) -> Option<Entry> {
    view::ended(project).into_iter().find(|view| is_meant(view)).map(|view| Entry::of(project, view))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ralph_engine::{sys::files, sys::temp_dir::Scratch};

    use super::*;

    /// A loop with a file and a journal.
    fn begin(project: &Project, name: &str) -> PathBuf {
        let file = match name {
            "main" => project.claude().join("ralph-loop.local.md"),
            name => project.claude().join(format!("ralph-loop.{name}.local.md")),
        };
        fs::create_dir_all(project.claude()).unwrap();
        project.prepare().unwrap();
        files::append(&file, format!("---\nactive: false\niteration: 2\nloop_id: {name}-1\n---\n\nGo\n").as_bytes()).unwrap();
        let started = r#"{"kind": "started", "file": "x", "by": "file", "prompt": ""}"#;
        let record = format!(
            r#"{{"v": 1, "seq": 1, "at": "2026-11-15T21:00:00.000Z", "loop": "{name}-1", "event": {started}, "state": {{"name": "{name}"}}}}"#
        );
        files::append(&project.journal(&format!("{name}-1")), format!("{record}\n").as_bytes()).unwrap();
        file
    }

    fn ids(loops: &Loops) -> Vec<&str> {
        loops.entries.iter().map(|entry| entry.view.id.as_str()).collect()
    }

    #[test]
    fn eyes_1_what_ends_while_somebody_looks_stays_in_the_list() {
        let scratch = Scratch::create("ralph-watch-", false).unwrap();
        let project = Project::at(scratch.path());
        let file = begin(&project, "main");
        begin(&project, "docs");
        let mut loops = Loops::of(&project, None, false);
        assert_eq!(loops.entries.len(), 2);
        fs::remove_file(file).unwrap();
        loops.look();
        loops.choose(0);
        loops.look();
        assert_eq!(ids(&loops), ["docs-1", "main-1"], "whichever is chosen");
        begin(&project, "main");
        loops.look();
        assert_eq!(loops.entries.iter().filter(|entry| entry.view.file.is_some()).count(), 2);
        assert_eq!(loops.entries.len(), 2, "it is back");
    }

    #[test]
    fn u7_the_list_has_those_that_ended_before_anybody_looked() {
        let scratch = Scratch::create("ralph-watch-", false).unwrap();
        let project = Project::at(scratch.path());
        fs::remove_file(begin(&project, "main")).unwrap();
        begin(&project, "docs");
        let mut loops = Loops::of(&project, None, false);
        assert_eq!(ids(&loops), ["docs-1"]);
        loops.with_ended = true;
        loops.look();
        assert_eq!(ids(&loops), ["docs-1", "main-1"]);
        loops.choose(1);
        loops.with_ended = false;
        loops.look();
        assert_eq!(ids(&loops), ["docs-1", "main-1"], "the chosen one stays");
    }

    #[test]
    fn u7_names_in_the_list_are_distinct() {
        let scratch = Scratch::create("ralph-watch-", false).unwrap();
        let project = Project::at(scratch.path());
        let tree = scratch.path().join(".ralph/worktrees/tidy");
        fs::create_dir_all(&tree).unwrap();
        begin(&project, "docs");
        begin(&project, "main");
        begin(&Project::at(&tree), "main");
        let loops = Loops::of(&project, None, false);
        let mut labels: Vec<String> = loops.entries.iter().map(|entry| loops.label(entry)).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), 3, "{labels:?}");
        assert!(labels.contains(&"docs".to_owned()) && labels.contains(&"tidy/main".to_owned()), "{labels:?}");
    }

    #[test]
    fn eyes_1_a_loop_in_a_working_tree_is_seen_live_and_ended() {
        let scratch = Scratch::create("ralph-watch-", false).unwrap();
        let tree = scratch.path().join(".ralph/worktrees/tidy");
        fs::create_dir_all(&tree).unwrap();
        let file = begin(&Project::at(&tree), "main");
        let project = Project::at(scratch.path());
        assert_eq!(ids(&Loops::of(&project, None, false)), ["main-1"]);
        fs::remove_file(file).unwrap();
        assert_eq!(ids(&Loops::of(&project, None, false)), ["main-1"]);
        assert_eq!(ids(&Loops::of(&project, Some("main"), false)), ["main-1"]);
    }
}
