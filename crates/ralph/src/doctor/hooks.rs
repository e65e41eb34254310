//! Is the hook registered, once, for all events, and does nothing stand in its way?

use ralph_core::limits;
use ralph_engine::{
    hosts::claude::{
        commands::COMMANDS,
        registration::{BLOCK_CAP, HOOKS},
    },
    setup::{
        change,
        places::Scope,
        survey::{Origin, Registration, SettingsFile},
    },
};

use super::{Case, Finding, Repair};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let mut findings = unreadable(case);
    findings.extend(switched_off(case));
    findings.extend(registered(case));
    findings.extend(rivals(case));
    findings.extend(commands(case));
    findings.push(block_cap(case));
    findings
}

/// What the client knows; any other word costs the whole file.
const MODES: [&str; 7] = ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"];

/// A settings file that the client cannot read either.
fn unreadable(case: &Case) -> Vec<Finding> {
    let of_file = |path: &std::path::Path, problem: &str| {
        Finding::error("settings.invalid", format!("{} {problem}", path.display())).advice("Mend it: Claude Code ignores the whole file.")
    };
    let problem = |file: &SettingsFile| match &file.parsed {
        Err(problem) => Some(problem.clone()),
        Ok(value) => value.get("permissions")?.get("defaultMode").filter(|mode| !MODES.iter().any(|known| *mode == known)).map(|mode| {
            format!("is not read by Claude Code: \"permissions.defaultMode\" is {mode}, and must be one of {}", MODES.join(", "))
        }),
    };
    case.survey.files.iter().filter_map(|file| Some(of_file(&file.path, &problem(file)?))).collect()
}

fn switched_off(case: &Case) -> Vec<Finding> {
    let keys = ["disableAllHooks", "allowManagedHooksOnly"];
    keys.iter()
        .filter_map(|key| {
            let (value, file) = case.survey.says(&[key])?;
            let what = format!("\"{key}\" is set in {}: Claude Code runs no hook of yours", file.path.display());
            (value.as_bool() == Some(true)).then(|| Finding::error("hooks.disabled", what).advice(format!("Set \"{key}\" to false there.")))
        })
        .collect()
}

