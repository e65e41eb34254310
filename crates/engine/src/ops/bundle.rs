//! A loop as one file: it goes on at the same iteration in another folder, or on another machine.
//!
//! A bundle holds the loop's file, its journal, the logs that its next iteration reads, and what ralph believes about the loop, which is in the user's state folder.
//! Caches stay behind, and so do snapshots: git carries those. A bundle holds seals, so whoever may import one decides what counts as proven: that is a person or
//! a program of theirs, never an agent in its own shell. What may be written is a closed list of names made from the loop's name and id, so a bundle cannot name
//! any other file.

use std::{collections::BTreeMap, fs, path::Path};

use ralph_core::{
    gate::Run,
    journal::State,
    loops::{LoopFile, file_of, is_loop_id, is_name},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    gates::declared::LOOP_ORIGIN,
    ops::{Refusal, choose, linked_elsewhere},
    store::{Error, journal, place::Place, project::Project, project_lock::Locked, runner, seal, trust},
    sys::{exchange, files},
    view,
};

/// The version of the bundles that this program writes.
const VERSION: u32 = 1;

/// A larger bundle is refused.
pub const MAX_BYTES: usize = 64 << 20;

/// A longer log stays behind.
const MAX_LOG: usize = 4 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Bundle {
    #[serde(rename = "ralph_bundle")]
    version: u32,
    id: String,
    name: String,
    /// Where it was.
    root: String,
    /// A person had trusted the commands of the loop's file.
    #[serde(default)]
    trusted: bool,
    /// Files of the project, by their paths.
    project: BTreeMap<String, String>,
    /// State files.
    state: BTreeMap<String, String>,
}

/// Only what every version has.
#[derive(Deserialize)]
struct Versioned {
    #[serde(rename = "ralph_bundle")]
    version: u32,
}

/// A loop that left or arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    pub id: String,
    pub name: String,
    pub iteration: u64,
}

/// A loop's bundle. The loop has to be at rest: paused, parked without a run, or ended.
pub fn export(project: &Project, which: Option<&str>) -> Result<(Carried, Vec<u8>), Refusal> {
    let (name, id) = find(project, which)?;
    let _at_rest = match runner::carry(project, &id)? {
        Ok(lock) => lock,
        Err(pid) => return Err(super::take_over::carried(pid)),
    };
    let _locked = Locked::acquire(project)?;
    let state = seal::last(project, &id).map(|record| record.state).unwrap_or_default();
    refuse_unrest(project, &name, &state)?;
    if let Some(misfit) = seal::misfit(project, &id) {
        return Err(Refusal::Because(format!("the journal of this loop is not as ralph left it: {misfit}. It cannot be moved")));
    }
    let root = Place::of(project).root().to_string_lossy().into_owned();
    let mut bundle = Bundle { version: VERSION, id, name, root, trusted: false, project: BTreeMap::new(), state: BTreeMap::new() };
    for path in bundle.project_files(project) {
        if let Some(text) = text_of(&project.root().join(&path))? {
            bundle.project.insert(path, text);
        }
    }
    for path in bundle.state_files(project) {
        if let Some(text) = project.state_file(&path).map(|file| text_of(&file)).transpose()?.flatten() {
            bundle.state.insert(path, text);
        }
    }
    let runs = bundle.commands();
    bundle.trusted =
        !runs.is_empty() && runs.iter().all(|run| trust::of_commands(project, LOOP_ORIGIN, std::slice::from_ref(run)).is_trusted());
    let bytes = serde_json::to_vec(&bundle).map_err(|e| Refusal::Because(format!("the bundle cannot be written: {e}")))?;
    if bytes.len() > MAX_BYTES {
        return Err(too_large());
    }
    Ok((bundle.carried(state.iteration), bytes))
}

/// What the loop of a bundle asks an agent to do, by each of its files.
pub fn prompts(bytes: &[u8]) -> Result<Vec<String>, Refusal> {
    let bundle = Bundle::read(bytes)?;
    Ok(bundle.loop_files().map(|file| file.prompt).collect())
}

/// What a person allows an import to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Import {
    /// An older state of the same loop makes room. Another loop of its name never does.
    pub replace: bool,
    /// What it was run with counts here, too: its own commands, if they were trusted where it comes from, its agent, and what that may do.
    pub trust: bool,
}

