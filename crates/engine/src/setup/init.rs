//! `ralph init`: the hooks into a settings file, the short-named commands beside it.

use std::{fs, path::Path};

use crate::{
    hosts::claude::{
        commands,
        registration::{BLOCK_CAP, CommandLine, DENY_EDITS, Hook},
        settings_file::{Settings, as_the_client_reads},
    },
    setup::{
        Plan, Problem,
        file_change::{self, Change},
        places::{Places, Scope},
        record::Records,
        survey::{Origin, Plugin, Registration, Survey},
    },
    sys::process,
};

/// The options of `ralph init`.
#[derive(Debug, Clone)]
pub struct Wish {
    pub scope: Scope,
    /// The program to register, and a note about it: see [`own_command`].
    pub command: (String, Option<String>),
    /// The value for the client's cap, if it is to be set.
    pub block_cap: Option<u64>,
    /// Whether the client should keep agents from editing ralph's own files.
    pub deny_edits: bool,
}

/// How the client calls this program: by its name if that is this program, else by its path. A file that is checked in never has the path of one machine.
pub fn own_command(scope: Scope) -> (String, Option<String>) {
    let Ok(exe) = std::env::current_exe() else { return ("ralph".to_owned(), None) };
    let found = process::which("ralph");
    let lasts = !found.as_deref().is_some_and(is_run_by_npm);
    if lasts && found.as_deref().is_some_and(process::is_this_program) {
        return ("ralph".to_owned(), None);
    }
    let on_path = match &found {
        Some(_) if !lasts => "`ralph` is on your PATH only while npm runs it".to_owned(),
        Some(other) => format!("the `ralph` on your PATH is another one ({})", other.display()),
        None => "`ralph` is not on your PATH".to_owned(),
    };
    match scope {
        Scope::Project => {
            let note = format!(
                "{on_path}. Everyone who works on the project uses this file, so it names `ralph` and no path: put the program on the PATH, as `cargo install` does."
            );
            ("ralph".to_owned(), Some(note))
        }
        Scope::User | Scope::Local => {
            let note = format!("{on_path}, so the hook is registered by its path. Run `ralph init` again when the program has moved.");
            (exe.display().to_string(), Some(note))
        }
    }
}

/// `npx` and `npm exec` put a project's commands on the PATH of what they run, and of nothing else.
fn is_run_by_npm(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("node_modules/.bin"))
}

pub fn plan(places: &Places, survey: &Survey, records: &Records, wish: &Wish) -> Result<Plan, Problem> {
    let mut plan = Plan::default();
    let path = places.settings(wish.scope).ok_or_else(no_home)?;
    let hooks = hooks_for(places, survey, wish, &mut plan.notes)?;
    plan.registers = hooks == Hooks::In;
    let (text, change) = settings_change(&path, records, wish, hooks)?;
    if let Err(problem) = as_the_client_reads(&text) {
        plan.unread = true;
        plan.notes.push(format!("{} {problem}. Nothing in it counts until that is fixed, ralph's hooks included.", path.display()));
    }
    plan.changes.extend(change);
    let folder = places.commands(wish.scope).ok_or_else(no_home)?;
    for command in commands::Command::ALL {
        let path = folder.join(command.file_name());
        let text = command.text();
        match file_change::read(&path) {
            Ok(now) if is_ours(&path, records, now.as_deref(), &text) => plan.changes.extend(Change::to(&path, now, text, None)),
            Err(problem) if fs::symlink_metadata(&path).is_err() => return Err(problem),
            // A file that cannot be read was not written by ralph either.
            _ => {
                let shown = path.display();
                plan.notes.push(format!("{shown} was not written by ralph: it is left as it is, and says what /{} does.", command.short));
            }
        }
    }
    plan.changes = plan.changes.into_iter().map(|change| change.within(places.bounds(wish.scope))).collect();
    Ok(plan)
}

fn no_home() -> Problem {
    Problem::new(Path::new("the home folder"), "is not known: set HOME, or use --project or --local")
}

/// Whether the settings file gets the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    In,
    /// Two registrations with different command lines would both run, and a plugin's always runs beside.
    Out,
}

