//! A made-up stop, sent through the registered command line as the client would send it: the one check that no look at a file can replace.

use ralph_core::text::opening;
use ralph_engine::setup::{
    probe::{self, Answered, Failed, Problem},
    survey::{Origin, Registration},
};

use super::{Case, Finding};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let mut lines: Vec<Registration> = Vec::new();
    for registration in case.survey.ours().into_iter().filter(|r| r.hook.answers("Stop")) {
        if lines.iter().all(|known| known.hook.line != registration.hook.line || known.root != registration.root) {
            lines.push(registration);
        }
    }
    let mut findings: Vec<Finding> = lines.iter().map(|registration| fire(case, registration)).collect();
    // One folder is no good: that is one finding, however many lines could not be tried.
    findings.dedup_by(|a, b| a.id == "machine.temp" && b.id == "machine.temp");
    findings
}

fn fire(case: &Case, registration: &Registration) -> Finding {
    let line = opening(&registration.hook.line.to_string(), 200);
    if !probe::may_run(registration, &case.survey, &case.project) {
        let what = format!(
            "`{line}` was not tried: {} came with the project, it names another program than this ralph, and you have not told Claude Code to \
             trust this folder",
            registration.path.display()
        );
        let advice = "Read that line. If it is what you want, start `claude` here once and trust the folder.";
        return Finding::warning("hook.untried", what).advice(advice);
    }
    match probe::fire(registration, &case.survey, &case.project) {
        Ok(Answered { took }) => {
            let ms = took.as_secs_f64() * 1_000.0;
            Finding::good("hook.answers", format!("a made-up stop through the hook in {} was sent back in {ms:.1} ms", registration.origin))
        }
        Err(Failed::NotTried(why)) => {
            let folder = std::env::temp_dir();
            let what = format!("the hook was not tried: cannot write temporary files in {}: {why}", folder.display());
            Finding::warning("machine.temp", what).advice("Set TMPDIR to a folder that you can write to, or make room in it.")
        }
        Err(Failed::Hook(Problem { what, advice })) => {
            let mut finding = Finding::error("hook.answers", format!("a made-up stop through `{line}` ({}): {what}", registration.origin));
            if let Origin::Settings(scope) = registration.origin {
                finding = finding.fix(scope.init_command());
            }
            if advice.is_empty() { finding } else { finding.advice(advice) }
        }
    }
}
