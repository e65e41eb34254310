//! `ralph trust`: let the commands of a repository's files run.

use std::path::{Path, PathBuf};

use clap::ValueHint;
use ralph_core::{
    gate::Run,
    text::{
        self,
        time::{self, in_words},
    },
};
use ralph_engine::{
    gates::declared::LOOP_ORIGIN,
    ops::command_sources::{Broken, Named, Source},
    store::{
        project::Project,
        trust::{self, Decision, Trust},
    },
    view::{self, Status},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    commands::agreed,
    exit::{Done, Failure},
    journal_lines::{quoted, visible, when},
    term::ask::{self, Answer},
    ui,
};

/// Review the commands in this repository's files, and let them run
///
/// Gates run commands, and a repository's files can come from anyone. No command in them runs before you have seen it here and said yes. A file is
/// trusted with its present content: when it changes, ralph asks again. Linked worktrees of the repository share the decision, another clone does not.
/// Scripts that a command calls are not checked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph trust              show the commands, then ask
  ralph trust --list       only show them, and what is trusted
  ralph trust --yes        without a question, where there is no terminal
  ralph trust todo.json    the commands of a list for `ralph fleet run`, too
  ralph trust --revoke     trust nothing in this repository any more")]
pub(crate) struct Args {
    /// Lists of work that no file here names, with commands of their items
    #[arg(value_name = "LIST", value_hint = ValueHint::FilePath, conflicts_with = "revoke")]
    lists: Vec<PathBuf>,
    /// Trust them without a question
    #[arg(long, short)]
    yes: bool,
    /// Trust nothing in this repository any more
    #[arg(long, conflicts_with_all = ["yes", "list"])]
    revoke: bool,
    /// Show what there is and what is trusted, and change nothing
    #[arg(long, conflicts_with = "yes")]
    list: bool,
    /// For programs: JSON; changes nothing without --yes or --revoke
    #[arg(long)]
    json: bool,
}

/// Characters of one command that are shown; no one reads more on a screen.
const LONGEST: usize = 4_000;

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    if args.revoke {
        return revoke(project, args);
    }
    let (mut sources, mut broken) = Source::all(project);
    for path in &args.lists {
        let path = within(project, path)?;
        match Source::of_list(project, &path) {
            Ok(source) if source.commands.is_empty() => {}
            Ok(source) => {
                sources.retain(|known| known.origin != path);
                sources.push(source);
            }
            Err(problem) => broken.push(problem),
        }
    }
    if args.json {
        return in_json(project, &sources, &broken, args);
    }
    for problem in &broken {
        ui::warning(&visible(&problem.told()));
    }
    if args.list {
        list(project, &sources);
        return Ok(());
    }
    let new: Vec<&Source> = sources.iter().filter(|source| !source.trust.is_trusted()).collect();
    if new.is_empty() {
        ui::paragraph(nothing_new(&sources), 0);
        return Ok(());
    }
    review(project, &new);
    if !args.yes {
        confirm(&new)?;
    }
    allow(project, &new)?;
    if view::live(project).iter().any(|live| live.status == Status::Paused) {
        ui::line("A loop is paused here: `ralph resume` goes on.");
    }
    Ok(())
}

/// The path of a list from the project's root.
fn within(project: &Project, path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let real = |path: &Path| path.canonicalize().map_err(|e| Failure::usage(format!("{} cannot be read: {e}", path.display())));
    // With -C the path may be seen from there.
    let there = [path.to_owned(), project.root().join(path)].into_iter().find(|path| path.exists());
    let (root, list) = (real(project.root())?, real(there.as_deref().unwrap_or(path))?);
    let inside = list.strip_prefix(&root).map_err(|_| Failure::usage(format!("{shown} is not in this project, {}", root.display())))?;
    Ok(inside.to_string_lossy().replace('\\', "/"))
}

pub(super) fn review(project: &Project, new: &[&Source]) {
    for source in new {
        show(source);
        for what in source.weaker(project) {
            ui::paragraph(format!("  {} {}", ui::bad("Weaker than when the loop began:"), visible(&what)), 4);
        }
    }
}

/// The question, for what [`review`] has shown.
pub(super) fn ask_to_trust(new: &[&Source]) -> Answer {
    let question = match count(new) {
        0 => "Trust this?",
        1 => "Let this command run?",
        _ => "Let these commands run?",
    };
    let about = "  ralph runs these commands to check the agent's work. They come from files of this repository, which others may have written: \
                 say yes only if you would run them yourself. `ralph trust --revoke` takes it back.";
    ask::ask(question, Answer::No, about)
}

pub(super) fn allow(project: &Project, new: &[&Source]) -> Done {
    Source::allow(project, new)?;
    ui::paragraph(format!("{} {}. {}", ui::good("Trusted:"), names(new), asks_again(new)), 0);
    Ok(())
}

/// Only on a terminal, where the person has seen what it is about.
fn confirm(new: &[&Source]) -> Done {
    if !ask::is_possible() {
        return Err(Failure::new("nothing was trusted: there is no terminal to ask in. Read the commands above, then `ralph trust --yes`"));
    }
    agreed(ask_to_trust(new), "nothing was trusted")
}

fn count(sources: &[&Source]) -> usize {
    sources.iter().flat_map(|source| &source.commands).filter(|named| named.permission_mode().is_none()).count()
}

fn names(sources: &[&Source]) -> String {
    sources.iter().map(|source| visible(&source.origin)).collect::<Vec<_>>().join(", ")
}

