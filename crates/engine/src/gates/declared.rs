//! Which gates apply: those of `ralph.toml`, those of the loop's own file, and those of its preset.

use std::io;

use ralph_core::{
    config::{self, Config, PullRequests},
    gate::{Check, Command, Features, Finding, Gate, GuardPolicy, Kind, Merge, OldFailures, Origin, Verdict},
    loops::{LoopFile, Preset},
};

use crate::{
    gates::{features, forge},
    store::{
        project::Project,
        trust::{self, Trust},
    },
};

/// Files whose `verify:` asks for commands, the first that has any counts (S3-2).
pub(crate) const WORKTREE_FILES: [&str; 2] = [".ideal/worktree.yaml", ".trellis/worktree.yaml"];

/// The origin under which the commands of loop files are trusted.
pub const LOOP_ORIGIN: &str = "loop";

/// The gates of a loop, or of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    pub gates: Vec<Gate>,
    pub guard: GuardPolicy,
    pub keep_going: bool,
    /// Files that declare gates and cannot be read. None of them is a pass.
    pub problems: Vec<Finding>,
}

impl Declared {
    /// Whether anything has to be proven.
    pub fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.problems.is_empty()
    }

    /// The lists whose items have to be done.
    pub fn features(&self) -> impl Iterator<Item = &Features> {
        self.gates.iter().filter_map(|gate| if let Check::Features(list) = &gate.check { Some(list) } else { None })
    }

    fn add(&mut self, gate: Gate) {
        let taken = |name: &str| self.gates.iter().any(|g| g.name == name);
        let mut name = gate.name.clone();
        let mut number = 2;
        while taken(&name) {
            name = format!("{} {number}", gate.name);
            number += 1;
        }
        self.gates.push(Gate { name, ..gate });
    }

    fn add_commands(&mut self, commands: Vec<Command>, origin: &Origin, trusted: bool) {
        for command in commands {
            let name = Gate::name_for(&command.run.shown());
            self.add(Gate { trusted, ..Gate::new(name, Check::Command(command), origin.clone()) });
        }
    }

    /// Whether a gate runs this very command and asks for no less. It is measured once then, and the longer deadline counts.
    fn has_command(&mut self, wanted: &Command) -> bool {
        let is_same = |command: &Command| {
            let is_plain = command.folder.is_none() && command.env.is_empty() && command.old_failures == OldFailures::Block;
            is_plain && command.run.shown() == wanted.run.shown()
        };
        let commands =
            self.gates.iter_mut().filter_map(|gate| if let Check::Command(command) = &mut gate.check { Some(command) } else { None });
        let same = commands.into_iter().find(|command| is_same(command));
        same.map(|command| command.deadline_ms = command.deadline_ms.max(wanted.deadline_ms)).is_some()
    }
}

/// A file's content; `None`: there is no such file.
pub type Read<T> = Option<Result<T, Finding>>;

/// `ralph.toml` as it is now. What it says runs only if these very bytes are trusted.
pub fn config(project: &Project) -> Read<(Config, Trust)> {
    Some(read_config(project)?.map(|(config, bytes)| {
        let has_commands = config.verify.as_ref().is_some_and(|v| !v.commands.is_empty()) || config.gates.iter().any(Gate::acts);
        // Settings that run nothing need no trust.
        let acts = has_commands || config.pull_requests.merge == Merge::Ralph;
        let trust = if acts { trust_of(project, &bytes) } else { Trust::Trusted };
        (config, trust)
    }))
}

/// The same for what a run does: who is told, and what its sessions may do, counts from a trusted file only, whatever else is in it.
pub fn config_of_runs(project: &Project) -> Read<(Config, Trust)> {
    Some(read_config(project)?.map(|(config, bytes)| {
        let trust = trust_of(project, &bytes);
        (config, trust)
    }))
}

/// Settings from outside of the project are the caller's own.
fn trust_of(project: &Project, bytes: &[u8]) -> Trust {
    if project.settings().is_some() { Trust::Trusted } else { trust::of_bytes(project, config::FILE, bytes) }
}

