//! `[pr]` in `ralph.toml`, and the gates of the two loops of a pull request.

use super::{
    CHECKS_THAT_COUNT, Problem, expression_of_lines, inside,
    keys::{Kind, table},
    reader::Field,
};
use crate::gate::{Check, Ci, DECISION, File, Gate, Merge, Origin, PullRequest, Stage};

table! {
    /// The targets that loops of a pull request (the presets pre-pr and after-pr) look at.
    pub struct PullRequests = "[pr]";
    /// The report of the audit, docs/AUDIT-REPORT.md if not given; false: none is asked for.
    audit: Option<String> = Some("docs/AUDIT-REPORT.md".to_owned()), Kind::Report, report;
    /// A regular expression that must match in the report; a line `Decision: PASS` if not given.
    audit_says: String = DECISION.to_owned(), Kind::Text, expression_of_lines;
    /// The command that the agent is told to run for it; /audit if not given.
    audit_command: String = "/audit".to_owned(), Kind::Text, told;
    /// The file that the project's quality gate leaves behind, .quality-gate-passed if not given; false: none is asked for.
    quality: Option<String> = Some(".quality-gate-passed".to_owned()), Kind::Report, report;
    /// The command that the agent is told to run for it; `npm run qa:gate` if not given.
    quality_command: String = "npm run qa:gate".to_owned(), Kind::Text, told;
    /// Patterns of the files that must not have changed since the quality gate passed; all if not given.
    sources: Vec<String> = Vec::new(), Kind::Texts, Field::texts;
    /// Where the evidence stands, .layer2-evidence.md if not given; false: none is asked for.
    evidence: Option<String> = Some(".layer2-evidence.md".to_owned()), Kind::Report, report;
    /// Which checks must be green: all, or those that the base branch requires.
    required_only as "checks": bool = false, Kind::Choice(CHECKS_THAT_COUNT), |field| field.pick([false, true]);
    /// Patterns of the names of checks that do not count, such as "codecov/*".
    ignore: Vec<String> = Vec::new(), Kind::Texts, ignored;
    /// A commit that no check reports on: ask (the loop pauses), or pass.
    may_have_none as "no_checks": bool = false, Kind::Choice(&["ask", "pass"]), |field| field.pick([false, true]);
    /// The branch that the pull request must go to; any if not given.
    base: Option<String> = None, Kind::Text, told;
    /// Who merges once everything else holds: the agent, or ralph (squash, and the branch is deleted).
    merge: Merge = Merge::Agent, Kind::Choice(&["agent", "ralph"]), |field| field.pick([Merge::Agent, Merge::Ralph]);
}

/// A path, or `false`: it is not asked for.
fn report(field: Field<'_>) -> Result<Option<String>, Problem> {
    match field.as_bool() {
        Some(false) => Ok(None),
        _ => inside(field).map(Some),
    }
}

/// One line for the agent. Ralph itself never runs it.
pub(super) fn told(field: Field<'_>) -> Result<String, Problem> {
    let text = field.text()?;
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(field.problem(format!("`{}` must be one line that says what to do", field.key.name)));
    }
    Ok(text.trim().to_owned())
}

/// Names of checks. An empty one would match all of them.
fn ignored(field: Field<'_>) -> Result<Vec<String>, Problem> {
    let names = field.texts()?;
    if names.iter().any(|name| name.trim().trim_matches(['.', '/']).is_empty()) {
        return Err(field.problem("`ignore` needs the names of checks, such as \"codecov/*\""));
    }
    Ok(names)
}

impl PullRequests {
    /// S2-2: from code to an open pull request.
    pub fn before_the_request(&self) -> Vec<Gate> {
        let mut gates: Vec<Gate> = [self.audit_gate(), self.quality_gate(), self.evidence_gate()].into_iter().flatten().collect();
        gates.push(preset("pr", self.request(Stage::Open), None));
        gates
    }

    /// S2-3: from red CI to a merged pull request. The gates before the request count again, because the code has changed.
    pub fn after_the_request(&self) -> Vec<Gate> {
        let mut gates = self.before_the_request();
        gates.push(preset("ci", Check::Ci(self.ci()), None));
        gates.push(preset("merged", self.request(Stage::Merged), None));
        gates
    }

    /// An open pull request whose checks are green; `merged`: and that is merged.
    pub fn open_and_green(&self, merged: bool) -> Vec<Gate> {
        let mut gates = vec![preset("pr", self.request(Stage::Open), None), preset("ci", Check::Ci(self.ci()), None)];
        gates.extend(merged.then(|| preset("merged", self.request(Stage::Merged), None)));
        gates
    }

    fn audit_gate(&self) -> Option<Gate> {
        let path = self.audit.as_ref()?;
        let called = (self.audit_says == DECISION).then(|| "Decision: PASS".to_owned());
        let shown = called.as_deref().unwrap_or(&self.audit_says);
        let next = format!("Run `{}`, and fix what it finds until {path} says `{shown}`.", self.audit_command);
        let file = File { contains: Some(self.audit_says.clone()), called, ..File::at(path) };
        Some(preset("audit", Check::File(file), Some(next)))
    }

    fn quality_gate(&self) -> Option<Gate> {
        let path = self.quality.as_ref()?;
        let next = format!("Run `{}`, and fix what fails until it writes {path}.", self.quality_command);
        let file = File { fresh: Some(self.sources.clone()), of_success: true, ..File::at(path) };
        Some(preset("quality", Check::File(file), Some(next)))
    }

    fn evidence_gate(&self) -> Option<Gate> {
        let path = self.evidence.as_ref()?;
        let next = format!("Write at least one piece of evidence that others can check into {path}: what was run, and what came of it.");
        Some(preset("evidence", Check::File(File { entries: 1, ..File::at(path) }), Some(next)))
    }

    pub(super) fn request(&self, must_be: Stage) -> Check {
        Check::PullRequest(PullRequest { must_be, merge: self.merge, base: self.base.clone() })
    }

    pub fn ci(&self) -> Ci {
        Ci { required_only: self.required_only, ignore: self.ignore.clone(), may_have_none: self.may_have_none }
    }
}

/// The gates of a preset are measured at every stop: they cost next to nothing, or the loop waits for them.
fn preset(name: &str, check: Check, next: Option<String>) -> Gate {
    Gate { every_stop: true, next, ..Gate::new(name, check, Origin::Loop) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_2_s2_3_the_gates_are_in_the_order_of_the_work() {
        let names = |gates: Vec<Gate>| gates.into_iter().map(|gate| gate.name).collect::<Vec<_>>();
        let usual = PullRequests::default();
        assert_eq!(names(usual.before_the_request()), ["audit", "quality", "evidence", "pr"]);
        assert_eq!(names(usual.after_the_request()), ["audit", "quality", "evidence", "pr", "ci", "merged"]);
        let bare = PullRequests { audit: None, quality: None, evidence: None, ..usual };
        assert_eq!(names(bare.before_the_request()), ["pr"]);
    }
}
