//! Registering ralph with Claude Code: the changes in a few lines, the question, and the result.

use ralph_engine::{
    hosts::claude::registration::Hook,
    setup::{Plan, file_change::Change, places::Scope, record::Records},
    store::project::Project,
};

use super::{Args, guide::Guide};
use crate::{commands::setup, exit::Failure, ui};

/// Registers ralph, if the person agrees; tells whether it is registered then.
pub(super) fn step(guide: &mut Guide<'_>) -> Result<bool, Failure> {
    let (project, args) = (guide.project, guide.args);
    let records = Records::of_user();
    let (_, plan) = args.plan(project, &records)?;
    plan.changes.iter().try_for_each(Change::check)?;
    setup::summarise(&plan, &parts(&plan, args));
    if plan.changes.is_empty() {
        tell(&plan, false, args.scope(), project);
        return Ok(true);
    }
    let about = "  Claude Code then calls ralph when an agent starts, stops or waits, and knows /ralph-loop and the other commands. Without a loop, ralph \
                 says nothing and does nothing. `ralph init --dry-run` shows every line; `ralph uninstall` takes them back.";
    if !guide.agrees(&question(args.scope()), about)? {
        ui::line("Skipped: ralph is not registered.");
        return Ok(false);
    }
    // The question may have waited for long.
    let _alone = Records::alone();
    let (_, now) = args.plan(project, &records)?;
    if now.changes != plan.changes {
        return Err(Failure::new("Claude Code's settings were changed meanwhile, and are left as they are: run `ralph init` again"));
    }
    plan.carry_out(&records, |_| ())?;
    guide.did("ralph is registered");
    tell(&plan, true, args.scope(), project);
    Ok(true)
}

fn question(scope: Scope) -> String {
    let whom = match scope {
        Scope::User => "for you, in all projects",
        Scope::Project => "for everyone who works in this project",
        Scope::Local => "for you, in this project",
    };
    format!("Register ralph with Claude Code {whom}?")
}

fn parts(plan: &Plan, args: &Args) -> String {
    let mut events: Vec<&str> = Hook::ALL.iter().map(|hook| hook.event).collect();
    events.dedup();
    let hooks = plan.registers.then(|| format!("hooks for {} events", events.len()));
    let cap = args.block_cap.map(|cap| format!("block cap {cap}"));
    let rule = args.deny_edits.then(|| "deny rule for .ralph".to_owned());
    let all: Vec<String> = [hooks, cap, rule].into_iter().flatten().collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

pub(super) fn tell(plan: &Plan, changed: bool, scope: Scope, project: &Project) {
    let done = match (plan.registers, plan.unread, changed) {
        (false, _, _) => "The commands are there",
        (true, true, _) => "Written, but not yet read by the client,",
        (true, false, true) => "Registered",
        (true, false, false) => "Already registered",
    };
    ui::paragraph(format!("{} {}", if plan.unread { ui::warn(done) } else { ui::good(done) }, of_scope(scope, project)), 0);
}

fn of_scope(scope: Scope, project: &Project) -> String {
    match scope {
        Scope::User => "for you, in all projects.".to_owned(),
        Scope::Project => {
            format!("for everyone who works in {}: commit .claude/settings.json and .claude/commands.", ui::path_from_home(project.root()))
        }
        Scope::Local => format!("for you, in {}.", ui::path_from_home(project.root())),
    }
}
