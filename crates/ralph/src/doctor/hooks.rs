//! Is the hook registered, once, for all events, and does nothing keep it from working?

use std::path::{Path, PathBuf};

use ralph_core::{judge, text::opening};
use ralph_engine::{
    hosts::{
        SHORT,
        claude::{
            commands::Command,
            program,
            registration::{BLOCK_CAP, CommandLine, Hook},
        },
    },
    setup::{
        file_change, init,
        places::Scope,
        survey::{Origin, Registration, SettingsFile},
    },
    sys::{env, process},
};

use super::{Case, Finding, Repair, agents, duplicate_hooks};
use crate::journal_lines::quoted;

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let mut findings = unreadable(case);
    findings.extend(switched_off(case));
    findings.extend(disabled(case));
    findings.extend(registered(case));
    findings.extend(rivals(case));
    findings.extend(commands(case));
    findings.push(block_cap(case));
    findings
}

/// Ralph's own switch: in this shell, or in the settings, which the client hands to its hooks.
fn disabled(case: &Case) -> Option<Finding> {
    let of_settings = case.survey.says(&["env", env::DISABLE]);
    let place = match of_settings.and_then(|(value, file)| Some((value.as_str()?, file))) {
        Some((value, file)) if env::is_on(value) => format!("in {}", file.path.display()),
        None if env::is_disabled() => "in this shell".to_owned(),
        _ => return None,
    };
    let what = format!("{} is set {place}: every hook of ralph's is silent, and loops have no effect", env::DISABLE);
    Some(Finding::error("disabled", what).advice("Take it away, or set it to 0; sessions have to be started again."))
}

/// The client's modes; with any other word it ignores the whole file.
const MODES: [&str; 7] = ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"];

/// A settings file that the client cannot read either.
fn unreadable(case: &Case) -> Vec<Finding> {
    let of_file = |path: &std::path::Path, problem: &str| {
        Finding::error("settings.invalid", format!("{} {problem}", path.display())).advice("Fix it: Claude Code ignores the whole file.")
    };
    case.survey.files.iter().filter_map(|file| Some(of_file(&file.path, &problem(file)?))).collect()
}

/// Why the client reads nothing in a settings file.
fn problem(file: &SettingsFile) -> Option<String> {
    let value = match &file.parsed {
        Err(problem) => return Some(problem.clone()),
        Ok(value) => value,
    };
    let mode = value.get("permissions")?.get("defaultMode").filter(|mode| !MODES.iter().any(|known| *mode == known))?;
    let mode = opening(&mode.to_string(), 40);
    Some(format!("is not read by Claude Code: \"permissions.defaultMode\" is {mode}, and must be one of {}", MODES.join(", ")))
}

/// A settings file that a person has to fix. It may register the hook, or switch it off: until then nothing is written.
pub(super) fn broken(case: &Case) -> Option<&SettingsFile> {
    case.survey.files.iter().find(|file| problem(file).is_some())
}

/// Writing the hooks and the commands of a scope fixes the finding. It would also put this program in the place of another one that is registered
/// there, which is for the person to decide.
fn registering(case: &Case, finding: Finding, scope: Scope) -> Finding {
    if let Some(file) = broken(case) {
        return finding.advice(format!("Fix {} first, then look again.", file.path.display()));
    }
    let finding = finding.fix(scope.init_command());
    let (own, _) = init::own_command(scope);
    let is_safe = case.survey.ours().iter().all(|r| r.origin != Origin::Settings(scope) || r.hook.line.is_own_of(&own));
    if is_safe { finding.repair(Repair::Register(scope)) } else { finding }
}

/// One file that says so is enough, however strong the others are. The second key counts in managed settings only.
fn switched_off(case: &Case) -> Vec<Finding> {
    let says = |file: &SettingsFile, key: &str| file.parsed.as_ref().is_ok_and(|value| value.get(key) == Some(&true.into()));
    let finding = |file: &SettingsFile, key: &str| {
        let what = format!("\"{key}\" is set in {}: Claude Code runs no hook of yours", file.path.display());
        Finding::error("hooks.disabled", what).advice(format!("Set \"{key}\" to false there."))
    };
    let files = &case.survey.files;
    let all = files.iter().map(|file| (file, "disableAllHooks"));
    let managed = files.iter().filter(|file| file.origin == Origin::Managed).map(|file| (file, "allowManagedHooksOnly"));
    all.chain(managed).filter(|(file, key)| says(file, key)).map(|(file, key)| finding(file, key)).collect()
}

