//! The gates: can they be read, may they run, are their programs there, and do they get the time that they need? None is run.

use std::{path::PathBuf, time::Duration};

use ralph_core::{
    gate::{Command, Run},
    text::{
        opening,
        time::{in_words, millis},
    },
};
use ralph_engine::{
    hosts::SHORT,
    ops::command_sources::{Broken, Named, Purpose, Role, Source},
    stop,
    store::trust::Trust,
    sys::process,
};

use super::{Case, Finding, hooks};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let (sources, broken) = Source::all(&case.project);
    let mut findings: Vec<Finding> = broken.iter().map(unreadable).collect();
    findings.extend(sources.iter().filter_map(|source| distrusted(case, source)));
    findings.extend(missing_folders(case, &sources));
    findings.extend(missing_programs(case, &sources));
    findings.extend(unheard(case, &sources));
    findings.extend([("Stop", Purpose::Loops), ("SubagentStop", Purpose::Subagents)].iter().filter_map(|(event, purpose)| {
        let of_event = |named: &&Named| named.purpose == *purpose;
        let commands: Vec<&Command> = sources.iter().flat_map(|s| &s.commands).filter(of_event).map(|named| &named.command).collect();
        too_long(case, event, &commands)
    }));
    findings.extend(sound(&sources, &findings));
    findings
}

/// A gate that cannot be read proves nothing, so it holds every loop; what a subagent has to pass is left out then.
fn unreadable(broken: &Broken) -> Finding {
    let what = broken.told();
    let finding = match broken.role {
        Role::Settings | Role::Loop => Finding::error("gates.settings", what),
        Role::Verify => Finding::warning("gates.verify", what),
        Role::List => Finding::error("gates.list", what),
    };
    finding.advice(if broken.is_missing { "Write it, or take its gate out of ralph.toml." } else { "Fix it." })
}

/// An error where a loop or a check agent needs it now; otherwise a note.
fn distrusted(case: &Case, source: &Source) -> Option<Finding> {
    let why = match source.trust {
        Trust::Trusted => return None,
        Trust::Untrusted => "you have not trusted it",
        Trust::Changed => "it has changed since you trusted it",
    };
    let (commands, them) = match source.commands.iter().filter(|named| named.is_check()).count() {
        1 => ("its command does".to_owned(), "it"),
        n => (format!("its {n} commands do"), "them"),
    };
    let finding = if source.of_loops {
        Finding::error("gates.trust", format!("{}: {why}, so {commands} not run and no loop can prove anything with it", source.origin))
    } else if source.of_subagents && is_heard(case, "SubagentStop") {
        Finding::error(
            "gates.trust",
            format!("{}: {why}, so {commands} not run and the work of check agents stays unverified", source.origin),
        )
    } else if !source.commands.iter().any(Named::is_check) {
        Finding::note(
            "gates.trust",
            format!("{}: {why}, so `ralph run` leaves out what it says about permissions and notifications", source.origin),
        )
    } else {
        Finding::note("gates.trust", format!("{}: {why}. No loop needs {them} now", source.origin))
    };
    Some(finding.fix("ralph trust"))
}

fn is_heard(case: &Case, event: &str) -> bool {
    case.survey.ours().iter().any(|r| r.hook.answers(event))
}

fn folder(case: &Case, command: &Command) -> PathBuf {
    case.project.root().join(command.folder.as_deref().unwrap_or_default())
}

/// The commands of gates, with the file that names them.
fn of_gates(sources: &[Source]) -> impl Iterator<Item = (&Source, &Named)> {
    let named = sources.iter().flat_map(|source| source.commands.iter().map(move |named| (source, named)));
    named.filter(|(_, named)| named.is_check())
}

/// Commands that cannot begin, because they have no place to run in.
fn missing_folders(case: &Case, sources: &[Source]) -> Vec<Finding> {
    of_gates(sources)
        .filter(|(_, named)| !folder(case, &named.command).is_dir())
        .map(|(source, named)| {
            let folder = named.command.folder.as_deref().unwrap_or_default();
            let what = format!("the gate \"{}\" of {} runs in {folder}, which is not there", named.name, source.origin);
            Finding::warning("gates.folder", opening(&what, 300)).advice("Make the folder, or name the right one.")
        })
        .collect()
}

