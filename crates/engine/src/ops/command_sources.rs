//! The files of a project that can make ralph run commands, as a person sees them before trusting them.

use std::{collections::BTreeSet, io};

use ralph_core::{
    config::{self, Config, Fleet, Notify, Running, worktree_commands},
    gate::{
        Check, Command, Gate, Merge, Run,
        list::{Item, List},
    },
    loops::{LoopFile, Preset},
};

use crate::{
    gates::{
        declared::{self, Declared, LOOP_ORIGIN, WORKTREE_FILES},
        features, guard,
    },
    store::{
        Error, loops,
        project::Project,
        trust::{self, Trust},
    },
    sys::files,
};

/// A file with commands in it.
#[derive(Debug)]
pub struct Source {
    /// Relative to the project's root.
    pub origin: String,
    pub commands: Vec<Named>,
    pub trust: Trust,
    role: Role,
    /// A loop has to pass it: a live one, or any that is started.
    pub of_loops: bool,
    /// Check agents have to pass it.
    pub of_subagents: bool,
    basis: Basis,
}

/// The name of `[run] permission_mode` among the commands.
const MODE: &str = "permission_mode";

#[derive(Debug, Clone)]
pub struct Named {
    pub name: String,
    pub command: Command,
    pub purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A loop has to pass it.
    Loops,
    /// Subagents have to, when they stop.
    Subagents,
    /// `ralph run` uses it, and it proves nothing.
    Runs,
}

impl Named {
    fn new(name: &str, run: Run, purpose: Purpose) -> Self {
        Named { name: name.to_owned(), command: Command { run, ..Command::shell("") }, purpose }
    }

    /// What a fleet runs for an item that asks for an agent: some of them run commands without a question, whatever they are told.
    pub fn of_agent(name: &str) -> Run {
        argv(&["ralph", "run", "--agent", name])
    }

    /// The permission mode that `ralph run` passes on, which is listed among the commands and is none.
    pub fn permission_mode(&self) -> Option<&str> {
        match &self.command.run {
            Run::Argv(words) if self.purpose == Purpose::Runs && self.name == MODE => words.last().map(String::as_str),
            _ => None,
        }
    }

    /// Whether it has to pass, in a loop or for a subagent.
    pub fn is_check(&self) -> bool {
        self.purpose != Purpose::Runs
    }

    fn of_subagents(commands: Vec<Command>) -> impl Iterator<Item = Self> {
        commands.into_iter().map(|command| Named { name: "verify".to_owned(), command, purpose: Purpose::Subagents })
    }
}

/// A file that should declare something and cannot be read.
#[derive(Debug)]
pub struct Broken {
    pub origin: String,
    pub what: String,
    pub role: Role,
    pub is_missing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It declares gates.
    Settings,
    /// It only declares commands for subagents.
    Verify,
    /// It is a list of work.
    List,
    /// It is a loop's own file.
    Loop,
}

impl Broken {
    fn new(origin: &str, what: &impl ToString, role: Role) -> Self {
        Broken { origin: origin.to_owned(), what: what.to_string(), role, is_missing: false }
    }

    fn of_io(origin: &str, e: &io::Error, role: Role) -> Self {
        Broken { is_missing: files::is_missing(e), ..Broken::new(origin, e, role) }
    }

    /// In one sentence.
    pub fn told(&self) -> String {
        if self.is_missing { format!("{} is not there", self.origin) } else { format!("{} cannot be read: {}", self.origin, self.what) }
    }
}

#[derive(Debug)]
enum Basis {
    /// All of it, as it was read.
    Content(Vec<u8>),
    /// Its commands alone, under this name: the rest of the file changes all the time.
    Commands(String),
}

impl Source {
    /// All sources of the project, and those that cannot be read. A file without commands needs no trust.
    pub fn all(project: &Project) -> (Vec<Source>, Vec<Broken>) {
        let mut sources = Vec::new();
        let mut broken = Vec::new();
        for found in
            std::iter::once(settings(project)).chain(WORKTREE_FILES.map(|file| worktree(project, file))).flatten().chain(lists(project))
        {
            match found {
                Ok(source) if source.commands.is_empty() => {}
                Ok(source) => sources.push(source),
                Err(problem) => broken.push(problem),
            }
        }
        sources.extend(of_loops(project));
        note_use(project, &mut sources);
        (sources, broken)
    }

    /// Lets sources run, exactly as they were read. The guard of live loops does not suspect what a person has just allowed.
    pub fn allow(project: &Project, sources: &[&Source]) -> Result<(), Error> {
        sources.iter().try_for_each(|source| source.allow_alone(project))?;
        for (id, declared) in of_live_loops(project) {
            for source in sources.iter().filter(|source| matches!(source.basis, Basis::Content(_))) {
                guard::accept_settings(project, &id, &declared, &source.origin)?;
            }
        }
        Ok(())
    }

