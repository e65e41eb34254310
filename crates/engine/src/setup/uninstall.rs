//! `ralph uninstall`: removes what `ralph init` wrote, and restores every file.

use std::fs;

use crate::{
    hosts::claude::{commands, settings_file::Settings},
    setup::{
        Plan, Problem, agents, allow_rules,
        file_change::{self, Change},
        init::original,
        places::{Places, Scope},
        record::{Records, real},
        survey::Survey,
    },
    store::project::Project,
};

/// The changes, and the problems: a file of one scope that cannot be read does not keep the others. The project and local scopes share one folder of commands.
pub fn plan(places: &Places, survey: &Survey, records: &Records, scopes: &[Scope]) -> (Plan, Vec<Problem>) {
    let mut all = Plan::default();
    let mut problems = Vec::new();
    for scope in scopes {
        let plan = match of_scope(places, survey, records, *scope, scopes) {
            Ok(plan) => plan,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let changes = plan.changes.into_iter().map(|change| change.within(places.bounds(*scope)));
        let new: Vec<Change> = changes.filter(|change| all.changes.iter().all(|known| real(&known.path) != real(&change.path))).collect();
        all.changes.extend(new);
        all.notes.extend(plan.notes);
        all.settled.extend(plan.settled);
    }
    if scopes.contains(&Scope::User) {
        match agents::back(records) {
            Ok(changes) => all.changes.extend(changes),
            Err(problem) => problems.push(problem),
        }
    }
    if scopes.contains(&Scope::User) && scopes.contains(&Scope::Local) {
        all.changes.extend(allow_rules::back_elsewhere(places, records));
    }
    all.notes.dedup();
    (all, problems)
}

/// The default scopes: the user's own, and the project's if this user set it up.
pub fn own_scopes(places: &Places, records: &Records) -> Vec<Scope> {
    let is_own = |scope: &Scope| {
        *scope != Scope::Project || !records.are_kept() || places.settings(*scope).is_some_and(|path| records.get(&path).is_some())
    };
    Scope::ALL.into_iter().filter(is_own).collect()
}

/// Removes the project's `.claude` if it is empty and a loop was here, which may have been the first to need it. Call it before a purge.
pub fn remove_empty_folder(project: &Project) {
    if project.own().is_dir() && project.no_project().is_none() {
        let _ = fs::remove_dir(project.claude());
    }
}

fn of_scope(places: &Places, survey: &Survey, records: &Records, scope: Scope, scopes: &[Scope]) -> Result<Plan, Problem> {
    let mut plan = Plan::default();
    if !others_need_commands(survey, scope, scopes) {
        commands_back(places, records, scope, &mut plan);
    }
    settings_back(places, records, scope, &mut plan)?;
    Ok(plan)
}

/// Whether the commands of a scope serve a registration that stays.
fn others_need_commands(survey: &Survey, scope: Scope, going: &[Scope]) -> bool {
    let sharing: &[Scope] = if scope == Scope::User { &[] } else { &[Scope::Project, Scope::Local] };
    let stays = |other: &&Scope| **other != scope && !going.contains(other);
    let registers = |other: &Scope| {
        let text = survey.file(*other).and_then(|file| file.text.as_deref());
        text.and_then(|text| Settings::parse(text.as_bytes()).ok()).is_some_and(|settings| settings.registers_ralph())
    };
    sharing.iter().filter(stays).any(registers)
}

fn settings_back(places: &Places, records: &Records, scope: Scope, plan: &mut Plan) -> Result<(), Problem> {
    let Some(path) = places.settings(scope) else { return Ok(()) };
    let Some(now) = file_change::read_settled(&path)? else {
        plan.settled.push(path);
        return Ok(());
    };
    let settings = Settings::parse(now.as_bytes()).map_err(|e| Problem::left_alone(&path, &e))?;
    if records.get(&path).is_none() && !settings.registers_ralph() {
        return Ok(());
    }
    match Change::back(&path, now.clone(), original(&path, records, Some(&now))?) {
        Some(change) => plan.changes.push(change),
        None => plan.settled.push(path),
    }
    Ok(())
}

fn commands_back(places: &Places, records: &Records, scope: Scope, plan: &mut Plan) {
    let Some(folder) = places.commands(scope) else { return };
    for command in commands::Command::ALL {
        let path = folder.join(command.file_name());
        let record = records.get(&path);
        match file_change::read(&path) {
            Ok(None) => plan.settled.push(path),
            Ok(Some(now)) if now == command.text() || record.as_ref().is_some_and(|r| r.after == now) => {
                plan.changes.extend(Change::back(&path, now, None));
            }
            _ if record.is_some() => plan.notes.push(format!("{} was changed since ralph wrote it: it stays.", path.display())),
            _ => {}
        }
    }
}