fn registered(case: &Case) -> Vec<Finding> {
    let ours = case.survey.ours();
    let origins = origins(&ours);
    let Some(first) = origins.first() else {
        if agents::any_is_registered() && program::find().is_none() {
            return vec![Finding::note("hook.registered", "the hook is not registered with Claude Code, which is not on this machine")];
        }
        let finding = Finding::error("hook.registered", "the hook is not registered with Claude Code: loops have no effect");
        return vec![registering(case, finding, usual_scope(case))];
    };
    let mut findings = Vec::new();
    match duplicate_hooks::check(case, &ours) {
        Some(finding) => findings.push(finding),
        None if origins.len() > 1 => {
            let all: Vec<String> = origins.iter().map(ToString::to_string).collect();
            findings
                .push(Finding::good("hook.registered", format!("the hook is registered, with one command line, in {}", all.join(" and "))));
        }
        None => {
            let path = ours.first().map(|r| r.path.display().to_string()).unwrap_or_default();
            findings.push(Finding::good("hook.registered", format!("the hook is registered once, in {first} ({path})")));
        }
    }
    findings.extend(missing_events(case, &ours));
    findings.extend(ours.iter().filter_map(|r| in_the_wrong_place(case, r)));
    findings.extend(ours.iter().filter_map(|r| another_program(case, &ours, r)));
    findings.extend(ours.iter().filter_map(|r| limit_of_time(case, r)));
    findings
}

/// One of ralph's hooks, as a person calls it.
pub(super) fn called(hook: &Hook) -> String {
    match (hook.waits, hook.event) {
        (true, "Stop") => format!("the hook that waits for {}", awaited(hook)),
        (true, event) => format!("the hook for {event} that waits for {}", awaited(hook)),
        (false, event) => format!("the hook for {event}"),
    }
}

fn awaited(hook: &Hook) -> &'static str {
    if hook.event == "Stop" { "CI" } else { "the model's service" }
}

/// Registering the hooks anew, in the place that one comes from, fixes the finding.
fn registering_there(case: &Case, origin: &Origin, finding: Finding) -> Finding {
    match origin {
        Origin::Settings(scope) => registering(case, finding, *scope),
        Origin::Plugin(id) => finding.fix(format!("claude plugin update {}", quoted(id))),
        Origin::Managed => finding.advice("Ask the administrator of this machine."),
    }
}

/// The client waits for a hook, unless the entry says otherwise: only one that waits may say so, and it must.
fn in_the_wrong_place(case: &Case, r: &Registration) -> Option<Finding> {
    let hook = Hook::of_line(&r.hook.event, &r.hook.line)?;
    let (called, origin) = (called(hook), &r.origin);
    let what = if hook.waits && !r.hook.rewakes {
        format!("{called} has no \"{}\" in {origin}: it runs in the way of the session, and can hold it for hours", Hook::REWAKES)
    } else if !hook.waits && !hook.in_background && r.hook.in_background {
        format!("{called} runs in the background in {origin}, so its answer is lost: {}", hook.without)
    } else {
        return None;
    };
    Some(registering_there(case, origin, Finding::error("hook.background", what)))
}

/// The made-up stop goes through the hook that judges. One that waits with another program is never tried, and missed only when CI is done.
fn another_program(case: &Case, ours: &[Registration], r: &Registration) -> Option<Finding> {
    let judges: Vec<&Registration> = ours.iter().filter(|judge| judge.hook.answers("Stop")).collect();
    let is_same = |judge: &&Registration| judge.hook.line.program() == r.hook.line.program() && judge.root == r.root;
    let judge = judges.first().filter(|_| r.hook.line.waits() && !judges.iter().any(is_same))?;
    let what = format!(
        "{} is registered as `{}` in {}, and the one that judges as `{}`: it should be one program",
        Hook::of_line(&r.hook.event, &r.hook.line).map_or_else(|| "a hook that waits".to_owned(), called),
        opening(&r.hook.line.to_string(), 200),
        r.origin,
        opening(&judge.hook.line.to_string(), 200)
    );
    Some(registering_there(case, &r.origin, Finding::warning("hook.program", what)))
}

