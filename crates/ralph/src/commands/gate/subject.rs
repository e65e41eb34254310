//! The gates that `ralph gate` measures: a loop's, the project's, or what check agents have to pass.

use ralph_core::{
    config,
    gate::{Command, Finding, Gate, Origin},
    text::clean,
};
use ralph_engine::{
    gates::declared::{self, Declared},
    ops::{self, Refusal},
    store::project::Project,
};

use crate::{commands::asker, exit::Failure, find_loop};

/// The subject of the loop that an option or one of these words names, which is taken out of them; a gate of that name comes first.
pub(super) fn named(project: &Project, which: Option<&str>, words: &mut Vec<String>) -> Result<Subject, Failure> {
    let usual = Subject::of(project, which);
    let is_gate = |word: &str| usual.as_ref().is_ok_and(|usual| usual.declared.gates.iter().any(|gate| gate.name == word));
    match find_loop::among(project, words, is_gate).filter(|_| which.is_none()) {
        Some(named) => Subject::of(project, Some(&named)),
        None => usual,
    }
}

pub(super) struct Subject {
    /// The loop's id.
    pub(super) of_loop: Option<String>,
    pub(super) declared: Declared,
    /// These are the commands of check agents, because nothing else is declared.
    pub(super) stands_in: bool,
}

impl Subject {
    /// The loop that is meant, and what it has to prove. A project needs no loop for its own gates; where it has none, check agents may have to pass something.
    pub(super) fn of(project: &Project, which: Option<&str>) -> Result<Self, Failure> {
        let subject = match ops::choose(project, which, asker().session.as_deref()) {
            Ok(found) => {
                let file = found.parsed.as_ref().map_err(|problem| Failure::new(format!("{}: {problem}", found.path.display())))?;
                Subject { of_loop: Some(found.id()), declared: declared::of_loop(project, file), stands_in: false }
            }
            Err(Refusal::NoLoop) if which.is_none() => Subject { of_loop: None, declared: declared::of_project(project), stands_in: false },
            Err(refusal) => return Err(refusal.into()),
        };
        let of_agents = Subject { stands_in: true, ..Subject::of_check_agents(project) };
        let is_empty = which.is_none() && subject.declared.is_empty();
        Ok(if is_empty && !of_agents.declared.is_empty() { of_agents } else { subject })
    }

    pub(super) fn of_check_agents(project: &Project) -> Self {
        let settings = declared::of_project(project);
        let mut declared = Declared { guard: settings.guard, keep_going: settings.keep_going, ..Declared::default() };
        match verify_commands(project) {
            Ok(gates) => declared.gates = gates,
            Err(problem) => declared.problems = vec![*problem],
        }
        Subject { of_loop: None, declared, stands_in: false }
    }

    /// The gates of these names; all of them without any.
    pub(super) fn chosen(&self, names: &[String]) -> Result<Vec<Gate>, Failure> {
        let declared = &self.declared;
        if let Some(name) = names.iter().find(|name| !declared.gates.iter().any(|gate| gate.name == **name)) {
            let known: Vec<String> = declared.gates.iter().map(|gate| clean(&gate.name)).collect();
            let there = if known.is_empty() { "there is none".to_owned() } else { format!("there are: {}", known.join(", ")) };
            let lines =
                std::iter::once(format!("there is no gate \"{name}\"; {there}")).chain(declared.problems.iter().map(|p| p.what.clone()));
            return Err(Failure::usage(lines.collect::<Vec<_>>().join("\n")));
        }
        let is_wanted = |gate: &&Gate| names.is_empty() || names.contains(&gate.name);
        Ok(declared.gates.iter().filter(is_wanted).cloned().collect())
    }
}

/// The commands of the first `worktree.yaml` that has any, else of `[verify]`: as when a check agent stops.
fn verify_commands(project: &Project) -> Result<Vec<Gate>, Box<Finding>> {
    let gates = |file: &str, commands: Vec<Command>, trusted| declared::of_commands(commands, &Origin::File(file.to_owned()), trusted);
    if let Some(found) = declared::worktree_commands(project) {
        return found.map(|(file, commands, trust)| gates(file, commands, trust.is_trusted())).map_err(Box::new);
    }
    match declared::config(project) {
        None => Ok(Vec::new()),
        Some(Ok((config, trust))) => {
            Ok(gates(config::FILE, config.verify.map(|verify| verify.commands).unwrap_or_default(), trust.is_trusted()))
        }
        Some(Err(problem)) => Err(Box::new(problem)),
    }
}
