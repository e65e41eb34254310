//! Is everything in place for a loop? One file for each kind of check; every finding says what is the matter and what to do about it.

mod agent;
pub(crate) mod agents;
mod duplicate_hooks;
mod forge;
mod gates;
mod hooks;
mod loops;
mod machine;
mod permissions;
mod probe;
mod repair;
mod repository;

use ralph_core::text::clean;
use ralph_engine::{
    setup::{places::Places, record::Records, survey::Survey},
    store::project::Project,
};
use serde::Serialize;

use crate::ui;

pub(crate) use repair::Repair;

/// How much a finding matters. Only an error keeps loops from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Good,
    Note,
    Warning,
    Error,
}

/// One result of a check.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    /// A stable name, explained in `docs/doctor.md`.
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    pub(crate) what: String,
    pub(crate) fix: Option<String>,
    /// The fix, where no command can do it.
    pub(crate) advice: Option<String>,
    /// Whether `ralph doctor --fix` fixes it.
    pub(crate) fixable: bool,
    #[serde(skip)]
    pub(crate) repair: Option<Repair>,
}

impl Finding {
    fn new(id: &'static str, severity: Severity, what: impl Into<String>) -> Self {
        Finding { id, severity, what: what.into(), fix: None, advice: None, fixable: false, repair: None }
    }

    fn good(id: &'static str, what: impl Into<String>) -> Self {
        Finding::new(id, Severity::Good, what)
    }

    fn note(id: &'static str, what: impl Into<String>) -> Self {
        Finding::new(id, Severity::Note, what)
    }

    fn warning(id: &'static str, what: impl Into<String>) -> Self {
        Finding::new(id, Severity::Warning, what)
    }

    fn error(id: &'static str, what: impl Into<String>) -> Self {
        Finding::new(id, Severity::Error, what)
    }

    fn fix(self, command: impl Into<String>) -> Self {
        Finding { fix: Some(command.into()), ..self }
    }

    fn advice(self, text: impl Into<String>) -> Self {
        Finding { advice: Some(text.into()), ..self }
    }

    /// A repair that is safe: it changes nothing that a person made.
    fn repair(self, repair: Repair) -> Self {
        Finding { fixable: true, repair: Some(repair), ..self }
    }
}

/// Everything that the checks look at.
pub(crate) struct Case {
    pub(crate) project: Project,
    pub(crate) places: Places,
    pub(crate) survey: Survey,
    pub(crate) records: Records,
}

impl Case {
    pub(crate) fn of(project: &Project) -> Self {
        let places = Places::of(project);
        Case { project: project.clone(), survey: Survey::take(&places), records: Records::of_user(), places }
    }

    /// Everything that would keep a loop from working, as far as files can tell: shown when one is started.
    pub(crate) fn before_a_loop(&self) -> Vec<Finding> {
        let checks: [fn(&Case) -> Vec<Finding>; 5] = [hooks::check, hooks::not_found, permissions::check, gates::check, forge::check];
        let findings = checks.iter().flat_map(|check| check(self));
        let matters = |f: &Finding| f.severity == Severity::Error || (f.id == "permissions" && f.severity == Severity::Warning);
        findings.filter(matters).collect()
    }

    pub(crate) fn warn(&self) {
        warn(self.before_a_loop());
    }

    /// Tells what keeps a loop that goes on from proving anything.
    pub(crate) fn warn_of_gates(&self) {
        warn(gates::check(self).into_iter().filter(|finding| finding.severity == Severity::Error).collect());
    }

    /// All findings, in the order in which a person would look.
    pub(crate) fn examine(&self) -> Vec<Finding> {
        let checks: [fn(&Case) -> Vec<Finding>; 10] = [
            agent::check,
            hooks::check,
            probe::check,
            agents::check,
            permissions::check,
            loops::check,
            gates::check,
            forge::check,
            machine::check,
            repository::check,
        ];
        checks.iter().flat_map(|check| check(self)).collect()
    }
}

fn warn(findings: Vec<Finding>) {
    for finding in findings {
        let way = finding.fix.map(|fix| format!("`{fix}`")).or(finding.advice).unwrap_or_default();
        ui::warning(&clean(&format!("{}. {way}", finding.what)));
    }
}
