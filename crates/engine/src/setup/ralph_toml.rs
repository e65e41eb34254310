//! The project's `ralph.toml` for `ralph init`: the one that exists, or one that would fit. It is created, never changed.

use std::{fs, io, path::Path};

use ralph_core::config::{
    self, Config,
    detect::{FILES, Root},
};

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
        if proposals.is_empty() {
            let is_marked = [".git", ".claude", ".ralph"].iter().any(|mark| root.join(mark).exists());
            return if is_marked { RalphToml::NothingFound } else { RalphToml::NoProject };
        }
        if !files::may_write_into(root) {
            return RalphToml::ReadOnly;
        }
        let (permissions, _) = Permissions::unattended(survey, root, None);
        let accepts_edits = permissions.fate("Edit") == Fate::Asked;
        let text = config::draft(&proposals, accepts_edits);
        let gates = proposals.into_iter().map(|proposal| (proposal.name, proposal.command)).collect();
        RalphToml::Proposed(Draft { gates, accepts_edits, text })
    }
}

impl Draft {
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
    let text = |file: &&str| Some(String::from_utf8_lossy(&trust::read(project, file).ok()?).into_owned());
    Root { names: names(project.root()), contents: FILES.iter().filter_map(|file| Some(((*file).to_owned(), text(file)?))).collect() }
}

fn names(folder: &Path) -> std::collections::BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_NAMES);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