/// Puts a loop into this project.
pub fn import(project: &Project, bytes: &[u8], allowed: Import) -> Result<Carried, Refusal> {
    let bundle = Bundle::read(bytes)?.moved_to(project)?;
    if let Some(why) = linked_elsewhere(project) {
        return Err(Refusal::Because(why));
    }
    let locked = Locked::acquire(project)?;
    bundle.refuse_conflicts(&locked, allowed.replace)?;
    let own_file = bundle.loop_file();
    let put = |path: &String, text: &String| -> Result<(), Refusal> {
        let file = project.root().join(path);
        if let Some(folder) = Path::new(path).parent().and_then(|folder| folder.strip_prefix(".ralph").ok()) {
            project.folder(&folder.to_string_lossy())?;
        }
        Ok(files::replace_private(&file, text.as_bytes()).map_err(Error::io("write", &file))?)
    };
    for (path, text) in bundle.project.iter().filter(|(path, _)| **path != own_file) {
        put(path, text)?;
    }
    let how_it_was_run = format!("runs/{}.json", bundle.name);
    for (path, text) in bundle.state.iter().filter(|(path, _)| allowed.trust || **path != how_it_was_run) {
        let text = if is_shared(path) { joined(project, path, text) } else { text.clone() };
        let file = project.make_state_file(path)?;
        files::replace_private(&file, text.as_bytes()).map_err(Error::io("write", &file))?;
    }
    if bundle.trusted && allowed.trust {
        trust::trust_commands(project, LOOP_ORIGIN, &bundle.commands())?;
    }
    // Last, because the file is what makes it a loop.
    if let Some(text) = bundle.project.get(&own_file) {
        let (folder, path) = (project.claude(), project.root().join(&own_file));
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        exchange::create_new(&path, &project.backup(&bundle.name), text.as_bytes()).map_err(Error::io("write", &path))?;
    }
    project.introduce();
    let iteration = seal::last(project, &bundle.id).map_or(0, |record| record.state.iteration);
    Ok(bundle.carried(iteration))
}

/// The loop's name and id: a live one, else one that ended.
fn find(project: &Project, which: Option<&str>) -> Result<(String, String), Refusal> {
    match choose(project, which, None) {
        Ok(found) if found.is_folder() => {
            Err(Refusal::Because("the loop of a feature folder is in the files of that folder: copy those instead".to_owned()))
        }
        Ok(found) => Ok((found.name.clone(), found.id())),
        Err(refusal @ (Refusal::NoLoop | Refusal::NoSuch { .. })) => {
            let ended = view::ended(project).into_iter().find(|view| which.is_none_or(|which| view.id == which));
            let id = ended.map(|view| view.id).filter(|id| project.archive().join(format!("{id}.md")).exists()).ok_or(refusal)?;
            let name = seal::last(project, &id).and_then(|record| record.state.name);
            Ok((name.unwrap_or_else(|| "main".to_owned()), id))
        }
        Err(refusal) => Err(refusal),
    }
}

/// A loop that a session works on right now would be in two places.
fn refuse_unrest(project: &Project, name: &str, state: &State) -> Result<(), Refusal> {
    let is_active = crate::store::loops::read(project, name)?.and_then(|found| found.parsed.ok()).is_some_and(|file| file.active);
    if is_active && state.ended.is_none() && state.runner.is_none() {
        return Err(Refusal::Because("this loop is armed in a session: `ralph pause` it first".to_owned()));
    }
    Ok(())
}

fn too_large() -> Refusal {
    Refusal::Because(format!("a bundle has at most {} MB", MAX_BYTES >> 20))
}

/// The text of a regular file; `None`: it is missing, or no text.
fn text_of(path: &Path) -> Result<Option<String>, Error> {
    match files::read(path, MAX_BYTES) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(e) if files::is_missing(&e) => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

/// State files that several loops of a project share: lists, to which those of the bundle are added.
fn is_shared(path: &str) -> bool {
    path == "fresh.json" || path == "forge/heads.json" || path.starts_with("items/")
}

fn joined(project: &Project, path: &str, text: &str) -> String {
    let mut all: Vec<Value> = project.load(path).unwrap_or_default();
    let new: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    all.extend(new);
    let mut seen = Vec::new();
    all.retain(|value| {
        !seen.contains(value) && {
            seen.push(value.clone());
            true
        }
    });
    Value::Array(all).to_string()
}

/// The name of a file that ralph could have made.
fn is_plain(name: &str) -> bool {
    !name.starts_with('.') && name.len() <= 200 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| is_plain(name));
    names.sort();
    names
}

