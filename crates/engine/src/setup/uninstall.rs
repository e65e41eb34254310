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
        let plan = of_scope(places, survey, records, *scope)?;
        let changes = plan.changes.into_iter().map(|change| change.within(places.bounds(*scope)));
        let new: Vec<Change> = changes.filter(|change| all.changes.iter().all(|known| known.path != change.path)).collect();
        all.changes.extend(new);
        all.notes.extend(plan.notes);
    }
    all.notes.dedup();
    Ok(all)
}

fn of_scope(places: &Places, survey: &Survey, records: &Records, scope: Scope) -> Result<Plan, Problem> {
    let mut plan = Plan::default();
    commands_back(places, records, scope, &mut plan)?;
    let Some(file) = survey.file(scope) else { return Ok(plan) };
    let Some(now) = &file.text else { return Ok(plan) };
    let left_alone = |e| Problem::new(&file.path, format!("is {e}. It is left as it is; mend it, then run this again"));
    let settings = Settings::parse(now.as_bytes()).map_err(left_alone)?;
    if records.get(&file.path).is_some() || settings.registers_ralph() {
        plan.changes.extend(Change::back(&file.path, now.clone(), original(&file.path, records, Some(now))?));
    }
    Ok(plan)
}

fn commands_back(places: &Places, records: &Records, scope: Scope, plan: &mut Plan) -> Result<(), Problem> {
    let Some(folder) = places.commands(scope) else { return Ok(()) };
    for file in commands::COMMANDS {
        let path = folder.join(format!("{}.md", file.short));
        let Some(now) = change::read(&path)? else { continue };
        let record = records.get(&path);
        if now == file.text() || record.as_ref().is_some_and(|r| r.after == now) {
            plan.changes.extend(Change::back(&path, now, None));
        } else if record.is_some() {
            plan.notes.push(format!("{} was changed since ralph wrote it: it stays.", path.display()));
        }
    }
    Ok(())
}
