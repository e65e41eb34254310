//! `ralph init --agent NAME`: registers ralph with other agents than Claude Code.

use ralph_engine::{
    hosts::Host,
    setup::{agents, init::own_command, places::Scope, record::Records},
};

use super::Args;
use crate::{
    exit::{Done, Failure},
    term::ask::{self, Answer},
    ui,
};

/// All that are found on this machine.
const ALL: &str = "all";

/// Every name that can be given.
pub(super) fn names() -> Vec<&'static str> {
    agents::known().map(|host| host.name).chain([ALL]).collect()
}

pub(super) fn run(args: &Args) -> Done {
    let chosen: Vec<&Host> = if args.agent.iter().any(|name| name == ALL) {
        agents::found().collect()
    } else {
        args.agent.iter().filter_map(|name| Host::by_name(name)).collect()
    };
    if chosen.is_empty() {
        return Err(Failure::new(format!("none of these agents is on this machine: {}", names().join(", "))));
    }
    chosen.into_iter().try_for_each(|host| register(host, args))
}

fn register(host: &Host, args: &Args) -> Done {
    let _alone = Records::alone();
    let records = Records::of_user();
    let (command, note) = own_command(Scope::User);
    let plan = agents::plan(host, &command, &records)?;
    if plan.changes.is_empty() {
        ui::line(format!("Already registered with {}.", host.title));
        return Ok(());
    }
    for change in &plan.changes {
        ui::line(format!("{} {}", ui::bold(if change.before.is_some() { "change " } else { "new    " }), ui::path_from_home(&change.path)));
    }
    if args.dry_run {
        ui::line("Nothing was changed: this was a dry run.");
        return Ok(());
    }
    let question = format!("Register ralph with {} for you, in all projects?", host.title);
    if !args.yes
        && ask::is_possible()
        && ask::ask(&question, Answer::Yes, "Yes changes the files above, so that this agent calls ralph when it wants to stop.")
            != Answer::Yes
    {
        ui::line(format!("Skipped: ralph is not registered with {}.", host.title));
        return Ok(());
    }
    plan.carry_out(&records, |_| {})?;
    plan.notes.iter().chain(&note).for_each(|note| ui::paragraph(format!("{} {note}", ui::warn("note:")), 0));
    ui::line(format!("Registered with {}. `ralph uninstall` takes it back.", host.title));
    if let Some(consent) = agents::consent(host) {
        ui::paragraph(format!("{consent}."), 0);
    }
    Ok(())
}

/// Names the agents that are there and could be registered with, too.
pub(super) fn mention_others() {
    let others: Vec<&str> = agents::found().filter(|host| !agents::is_registered(host)).map(|host| host.name).collect();
    if !others.is_empty() {
        ui::paragraph(
            ui::dim(format!("Also on this machine: {}. `ralph init --agent NAME` registers ralph there, too.", others.join(", "))),
            0,
        );
    }
}
