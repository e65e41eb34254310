//! The project's `ralph.toml` for `ralph init`: the one that exists, or one that would fit. It is created, never changed.

mod detect;
mod draft;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use ralph_core::config::{self, Config};

use detect::{Proposal, Root};

use crate::{
    gates::declared,
    setup::{
        Problem,
        permissions::{Fate, Permissions},
        survey::Survey,
    },
    store::{
        Error,
        project::Project,
        trust::{self, Trust},
    },
    sys::{exchange, files},
};

/// A folder with more files than this is looked at in part.
const MOST_NAMES: usize = 10_000;

/// So many tests tell which program they are for.
const MOST_TESTS: usize = 8;

/// A project's `ralph.toml`, as far as `ralph init` has to do with it.
#[derive(Debug)]
pub enum RalphToml {
    /// It is there, with these gates, and is left as it is. `Err`: why it cannot be read.
    Exists(Result<(Vec<String>, Trust), String>),
    /// One that would fit.
    Proposed(Draft),
    /// No way to test the project was recognised.
    NothingFound,
    /// The project's folder cannot be written to.
    ReadOnly,
    /// The folder is no project: the home folder, the top folder, or one that nothing marks as a project.
    NoProject,
}

/// A file that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The names of its gates, with their commands.
    pub gates: Vec<(String, String)>,
    /// It lets sessions of `ralph run` edit files without asking.
    pub accepts_edits: bool,
    pub text: String,
}

impl RalphToml {
    pub fn look(project: &Project, survey: &Survey) -> Self {
        let root = project.root();
        if project.no_project().is_some() {
            return RalphToml::NoProject;
        }
        if fs::symlink_metadata(root.join(config::FILE)).is_ok() {
            let broken_link = || Err("it is a link to a file that does not exist".to_owned());
            let read = declared::config(project).map_or_else(broken_link, |read| read.map_err(|finding| finding.what));
            let names = |config: Config| config.gates.into_iter().map(|gate| gate.name).collect();
            return RalphToml::Exists(read.map(|(config, trust)| (names(config), trust)));
        }
        let proposals = seen(project).proposals();
        let is_marked = || [".git", ".claude", ".ralph"].iter().any(|mark| root.join(mark).exists());
        match proposals.is_empty() {
            true if !is_marked() => RalphToml::NoProject,
            _ if !files::may_write_into(root) => RalphToml::ReadOnly,
            true => RalphToml::NothingFound,
            false => RalphToml::Proposed(Draft::of(&proposals, project, survey)),
        }
    }
}

impl Draft {
    /// The files from a project's root that tell which gates fit.
    pub const FILES: &[&str] = Root::FILES;

    /// One with the command that a person named.
    pub fn with_command(project: &Project, survey: &Survey, command: &str) -> Self {
        let named =
            Proposal { name: "tests".to_owned(), command: command.to_owned(), why: "the command that you named".to_owned(), is_slow: true };
        Self::of(&[named], project, survey)
    }

    /// One for a project that holds nothing but these files, which are small; `None`: nothing fits.
    pub fn fitting(files: &BTreeMap<String, String>) -> Option<Self> {
        let root = Root { names: files.keys().cloned().collect(), contents: files.clone() };
        Some(root.proposals()).filter(|proposals| !proposals.is_empty()).map(|proposals| Self::with(&proposals, false))
    }

    fn of(proposals: &[Proposal], project: &Project, survey: &Survey) -> Self {
        let (permissions, _) = Permissions::unattended(survey, project.root(), None);
        Self::with(proposals, permissions.fate("Edit") == Fate::Asked)
    }

    fn with(proposals: &[Proposal], accepts_edits: bool) -> Self {
        let gates = proposals.iter().map(|proposal| (proposal.name.clone(), proposal.command.clone())).collect();
        Draft { gates, accepts_edits, text: Proposal::ralph_toml(proposals, accepts_edits) }
    }

    /// Writes the file, unless there is one by now.
    pub fn write(&self, project: &Project) -> Result<(), Problem> {
        let path = project.root().join(config::FILE);
        let beside = path.with_file_name(format!(".{}.ralph-{}", config::FILE, std::process::id()));
        match exchange::create_new(&path, &beside, self.text.as_bytes()) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                Err(Problem::new(&path, "was written by another program just now. It is left as it is"))
            }
            other => other.map_err(Problem::io("written", &path)),
        }
    }

    /// Trusts these very bytes, whatever the file says by now.
    pub fn trust(&self, project: &Project) -> Result<(), Error> {
        trust::trust_bytes(project, config::FILE, self.text.as_bytes())
    }
}

/// The names at the project's root, and the files that say how it is tested: small plain ones that are inside of the project.
fn seen(project: &Project) -> Root {
    let text = |file: &str| Some(String::from_utf8_lossy(&trust::read(project, file).ok()?).into_owned());
    let names = names(project.root());
    let tests = python_tests(project.root(), &names);
    let read = Root::FILES.iter().map(|file| (*file).to_owned()).chain(tests).filter_map(|file| Some((file.clone(), text(&file)?)));
    Root { contents: read.collect(), names }
}

/// Some of Python's tests, by their paths: at the root, and where they usually stand.
fn python_tests(root: &Path, at_root: &BTreeSet<String>) -> Vec<String> {
    let below = |folder: &'static str| names(&root.join(folder)).into_iter().map(move |name| format!("{folder}/{name}"));
    let all = at_root.iter().cloned().chain(["tests", "test"].into_iter().filter(|folder| at_root.contains(*folder)).flat_map(below));
    all.filter(|path| Root::is_python_test(path)).take(MOST_TESTS).collect()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_NAMES);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