/// The client kills a hook at the entry's `timeout`, without a word; the hook knows of it only by its argument.
fn limit_of_time(case: &Case, r: &Registration) -> Option<Finding> {
    let hook = Hook::of_line(&r.hook.event, &r.hook.line).filter(|hook| hook.measures())?;
    let (called, origin, told) = (called(hook), &r.origin, r.hook.line.limit());
    let given = match r.hook.timeout {
        Some(given) if given < 5.0 => {
            let then = if hook.waits { "wakes no session" } else { "lets the agent stop without a word" };
            let what = format!("{called} has a timeout of {given} s in {origin}: a hook that is cut off {then}");
            let advice = format!("Set \"timeout\" to {} in {}.", hook.timeout, r.path.display());
            return Some(Finding::warning("hook.timeout", what).advice(advice));
        }
        Some(given) => format!("is given {given} s"),
        None => "is given no time of its own".to_owned(),
    };
    let work = if hook.waits { format!("the wait for {}", awaited(hook)) } else { "commands that prove the work".to_owned() };
    let what = match told {
        #[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "whole seconds that a person wrote")]
        Some(told) if r.hook.timeout.is_some_and(|given| given.floor() == told as f64) => return None,
        Some(told) => format!(
            "{called} {given} in {origin} and is told that it has {told} s: when they differ, the client ends it without a word, or it cuts {work} short"
        ),
        None => format!("{called} {given} in {origin} and is not told so: {work} may take {SHORT} s at most"),
    };
    Some(registering_there(case, origin, Finding::warning("hook.limit", what)))
}

/// Programs that are registered by their name and lie nowhere on the PATH. To try them would tell more, and take longer.
pub(super) fn not_found(case: &Case) -> Vec<Finding> {
    let ours = case.survey.ours();
    let is_missing = |r: &&Registration| match &r.hook.line {
        CommandLine::Exec { program, .. } => r.hook.answers("Stop") && !program.contains(['/', '\\']) && process::which(program).is_none(),
        CommandLine::Shell(_) => false,
    };
    let finding = |r: &Registration| {
        let what = format!("the hook is registered as `{}` in {}, and no such program is on your PATH", r.hook.line, r.origin);
        let finding = Finding::error("hook.answers", what);
        if let Origin::Settings(scope) = r.origin { finding.fix(scope.init_command()) } else { finding.fix("ralph doctor") }
    };
    ours.iter().filter(is_missing).map(finding).collect()
}

/// Where a set-up goes that is not there yet.
fn usual_scope(case: &Case) -> Scope {
    if case.places.config.is_some() { Scope::User } else { Scope::Local }
}

/// Where the hook comes from, each place once.
fn origins(ours: &[Registration]) -> Vec<Origin> {
    let mut origins: Vec<Origin> = Vec::new();
    for registration in ours {
        if !origins.contains(&registration.origin) {
            origins.push(registration.origin.clone());
        }
    }
    origins
}

fn missing_events(case: &Case, ours: &[Registration]) -> Vec<Finding> {
    let is_there = |hook: &Hook| ours.iter().any(|r| r.hook.is(hook) && r.hook.matcher.is_none());
    let finding = |hook: &Hook| {
        let what = format!("{} is not registered: {}", called(hook), hook.without);
        let holds = Hook::of("Stop") == Some(hook);
        let finding = if holds { Finding::error("hook.events", what) } else { Finding::warning("hook.events", what) };
        registering_again(case, ours, finding)
    };
    Hook::ALL.iter().filter(|hook| !is_there(hook)).map(finding).collect()
}

/// Registering the hook anew, where it is registered already, fixes the finding.
pub(super) fn registering_again(case: &Case, ours: &[Registration], finding: Finding) -> Finding {
    match (scope_of(ours), case.survey.our_plugin()) {
        (Some(scope), None) => registering(case, finding, scope),
        (_, Some(plugin)) => finding.fix(format!("claude plugin update {}", quoted(&plugin.id))),
        _ => finding.fix("ralph init"),
    }
}

fn scope_of(ours: &[Registration]) -> Option<Scope> {
    ours.iter().find_map(|r| if let Origin::Settings(scope) = r.origin { Some(scope) } else { None })
}