impl Bundle {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.len() > MAX_BYTES {
            return Err(too_large());
        }
        let because = |what: &str| Refusal::Because(format!("this is no bundle of a loop: {what}"));
        let versioned: Versioned = serde_json::from_slice(bytes).map_err(|e| because(&e.to_string()))?;
        if versioned.version != VERSION {
            let version = versioned.version;
            let message = format!(
                "this bundle has version {version}, and this ralph reads version {VERSION}: use the version of ralph that wrote it"
            );
            return Err(Refusal::Because(message));
        }
        let bundle: Bundle = serde_json::from_slice(bytes).map_err(|e| because(&e.to_string()))?;
        if !is_name(&bundle.name) || !is_loop_id(&bundle.id) {
            return Err(because("it names no loop"));
        }
        let strange = bundle.project.keys().find(|path| !bundle.is_project_file(path));
        match strange.or_else(|| bundle.state.keys().find(|path| !bundle.is_state_file(path))) {
            Some(path) => Err(because(&format!("it would write {path:?}"))),
            None => Ok(bundle),
        }
    }

    fn carried(&self, iteration: u64) -> Carried {
        Carried { id: self.id.clone(), name: self.name.clone(), iteration }
    }

    /// The commands of the loop's file.
    fn commands(&self) -> Vec<Run> {
        let file = self.loop_files().next();
        file.map(|file| file.verify.into_iter().map(|command| command.run).collect()).unwrap_or_default()
    }

    fn loop_files(&self) -> impl Iterator<Item = LoopFile> {
        self.fixed().into_iter().filter_map(|path| LoopFile::parse(self.project.get(&path)?.as_bytes()).ok())
    }

    fn loop_file(&self) -> String {
        format!(".claude/{}", file_of(&self.name))
    }

    fn journal(&self) -> String {
        format!(".ralph/journal/{}.jsonl", self.id)
    }

    /// The files that the loop has under fixed names.
    fn fixed(&self) -> [String; 4] {
        [self.loop_file(), self.journal(), format!(".ralph/archive/{}.md", self.id), format!(".ralph/backup/{}.md", self.name)]
    }

    fn project_files(&self, project: &Project) -> Vec<String> {
        let history = journal::history(&project.journal(&self.id));
        let logs = history.findings().filter_map(|finding| finding.log.clone());
        // What a session that was cut off had used is read from its log.
        let rounds = format!(".ralph/rounds/{}", self.id);
        let last = names_in(&project.root().join(&rounds)).pop().map(|name| format!("{rounds}/{name}"));
        let is_short =
            |path: &str| fs::symlink_metadata(project.root().join(path)).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_LOG as u64);
        let logs: Vec<String> = logs.chain(last).filter(|path| self.is_project_file(path) && is_short(path)).collect();
        self.fixed().into_iter().chain(logs).collect()
    }

    fn is_project_file(&self, path: &str) -> bool {
        let is_log = |folder: &str| path.strip_prefix(folder).is_some_and(is_plain);
        self.fixed().iter().any(|fixed| fixed == path) || is_log(".ralph/logs/") || is_log(&format!(".ralph/rounds/{}/", self.id))
    }

    /// The state files of this loop alone.
    fn own_state(&self) -> Vec<String> {
        let (id, name) = (&self.id, &self.name);
        vec![
            format!("loops/{name}"),
            format!("previous/{name}"),
            format!("ended/{id}"),
            format!("runs/{name}.json"),
            format!("baseline/{id}.json"),
            format!("baseline/{id}.failures.jsonl"),
            format!("baseline/{id}.counts.json"),
            format!("subjects/{id}.json"),
        ]
    }

    fn state_files(&self, project: &Project) -> Vec<String> {
        let items = project.state_file("items/x").and_then(|file| Some(names_in(file.parent()?))).unwrap_or_default();
        let shared =
            ["fresh.json".to_owned(), "forge/heads.json".to_owned()].into_iter().chain(items.iter().map(|name| format!("items/{name}")));
        self.own_state().into_iter().chain(shared.filter(|path| self.is_state_file(path))).collect()
    }

    fn is_state_file(&self, path: &str) -> bool {
        let is_item =
            |name: &str| name.strip_suffix(".json").is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
        matches!(path, "fresh.json" | "forge/heads.json")
            || path.strip_prefix("items/").is_some_and(is_item)
            || self.own_state().iter().any(|own| own == path)
    }

    /// The same loop with the paths of this folder. A seal says where its line begins in the journal, which moves with the paths before it.
    fn moved_to(mut self, project: &Project) -> Result<Self, Refusal> {
        let to = Place::of(project).root().to_string_lossy().into_owned();
        let from = std::mem::replace(&mut self.root, to.clone());
        let seals = [format!("loops/{}", self.name), format!("previous/{}", self.name), format!("ended/{}", self.id)];
        let journal = self.project.get(&self.journal()).cloned().unwrap_or_default();
        for path in &seals {
            let Some(text) = self.state.get_mut(path) else { continue };
            let begin = seal::begin(text.as_bytes(), &self.id)
                .ok_or_else(|| Refusal::Because(format!("this is no bundle of a loop: {path} is no seal")))?;
            let before = usize::try_from(begin).ok().and_then(|begin| journal.get(..begin));
            let before =
                before.ok_or_else(|| Refusal::Because("this is no bundle of a loop: its journal and its seal do not fit".to_owned()))?;
            *text = seal::begun_at(&rewritten(text, &from, &to), rewritten(before, &from, &to).len() as u64);
        }
        for text in self.project.values_mut() {
            *text = rewritten(text, &from, &to);
        }
        for (_, text) in self.state.iter_mut().filter(|(path, _)| !seals.contains(path)) {
            *text = rewritten(text, &from, &to);
        }
        Ok(self)
    }

    fn refuse_conflicts(&self, locked: &Locked<'_>, replace: bool) -> Result<(), Refusal> {
        let project = locked.project;
        let there = crate::store::loops::read(project, &self.name)?;
        if let Some(other) = there.as_ref().filter(|found| found.id() != self.id) {
            return Err(Refusal::Because(format!("there is another loop \"{}\" here already ({})", self.name, other.id())));
        }
        if there.is_some() || project.journal(&self.id).exists() || seal::has_seal(project, &self.id) {
            if !replace {
                return Err(Refusal::Because(format!("this loop is here already ({}): --replace puts the bundle in its place", self.id)));
            }
            if let Err(pid) = runner::carry(project, &self.id)? {
                return Err(super::take_over::carried(pid));
            }
            for path in self.own_state() {
                project.delete(&path);
            }
            for path in self.fixed() {
                let _ = fs::remove_file(project.root().join(path));
            }
        }
        // The seal of a loop that had this name and is gone is kept under its id.
        seal::make_room(project, &self.name, &self.id);
        Ok(())
    }
}

/// The text with one folder's path in the place of another's, as it is in JSON too. A longer name that begins the same is another folder.
fn rewritten(text: &str, from: &str, to: &str) -> String {
    let in_json = |path: &str| Value::from(path).to_string().trim_matches('"').to_owned();
    let (from, to) = (in_json(from), in_json(to));
    if from.len() < 2 || from == to {
        return text.to_owned();
    }
    let is_part = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let is_it = !after.starts_with(is_part) && !before.ends_with(|c: char| is_part(c) || c == '/');
        out.push_str(before);
        out.push_str(if is_it { &to } else { &from });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_paths_move_with_the_folder_and_other_folders_do_not() {
        let text = r#"{"file":"/a/b/.claude/x","cwd":"/a/b","other":"/a/bc /x/a/b /a/b-2"}"#;
        assert_eq!(rewritten(text, "/a/b", "/new"), r#"{"file":"/new/.claude/x","cwd":"/new","other":"/a/bc /x/a/b /a/b-2"}"#);
        assert_eq!(rewritten(text, "/", "/new"), text);
    }
}