fn read_config(project: &Project) -> Read<(Config, Vec<u8>)> {
    let bytes = match project.settings().map_or_else(|| trust::read(project, config::FILE), |bytes| Ok(bytes.to_vec())) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return Some(Err(unreadable(config::FILE, &e.to_string()))),
    };
    let parsed = Config::parse(&bytes).map_err(|problem| unreadable(config::FILE, &problem.to_string()));
    Some(parsed.map(|config| (config, bytes)))
}

/// The commands that the first `worktree.yaml` with any asks for, and its path.
pub fn worktree_commands(project: &Project) -> Read<(&'static str, Vec<Command>, Trust)> {
    WORKTREE_FILES.into_iter().find_map(|file| {
        let bytes = match trust::read(project, file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return Some(Err(unreadable(file, &e.to_string()))),
        };
        match config::worktree_commands(&bytes) {
            Ok(commands) if commands.is_empty() => None,
            Ok(commands) => Some(Ok((file, commands, trust::of_bytes(project, file, &bytes)))),
            Err(problem) => Some(Err(unreadable(file, &problem.to_string()))),
        }
    })
}

fn unreadable(file: &str, problem: &str) -> Finding {
    let what = format!("{file} cannot be read: {problem}");
    Finding { needs: Some(format!("fix {file}")), ..Finding::new(file, Kind::Config, Verdict::Unknown, what) }
}

/// Gates of commands, named by their first words, no two alike.
pub fn of_commands(commands: Vec<Command>, origin: &Origin, trusted: bool) -> Vec<Gate> {
    let mut declared = Declared::default();
    declared.add_commands(commands, origin, trusted);
    declared.gates
}

/// The gates of the project's own settings.
pub fn of_project(project: &Project) -> Declared {
    of_settings(config(project)).0
}

/// Whether a loop may have something to prove, at a glance: what that is, [`of_loop`] says.
pub(crate) fn may_ask(project: &Project, file: &LoopFile) -> bool {
    let of_its_own = !file.verify.is_empty() || file.preset.is_some() || file.list.is_some() || file.item.is_some();
    of_its_own || project.settings().is_some() || project.root().join(config::FILE).symlink_metadata().is_ok()
}

/// The gates of a loop.
pub fn of_loop(project: &Project, file: &LoopFile) -> Declared {
    let (mut declared, settings) = of_settings(config(project));
    for command in &file.verify {
        if declared.has_command(command) {
            continue;
        }
        let trust = trust::of_commands(project, LOOP_ORIGIN, std::slice::from_ref(&command.run));
        declared.add_commands(vec![command.clone()], &Origin::Loop, trust.is_trusted());
    }
    if let Some(preset) = file.preset {
        add_preset(project, preset, file.merge.unwrap_or_default(), &settings, &mut declared);
    }
    if let Some(path) = &file.list {
        add_list(path.clone(), &settings, &mut declared);
    }
    if let Some(item) = &file.item {
        hold_to(project, item, &settings, &mut declared);
    }
    declared
}

/// The lists that a loop of this project is about.
pub(crate) fn lists(project: &Project) -> Vec<String> {
    let (mut declared, settings) = of_settings(config(project));
    add_features(project, &settings, &mut declared);
    declared.features().map(|list| list.path.clone()).collect()
}

/// Only this item of the list counts. Where there are two lists, it is missing from one of them, which is no pass.
fn hold_to(project: &Project, item: &str, settings: &Settings, declared: &mut Declared) {
    add_features(project, settings, declared);
    for gate in &mut declared.gates {
        if let Check::Features(list) = &mut gate.check {
            list.item = Some(item.to_owned());
        }
    }
}

/// Why a preset would ask for nothing that can be proven, in words.
pub(crate) fn preset_problem(project: &Project, preset: Preset) -> Option<String> {
    let (mut declared, settings) = of_settings(config(project));
    let of_settings = declared.problems.len();
    add_preset(project, preset, false, &settings, &mut declared);
    let problem = declared.problems.into_iter().nth(of_settings).map(|finding| finding.what);
    problem.or_else(|| {
        let obstacle = preset.is_of_a_pull_request().then(|| forge::obstacle(project)).flatten()?;
        let needs = obstacle.needs.map(|needs| format!("; {needs}")).unwrap_or_default();
        Some(format!("the preset \"{}\" needs a pull request: {}{needs}", preset.as_str(), obstacle.what))
    })
}

