//! `ralph init --agent NAME`: registers ralph with other agents than Claude Code.

use ralph_core::text::clean;
use ralph_engine::{
    hosts::Host,
    setup::{agents, init::own_command, places::Scope, record::Records},
    store::project::Project,
};

use super::{
    Args,
    guide::{self, Guide},
};
use crate::{
    commands::setup,
    doctor::{self, Case, Severity},
    exit::{Done, Failure},
    term::ask::{self, Answer},
    ui,
};

/// All that are found on this machine.
const ALL: &str = "all";

pub(super) fn names() -> Vec<&'static str> {
    agents::known().map(|host| host.name).chain([ALL]).collect()
}

pub(super) fn run(project: &Project, args: &Args) -> Done {
    let mut chosen: Vec<&'static Host> = args.agent.iter().filter_map(|name| Host::by_name(name)).collect();
    if args.agent.iter().any(|name| name == ALL) {
        chosen.extend(agents::found().filter(|host| !args.agent.iter().any(|name| name == host.name)));
    }
    if chosen.is_empty() {
        let names: Vec<&str> = agents::known().map(|host| host.name).collect();
        return Err(Failure::new(format!("none of these agents is on this machine: {}", names.join(", "))));
    }
    for host in chosen {
        match register(host, args)? {
            Answer::Yes => check(project, host),
            Answer::No => {}
            Answer::Quit => return Err(Failure::reported()),
        }
    }
    Ok(())
}

/// Shows what registering with an agent changes, asks, and does it. Yes: it is registered now.
fn register(host: &'static Host, args: &Args) -> Result<Answer, Failure> {
    let _alone = Records::alone();
    let records = Records::of_user();
    let (command, note) = own_command(Scope::User);
    let plan = agents::plan(host, &command, &records)?;
    if plan.changes.is_empty() {
        ui::line(format!("Already registered with {}.", host.title));
        return Ok(Answer::Yes);
    }
    if args.dry_run {
        setup::carry_out(&plan, &records, true)?;
        ui::line("Nothing was changed: this was a dry run.");
        return Ok(Answer::No);
    }
    setup::summarise(&plan, " (adds ralph's hooks)");
    let question = format!("Register ralph with {} for you, in all projects?", host.title);
    let about = "  Yes changes the files above, so that this agent calls ralph when it wants to stop.";
    let answer = if args.yes || !ask::is_possible() { Answer::Yes } else { ask::ask(&question, Answer::Yes, about) };
    if answer != Answer::Yes {
        ui::line(format!("Skipped: ralph is not registered with {}.", host.title));
        return Ok(answer);
    }
    plan.carry_out(&records, |_| {})?;
    if let Some(note) = note {
        ui::paragraph(format!("{} {note}", ui::warn("note:")), 0);
    }
    ui::line(format!("Registered with {}. `ralph uninstall` takes it back.", host.title));
    if let Some(consent) = host.consent() {
        ui::paragraph(format!("{consent}."), 0);
    }
    if let Some((file, lines)) = host.status_line() {
        ui::paragraph(ui::dim(format!("To see the loop in its status line, add to {}:", ui::path_from_home(&file))), 0);
        lines.lines().for_each(|line| ui::line(format!("  {line}")));
    }
    Ok(answer)
}

/// Tries the registration, and tells what is wrong with it. The review was told already.
fn check(project: &Project, host: &'static Host) {
    for finding in doctor::agents::of_agent(&Case::of(project), host).iter().filter(|finding| finding.id != "agent.review") {
        if finding.severity == Severity::Good {
            ui::paragraph(format!("{} {}.", ui::good("Checked:"), clean(&finding.what)), 0);
        } else {
            guide::tell(finding);
        }
    }
}

/// A step of the guide: each other agent that is on this machine is asked for. `--yes` answers for Claude Code only; those that are left are told then.
pub(super) fn step(guide: &mut Guide) -> Result<Vec<&'static str>, Failure> {
    let others = agents::found().filter(|host| !host.is_registered());
    if guide.args.yes {
        return Ok(others.map(|host| host.name).collect());
    }
    for host in others {
        let answer = register(host, guide.args)?;
        if guide.is_yes(answer)? {
            guide.did("ralph is registered with another agent");
        }
    }
    Ok(Vec::new())
}

pub(super) fn mention(others: &[&str]) {
    if !others.is_empty() {
        let how = format!("Also on this machine: {}. `ralph init --agent NAME` registers ralph there, too.", others.join(", "));
        ui::paragraph(ui::dim(how), 0);
    }
}