fn hooks_for(places: &Places, survey: &Survey, wish: &Wish, notes: &mut Vec<String>) -> Result<Hooks, Problem> {
    // A plugin that is enabled only here registers nothing elsewhere, and one that came with a checkout may never be enabled.
    let reaches = |plugin: &&Plugin| {
        let is_chosen = !plugin.of_project || survey.trusts(places.project.root());
        is_chosen && survey.reach(&Origin::Plugin(plugin.id.clone())) >= survey.reach(&Origin::Settings(wish.scope))
    };
    if let Some(plugin) = survey.our_plugin().filter(reaches) {
        notes.push(format!("The plugin {} registers the hooks, so only the short commands are written.", plugin.id));
        return Ok(Hooks::Out);
    }
    let (command, note) = &wish.command;
    notes.extend(note.clone());
    if let Some(plugin) = survey.our_plugin() {
        notes.push(format!(
            "The plugin {} registers the hooks too, but in this project only. Here both run; a stop still counts once.",
            plugin.id
        ));
    }
    let is_settings = |origin: &Origin| !matches!(origin, Origin::Plugin(_)) && *origin != Origin::Settings(wish.scope);
    let own = |r: &Registration| CommandLine::own(command, Hook::of_line(&r.hook.event, &r.hook.line), wish.scope.word());
    let (same, others): (Vec<_>, Vec<_>) =
        survey.ours().into_iter().filter(|r| is_settings(&r.origin)).partition(|r| r.hook.line.is_own_of(command));
    match others.into_iter().next() {
        None => {
            let mut places: Vec<String> = same.iter().map(|r| r.origin.to_string()).collect();
            places.dedup();
            if !places.is_empty() {
                let places = places.join(" and ");
                notes.push(format!("The hooks are registered in {places} too: all of them run at every stop, which still counts once."));
            }
            Ok(Hooks::In)
        }
        Some(other) => {
            let scope = if let Origin::Settings(scope) = other.origin { format!(" --{}", scope.word()) } else { String::new() };
            let own = own(&other);
            let what = format!(
                "registers the hook already, as `{}`; a second one as `{own}` would run beside it. Take that one out first: `ralph uninstall{scope}`",
                other.hook.line
            );
            Err(Problem::new(&other.path, what))
        }
    }
}

/// The new text of the settings file, and the change, if there is any.
fn settings_change(path: &Path, records: &Records, wish: &Wish, hooks: Hooks) -> Result<(String, Option<Change>), Problem> {
    let left_alone = |e| Problem::left_alone(path, &e);
    let before = file_change::read_settled(path)?;
    let settings = Settings::parse(before.as_deref().unwrap_or("{\n}\n").as_bytes()).map_err(left_alone)?;
    match hooks {
        Hooks::In => settings.register(&wish.command.0, wish.scope.word()).map_err(left_alone)?,
        Hooks::Out => settings.unregister(None),
    }
    if let Some(cap) = wish.block_cap {
        settings.set_env(BLOCK_CAP, &cap.to_string().into()).map_err(left_alone)?;
    }
    if wish.deny_edits {
        settings.add_rule("deny", DENY_EDITS).map_err(left_alone)?;
    }
    let after = settings.to_text();
    if before.is_none() && settings.is_empty() {
        return Ok((after, None));
    }
    let original = original(path, records, before.as_deref())?;
    let change = Change::to(path, before, after.clone(), original);
    Ok((after, change))
}

/// The file as it would be without ralph: as recorded, if it was not changed since; else without ralph's hooks.
pub(super) fn original(path: &Path, records: &Records, now: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(now) = now else { return Ok(None) };
    let record = records.get(path);
    if let Some(record) = record.as_ref().filter(|r| r.after == now) {
        return Ok(record.before.clone());
    }
    let settings = Settings::parse(now.as_bytes()).map_err(|e| Problem::new(path, format!("{e}. It is left as it is")))?;
    let was = record.as_ref().and_then(|record| Settings::parse(record.before.as_deref()?.as_bytes()).ok());
    settings.unregister(was.as_ref());
    if let Some(record) = &record {
        restore_cap(&settings, was.as_ref(), &record.after).map_err(|e| Problem::new(path, e))?;
        remove_own_rules(&settings, was.as_ref(), &record.after);
    }
    let was_made_by_ralph = record.is_some_and(|r| r.before.is_none());
    Ok((!was_made_by_ralph || !settings.is_empty()).then(|| settings.to_text()))
}

/// Restores the cap, if it is still the value that ralph set.
fn restore_cap(settings: &Settings, was: Option<&Settings>, after: &str) -> Result<(), crate::hosts::claude::settings_file::Problem> {
    let became = Settings::parse(after.as_bytes()).ok().and_then(|settings| settings.env(BLOCK_CAP));
    let before = was.and_then(|was| was.env(BLOCK_CAP));
    if became.is_none() || became == before || settings.env(BLOCK_CAP) != became {
        return Ok(());
    }
    match before {
        Some(value) => settings.set_env(BLOCK_CAP, &value),
        None => {
            settings.remove_env(BLOCK_CAP, was);
            Ok(())
        }
    }
}

/// Takes out the rules that ralph put in. Those of other people, and of the client's own questions, stay.
fn remove_own_rules(settings: &Settings, was: Option<&Settings>, after: &str) {
    let Ok(after) = Settings::parse(after.as_bytes()) else { return };
    for list in ["allow", "deny"] {
        let known = was.map(|was| was.rules(list)).unwrap_or_default();
        for rule in after.rules(list).iter().filter(|rule| !known.contains(rule)) {
            settings.remove_rule(list, rule, was);
        }
    }
}

/// Whether the path of a command file is free, or has a file that ralph wrote.
fn is_ours(path: &Path, records: &Records, now: Option<&str>, text: &str) -> bool {
    now.is_none_or(|now| now == text || records.get(path).is_some_and(|r| r.after == now))
}
