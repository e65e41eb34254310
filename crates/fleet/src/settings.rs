//! What a fleet is: one repository, one list, one branch that its work lands on; and where its files are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_engine::sys::{digest, env, files};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    git::Identity,
    problem::{Problem, Result},
    records::{self, FLEET, VERSION},
    signing::{Pen, Signers},
    store::{Put, Store, dir::Dir},
};

/// What their record is called where something is wrong with it.
const RECORD: &str = "the fleet's record";

/// The record of a fleet, which its first `run` writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub version: u32,
    /// The fleet's name in commits: the same on all machines.
    pub id: String,
    /// Where all machines fetch from and push to, as git names it. `None`: the repository itself, on this machine alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Who makes its commits.
    #[serde(default)]
    pub identity: Identity,
    /// The person's repository: its top folder.
    pub repository: PathBuf,
    /// The list, relative to it. `None`: tasks are added by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// The person's branch, which the work begins from and whose commits are merged in.
    pub base: String,
    /// The branch that the work lands on.
    pub target: String,
    /// The arguments of each `ralph run`: the agent, its model, its limits.
    #[serde(default)]
    pub run: Vec<String>,
    /// What every job must prove: the text of a `ralph.toml`.
    #[serde(default)]
    pub gates: String,
    /// How long an item's own command may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    #[serde(default)]
    pub land: Land,
    /// A person looks at each job before it lands.
    #[serde(default)]
    pub review: bool,
    /// A landed job is one commit with one parent.
    #[serde(default)]
    pub squash: bool,
    #[serde(default)]
    pub slots: Slots,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Land {
    /// On the fleet's branch, one at a time.
    #[default]
    Branch,
    /// Each job gets a branch and a pull request of its own.
    Pr,
    /// What is proven stays where it is, under refs/ralph-fleet/.
    None,
}

/// `[fleet]` of `ralph.toml`: how a slot is made ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Slots {
    /// A line for the shell, run in each slot before a job begins there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Files that git does not know, copied from the person's folder.
    pub copy: Vec<String>,
    /// Ignored files and folders that stay from one job to the next.
    pub keep: Vec<String>,
    /// Variables; `{slot}` is the slot's number.
    pub env: std::collections::BTreeMap<String, String>,
    /// Files of which both sides are kept when they conflict, such as a changelog.
    pub union: Vec<String>,
    /// How many commands of gates run at a time on a machine; 0: any number.
    pub gates_at_once: u64,
}

impl Slots {
    /// Whether a path is copied from the person's folder, or in a folder that is.
    pub(crate) fn copies(&self, path: &str) -> bool {
        let is_in = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.copy.iter().any(|copied| is_in(copied.trim_end_matches('/')))
    }
}

/// Where the files of a fleet are: its records and its repository in the user's state folder, its slots in the cache.
#[derive(Debug, Clone)]
pub struct Place {
    pub id: String,
    root: PathBuf,
    slots: PathBuf,
}

impl Place {
    /// The place of the fleet of this name in this repository.
    pub fn of(repository: &Path, name: &str) -> Result<Self> {
        let hash = digest::short(repository.as_os_str().as_encoded_bytes());
        Place::called(&format!("{}-{}", word(name), &hash[..8]))
    }

    /// The place of a fleet whose queue is elsewhere.
    pub fn of_queue(url: &str, name: &str) -> Result<Self> {
        Place::called(&format!("{}-at-{}", word(name), &digest::short(url.as_bytes())[..8]))
    }

    fn called(id: &str) -> Result<Self> {
        let none = || Problem::new("there is no home folder to keep a fleet in: set HOME");
        let root = env::state_dir().ok_or_else(none)?.join("fleets").join(id);
        let slots = env::cache_dir().ok_or_else(none)?.join("fleets").join(id);
        Ok(Place { id: id.to_owned(), root, slots })
    }

