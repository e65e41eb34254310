//! `ralph` alone: where this project stands, and the one command that comes next.

use std::fs;

use ralph_core::text::clean;
use ralph_engine::{
    gates::declared,
    hosts::Host,
    setup::{places::Places, survey::Survey},
    store::project::Project,
    view::{Status, View, status::Standing},
};

use crate::{advice, commands::worktree_hint, exit::Done, journal_lines::last_event, term::one_line::Brief, ui};

#[expect(clippy::unnecessary_wraps, reason = "every command ends the same way")]
pub(super) fn run(project: &Project) -> Done {
    let place = ui::path_from_home(project.root());
    if let Err(e) = fs::read_dir(project.root()) {
        begin(&format!("{place}, which cannot be read: {e}"));
        next("cd PROJECT", "a folder that you may read, and then `ralph` again");
    } else if let Some(what) = project.no_project() {
        begin(&format!("none: this is {what}"));
        next("cd PROJECT", "into the project that an agent should work in, and then `ralph` again");
    } else {
        of_project(project, &place);
    }
    ui::line(ui::dim("`ralph --help` lists the commands."));
    Ok(())
}

fn begin(project: &str) {
    ui::paragraph("Ralph keeps a coding agent working until the work is proven done.", 0);
    ui::line("");
    ui::field("project", project);
}

/// The command on a line of its own, to be copied.
fn next(command: &str, what: &str) {
    ui::line("");
    ui::line(format!("{} {}", ui::bold("Next:"), ui::good(command)));
    ui::paragraph(format!("      {what}"), 6);
}

fn of_project(project: &Project, place: &str) {
    let standing = Standing::of(project);
    let survey = Survey::take(&Places::of(project));
    let of_claude = survey.our_plugin().is_some() || survey.ours().iter().any(|ours| ours.hook.event == "Stop");
    let calls_ralph = |host: &&'static Host| if host.is_claude() { of_claude } else { host.is_registered() };
    let agents: Vec<&Host> = Host::ALL.into_iter().filter(calls_ralph).collect();
    if let Some(one) = newest(&standing.loops) {
        return of_loop(one, standing.loops.len(), !agents.is_empty());
    }
    begin(place);
    let titles: Vec<&str> = agents.iter().map(|host| host.title).collect();
    match titles.as_slice() {
        [] => ui::field("set up", "no: no agent calls ralph yet"),
        [one] => ui::field("set up", format!("yes: {one} calls ralph")),
        many => ui::field("set up", format!("yes: {} call ralph", many.join(", "))),
    }
    match &standing.last_ended {
        Some(last) => ui::field("last loop", ended(last)),
        None => ui::field("loop", "none so far"),
    }
    standing.worktrees.iter().for_each(worktree_hint::show);
    match agents.first() {
        Some(agent) => how_to_start(project, agent),
        None => next("ralph init", "finds this project's checks and registers ralph with Claude Code; it asks before each step"),
    }
}

/// The one that something happened to last.
fn newest(loops: &[View]) -> Option<&View> {
    loops.iter().max_by(|a, b| (a.is_live(), &a.last_event_at).cmp(&(b.is_live(), &b.last_event_at)))
}

/// `main-20261115-093000, complete at iteration 4, 2026-11-15 10:30:00 CET`
fn ended(last: &View) -> String {
    format!("{}, {}, {}; `ralph report` shows how it went", last.id, last.ended(), last_event(last))
}

/// A loop in three lines: how far it is, what it is about, what to do.
fn of_loop(one: &View, count: usize, is_set_up: bool) {
    ui::line(Brief::of(one, &format!("{} iteration", clean(&one.id)), None).fitted(ui::width()));
    ui::excerpt("prompt", &one.prompt);
    let step = match advice::step(one) {
        Some(step) => step,
        None if !is_set_up && !one.by_run => "`ralph init`: until then no agent's session works on this loop".to_owned(),
        None if one.status == Status::Waiting => "start the agent here, and tell it to begin".to_owned(),
        None => "`ralph watch` shows it as it goes".to_owned(),
    };
    ui::field("next", step);
    if count > 1 {
        ui::field("more", format!("{}: `ralph status` shows all", ralph_core::text::count(count as u64 - 1, "other loop", "other loops")));
    }
}

fn how_to_start(project: &Project, agent: &Host) {
    let declared = declared::of_project(project);
    let of_agent = if agent.is_claude() { String::new() } else { format!(" --agent {}", agent.name) };
    if declared.is_empty() {
        next("ralph init", "finds the checks that a loop has to pass here; it asks before each step. Or, with a check for one loop:");
        ui::line(format!("      ralph run \"TASK\"{of_agent} --verify \"COMMAND\""));
    } else if !declared.problems.is_empty() {
        next("ralph gate", "says why the project's checks cannot be read");
    } else if declared.gates.iter().any(|gate| !gate.trusted) {
        next("ralph trust", "shows the commands that ralph.toml brings, and asks whether they may run");
    } else {
        next(&format!("ralph run \"TASK\"{of_agent}"), &format!("runs it here, in fresh sessions. Or in a session of {}:", agent.title));
        ui::line(format!("      {} TASK", agent.as_typed("ralph-loop")));
    }
}
