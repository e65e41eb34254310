//! `ralph pr` without `--wait`: where the branch's pull request stands.

use std::time::Duration;

use ralph_core::{gate::pull_request::Phase, text::clean};
use ralph_engine::{
    ops::{self, Refusal},
    store::project::Project,
    sys::signals,
    view::phase::{self, Report},
};

use crate::{
    commands::asker,
    exit::{Done, Failure},
    ui,
};

const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn tell(project: &Project, which: Option<&str>, json: bool) -> Done {
    let subject = match ops::choose(project, which, asker().session.as_deref()) {
        Ok(found) => phase::subject(project, &found, which.is_some()),
        Err(Refusal::NoLoop | Refusal::Which { .. }) if which.is_none() => None,
        Err(refusal) => return Err(refusal.into()),
    };
    signals::notice();
    let report = phase::tell(project, subject.as_ref(), PATIENCE, &signals::asked_to_end);
    if json {
        ui::json(&report);
    } else {
        show(&report);
    }
    if report.phase == Phase::Unknown { Err(Failure::reported()) } else { Ok(()) }
}

/// `p1  the pull request needs work`, why, and what to do.
fn show(report: &Report) {
    let word = report.phase.as_str();
    let word = match report.phase {
        Phase::P2 => ui::good(word),
        Phase::P1 => ui::bad(word),
        Phase::P0 | Phase::Pending | Phase::Unknown => ui::warn(word),
    };
    ui::paragraph(format!("{word}  {}", report.phase.shown(report.pull_request.as_ref().map(|request| request.state))), 2);
    if let Some(id) = &report.of_loop {
        ui::field("loop", id);
    }
    if let Some(request) = &report.pull_request {
        ui::field("request", format!("#{} {}", request.number, clean(&request.title)));
    }
    for evidence in &report.evidence {
        ui::field("because", evidence);
    }
    if let Some(next) = &report.next {
        ui::field("next", next);
    }
}