    /// The settings in it that became weaker for live loops, where it is a file that was trusted before and has changed.
    pub fn weaker(&self, project: &Project) -> Vec<String> {
        if self.trust != Trust::Changed {
            return Vec::new();
        }
        let said =
            of_live_loops(project).into_iter().flat_map(|(id, declared)| guard::weaker_settings(project, &id, &declared, &self.origin));
        let said: BTreeSet<String> = said.collect();
        said.into_iter().collect()
    }

    fn of_content(project: &Project, origin: &str, role: Role, content: Vec<u8>, commands: Vec<Named>) -> Self {
        let trust = trust::of_bytes(project, origin, &content);
        Source { origin: origin.to_owned(), commands, trust, role, of_loops: false, of_subagents: false, basis: Basis::Content(content) }
    }

    fn of_commands(project: &Project, origin: String, role: Role, key: &str, commands: Vec<Named>) -> Self {
        let trust = trust::of_commands(project, key, &runs(&commands));
        Source { origin, commands, trust, role, of_loops: false, of_subagents: false, basis: Basis::Commands(key.to_owned()) }
    }

    /// A list of work for a fleet, which no file of the project has to name: with the agents that its items ask for, too.
    pub fn of_list(project: &Project, path: &str) -> Result<Self, Broken> {
        let items = items(project, path)?;
        let agents =
            items.iter().filter_map(|item| Some(Named::new(&item.id, Named::of_agent(item.agent.as_deref()?), Purpose::Runs))).collect();
        Ok(of_items(project, path, items, agents))
    }

    /// Whether any change of the file asks again, or only one of its commands.
    pub fn is_trusted_whole(&self) -> bool {
        matches!(self.basis, Basis::Content(_))
    }

    /// A person lets it run, exactly as it was read.
    fn allow_alone(&self, project: &Project) -> Result<(), Error> {
        match &self.basis {
            Basis::Content(content) => trust::trust_bytes(project, &self.origin, content),
            Basis::Commands(key) => trust::trust_commands(project, key, &runs(&self.commands)),
        }
    }
}

fn runs(commands: &[Named]) -> Vec<Run> {
    commands.iter().map(|named| named.command.run.clone()).collect()
}

/// Notes which of them loops and subagents have to pass now.
fn note_use(project: &Project, sources: &mut [Source]) {
    let loops: Vec<LoopFile> = loops::all(project).into_iter().filter_map(|found| found.parsed.ok()).collect();
    let has_preset = |preset| loops.iter().any(|file| file.preset == Some(preset));
    let declared = loops.iter().map(|file| declared::of_loop(project, file)).chain([declared::of_project(project)]);
    let lists: Vec<String> = declared.flat_map(|declared| declared.gates).filter_map(list_of).collect();
    // The first file that asks something of subagents is the only one that does; ralph.toml comes last.
    let asks = |source: &&Source| source.commands.iter().any(|named| named.purpose == Purpose::Subagents);
    let first = sources.iter().filter(asks).min_by_key(|source| source.role != Role::Verify).map(|source| source.origin.clone());
    for source in sources {
        source.of_subagents = first.as_ref() == Some(&source.origin);
        let of_gates = source.commands.iter().any(|named| named.purpose == Purpose::Loops);
        source.of_loops = match source.role {
            Role::List => lists.contains(&source.origin),
            _ => of_gates || (source.of_subagents && has_preset(Preset::Verify)),
        };
    }
}

/// The lists that a loop can have to work off: an item's own commands have to pass before it counts as done.
fn lists(project: &Project) -> Vec<Result<Source, Broken>> {
    let declared = match declared::config(project) {
        Some(Ok((config, _))) => config.gates,
        _ => Vec::new(),
    };
    let mut paths: Vec<String> = declared.into_iter().filter_map(list_of).chain(features::find(project)).collect();
    paths.sort();
    paths.dedup();
    paths.iter().map(|path| list(project, path)).collect()
}

fn list_of(gate: Gate) -> Option<String> {
    if let Check::Features(list) = gate.check { Some(list.path) } else { None }
}

fn list(project: &Project, path: &str) -> Result<Source, Broken> {
    Ok(of_items(project, path, items(project, path)?, Vec::new()))
}

fn items(project: &Project, path: &str) -> Result<Vec<Item>, Broken> {
    let bytes = features::bytes(project, project.root(), path).map_err(|e| Broken::of_io(path, &e, Role::List))?;
    Ok(List::parse(&bytes).map_err(|problem| Broken::new(path, &problem, Role::List))?.items)
}

fn of_items(project: &Project, path: &str, items: Vec<Item>, more: Vec<Named>) -> Source {
    let of_item = |item: Item| {
        let named = move |line| Named { name: item.id.clone(), command: Command::shell(line), purpose: Purpose::Loops };
        item.verify.into_iter().map(named)
    };
    Source::of_commands(project, path.to_owned(), Role::List, path, items.into_iter().flat_map(of_item).chain(more).collect())
}

