//! What shall prove the work: can it be read, may it run, is it there, and does it get the time that it needs? Nothing of it is run.

use std::time::Duration;

use ralph_core::{
    gate::{Command, Run},
    time::in_words,
    words::opening,
};
use ralph_engine::{
    hook,
    hosts::claude::registration::SHORT,
    ops::sources::{self, Broken, Named, Role, Source},
    store::trust::Trust,
    sys::process,
};

use super::{Case, Finding, hooks};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let (sources, broken) = sources::all(&case.project);
    let mut findings: Vec<Finding> = broken.iter().map(unreadable).collect();
    findings.extend(sources.iter().filter_map(distrusted));
    findings.extend(missing_programs(case, &sources));
    findings.extend(unheard(case, &sources));
    findings.extend([("Stop", false), ("SubagentStop", true)].iter().filter_map(|(event, of_subagents)| {
        let of_event = |named: &&Named| named.of_subagents == *of_subagents;
        let commands: Vec<&Command> = sources.iter().flat_map(|s| &s.commands).filter(of_event).map(|named| &named.command).collect();
        too_long(case, event, &commands)
    }));
    findings.extend(sound(&sources, &findings));
    findings
}

/// A gate that cannot be read proves nothing, so it holds every loop; what a subagent has to pass is left out then.
fn unreadable(broken: &Broken) -> Finding {
    let what = format!("{} cannot be read: {}", broken.origin, broken.what);
    match broken.role {
        Role::Settings => Finding::error("gates.settings", what),
        Role::Verify => Finding::warning("gates.verify", what),
        Role::List => Finding::error("gates.list", what),
    }
    .advice("Mend it.")
}

fn distrusted(source: &Source) -> Option<Finding> {
    let why = match source.trust {
        Trust::Trusted => return None,
        Trust::Untrusted => "you have not trusted it",
        Trust::Changed => "it has changed since you trusted it",
    };
    let commands =
        if source.commands.len() == 1 { "its command does".to_owned() } else { format!("its {} commands do", source.commands.len()) };
    let what = format!("{}: {why}, so {commands} not run and no loop can prove anything with it", source.origin);
    Some(Finding::error("gates.trust", what).fix("ralph trust"))
}

/// Programs that are nowhere to be found. What a shell line begins with tells enough; what else stands in it is the shell's matter.
fn missing_programs(case: &Case, sources: &[Source]) -> Vec<Finding> {
    let is_there = |program: &str, command: &Command| {
        let folder = || case.project.root().join(command.folder.as_deref().unwrap_or_default());
        if program.contains('/') { folder().join(program).exists() } else { process::which(program).is_some() }
    };
    let missing = |named: &Named| program(&named.command.run).filter(|program| !is_there(program, &named.command)).map(str::to_owned);
    let mut findings: Vec<Finding> = Vec::new();
    for source in sources {
        for (named, program) in source.commands.iter().filter_map(|named| Some((named, missing(named)?))) {
            let what = format!("the gate \"{}\" of {} needs `{program}`, which is not there", named.name, source.origin);
            findings.push(Finding::warning("gates.program", opening(&what, 300)).advice("Install it, or put it on the PATH of the agent."));
        }
    }
    findings
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

/// Words that the shell understands by itself.
const OF_THE_SHELL: [&str; 34] = [
    ".", ":", "alias", "break", "case", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export", "false", "for", "function",
    "if", "local", "printf", "pwd", "read", "return", "set", "shift", "source", "test", "time", "trap", "true", "type", "ulimit", "umask",
    "until", "while",
];

/// Subagents whose stops nobody hears are never verified. Without any hook at all there is more to mend than that.
fn unheard(case: &Case, sources: &[Source]) -> Option<Finding> {
    let ours = case.survey.ours();
    let source = sources.iter().find(|source| source.commands.iter().any(|named| named.of_subagents))?;
    if ours.is_empty() || ours.iter().any(|r| r.hook.event == "SubagentStop") {
        return None;
    }
    let what = format!("{} asks subagents for a proof, and the hook is not registered for SubagentStop: nobody asks them", source.origin);
    Some(hooks::registering_again(case, &ours, Finding::error("gates.subagents", what)))
}

/// Commands that may take longer, together, than the hook that runs them: those that are left then prove nothing.
fn too_long(case: &Case, event: &str, commands: &[&Command]) -> Option<Finding> {
    let limits = case.survey.ours().into_iter().filter(|r| r.hook.event == event).map(|r| r.hook.line.limit().unwrap_or(SHORT));
    let limit = limits.min()?;
    let time = millis(hook::time_to_work(Duration::from_secs(limit)));
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn sound(sources: &[Source], findings: &[Finding]) -> Option<Finding> {
    if sources.is_empty() || !findings.is_empty() {
        return None;
    }
    let files: Vec<&str> = sources.iter().map(|source| source.origin.as_str()).collect();
    let longest = sources.iter().flat_map(|source| &source.commands).map(|named| named.command.deadline_ms).max().unwrap_or(0);
    let commands = sources.iter().map(|source| source.commands.len()).sum::<usize>();
    let what = if commands == 1 { "1 command".to_owned() } else { format!("{commands} commands") };
    Some(Finding::good("gates", format!("{what} of {} may run, each for {} at most", files.join(", "), in_words(longest))))
}
