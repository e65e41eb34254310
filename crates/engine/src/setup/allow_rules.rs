//! Rules that let an agent run the commands of the project's gates without asking, for people who have just approved these commands as gates.
//!
//! They go into `.claude/settings.local.json`: it is one person's own, for this project only, and counts before the client was told to trust the folder.

use std::path::Path;

use ralph_core::{config::Config, gate::Gate};

use crate::{
    git::tracked,
    hosts::claude::settings_file::Settings,
    setup::{
        Plan, Problem,
        file_change::{self, Change},
        init::original,
        permissions::{Fate, Permissions},
        places::{Places, Scope},
        record::{Records, real},
        survey::Survey,
    },
    store::trust::Trust,
};

/// The file, from the root of a project.
const LOCAL: &str = ".claude/settings.local.json";

/// The rules that are missing for these commands.
pub fn missing(places: &Places, survey: &Survey, commands: &[String]) -> Vec<String> {
    let (permissions, _) = Permissions::unattended(survey, places.project.root(), None);
    // A person who denies all commands has decided.
    if permissions.fate("Bash") == Fate::Denied { Vec::new() } else { permissions.missing_rules(commands) }
}

/// The commands of the gates in `ralph.toml`, if these very bytes are trusted.
pub fn trusted_commands(config: &Config, trust: Trust) -> Vec<String> {
    if trust.is_trusted() { config.gates.iter().filter_map(Gate::line).collect() } else { Vec::new() }
}

/// The change that adds the rules. A file that git tracks would bring them to everyone, so it is left as it is.
pub fn plan(places: &Places, records: &Records, rules: &[String]) -> Result<Plan, Problem> {
    let mut plan = Plan::default();
    let Some(path) = places.settings(Scope::Local) else { return Ok(plan) };
    let before = file_change::read_settled(&path)?;
    if rules.is_empty() || (before.is_some() && tracked::is_tracked(places.project.root(), &path) != Some(false)) {
        return Ok(plan);
    }
    let left_alone = |e| Problem::left_alone(&path, &e);
    let settings = Settings::parse(before.as_deref().unwrap_or("{\n}\n").as_bytes()).map_err(left_alone)?;
    rules.iter().try_for_each(|rule| settings.add_rule("allow", rule)).map_err(left_alone)?;
    let original = original(&path, records, before.as_deref())?;
    let change = Change::to(&path, before, settings.to_text(), original);
    plan.changes.extend(change.map(|change| change.within(places.bounds(Scope::Local))));
    Ok(plan)
}

/// The changes that take the rules out of other projects. Where the hooks are registered too, the project was set up by itself, and stays so.
pub(super) fn back_elsewhere(places: &Places, records: &Records) -> Vec<Change> {
    let here = places.settings(Scope::Local).map(|path| real(&path));
    let others = records.paths().into_iter().filter(|path| path.ends_with(LOCAL) && Some(path) != here.as_ref());
    // One that cannot be written does not keep the rest from being undone.
    others.filter_map(|path| back(&path, records)).filter(|change| change.check().is_ok()).collect()
}

fn back(path: &Path, records: &Records) -> Option<Change> {
    let now = file_change::read(path).ok()??;
    let registers = Settings::parse(now.as_bytes()).ok()?.registers_ralph();
    let original = original(path, records, Some(&now)).ok().filter(|_| !registers)?;
    Some(Change::back(path, now, original)?.within(path.ancestors().nth(2)))
}