/// The commands of loop files. `ralph status` reports those that cannot be read.
fn of_loops(project: &Project) -> Vec<Source> {
    let of_loop = |found: loops::LoopOnDisk| {
        let named = |command: Command| Named { name: Gate::name_for(&command.run.shown()), command, purpose: Purpose::Loops };
        let commands: Vec<Named> = found.parsed.ok()?.verify.into_iter().map(named).collect();
        let origin = found.path.strip_prefix(project.root()).unwrap_or(&found.path).display().to_string();
        (!commands.is_empty()).then(|| Source::of_commands(project, origin, Role::Loop, LOOP_ORIGIN, commands))
    };
    loops::all(project).into_iter().filter_map(of_loop).collect()
}

/// `ralph.toml`: the commands of its gates, and those that subagents have to pass.
fn settings(project: &Project) -> Option<Result<Source, Broken>> {
    // Settings from outside of the project need nobody's trust.
    if project.settings().is_some() {
        return None;
    }
    Some(content(project, config::FILE, Role::Settings)?.and_then(|bytes| {
        let config = Config::parse(&bytes).map_err(|problem| Broken::new(config::FILE, &problem, Role::Settings))?;
        let merges = config.pull_requests.merge == Merge::Ralph;
        let of_gates = config.gates.into_iter().filter_map(|gate| match gate.check {
            Check::Command(command) => Some(Named { name: gate.name, command, purpose: Purpose::Loops }),
            _ => None,
        });
        let commands = of_gates
            .chain(merges.then(merge))
            .chain(of_runs(&config.run, config.notify))
            .chain(of_fleets(config.fleet))
            .chain(config.verify.into_iter().flat_map(|verify| Named::of_subagents(verify.commands)))
            .collect();
        Ok(Source::of_content(project, config::FILE, Role::Settings, bytes, commands))
    }))
}

/// The command for `merge = "ralph"`.
fn merge() -> Named {
    let words = ["gh", "pr", "merge", "NUMBER", "--squash", "--delete-branch", "--match-head-commit", "COMMIT"];
    Named::new("merged", argv(&words), Purpose::Loops)
}

/// The commands of `[run]` and `[notify]`.
fn of_runs(run: &Running, notify: Notify) -> impl Iterator<Item = Named> {
    let mode = run.permission_mode.as_deref().map(|mode| (MODE, argv(&["claude", "--permission-mode", mode])));
    // The money that is counted depends on them, and so does its limit.
    let priced: Vec<&str> = ["prices", "of"].into_iter().chain(run.prices.iter().map(|(model, _)| model.as_str())).collect();
    let prices = (!run.prices.is_empty()).then(|| ("prices", argv(&priced)));
    let webhook = notify.webhook.map(|address| ("notify", argv(&["curl", "--data", "NEWS", &address])));
    let command = notify.command.map(|line| ("notify", Run::Shell(line)));
    [mode, prices, command, webhook].into_iter().flatten().map(|(name, run)| Named::new(name, run, Purpose::Runs))
}

/// What `[fleet]` has done in each job's folder.
fn of_fleets(fleet: Fleet) -> impl Iterator<Item = Named> {
    let copied: Vec<&str> = ["cp"].into_iter().chain(fleet.copy.iter().map(String::as_str)).collect();
    let copy = (!fleet.copy.is_empty()).then(|| ("copy", argv(&copied)));
    let setup = fleet.setup.map(|line| ("setup", Run::Shell(line)));
    // They decide which programs are found, and what those load.
    let set: Vec<String> = fleet.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let env = (!set.is_empty()).then(|| ("env", argv(&["env"].into_iter().chain(set.iter().map(String::as_str)).collect::<Vec<_>>())));
    [copy, setup, env].into_iter().flatten().map(|(name, run)| Named::new(name, run, Purpose::Runs))
}

fn argv(words: &[&str]) -> Run {
    Run::Argv(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The commands for subagents that check the work (S3-2).
fn worktree(project: &Project, file: &str) -> Option<Result<Source, Broken>> {
    Some(content(project, file, Role::Verify)?.and_then(|bytes| {
        let commands = worktree_commands(&bytes).map_err(|problem| Broken::new(file, &problem, Role::Verify))?;
        Ok(Source::of_content(project, file, Role::Verify, bytes, Named::of_subagents(commands).collect()))
    }))
}

/// The bytes of a file; `None` if there is none.
fn content(project: &Project, relative: &str, role: Role) -> Option<Result<Vec<u8>, Broken>> {
    match trust::read(project, relative) {
        Err(e) if files::is_missing(&e) => None,
        Err(e) => Some(Err(Broken::new(relative, &e, role))),
        Ok(bytes) => Some(Ok(bytes)),
    }
}

fn of_live_loops(project: &Project) -> Vec<(String, Declared)> {
    let of_loop = |found: loops::LoopOnDisk| Some((found.id(), declared::of_loop(project, found.parsed.as_ref().ok()?)));
    loops::all(project).into_iter().filter_map(of_loop).collect()
}
