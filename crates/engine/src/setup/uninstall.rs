//! `ralph uninstall`: what `ralph init` wrote goes away again, and every file is as it was.

use crate::{
    hosts::claude::{commands, settings::Settings},
    setup::{
        Plan, Problem,
        change::{self, Change},
        init::original,
        places::{Places, Scope},
        record::Records,
        survey::Survey,
    },
};

/// What `ralph uninstall` would change. The commands of a project and those of one user in it lie in one folder.
pub fn plan(places: &Places, survey: &Survey, records: &Records, scopes: &[Scope]) -> Result<Plan, Problem> {
    let mut all = Plan::default();
    for scope in scopes {
        let mut plan = Plan::default();
        if !others_need_commands(survey, *scope, scopes) {
            commands_back(places, records, *scope, &mut plan)?;
        }
        settings_back(places, survey, records, *scope, &mut plan)?;
        let changes = plan.changes.into_iter().map(|change| change.within(places.bounds(*scope)));
        let new: Vec<Change> = changes.filter(|change| all.changes.iter().all(|known| known.path != change.path)).collect();
        all.changes.extend(new);
        all.notes.extend(plan.notes);
        all.settled.extend(plan.settled);
    }
    all.notes.dedup();
    Ok(all)
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

fn settings_back(places: &Places, survey: &Survey, records: &Records, scope: Scope, plan: &mut Plan) -> Result<(), Problem> {
    let Some(path) = places.settings(scope) else { return Ok(()) };
    let Some(now) = change::read(&path)? else {
        plan.settled.push(path);
        return Ok(());
    };
    let left_alone = |e| Problem::new(&path, format!("{e}. It is left as it is; mend it, then run this again"));
    let settings = Settings::parse(now.as_bytes()).map_err(left_alone)?;
    if survey.file(scope).is_none() || (records.get(&path).is_none() && !settings.registers_ralph()) {
        return Ok(());
    }
    match Change::back(&path, now.clone(), original(&path, records, Some(&now))?) {
        Some(change) => plan.changes.push(change),
        None => plan.settled.push(path),
    }
    Ok(())
}

fn commands_back(places: &Places, records: &Records, scope: Scope, plan: &mut Plan) -> Result<(), Problem> {
    let Some(folder) = places.commands(scope) else { return Ok(()) };
    for file in commands::COMMANDS {
        let path = folder.join(format!("{}.md", file.short));
        let record = records.get(&path);
        match change::read(&path)? {
            None => plan.settled.push(path),
            Some(now) if now == file.text() || record.as_ref().is_some_and(|r| r.after == now) => {
                plan.changes.extend(Change::back(&path, now, None));
            }
            Some(_) if record.is_some() => plan.notes.push(format!("{} was changed since ralph wrote it: it stays.", path.display())),
            Some(_) => {}
        }
    }
    Ok(())
}
