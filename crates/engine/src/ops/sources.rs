//! The files of a project that can make ralph run commands, as a person has to see them before they may.

use std::io;

use ralph_core::{
    config,
    gate::{Check, Command, Run},
    verify_yaml,
};

use crate::{
    gates::declared::{LOOP_ORIGIN, WORKTREE_FILES},
    store::{
        Error, loops,
        project::Project,
        trust::{self, Trust},
    },
};

/// A file with commands in it.
#[derive(Debug)]
pub struct Source {
    /// Relative to the project's root.
    pub origin: String,
    pub commands: Vec<Named>,
    pub trust: Trust,
    basis: Basis,
}

/// A command, and what it is called there.
#[derive(Debug, Clone)]
pub struct Named {
    pub name: String,
    pub command: Command,
    /// It is asked of subagents, when they stop.
    pub of_subagents: bool,
}

impl Named {
    fn of_subagents(commands: Vec<Command>) -> impl Iterator<Item = Self> {
        commands.into_iter().map(|command| Named { name: "verify".to_owned(), command, of_subagents: true })
    }
}

/// A file that should declare something and cannot be read.
#[derive(Debug)]
pub struct Broken {
    pub origin: String,
    pub what: String,
    /// It only says what a subagent has to pass; the gates of loops are declared elsewhere.
    pub is_verify: bool,
}

impl Broken {
    fn new(origin: &str, what: &impl ToString) -> Self {
        Broken { origin: origin.to_owned(), what: what.to_string(), is_verify: WORKTREE_FILES.contains(&origin) }
    }
}

/// What is trusted of it.
#[derive(Debug)]
enum Basis {
    /// All of it, as it was read.
    Content(Vec<u8>),
    /// Its commands alone, under this name: the rest of it changes all the time.
    Commands(&'static str),
}

impl Source {
    fn of_content(project: &Project, origin: &str, content: Vec<u8>, commands: Vec<Named>) -> Self {
        let trust = trust::of_bytes(project, origin, &content);
        Source { origin: origin.to_owned(), commands, trust, basis: Basis::Content(content) }
    }

    fn of_commands(project: &Project, origin: String, key: &'static str, commands: Vec<Named>) -> Self {
        let trust = trust::of_commands(project, key, &runs(&commands));
        Source { origin, commands, trust, basis: Basis::Commands(key) }
    }

    /// A person lets it run, exactly as it was read.
    pub fn allow(&self, project: &Project) -> Result<(), Error> {
        match &self.basis {
            Basis::Content(content) => trust::trust_bytes(project, &self.origin, content),
            Basis::Commands(key) => trust::trust_commands(project, key, &runs(&self.commands)),
        }
    }
}

fn runs(commands: &[Named]) -> Vec<Run> {
    commands.iter().map(|named| named.command.run.clone()).collect()
}

/// All of them, and what could not be read. A file without commands needs nobody's trust.
pub fn all(project: &Project) -> (Vec<Source>, Vec<Broken>) {
    let mut sources = Vec::new();
    let mut broken = Vec::new();
    for found in std::iter::once(settings(project)).chain(WORKTREE_FILES.map(|file| worktree(project, file))).flatten() {
        match found {
            Ok(source) if source.commands.is_empty() => {}
            Ok(source) => sources.push(source),
            Err(problem) => broken.push(problem),
        }
    }
    sources.extend(of_loops(project));
    (sources, broken)
}

/// What loop files ask for themselves. One that cannot be read is told elsewhere.
fn of_loops(project: &Project) -> Vec<Source> {
    let of_loop = |found: loops::Found| {
        let named = |command: Command| Named { name: config::short_name(&command.run.shown()), command, of_subagents: false };
        let commands: Vec<Named> = found.parsed.ok()?.verify.into_iter().map(named).collect();
        let origin = found.path.strip_prefix(project.root()).unwrap_or(&found.path).display().to_string();
        (!commands.is_empty()).then(|| Source::of_commands(project, origin, LOOP_ORIGIN, commands))
    };
    loops::all(project).into_iter().filter_map(of_loop).collect()
}

/// `ralph.toml`: the commands of its gates, and those that subagents have to pass.
fn settings(project: &Project) -> Option<Result<Source, Broken>> {
    Some(content(project, config::FILE)?.and_then(|bytes| {
        let config = config::parse(&bytes).map_err(|problem| Broken::new(config::FILE, &problem))?;
        let of_gates = config.gates.into_iter().filter_map(|gate| match gate.check {
            Check::Command(command) => Some(Named { name: gate.name, command, of_subagents: false }),
            _ => None,
        });
        let commands = of_gates.chain(config.verify.into_iter().flat_map(|verify| Named::of_subagents(verify.commands))).collect();
        Ok(Source::of_content(project, config::FILE, bytes, commands))
    }))
}

/// What a subagent that checks the work has to pass (S3-2).
fn worktree(project: &Project, file: &str) -> Option<Result<Source, Broken>> {
    Some(content(project, file)?.and_then(|bytes| {
        let commands = verify_yaml::commands(&bytes).map_err(|problem| Broken::new(file, &problem))?;
        Ok(Source::of_content(project, file, bytes, Named::of_subagents(commands).collect()))
    }))
}

/// The bytes of a file; `None` if there is none.
fn content(project: &Project, relative: &str) -> Option<Result<Vec<u8>, Broken>> {
    match trust::read(project, relative) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
        Err(e) => Some(Err(Broken::new(relative, &e))),
        Ok(bytes) => Some(Ok(bytes)),
    }
}