fn registered(case: &Case) -> Vec<Finding> {
    let ours = case.survey.ours();
    let origins = origins(&ours);
    let Some(first) = origins.first() else {
        let what = "the hook is not registered with Claude Code: no loop is held";
        return vec![Finding::error("hook.registered", what).fix("ralph init").repair(Repair::Register(Scope::User))];
    };
    let mut findings = Vec::new();
    match second(&ours) {
        Some((one, other)) => {
            let what = format!("the hook is registered twice, in {} and in {}: both run at every stop", one.origin, other.origin);
            findings.push(twice(what, &one.origin, &other.origin));
        }
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
    findings.extend(ours.iter().filter(|r| r.hook.event == "Stop" && r.hook.timeout.is_some_and(|t| t < 5.0)).map(|r| {
        let what = format!(
            "the hook's timeout in {} is {} s: a hook that is cut off lets the agent stop without a word",
            r.origin,
            r.hook.timeout.unwrap_or_default()
        );
        Finding::warning("hook.timeout", what).advice(format!("Set \"timeout\" to 60 in {}.", r.path.display()))
    }));
    findings
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

/// Two registrations that both run. One command line in several settings files runs once; a plugin's runs beside them.
fn second(ours: &[Registration]) -> Option<(&Registration, &Registration)> {
    let stops: Vec<&Registration> = ours.iter().filter(|r| r.hook.event == "Stop").collect();
    let is_plugins = |r: &Registration| matches!(r.origin, Origin::Plugin(_));
    let both_run = |a: &Registration, b: &Registration| a.hook.line != b.hook.line || is_plugins(a) || is_plugins(b);
    let pairs = stops.iter().enumerate().flat_map(|(n, a)| stops[n + 1..].iter().map(move |b| (*a, *b)));
    pairs.into_iter().find(|(a, b)| both_run(a, b))
}

/// The settings go where the plugin is, and the weaker settings go where there are two.
fn twice(what: String, one: &Origin, other: &Origin) -> Finding {
    let finding = Finding::warning("hook.twice", what);
    match (one, other) {
        (Origin::Settings(scope), _) | (_, Origin::Settings(scope)) => {
            finding.fix(format!("ralph uninstall --{}", scope.word())).repair(Repair::Unregister(*scope))
        }
        (Origin::Plugin(id), _) | (_, Origin::Plugin(id)) => finding.fix(format!("claude plugin disable {id}")),
        _ => finding.advice("Ask whoever manages this machine."),
    }
}

fn missing_events(case: &Case, ours: &[Registration]) -> Vec<Finding> {
    let is_there = |event: &str| ours.iter().any(|r| r.hook.event == event && r.hook.matcher.is_none());
    let scope = ours.iter().find_map(|r| if let Origin::Settings(scope) = r.origin { Some(scope) } else { None });
    HOOKS
        .iter()
        .filter(|hook| !is_there(hook.event))
        .map(|hook| {
            let what = format!("the hook is not registered for {}: {}", hook.event, hook.without);
            let finding = if hook.event == "Stop" { Finding::error("hook.events", what) } else { Finding::warning("hook.events", what) };
            match (scope, case.survey.our_plugin()) {
                (Some(scope), None) => finding.fix(format!("ralph init --{}", scope.word())).repair(Repair::Register(scope)),
                (_, Some(plugin)) => finding.fix(format!("claude plugin update {}", plugin.id)),
                _ => finding.fix("ralph init"),
            }
        })
        .collect()
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
        findings.push(Finding::error("plugin.official", what).fix(format!("claude plugin disable {}", plugin.id)));
    }
    let others = case.survey.hooks().into_iter().filter(|r| r.hook.event == "Stop" && !r.hook.line.is_ralphs());
    findings.extend(
        others
            .filter(|r| !matches!(&r.origin, Origin::Plugin(id) if is_official(id.split('@').next().unwrap_or_default())))
            .map(|r| Finding::note("hook.others", format!("another Stop hook runs beside ralph's: `{}`, in {}", r.hook.line, r.origin))),
    );
    findings
}

/// The short-named commands, which a plugin cannot bring.
fn commands(case: &Case) -> Vec<Finding> {
    let folders = [Scope::User, Scope::Project].map(|scope| (scope, case.places.commands(scope)));
    let text_in = |scope: Scope, name: &str| {
        let folder = folders.iter().find(|(s, _)| *s == scope)?.1.as_deref()?;
        change::read(&folder.join(format!("{name}.md"))).ok().flatten()
    };
    let mut missing = Vec::new();
    let mut findings = Vec::new();
    for command in &COMMANDS {
        let found = [Scope::User, Scope::Project].into_iter().find_map(|scope| text_in(scope, command.short).map(|text| (scope, text)));
        match found {
            None => missing.push(format!("/{}", command.short)),
            Some((_, text)) if text == command.text() => {}
            Some((scope, _)) => {
                let what = format!(
                    "the command file of /{} in the {} commands is not the one that this ralph writes",
                    command.short,
                    scope.word()
                );
                findings.push(Finding::note("commands.changed", what).fix(format!("ralph init --{}", scope.word())));
            }
        }
    }
    match (missing.is_empty(), case.survey.our_plugin()) {
        (true, _) if findings.is_empty() => {
            findings.push(Finding::good("commands", "the commands /ralph-loop, /cancel-ralph and the others are there"));
        }
        (true, _) => {}
        (false, Some(_)) => {
            let what = "only the plugin's commands are there (/ralph:loop, /ralph:cancel, …); `ralph init` adds the short ones";
            findings.push(Finding::note("commands.missing", what).fix("ralph init"));
        }
        (false, None) => {
            let what = format!("Claude Code does not know {}", missing.join(", "));
            findings.push(Finding::warning("commands.missing", what).fix("ralph init").repair(Repair::Register(Scope::User)));
        }
    }
    findings
}

fn block_cap(case: &Case) -> Finding {
    let set = case.survey.block_cap();
    match (&set, limits::block_cap(set.as_deref())) {
        (Some(text), Some(cap)) if text.trim().parse::<f64>().is_err() => {
            let what = format!("{BLOCK_CAP} is {text:?}, which is no number: the client takes {cap}");
            Finding::warning("block-cap", what).fix("ralph init --block-cap 0")
        }
        (_, None) => Finding::good("block-cap", "the client's cap on stops that are sent back is lifted"),
        (_, Some(cap)) => {
            let (idle, _) = limits::idle_limit(None, Some(cap));
            let what = format!(
                "the client ends a turn after {cap} stops in a row that were sent back without any tool call; ralph pauses the loop after {idle} such rounds"
            );
            Finding::note("block-cap", what).fix("ralph init --block-cap 0")
        }
    }
}
