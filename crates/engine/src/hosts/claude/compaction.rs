//! Having a running client make its conversation shorter: two variables in the project's personal settings, which it reads again while it runs.
//!
//! They count for every session of the project while they are set, and removing them does not unset them: so they are on for one request and are then
//! written back, and a mark tells the next hook that they are on. A variable that was not set before is empty until the session ends.

use std::{fs, path::PathBuf, time::Duration};

use ralph_core::text::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    hosts::claude::settings_file::{Settings, as_the_client_reads},
    store::project::Project,
    sys::{
        clock,
        exchange::{self, Swapped},
        files,
        lock::Lock,
    },
};

/// The window and the part of it from which on the client compacts (measured: together they work from 40,000 tokens on, with every model that was tried).
const VARIABLES: [(&str, &str); 2] = [("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"), ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "1")];

/// Settings are small.
const MAX_BYTES: usize = 1 << 20;

/// How far a session is from the next time, and what was changed for the last one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Compaction {
    pub session: String,
    /// Iterations since the conversation was compacted, or since it began.
    pub rounds: u64,
    /// Stops since the variables were set; `None`: they are not.
    pub on: Option<u64>,
    /// When they were written back.
    pub off_at: Millis,
    /// The values before; `None`: nothing was changed yet.
    pub(crate) was: Option<Before>,
    /// It did not work in this session.
    pub given_up: bool,
}

/// The settings as they were.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Before {
    pub values: Vec<Option<Value>>,
    /// There was no such file.
    pub no_file: bool,
}

/// In the user's state folder: what is written back into settings must not be what an agent wrote.
const MARK: &str = "compaction.json";

impl Compaction {
    /// The personal settings of the project.
    pub fn settings(project: &Project) -> PathBuf {
        project.claude().join("settings.local.json")
    }

    /// The mark, if there is one.
    pub fn noted(project: &Project) -> Option<Compaction> {
        project.load(MARK)
    }

    /// Switches off what a hook that was killed, or a loop that was paused or ended, left on. Whether anything was.
    pub fn heal(project: &Project) -> Result<bool, String> {
        match Compaction::noted(project) {
            Some(mut left) if left.on.is_some() => left.switch_off(project).map(|()| true),
            _ => Ok(false),
        }
    }

    pub(crate) fn keep(&self, project: &Project) -> Result<(), String> {
        project.save(MARK, self).map_err(|e| e.to_string())
    }

    /// Sets the variables. The mark comes first, so that they are never on without it.
    pub(crate) fn switch_on(&mut self, project: &Project) -> Result<(), String> {
        let text = read(project)?;
        if self.was.is_none() {
            let settings = Settings::parse(text.as_deref().unwrap_or("{}").as_bytes()).map_err(|problem| problem.to_string())?;
            let values = VARIABLES.iter().map(|(name, _)| settings.env(name)).collect();
            self.was = Some(Before { values, no_file: text.is_none() });
        }
        self.on = Some(0);
        self.keep(project)?;
        let changed = change(project, |settings| VARIABLES.iter().try_for_each(|(name, value)| settings.set_env(name, &(*value).into())));
        if changed.is_err() {
            self.on = None;
            self.keep(project)?;
        }
        changed
    }

    /// Writes back what was there; what was not there is empty, because only that unsets it in a client that runs.
    pub(crate) fn switch_off(&mut self, project: &Project) -> Result<(), String> {
        if self.on.is_none() {
            return Ok(());
        }
        let before = self.was.clone().unwrap_or_default();
        let was = |n: usize| before.values.get(n).cloned().flatten().unwrap_or_else(|| "".into());
        change(project, |settings| VARIABLES.iter().enumerate().try_for_each(|(n, (name, _))| settings.set_env(name, &was(n))))?;
        self.on = None;
        self.off_at = clock::now();
        self.keep(project)
    }

    /// The session is over: nothing is left in the settings that was not there before.
    pub(crate) fn forget(mut self, project: &Project) -> Result<(), String> {
        self.switch_off(project)?;
        if let Some(before) = self.was.take() {
            let fresh = |n: usize| before.values.get(n).is_none_or(Option::is_none);
            let is_empty = |settings: &Settings, name: &str| settings.env(name) == Some("".into());
            change(project, |settings| {
                for (n, (name, _)) in VARIABLES.iter().enumerate() {
                    if fresh(n) && is_empty(settings, name) {
                        settings.remove_env(name, None);
                    }
                }
                Ok(())
            })?;
            let is_bare = || Settings::parse(read(project).ok()??.as_bytes()).ok().filter(Settings::is_empty);
            if before.no_file && is_bare().is_some() {
                let _ = fs::remove_file(Compaction::settings(project));
            }
        }
        project.delete(MARK);
        Ok(())
    }
}

/// The settings' text; `None`: there is no file. One that the client would not read, or that is a link, is left alone.
fn read(project: &Project) -> Result<Option<String>, String> {
    let path = Compaction::settings(project);
    let shown = path.display().to_string();
    match fs::symlink_metadata(&path) {
        Err(_) => return Ok(None),
        Ok(meta) if !meta.is_file() => return Err(format!("{shown} is no plain file")),
        Ok(_) => {}
    }
    let text =
        String::from_utf8(files::read(&path, MAX_BYTES).map_err(|e| format!("{shown}: {e}"))?).map_err(|e| format!("{shown}: {e}"))?;
    as_the_client_reads(&text).map_err(|problem| format!("{shown} {problem}"))?;
    Ok(Some(text))
}

/// Changes the file as a syntax tree, with every other byte as it was.
fn change(project: &Project, edit: impl Fn(&Settings) -> Result<(), super::settings_file::Problem>) -> Result<(), String> {
    const ATTEMPTS: usize = 5;
    let path = Compaction::settings(project);
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    // Other sessions of the project switch the same variables, and no lock is held here.
    let backup = path.with_extension(format!("json.ralph-{}", std::process::id()));
    let _alone = Lock::of_folder(&project.claude(), Duration::from_secs(1));
    for _ in 0..ATTEMPTS {
        let before = read(project)?;
        let settings = Settings::parse(before.as_deref().unwrap_or("{}").as_bytes()).map_err(|problem| problem.to_string())?;
        edit(&settings).map_err(|problem| format!("{} {problem}", path.display()))?;
        let after = settings.to_text();
        let Some(before) = before else {
            return exchange::create_new(&path, &backup, after.as_bytes()).map_err(failed);
        };
        if before == after {
            return Ok(());
        }
        let swapped = exchange::swap(&path, &backup, before.as_bytes(), after.as_bytes()).map_err(failed)?;
        let _ = fs::remove_file(&backup);
        if matches!(swapped, Swapped::Done) {
            return Ok(());
        }
    }
    Err(format!("{} keeps changing while ralph writes it", path.display()))
}
