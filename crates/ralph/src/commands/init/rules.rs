//! Rules for Claude Code that let the agent run the project's checks without asking: shown, asked for, written.

use ralph_core::text::clean;
use ralph_engine::{
    gates::declared,
    setup::{Plan, allow_rules, file_change::Change, places::Places, record::Records, survey::Survey},
    store::project::Project,
};

use super::guide::Guide;
use crate::{commands::setup, exit::Failure, ui};

/// Offers the rules for the checks that the person approved; without them a session of `ralph run` cannot try its own work.
pub(super) fn step(guide: &mut Guide<'_>) -> Result<(), Failure> {
    let (project, records) = (guide.project, Records::of_user());
    let (rules, plan) = plan(project, &records, &approved(project))?;
    if plan.changes.is_empty() {
        return Ok(());
    }
    plan.changes.iter().try_for_each(Change::check)?;
    if guide.args.yes {
        setup::summarise(&plan, &format!(" (allows {})", named(&rules)));
    }
    let about = "  Claude Code asks before most commands, and a session of `ralph run` has no one to ask: it could not run the checks before it says that it is \
                 done. These rules are for you and for this project only. Anyone who may edit the tests and run them can do what you can; answer n if you \
                 want to be asked.";
    let question = format!("Let the agent run {} without asking (.claude/settings.local.json)?", named(&rules));
    if !guide.agrees(&question, about)? {
        ui::line("Skipped: the agent has to ask, and in `ralph run` it goes without.");
        return Ok(());
    }
    // The question may have waited for long: the changes are made only if the files are still as they were read.
    let _alone = Records::alone();
    plan.carry_out(&records, |_| ())?;
    guide.did("the agent may run the checks");
    Ok(())
}

/// For a dry run: the change that would follow, with the commands of a draft that was not written.
pub(super) fn dry_run(project: &Project, records: &Records, draft: Option<Vec<String>>) -> Result<Plan, Failure> {
    Ok(plan(project, records, &draft.unwrap_or_else(|| approved(project)))?.1)
}

/// The commands of the checks in a trusted `ralph.toml`: nothing that a repository brings gets a rule unseen.
fn approved(project: &Project) -> Vec<String> {
    let read = declared::config(project).and_then(Result::ok);
    read.map(|(config, trust)| allow_rules::trusted_commands(&config, trust)).unwrap_or_default()
}

fn plan(project: &Project, records: &Records, commands: &[String]) -> Result<(Vec<String>, Plan), Failure> {
    let places = Places::of(project);
    let rules = allow_rules::missing(&places, &Survey::take(&places), commands);
    let plan = allow_rules::plan(&places, records, &rules)?;
    Ok((rules, plan))
}

fn named(rules: &[String]) -> String {
    let inner =
        |rule: &String| rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')).map_or_else(|| rule.clone(), str::to_owned);
    rules.iter().map(|rule| format!("`{}`", clean(&inner(rule).replace(":*", " …")))).collect::<Vec<_>>().join(", ")
}