    /// All fleets of this repository, the newest first.
    pub fn all_of(repository: &Path) -> Vec<Self> {
        let hash = digest::short(repository.as_os_str().as_encoded_bytes());
        let folder = env::state_dir().map(|dir| dir.join("fleets")).unwrap_or_default();
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(std::result::Result::ok);
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok().filter(|name| name.ends_with(&format!("-{}", &hash[..8])))?;
                let changed = entry.path().join("queue/changes").metadata().and_then(|meta| meta.modified()).ok()?;
                Some((changed, Place::called(&name).ok()?))
            })
            .collect();
        found.sort_by_key(|(changed, _)| std::cmp::Reverse(*changed));
        found.into_iter().map(|(_, place)| place).collect()
    }

    pub fn open(&self) -> Result<Dir> {
        Ok(Dir::open(&self.root.join("queue"))?)
    }

    /// The fleet's own repository, without files: every job's commits come through it.
    pub fn hub(&self) -> PathBuf {
        self.root.join("hub.git")
    }

    /// A folder of a job's files: its prompt, its gates, its saved loop, its log.
    pub fn job(&self, id: &str) -> Result<PathBuf> {
        let folder = self.root.join("jobs").join(id);
        make(&folder)?;
        Ok(folder)
    }

    pub fn slot(&self, name: &str) -> PathBuf {
        self.slots.join("slots").join(name)
    }

    /// Folders for temporary files, one for each slot.
    pub fn temp(&self, name: &str) -> PathBuf {
        self.slots.join("tmp").join(name)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What keeps landing from going on, and what keeps jobs from being begun.
    pub const LANDING: &str = "landing";
    pub const WORK: &str = "work";

    /// Leaves word of what keeps something from going on here, or that nothing does any more.
    pub fn tell(&self, what: &str, trouble: Option<String>) {
        let path = self.root.join(what);
        match trouble {
            Some(why) if self.told(what).as_ref() != Some(&why) => drop(write(&path, why.as_bytes())),
            Some(_) => {}
            None => drop(fs::remove_file(&path)),
        }
    }

    /// The word that was left.
    pub fn told(&self, what: &str) -> Option<String> {
        files::read(&self.root.join(what), 4096).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Settings {
    pub fn read(store: &dyn Store, signers: &Signers) -> Result<Option<Self>> {
        let entry = store.get(FLEET)?;
        if let Some(why) = entry.as_ref().and_then(|entry| signers.refuse(FLEET, &entry.value)) {
            return Err(Problem::new(format!("nothing is run: the fleet's record {why}")));
        }
        entry.map(|entry| records::read(&entry.value).or_why(RECORD)).transpose().map_err(Problem::new)
    }

    /// Writes them, over those of an earlier run.
    pub fn write(&self, store: &dyn Store, pen: &Pen) -> Result<()> {
        let bytes = pen.bytes(FLEET, &Settings { version: VERSION, ..self.clone() })?;
        loop {
            let entry = store.get(FLEET)?;
            if let Some(entry) = &entry {
                records::read::<Settings>(&entry.value).or_why(RECORD).map_err(Problem::new)?;
            }
            let revision = entry.map_or(0, |entry| entry.revision);
            if let Put::Stored(_) = store.put_if(FLEET, &bytes, revision)? {
                return Ok(());
            }
        }
    }
}

/// A name as a word of a key: small letters, digits and dashes.
pub fn word(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => word.push(c),
            _ if word.ends_with('-') || word.is_empty() => {}
            _ => word.push('-'),
        }
    }
    word.truncate(48);
    let word = word.trim_end_matches('-');
    if word.is_empty() { "job".to_owned() } else { word.to_owned() }
}

/// Makes a folder for its user alone.
pub fn make(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(Problem::when(format!("{} cannot be made", folder.display())))
}

/// Writes a file for its user alone, whole or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    files::replace_private(path, bytes).map_err(Problem::when(format!("{} cannot be written", path.display())))
}
