//! Other agents than Claude Code: those that are on this machine, or that ralph is registered with.

use std::path::PathBuf;

use ralph_core::text::opening;
use ralph_engine::{
    hosts::{Host, claude::Registered},
    setup::{
        agent_survey::AgentSurvey,
        agents,
        probe::{self, Answered, Failed, Problem},
    },
    sys::process,
};

use super::{Case, Finding};
use crate::ui;

/// In seconds: a hook that is given less is cut off on a busy machine.
const LEAST: f64 = 3.0;

pub(super) fn check(case: &Case) -> Vec<Finding> {
    agents::known().flat_map(|host| of_agent(case, host)).collect()
}

pub(super) fn any_is_registered() -> bool {
    agents::known().any(Host::is_registered)
}

/// One agent; nothing, if it is neither here nor registered with.
pub(crate) fn of_agent(case: &Case, host: &'static Host) -> Vec<Finding> {
    let Some(survey) = AgentSurvey::take(host, Some(case.project.root())) else { return Vec::new() };
    let program = process::which(host.name);
    let file = ui::path_from_home(&survey.file);
    if let Some(problem) = survey.problem.as_ref().filter(|_| program.is_some()) {
        let what = format!("{file} {problem}: whether ralph is registered with {} is unknown", host.title);
        return vec![Finding::warning("agent.settings", what).advice("Fix it: ralph writes nothing into a file that it cannot read.")];
    }
    let mut findings = strange(&survey);
    match survey.own().next() {
        Some(_) => findings.extend(registered(&survey, &file)),
        None if program.is_some() && findings.is_empty() => {
            let what = format!("{} is on this machine, and ralph is not registered with it", host.title);
            findings.push(Finding::note("agent.registered", what).fix(init(host)));
        }
        None => {}
    }
    findings
}

fn init(host: &Host) -> String {
    format!("ralph init --agent {}", host.name)
}

/// `gemini hooks migrate` copies Claude Code's entries, without their arguments. The project's settings are not ours to change.
fn strange(survey: &AgentSurvey) -> Vec<Finding> {
    let told = |(path, count): (PathBuf, usize)| {
        let (entries, file) = (ralph_core::text::count(count as u64, "entry", "entries"), ui::path_from_home(&path));
        let title = survey.host.title;
        let what = format!(
            "{file} has {entries} that call ralph, and not as the hook of {title}: they were copied from Claude Code, and do nothing"
        );
        let finding = Finding::warning("agent.copied", what);
        if path == survey.file { finding.fix(init(survey.host)) } else { finding.advice(format!("Take them out of {file}.")) }
    };
    survey.strange().map(told).collect()
}

fn registered(survey: &AgentSurvey, file: &str) -> Vec<Finding> {
    let (host, title) = (survey.host, survey.host.title);
    let mut findings = Vec::new();
    if let Some((key, file)) = survey.switched_off() {
        let what = format!("\"{key}\" in {} switches the hooks of {title} off: loops have no effect there", ui::path_from_home(&file));
        findings.push(Finding::error("agent.disabled", what).advice(format!("Take \"{key}\" out of that file.")));
    }
    let missing = survey.missing();
    if !missing.is_empty() {
        let what = format!("{title} does not call ralph for {}", missing.join(", "));
        findings.push(Finding::warning("agent.events", what).fix(init(host)));
    }
    findings.extend(cut_off(survey, file));
    let unreviewed = survey.unreviewed();
    if !unreviewed.is_empty() {
        let what = format!("{title} skips ralph's hooks for {}, without a word, until you have reviewed them", unreviewed.join(", "));
        findings.push(Finding::warning("agent.review", what).advice(format!("Start `{}`: it asks, and shows them.", host.name)));
    }
    findings.extend(survey.stop().map(|stop| answers(survey, &stop, file)));
    findings
}

/// A limit that is too short, or shorter than the hook is told.
fn cut_off(survey: &AgentSurvey, file: &str) -> Option<Finding> {
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let wanted = |hook: &Registered| hook.line.limit().map_or(LEAST, |told| told as f64);
    let (hook, given) =
        survey.own().find_map(|hook| survey.seconds(&hook).filter(|given| *given < wanted(&hook)).map(|given| (hook, given)))?;
    let (title, wanted) = (survey.host.title, wanted(&hook));
    let what = format!(
        "{title} gives the hook for {} only {given} s in {file}, and it may need {wanted}: one that is cut off holds no agent",
        hook.event
    );
    Some(Finding::warning("agent.timeout", what).fix(init(survey.host)))
}

/// A made-up stop, in that agent's words, through the line that it would run.
fn answers(survey: &AgentSurvey, stop: &Registered, file: &str) -> Finding {
    let title = survey.host.title;
    match probe::fire_for(survey.host, &stop.line.to_string()) {
        Ok(Answered { took }) => {
            let ms = took.as_secs_f64() * 1_000.0;
            Finding::good("agent.answers", format!("a made-up stop of {title} through the hook in {file} was sent back in {ms:.1} ms"))
        }
        Err(Failed::NotTried(why)) => {
            let what = format!("the hook of {title} was not tried: cannot write temporary files: {why}");
            Finding::warning("machine.temp", what).advice("Set TMPDIR to a folder that you can write to, or make room in it.")
        }
        Err(Failed::Hook(Problem { what, .. })) => {
            let line = opening(&stop.line.to_string(), 200);
            Finding::error("agent.answers", format!("a made-up stop of {title} through `{line}` ({file}): {what}")).fix(init(survey.host))
        }
    }
}