/// Others that block a stop too. The official plugin even works on the same file.
fn rivals(case: &Case) -> Vec<Finding> {
    let is_official = |name: &str| matches!(name, "ralph-loop" | "ralph-wiggum");
    let mut findings: Vec<Finding> = Vec::new();
    for plugin in case.survey.plugins.iter().filter(|plugin| is_official(plugin.name())) {
        let what = format!(
            "the plugin {} is switched on: it works on the same loop file, so both send the agent back, both count, and it deletes the file",
            plugin.id
        );
        findings.push(Finding::error("plugin.official", what).fix(format!("claude plugin disable {}", quoted(&plugin.id))));
    }
    let others = case.survey.hooks().into_iter().filter(|r| r.hook.event == "Stop" && !r.hook.line.is_ralphs());
    findings.extend(
        others
            .filter(|r| !matches!(&r.origin, Origin::Plugin(id) if is_official(id.split('@').next().unwrap_or_default())))
            .map(|r| (opening(&r.hook.line.to_string(), 200), r.origin))
            .map(|(line, origin)| Finding::note("hook.others", format!("another Stop hook runs beside ralph's: `{line}`, in {origin}"))),
    );
    findings
}

/// The short-named commands, which a plugin cannot bring.
fn commands(case: &Case) -> Vec<Finding> {
    // The user's own beats the project's.
    let places = [Scope::User, Scope::Project].into_iter().filter_map(|scope| Some((scope, case.places.commands(scope)?)));
    let places: Vec<(Scope, PathBuf)> = places.collect();
    let mut missing = Vec::new();
    let mut findings = Vec::new();
    for command in &Command::ALL {
        let files = places.iter().map(|(scope, folder)| (*scope, folder.join(command.file_name())));
        let found =
            files.filter(|(_, path)| path.symlink_metadata().is_ok()).map(|(scope, path)| (scope, file_change::read(&path), path)).next();
        match found {
            None => missing.push(format!("/{}", command.short)),
            Some((_, Ok(Some(text)), _)) if text == command.text() => {}
            Some((scope, text, path)) => findings.push(changed(case, scope, &path, text.ok().flatten().as_deref())),
        }
    }
    match (missing.is_empty(), case.survey.our_plugin()) {
        (true, _) if findings.is_empty() => {
            findings.push(Finding::good("commands", "/ralph-loop, /cancel-ralph and the others are there"));
        }
        (true, _) => {}
        (false, Some(_)) => {
            let what = "only the plugin's commands are there (/ralph:loop, /ralph:cancel, …); `ralph init` adds the short ones";
            findings.push(Finding::note("commands.missing", what).fix("ralph init"));
        }
        (false, None) => {
            let what = format!("Claude Code does not know {}", missing.join(", "));
            let scope = scope_of(&case.survey.ours()).unwrap_or_else(|| usual_scope(case));
            findings.push(registering(case, Finding::warning("commands.missing", what), scope));
        }
    }
    findings
}

/// A command file that says something else. One that an older ralph wrote is brought up to date; any other is its owner's.
fn changed(case: &Case, scope: Scope, path: &Path, text: Option<&str>) -> Finding {
    let finding = Finding::note("commands.changed", format!("{} is not the command file that this ralph writes", path.display()));
    let is_ours = text.is_some_and(|text| case.records.get(path).is_some_and(|record| record.after == text));
    let init = scope.init_command();
    if is_ours { finding.fix(init) } else { finding.advice(format!("If you do not need it, move it away, then `{init}`.")) }
}

fn block_cap(case: &Case) -> Finding {
    let set = case.survey.block_cap();
    match (&set, judge::block_cap(set.as_deref())) {
        (Some(text), Some(cap)) if text.trim().parse::<f64>().is_err() => {
            let what = format!("{BLOCK_CAP} is {:?}, which is no number: the client takes {cap}", opening(text, 40));
            lift(case, Finding::warning("block-cap", what))
        }
        (_, None) => Finding::good("block-cap", "the client's cap on stops that are sent back is lifted"),
        (_, Some(cap)) => {
            let (idle, _) = judge::idle_limit(None, Some(cap));
            let what = format!(
                "the client ends a turn after {cap} stops in a row that were sent back without a tool call; ralph pauses a loop after {}",
                ralph_core::text::count(idle, "such iteration", "such iterations")
            );
            lift(case, Finding::note("block-cap", what))
        }
    }
}

/// The cap is lifted in the user's settings, unless stronger ones have their own.
fn lift(case: &Case, finding: Finding) -> Finding {
    match case.survey.says(&["env", BLOCK_CAP]).filter(|(_, file)| file.origin != Origin::Settings(Scope::User)) {
        Some((_, file)) => finding.advice(format!("Set \"env\".\"{BLOCK_CAP}\" to \"0\" in {}.", file.path.display())),
        None => finding.fix("ralph init --block-cap 0"),
    }
}
