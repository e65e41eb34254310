//! `ralph pr --wait`: wait until a parked loop can go on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{Finding, Gate, only_waits},
    text::{
        clean,
        time::{self, Millis, in_words},
    },
};
use ralph_engine::{
    gates::{
        self, Context, Want, declared,
        wait::{Onlooker, Pauses, Waited, until_decided, waiting},
    },
    hosts::{self, Advice, Host},
    ops::{self, manual_measure},
    store::{
        loops::{self, LoopOnDisk},
        project::Project,
    },
    sys::{clock, signals, wait},
    view::{self, Status, View, Waiter, Waits},
};
use serde::Serialize;

use crate::{
    commands::{asker, gate::summary},
    exit::{Done, Failure, INTERRUPTED, PARKED},
    ui,
};

use super::progress::Progress;

/// The JSON.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(rename = "loop")]
    of_loop: &'a str,
    /// Nothing is undecided any more.
    decided: bool,
    waited_ms: u64,
    findings: &'a [Finding],
}

/// Waits until what this loop waits for is decided, or so many milliseconds are over.
pub(super) fn until_decided_or(project: &Project, which: Option<&str>, timeout: u64, json: bool) -> Done {
    let found = ops::choose(project, which, asker().session.as_deref())?;
    let file = found.parsed.as_ref().map_err(|problem| Failure::new(format!("{}: {problem}", found.path.display())))?;
    let began = Instant::now();
    let watch = Watch { project, id: found.id(), found: &found, began, until: began + Duration::from_millis(timeout), timeout, json };
    let waits = view::view_of(project, &found).waits;
    let since = waits.as_ref().and_then(|waits| time::parse(&waits.since)).unwrap_or_else(clock::now);
    if let Some((waits, until)) = waits.as_ref().and_then(|waits| Some((waits, time::parse(waits.until.as_deref()?)?))) {
        signals::notice();
        return watch.until_the_time(waits, until, since);
    }
    let gates: Vec<Gate> = declared::of_loop(project, file).gates.into_iter().filter(Gate::is_decided_elsewhere).collect();
    if gates.is_empty() {
        return Err(Failure::new("this loop waits for nothing: none of its gates is about a pull request or its checks"));
    }
    signals::notice();
    let findings = watch.until_nothing_waits(&gates, &Progress::begin(json, since))?;
    let decided = !only_waits(&findings);
    // The findings count even if the journal cannot be written.
    let _ = if decided {
        manual_measure::after_a_wait(project, &watch.id, &findings)
    } else {
        manual_measure::by_hand(project, &watch.id, &findings)
    };
    if json {
        watch.report(decided, &findings);
    } else {
        summary::show(&findings, &[], false);
    }
    if !decided {
        return Err(Failure { in_json: json, ..watch.too_late("decided") });
    }
    if findings.iter().any(|finding| finding.needs.is_some()) {
        return Err(Failure { in_json: json, ..Failure::new("only you can go on from here: see above") });
    }
    if !json {
        watch.say_how_to_go_on();
    }
    Ok(())
}

fn cancelled() -> Failure {
    if signals::asked_to_end() {
        return Failure::coded(INTERRUPTED, "interrupted; the loop is as it was");
    }
    Failure::new("the loop was paused or ended meanwhile: `ralph status` shows it")
}

/// One wait for one loop.
struct Watch<'a> {
    project: &'a Project,
    id: String,
    found: &'a LoopOnDisk,
    began: Instant,
    until: Instant,
    timeout: u64,
    json: bool,
}

impl Watch<'_> {
    fn report(&self, decided: bool, findings: &[Finding]) {
        ui::json(&Report { of_loop: &self.id, decided, waited_ms: time::millis(self.began.elapsed()), findings });
    }

    fn too_late(&self, what: &str) -> Failure {
        Failure::coded(PARKED, format!("not {what} within {}; `ralph pr --wait` waits on", in_words(self.timeout)))
    }

    /// Waits for a moment: the end of a limit, or of a pause after an error of the service.
    fn until_the_time(&self, waits: &Waits, until: Millis, since: Millis) -> Done {
        let progress = Progress::begin(self.json, since);
        progress.until(&waits.what, until);
        let is_parked = || self.view().is_some_and(|view| view.status == Status::Parked || view.status == Status::LeftBehind);
        let ended = wait::until_moment(until, wait::INTERRUPT, || {
            if signals::asked_to_end() {
                return Some(Err(cancelled()));
            }
            if Instant::now() >= self.until {
                return Some(Err(self.too_late("over")));
            }
            (!is_parked()).then_some(Ok(()))
        });
        ended.transpose()?;
        drop(progress);
        if self.json {
            self.report(true, &[]);
        } else {
            self.say_how_to_go_on();
        }
        Ok(())
    }

    fn until_nothing_waits(&self, gates: &[Gate], progress: &Arc<Progress>) -> Result<Vec<Finding>, Failure> {
        let is_over = || signals::asked_to_end() || !loops::is_wanted(self.found);
        let mut pauses = Pauses::seen_by(Arc::clone(progress) as Arc<dyn Onlooker>);
        loop {
            let findings = gates::measure(gates, Want::Everything, &self.context(&is_over));
            if !is_over() && !only_waits(&findings) {
                return Ok(findings);
            }
            if !is_over() {
                progress.found(&findings);
            }
            match until_decided(&waiting(gates, &findings), self.until, &mut pauses, || self.context(&is_over), &is_over, &|| false) {
                Waited::Decided => {}
                Waited::TimeOver => return Ok(findings),
                Waited::Cancelled => return Err(cancelled()),
            }
        }
    }

    /// Looks only: whatever a gate may do when a stop is judged is not done here.
    fn context<'c>(&'c self, cancelled: &'c (dyn Fn() -> bool + Sync)) -> Context<'c> {
        let left = self.until.saturating_duration_since(Instant::now()).max(Duration::from_secs(30));
        Context { cancelled, keeps: hosts::of_an_agent().is_none(), keep_going: true, ..Context::new(self.project, &self.id, left) }
    }

    fn say_how_to_go_on(&self) {
        let Some(view) = self.view() else { return };
        let by = view.waits.as_ref().map_or(Waiter::Nobody, |waits| waits.by);
        match &view.session {
            _ if by == Waiter::Runner => ui::paragraph("`ralph run` goes on by itself.", 0),
            _ if by == Waiter::Person => ui::paragraph("Its session waits for your permission.", 0),
            _ if by != Waiter::Nobody => ui::paragraph("Its session goes on by itself.", 0),
            Some(session) => {
                // One line, whatever the width: it is there to be copied.
                let advice = Advice::of(view.agent.as_deref());
                match (view.agent.as_deref().and_then(Host::by_name).filter(|host| !host.is_claude()), advice.resume) {
                    (None, Some(resume)) => {
                        ui::paragraph("Go on in its session with /ralph-resume, or from here:", 0);
                        ui::line(format!("  {resume} {} /ralph-resume", clean(session)));
                    }
                    (Some(host), Some(resume)) => {
                        ui::paragraph(format!("Go on in its session with {}. This opens it:", host.as_typed("ralph-resume")), 0);
                        ui::line(format!("  {resume} {}", clean(session)));
                    }
                    (_, None) => ui::paragraph("Go on in its session, or with `ralph run --continue`.", 0),
                }
            }
            None => ui::paragraph("The next session that stops in this project goes on with it.", 0),
        }
    }

    fn view(&self) -> Option<View> {
        view::live(self.project).into_iter().find(|view| view.id == self.id)
    }
}
