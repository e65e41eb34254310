//! A made-up stop, sent through the registered command line as the client would send it: the one check that no look at a file can replace.

use ralph_engine::setup::{
    probe::{self, Answered},
    survey::Registration,
};

use super::{Case, Finding};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let mut lines: Vec<Registration> = Vec::new();
    for registration in case.survey.ours().into_iter().filter(|r| r.hook.event == "Stop") {
        if lines.iter().all(|known| known.hook.line != registration.hook.line) {
            lines.push(registration);
        }
    }
    lines.iter().map(|registration| fire(case, registration)).collect()
}

fn fire(case: &Case, registration: &Registration) -> Finding {
    let line = &registration.hook.line;
    match probe::fire(registration, &case.survey) {
        Ok(Answered { answer, took, .. }) => {
            let ms = took.as_secs_f64() * 1_000.0;
            Finding::good("hook.answers", format!("a made-up stop through `{line}` was sent back in {ms:.1} ms: {answer}"))
        }
        Err(probe::Problem { what, advice }) => {
            let finding = Finding::error("hook.answers", format!("a made-up stop through `{line}` ({}): {what}", registration.origin));
            if advice.is_empty() { finding.fix("ralph init") } else { finding.advice(advice) }
        }
    }
}
