//! `ralph uninstall --purge`: what ralph remembers of a project, and of its user.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    git::{Repository, snapshots},
    hosts::claude::commands::Command,
    setup::{Problem, file_change},
    store::project::Project,
    sys::{env, files},
};

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that goes, so that a person can be asked.
#[derive(Debug, Default)]
pub struct Purge {
    /// Folders, with everything in them.
    pub folders: Vec<PathBuf>,
    /// The projects that the state folder knows, if it goes as a whole.
    pub projects: Vec<PathBuf>,
    /// The loops whose snapshots go, under `refs/ralph` of this repository.
    pub snapshots: Vec<String>,
    /// The lines that go from the repository's own list of ignored files.
    pub excluded: Option<(PathBuf, Vec<String>)>,
    /// Working trees, which may have work in them: they stay.
    pub worktrees: Vec<PathBuf>,
    /// What fleets have: work that has not landed may be nowhere else, so they stay.
    pub fleets: Vec<PathBuf>,
}

impl Purge {
    /// What there is. `everything`: the user's state folder, too, which is about all projects; otherwise only this project's part of it.
    pub fn of(project: &Project, everything: bool) -> Self {
        let own = project.own();
        let worktrees: Vec<PathBuf> = entries(&own.join("worktrees"));
        // Only real folders, and never a link in their place.
        let mut folders: Vec<PathBuf> = match &worktrees[..] {
            [] => vec![own],
            _ => entries(&own).into_iter().filter(|path| !path.ends_with("worktrees")).collect(),
        };
        let all = env::state_dir().filter(|_| everything);
        let fleets: Vec<PathBuf> = all.iter().flat_map(|state| entries(&state.join("fleets"))).collect();
        folders.extend(match all {
            Some(state) if !fleets.is_empty() => entries(&state).into_iter().filter(|path| !path.ends_with("fleets")).collect(),
            Some(state) => vec![state],
            None => project.state_file("root").and_then(|root| Some(root.parent()?.to_owned())).into_iter().collect(),
        });
        folders.retain(|path| fs::symlink_metadata(path).is_ok());
        let snapshots = snapshots::loops(project, PATIENCE).unwrap_or_default();
        Purge {
            folders,
            projects: if everything { known_projects() } else { Vec::new() },
            snapshots,
            excluded: excluded(project),
            worktrees,
            fleets,
        }
    }

    /// The folders that are worth a word when they stay: a state folder that knows no project is as good as none.
    pub fn remembering(&self) -> Vec<&Path> {
        let is_worth_it = |path: &&Path| !path.ends_with("ralph") || path.join("projects").exists();
        self.folders.iter().map(PathBuf::as_path).filter(is_worth_it).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.snapshots.is_empty() && self.excluded.is_none()
    }

    pub fn carry_out(&self, project: &Project) -> Result<(), Problem> {
        snapshots::remove_all(project, PATIENCE).map_err(|e| Problem::new(project.root(), e))?;
        if let Some((file, lines)) = &self.excluded {
            let text = file_change::read(file)?.unwrap_or_default();
            let kept: String = text.split_inclusive('\n').filter(|line| !lines.iter().any(|gone| gone == line.trim_end())).collect();
            files::write_whole(file, kept.as_bytes()).map_err(Problem::io("written", file))?;
        }
        for path in &self.folders {
            remove(path).map_err(Problem::io("removed", path))?;
        }
        Ok(())
    }
}

fn known_projects() -> Vec<PathBuf> {
    let folders = env::state_dir().map(|state| entries(&state.join("projects"))).unwrap_or_default();
    let mut roots: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| fs::read_to_string(folder.join("root")).ok())
        .map(|root| PathBuf::from(root.trim_end()))
        .collect();
    roots.sort();
    roots
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let is_real = fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
    let entries = is_real.then(|| fs::read_dir(folder).ok()).flatten();
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A link goes, and what it leads to stays. What is gone already is no problem: with its last record the state folder goes by itself.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// The lines that `ralph doctor --fix` adds for files of ralph's.
fn excluded(project: &Project) -> Option<(PathBuf, Vec<String>)> {
    let repository = Repository::around(project.root(), PATIENCE).ok()??;
    let file = repository.folders.common.join("info/exclude");
    let text = file_change::read(&file).ok()??;
    let commands = Command::ALL.iter().map(|command| format!("**/.claude/commands/{}", command.file_name()));
    let ours: Vec<String> = commands.chain(["**/.claude/ralph-loop*.local.md".to_owned()]).collect();
    let lines: Vec<String> = ours.into_iter().filter(|ours| text.lines().any(|line| line == ours)).collect();
    (!lines.is_empty()).then_some((file, lines))
}
