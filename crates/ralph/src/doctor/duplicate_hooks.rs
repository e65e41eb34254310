//! A hook that is registered twice: which of the two may go, and who decides.

use ralph_engine::{
    hosts::claude::registration::Hook,
    setup::{
        places::Scope,
        survey::{Origin, Registration},
    },
};

use super::{
    Case, Finding, Repair,
    hooks::{broken, called},
};
use crate::journal_lines::quoted;

pub(super) fn check(case: &Case, ours: &[Registration]) -> Option<Finding> {
    let (hook, first, second) = of_stops().find_map(|hook| second(ours, hook).map(|(first, second)| (hook, first, second)))?;
    let (one, other) = (&first.origin, &second.origin);
    let which = if hook.waits { called(hook) } else { "the hook".to_owned() };
    let what =
        format!("{which} is registered twice, in {one} and in {other}: both run at every stop, which counts once and costs a process more");
    // A project's and a person's own are both meant to be there, and do no harm as long as they are one program.
    let is_meant = one != other && !is_plugins(first) && !is_plugins(second) && first.hook.line.program() == second.hook.line.program();
    let finding = if is_meant { Finding::note("hook.twice", what) } else { Finding::warning("hook.twice", what) };
    if broken(case).is_some() {
        return Some(finding.advice("Fix the settings first, then look again."));
    }
    let goes = [(one, other), (other, one)].into_iter().find_map(|(goes, stays)| needless(case, ours, goes, stays));
    Some(match goes {
        Some(scope) => finding.fix("ralph doctor --fix").repair(Repair::Unregister(scope)),
        None => to_decide(finding, one, other),
    })
}

/// The hooks that run at a stop, the one that judges first.
fn of_stops() -> impl Iterator<Item = &'static Hook> {
    Hook::of("Stop").into_iter().chain(Hook::ALL.iter().filter(|hook| hook.waits))
}

fn is_plugins(registration: &Registration) -> bool {
    matches!(registration.origin, Origin::Plugin(_))
}

/// Two registrations of one hook that both run. One command line in several settings files runs once; a plugin's runs beside them.
fn second<'a>(ours: &'a [Registration], hook: &Hook) -> Option<(&'a Registration, &'a Registration)> {
    let stops: Vec<&Registration> = ours.iter().filter(|r| r.hook.is(hook)).collect();
    let both_run = |a: &Registration, b: &Registration| a.hook.line != b.hook.line || is_plugins(a) || is_plugins(b);
    let pairs = stops.iter().enumerate().flat_map(|(n, a)| stops[n + 1..].iter().map(move |b| (*a, *b)));
    pairs.into_iter().find(|(a, b)| both_run(a, b))
}

/// Personal settings that can go without any loss: what stays hears of every event, and wherever they counted it counts too.
fn needless(case: &Case, ours: &[Registration], goes: &Origin, stays: &Origin) -> Option<Scope> {
    let Origin::Settings(scope @ (Scope::User | Scope::Local)) = *goes else { return None };
    let is_whole = Hook::ALL.iter().all(|hook| ours.iter().any(|r| r.origin == *stays && r.hook.is(hook)));
    (is_whole && case.survey.reach(stays) > case.survey.reach(goes)).then_some(scope)
}

/// Leaves the decision to the person. Of two settings the one for all projects stays.
fn to_decide(finding: Finding, one: &Origin, other: &Origin) -> Finding {
    match (one, other) {
        (Origin::Settings(stays), Origin::Settings(goes)) => {
            let finding = finding.fix(format!("ralph uninstall --{} && {}", goes.word(), stays.init_command()));
            if *goes == Scope::Project {
                finding.advice("It is everyone's; `ralph uninstall --user` removes yours instead.")
            } else {
                finding
            }
        }
        (Origin::Plugin(id), _) | (_, Origin::Plugin(id)) => finding.fix(format!("claude plugin disable {}", quoted(id))),
        _ => finding.advice("Ask the administrator of this machine."),
    }
}