/// Programs that are nowhere to be found, each once. What a shell line begins with tells enough; what else stands in it is the shell's matter.
fn missing_programs(case: &Case, sources: &[Source]) -> Vec<Finding> {
    let is_there = |program: &str, command: &Command| {
        // Without the folder it is unknown.
        let in_folder = |folder: PathBuf| !folder.is_dir() || folder.join(program).exists();
        if program.contains('/') { in_folder(folder(case, command)) } else { process::which(program).is_some() }
    };
    let mut missing: Vec<(&str, Vec<String>)> = Vec::new();
    for (source, named) in of_gates(sources) {
        let Some(program) = program(&named.command.run).filter(|program| !is_there(program, &named.command)) else { continue };
        let who = format!("\"{}\" of {}", named.name, source.origin);
        match missing.iter_mut().find(|(known, _)| *known == program) {
            Some((_, needed_by)) if needed_by.contains(&who) => {}
            Some((_, needed_by)) => needed_by.push(who),
            None => missing.push((program, vec![who])),
        }
    }
    let told = |(program, needed_by): (&str, Vec<String>)| {
        let what = match &needed_by[..] {
            [one] => format!("the gate {one} needs `{program}`, which is not there"),
            [first, ..] => format!("the gate {first} and {} more need `{program}`, which is not there", needed_by.len() - 1),
            [] => format!("`{program}` is not there"),
        };
        Finding::warning("gates.program", opening(&what, 300)).advice("Install it, or put it on the PATH of the agent.")
    };
    missing.into_iter().map(told).collect()
}

/// The program of a command, where it is plain to see.
fn program(run: &Run) -> Option<&str> {
    match run {
        Run::Argv(words) => words.first().map(String::as_str),
        Run::Shell(line) => {
            let is_variable = |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty());
            let word = line.split_whitespace().find(|word| !is_variable(word))?;
            let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
            (is_plain && !OF_THE_SHELL.contains(&word)).then_some(word)
        }
    }
}

const OF_THE_SHELL: [&str; 34] = [
    ".", ":", "alias", "break", "case", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export", "false", "for", "function",
    "if", "local", "printf", "pwd", "read", "return", "set", "shift", "source", "test", "time", "trap", "true", "type", "ulimit", "umask",
    "until", "while",
];

/// Subagents are verified only if their stops are heard. Without any hook at all there is more to fix than that.
fn unheard(case: &Case, sources: &[Source]) -> Option<Finding> {
    let ours = case.survey.ours();
    let source = sources.iter().find(|source| source.commands.iter().any(|named| named.purpose == Purpose::Subagents))?;
    if ours.is_empty() || is_heard(case, "SubagentStop") {
        return None;
    }
    let what =
        format!("{} asks subagents for a proof, but the hook is not registered for SubagentStop, so they are never asked", source.origin);
    Some(hooks::registering_again(case, &ours, Finding::error("gates.subagents", what)))
}

/// Commands that may take longer, together, than the hook that runs them: those that are left then prove nothing.
fn too_long(case: &Case, event: &str, commands: &[&Command]) -> Option<Finding> {
    let limits = case.survey.ours().into_iter().filter(|r| r.hook.answers(event)).map(|r| r.hook.line.limit().unwrap_or(SHORT));
    let limit = limits.min()?;
    let time = millis(stop::time_to_work(Duration::from_secs(limit)));
    let needed = together(commands);
    let what = format!(
        "the commands that run at {event} may take {} together, and the hook has {}: what is not done by then proves nothing",
        in_words(needed),
        in_words(time)
    );
    (needed > time).then(|| {
        Finding::warning("gates.time", what).advice("Give them shorter deadlines, or let them run side by side (parallel = true).")
    })
}

/// One after the other, those that may run side by side at the same time.
fn together(commands: &[&Command]) -> u64 {
    let rows = commands.chunk_by(|a, b| a.parallel && b.parallel);
    rows.map(|row| row.iter().map(|command| command.deadline_ms).max().unwrap_or(0)).fold(0, u64::saturating_add)
}

fn sound(sources: &[Source], findings: &[Finding]) -> Option<Finding> {
    if sources.is_empty() || !findings.is_empty() {
        return None;
    }
    let files: Vec<&str> = sources.iter().map(|source| source.origin.as_str()).collect();
    let files = files.join(", ");
    let commands = || sources.iter().flat_map(|source| &source.commands);
    let deadlines: Vec<u64> = commands().filter(|named| named.is_check()).map(|named| named.command.deadline_ms).collect();
    let longest = in_words(deadlines.iter().copied().max().unwrap_or(0));
    let checks = match deadlines.len() {
        0 => format!("{files} is trusted"),
        1 => format!("1 check of {files} may run, for {longest} at most"),
        n if deadlines.iter().all(|deadline| *deadline == deadlines[0]) => {
            format!("{n} checks of {files} may run, each for {longest} at most")
        }
        n => format!("{n} checks of {files} may run, the longest for {longest} at most"),
    };
    let mode = commands().find_map(Named::permission_mode).map(|mode| format!("; `ralph run` uses the permission mode {mode}"));
    Some(Finding::good("gates", format!("{checks}{}", mode.unwrap_or_default())))
}