/// The gates of a loop that has this preset and nothing else of its own.
pub fn of_preset(project: &Project, preset: Preset) -> Declared {
    let (mut declared, settings) = of_settings(config(project));
    add_preset(project, preset, false, &settings, &mut declared);
    declared
}

fn add_preset(project: &Project, preset: Preset, merge: bool, settings: &Settings, declared: &mut Declared) {
    match preset {
        Preset::Verify => add_verify(project, settings, declared),
        Preset::Features => add_features(project, settings, declared),
        Preset::Pr => add_pull_request(settings.pull_requests.open_and_green(merge), settings, declared),
        Preset::PrePr => add_pull_request(settings.pull_requests.before_the_request(), settings, declared),
        Preset::AfterPr => add_pull_request(settings.pull_requests.after_the_request(), settings, declared),
    }
}

/// The part of `ralph.toml` besides its gates.
#[derive(Default)]
struct Settings {
    per_session: u64,
    verify: Vec<Command>,
    pull_requests: PullRequests,
    trust: Option<Trust>,
}

fn of_settings(config: Read<(Config, Trust)>) -> (Declared, Settings) {
    match config {
        None => (Declared::default(), Settings::default()),
        Some(Err(problem)) => (Declared { problems: vec![problem], ..Declared::default() }, Settings::default()),
        Some(Ok((config, trust))) => {
            let gates = config.gates.into_iter().map(|gate| Gate { trusted: trust.is_trusted(), ..gate }).collect();
            let declared = Declared { gates, guard: config.guard, keep_going: config.keep_going, problems: Vec::new() };
            let verify = config.verify.map(|verify| verify.commands).unwrap_or_default();
            let pull_requests = config.pull_requests;
            (declared, Settings { per_session: config.per_session, verify, pull_requests, trust: Some(trust) })
        }
    }
}

fn add_verify(project: &Project, settings: &Settings, declared: &mut Declared) {
    match (worktree_commands(project), settings.trust) {
        (Some(Ok((file, commands, trust))), _) => declared.add_commands(commands, &Origin::File(file.to_owned()), trust.is_trusted()),
        (Some(Err(problem)), _) => declared.problems.push(problem),
        (None, Some(trust)) if !settings.verify.is_empty() => {
            declared.add_commands(settings.verify.clone(), &Origin::File(config::FILE.to_owned()), trust.is_trusted());
        }
        // It may have said so in the file that cannot be read.
        (None, _) if !declared.problems.is_empty() => {}
        (None, _) => declared.problems.push(missing(
            "verify",
            format!("the preset \"verify\" finds no commands: neither {} nor [verify] in ralph.toml has any", WORKTREE_FILES.join(" nor ")),
        )),
    }
}

/// Adds only checks that the file does not ask for itself.
fn add_pull_request(gates: Vec<Gate>, settings: &Settings, declared: &mut Declared) {
    let trusted = settings.trust.is_none_or(Trust::is_trusted);
    for gate in gates {
        if !declared.gates.iter().any(|other| other.check == gate.check) {
            declared.add(Gate { trusted, ..gate });
        }
    }
}

fn add_features(project: &Project, settings: &Settings, declared: &mut Declared) {
    if declared.gates.iter().any(|gate| matches!(gate.check, Check::Features(_))) {
        return;
    }
    match features::find(project) {
        Some(path) => add_list(path, settings, declared),
        None => declared.problems.push(missing(
            "features",
            "the preset \"features\" finds no list of work: neither feature_list.json nor prd.json exists".to_owned(),
        )),
    }
}

fn add_list(path: String, settings: &Settings, declared: &mut Declared) {
    if declared.gates.iter().any(|gate| matches!(&gate.check, Check::Features(features) if features.path == path)) {
        return;
    }
    let origin = Origin::List(path.clone());
    let check = Check::Features(Features { per_session: settings.per_session, ..Features::of(path) });
    declared.add(Gate { trusted: true, every_stop: true, ..Gate::new("features", check, origin) });
}

fn missing(preset: &str, what: String) -> Finding {
    Finding {
        needs: Some("write it, or take `preset` or `item` out of the loop file".to_owned()),
        ..Finding::new(preset, Kind::Config, Verdict::Unknown, what)
    }
}
