//! Which gates apply: those of `ralph.toml`, those of the loop's own file, and those of its preset.

use std::io;

use ralph_core::{
    config::{self, Config},
    gate::{Check, Command, Features, Finding, Gate, GuardPolicy, Kind, Origin, Verdict},
    loop_file::{LoopFile, Preset},
    verify_yaml,
};

use crate::{
    gates::features,
    store::{
        project::Project,
        trust::{self, Trust},
    },
};

/// Files whose `verify:` asks for commands, the first that has any counts (S3-2).
pub const WORKTREE_FILES: [&str; 2] = [".ideal/worktree.yaml", ".trellis/worktree.yaml"];

/// What the commands of loop files are trusted under.
pub const LOOP_ORIGIN: &str = "loop";

/// What applies to a loop, or to a project.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    pub gates: Vec<Gate>,
    pub guard: GuardPolicy,
    pub keep_going: bool,
    /// What declares gates and cannot be read. None of them is a pass.
    pub problems: Vec<Finding>,
}

impl Declared {
    /// Whether anything has to be proven.
    pub fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.problems.is_empty()
    }

    fn add(&mut self, gate: Gate) {
        let taken = |name: &str, gates: &[Gate]| gates.iter().any(|g| g.name == name);
        let free = (2..).map(|n| format!("{} {n}", gate.name)).find(|name| !taken(name, &self.gates));
        let name = if taken(&gate.name, &self.gates) { free.unwrap_or_default() } else { gate.name.clone() };
        self.gates.push(Gate { name, ..gate });
    }
}

/// `ralph.toml` as it is now; `None`: there is none. What it says runs only if these very bytes are trusted.
pub fn config(project: &Project) -> Option<Result<(Config, Trust), Finding>> {
    let bytes = match trust::read(project, config::FILE) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return Some(Err(unreadable(config::FILE, &e.to_string()))),
    };
    let parsed = config::parse(&bytes).map_err(|problem| unreadable(config::FILE, &problem.to_string()));
    Some(parsed.map(|config| {
        let has_commands = config.verify.as_ref().is_some_and(|v| !v.commands.is_empty())
            || config.gates.iter().any(|gate| matches!(gate.check, Check::Command(_)));
        // Settings without commands need nobody's trust.
        let trust = if has_commands { trust::of_bytes(project, config::FILE, &bytes) } else { Trust::Trusted };
        (config, trust)
    }))
}

/// The commands that the first `worktree.yaml` with any asks for; `None`: there is none.
pub fn worktree_commands(project: &Project) -> Option<Result<(&'static str, Vec<Command>, Trust), Finding>> {
    WORKTREE_FILES.into_iter().find_map(|file| {
        let bytes = match trust::read(project, file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return Some(Err(unreadable(file, &e.to_string()))),
        };
        match verify_yaml::commands(&bytes) {
            Ok(commands) if commands.is_empty() => None,
            Ok(commands) => Some(Ok((file, commands, trust::of_bytes(project, file, &bytes)))),
            Err(problem) => Some(Err(unreadable(file, &problem.to_string()))),
        }
    })
}

fn unreadable(file: &str, problem: &str) -> Finding {
    let what = format!("{file} cannot be read: {problem}");
    Finding { needs: Some(format!("mend {file}")), ..Finding::new(file, Kind::Config, Verdict::Unknown, what) }
}

/// Gates of commands, named by their first words.
pub fn of_commands(commands: Vec<Command>, origin: &Origin, trusted: bool) -> Vec<Gate> {
    let gate = |command: Command| Gate {
        name: config::short_name(&command.run.shown()),
        check: Check::Command(command),
        origin: origin.clone(),
        trusted,
        every_stop: false,
    };
    commands.into_iter().map(gate).collect()
}

/// What the project's own settings ask for.
pub fn of_project(project: &Project) -> Declared {
    let mut declared = Declared::default();
    match config(project) {
        None => {}
        Some(Err(problem)) => declared.problems.push(problem),
        Some(Ok((config, trust))) => {
            declared.guard = config.guard;
            declared.keep_going = config.keep_going;
            declared.gates = config.gates.into_iter().map(|gate| Gate { trusted: trust.is_trusted(), ..gate }).collect();
        }
    }
    declared
}

/// What a loop has to prove.
pub fn of_loop(project: &Project, file: &LoopFile) -> Declared {
    let mut declared = of_project(project);
    for command in &file.verify {
        let trust = trust::of_commands(project, LOOP_ORIGIN, std::slice::from_ref(&command.run));
        of_commands(vec![command.clone()], &Origin::Loop, trust.is_trusted()).into_iter().for_each(|gate| declared.add(gate));
    }
    match file.preset {
        None => {}
        Some(Preset::Verify) => add_verify(project, &mut declared),
        Some(Preset::Features) => add_features(project, &mut declared),
    }
    if let Some(path) = &file.list {
        add_list(project, path.clone(), &mut declared);
    }
    declared
}

fn add_verify(project: &Project, declared: &mut Declared) {
    match worktree_commands(project) {
        Some(Ok((file, commands, trust))) => {
            let gates = of_commands(commands, &Origin::File(file.to_owned()), trust.is_trusted());
            gates.into_iter().for_each(|gate| declared.add(gate));
        }
        Some(Err(problem)) => declared.problems.push(problem),
        None => match config(project) {
            Some(Ok((Config { verify: Some(verify), .. }, trust))) if !verify.commands.is_empty() => {
                let gates = of_commands(verify.commands, &Origin::File(config::FILE.to_owned()), trust.is_trusted());
                gates.into_iter().for_each(|gate| declared.add(gate));
            }
            _ => declared.problems.push(missing(
                "verify",
                format!(
                    "the preset \"verify\" finds no commands: neither {} nor [verify] in ralph.toml has any",
                    WORKTREE_FILES.join(" nor ")
                ),
            )),
        },
    }
}

fn add_features(project: &Project, declared: &mut Declared) {
    if declared.gates.iter().any(|gate| matches!(gate.check, Check::Features(_))) {
        return;
    }
    match features::find(project) {
        Some(path) => add_list(project, path, declared),
        None => declared
            .problems
            .push(missing("features", "the preset \"features\" finds no list: neither feature_list.json nor prd.json is there".to_owned())),
    }
}

fn add_list(project: &Project, path: String, declared: &mut Declared) {
    if declared.gates.iter().any(|gate| matches!(&gate.check, Check::Features(features) if features.path == path)) {
        return;
    }
    let per_session = config(project).and_then(Result::ok).map_or(0, |(config, _)| config.per_session);
    declared.add(Gate {
        name: "features".to_owned(),
        origin: Origin::List(path.clone()),
        check: Check::Features(Features { path, per_session }),
        trusted: true,
        every_stop: true,
    });
}

fn missing(preset: &str, what: String) -> Finding {
    Finding {
        needs: Some("write it, or take `preset` out of the loop file".to_owned()),
        ..Finding::new(preset, Kind::Config, Verdict::Unknown, what)
    }
}