fn asks_again(sources: &[&Source]) -> &'static str {
    match (sources.iter().any(|source| source.is_trusted_whole()), sources.iter().all(|source| source.is_trusted_whole())) {
        (_, true) => "A changed file asks again.",
        (false, _) => "Only a changed command asks again.",
        (true, false) => "A changed file asks again; of lists and loop files only a changed command.",
    }
}

fn nothing_new(sources: &[Source]) -> String {
    match sources {
        [] => "There is nothing to trust: no file of this project declares a command.".to_owned(),
        all => format!("Everything is trusted already: {}.", names(&all.iter().collect::<Vec<_>>())),
    }
}

fn show(source: &Source) {
    let state = match source.trust {
        Trust::Trusted => ui::good("trusted"),
        Trust::Untrusted => ui::warn("not trusted yet"),
        Trust::Changed => ui::warn("changed since you trusted it"),
    };
    ui::line(format!("{}  {state}", ui::bold(visible(&source.origin))));
    for named in &source.commands {
        ui::line(format!("  {}", visible(&named.name)));
        if let Some(mode) = named.permission_mode() {
            ui::paragraph(format!("    `ralph run` starts Claude Code with the permission mode {}", visible(mode)), 4);
            continue;
        }
        for line in lines_of(&named.command.run) {
            ui::line(format!("    {line}"));
        }
        ui::line(format!("    {}", ui::dim(around(named))));
    }
}

/// The command as it will be run: every line of it, and every word of it apart where no shell takes it apart.
fn lines_of(run: &Run) -> Vec<String> {
    let text = match run {
        Run::Shell(line) => line.clone(),
        Run::Argv(words) => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    };
    let shown: String = text.chars().take(LONGEST).collect();
    let left = text.chars().count().saturating_sub(LONGEST);
    let marked = |(n, line): (usize, &str)| format!("{} {}", ui::dim(if n == 0 { "$" } else { ">" }), visible(line));
    let mut lines: Vec<String> = shown.split('\n').enumerate().map(marked).collect();
    if left > 0 {
        lines.push(ui::bad(format!("… and {left} more characters: read them in the file")));
    }
    lines
}

fn around(named: &Named) -> String {
    let command = &named.command;
    let mut parts = vec![if matches!(command.run, Run::Shell(_)) { "in the shell" } else { "without a shell" }.to_owned()];
    parts.extend(command.folder.as_deref().map(|folder| format!("in {}", visible(folder))));
    parts.extend(command.env.iter().map(|(name, value)| format!("{}={}", visible(name), visible(&quoted(value)))));
    // The deadline is one of checks.
    parts.extend(named.is_check().then(|| format!("at most {}", in_words(command.deadline_ms))));
    parts.join(", ")
}

fn list(project: &Project, sources: &[Source]) {
    if sources.is_empty() {
        ui::line("No file of this project declares a command.");
    }
    sources.iter().for_each(show);
    for decision in trust::list(project) {
        ui::line(ui::dim(format!("trusted {}: {}", when(&time::format(decision.at)), of_decision(&decision))));
    }
}

fn of_decision(decision: &Decision) -> String {
    let versions = || text::count(decision.contents as u64, "version", "versions");
    let commands = || text::count(decision.commands as u64, "command", "commands");
    let what = match (decision.contents, decision.commands) {
        (_, 0) => versions(),
        (0, _) => commands(),
        _ => format!("{} and {}", versions(), commands()),
    };
    let origin = if decision.origin == LOOP_ORIGIN { "loop files" } else { &decision.origin };
    format!("{what} of {}", visible(origin))
}

fn revoke(project: &Project, args: &Args) -> Done {
    let gone = trust::revoke(project)?;
    if args.json {
        ui::json(&json!({ "revoked": gone }));
        return Ok(());
    }
    if gone.is_empty() {
        ui::line("Nothing was trusted in this repository.");
    }
    for decision in &gone {
        ui::line(format!("no longer trusted: {}", of_decision(decision)));
    }
    Ok(())
}

#[derive(Serialize)]
struct InJson {
    files: Vec<Value>,
    problems: Vec<Value>,
    /// Trusted by this very call.
    trusted: Vec<String>,
    decisions: Vec<Decision>,
}

fn in_json(project: &Project, sources: &[Source], broken: &[Broken], args: &Args) -> Done {
    let new: Vec<&Source> = sources.iter().filter(|source| args.yes && !source.trust.is_trusted()).collect();
    // Before it is trusted: then it is what later ones are compared with.
    let weaker: Vec<Vec<String>> = sources.iter().map(|source| source.weaker(project)).collect();
    Source::allow(project, &new)?;
    let trust_now = |source: &Source| if args.yes { Trust::Trusted } else { source.trust };
    let of_source = |(source, weaker): (&Source, &Vec<String>)| json!({ "file": source.origin, "trust": trust_now(source), "commands": source.commands.iter().map(of_command).collect::<Vec<_>>(), "weaker": weaker });
    ui::json(&InJson {
        files: sources.iter().zip(&weaker).map(of_source).collect(),
        problems: broken.iter().map(|problem| json!({ "file": problem.origin, "what": problem.what })).collect(),
        trusted: new.iter().map(|source| source.origin.clone()).collect(),
        decisions: trust::list(project),
    });
    Ok(())
}

fn of_command(named: &Named) -> Value {
    let command = &named.command;
    let run = match &command.run {
        Run::Shell(line) => json!(line),
        Run::Argv(words) => json!(words),
    };
    let env: serde_json::Map<String, Value> = command.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({ "name": named.name, "run": run, "folder": command.folder, "env": env, "deadline_ms": command.deadline_ms })
}
