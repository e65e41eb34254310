//! `[pr]` in `ralph.toml`: what the two loops of a pull request look at, and the gates that follow from it.

use super::{
    Problem, inside,
    reader::{Field, Fields},
};
use crate::{
    decision::DECISION,
    gate::{Check, Ci, File, Gate, Merge, Origin, PullRequest, Stage},
};

/// What the gates of a pull request look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequests {
    /// The report of an audit; `None`: nobody asks for one.
    pub audit: Option<String>,
    pub audit_says: String,
    pub audit_command: String,
    /// What the project's quality gate leaves behind when it passed.
    pub quality: Option<String>,
    pub quality_command: String,
    /// Patterns of the files that the quality gate speaks about; empty: all.
    pub sources: Vec<String>,
    /// What can be checked by others.
    pub evidence: Option<String>,
    pub ci: Ci,
    pub merge: Merge,
    /// The branch that pull requests must go to; `None`: any.
    pub base: Option<String>,
}

impl Default for PullRequests {
    fn default() -> Self {
        PullRequests {
            audit: Some("docs/AUDIT-REPORT.md".to_owned()),
            audit_says: DECISION.to_owned(),
            audit_command: "/audit".to_owned(),
            quality: Some(".quality-gate-passed".to_owned()),
            quality_command: "npm run qa:gate".to_owned(),
            sources: Vec::new(),
            evidence: Some(".layer2-evidence.md".to_owned()),
            ci: Ci { required_only: false, ignore: Vec::new(), may_have_none: false },
            merge: Merge::Agent,
            base: None,
        }
    }
}

pub(super) fn read(table: &Fields<'_>) -> Result<PullRequests, Problem> {
    let usual = PullRequests::default();
    let text = |key, otherwise| Ok::<String, Problem>(table.read(key, told)?.unwrap_or(otherwise));
    Ok(PullRequests {
        audit: table.read("audit", report)?.unwrap_or(usual.audit),
        audit_says: table.read("audit_says", super::expression_of_lines)?.unwrap_or(usual.audit_says),
        audit_command: text("audit_command", usual.audit_command)?,
        quality: table.read("quality", report)?.unwrap_or(usual.quality),
        quality_command: text("quality_command", usual.quality_command)?,
        sources: table.read("sources", Field::texts)?.unwrap_or_default(),
        evidence: table.read("evidence", report)?.unwrap_or(usual.evidence),
        ci: Ci {
            required_only: table.read("checks", requires)?.unwrap_or(false),
            ignore: table.read("ignore", ignored)?.unwrap_or_default(),
            may_have_none: table.read("no_checks", |field| Ok(field.choice()? == "pass"))?.unwrap_or(false),
        },
        merge: table.read("merge", merge)?.unwrap_or_default(),
        base: table.read("base", told)?,
    })
}

/// A path, or `false`: it is not asked for.
fn report(field: Field<'_>) -> Result<Option<String>, Problem> {
    match field.as_bool() {
        Some(false) => Ok(None),
        _ => inside(field).map(Some),
    }
}

/// What the agent is told to do. Ralph itself never does it.
pub(super) fn told(field: Field<'_>) -> Result<String, Problem> {
    let text = field.text()?;
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(field.problem(format!("`{}` must be one line that says what to do", field.key.name)));
    }
    Ok(text.trim().to_owned())
}

/// Which checks count: all of them, or those that the base branch requires.
pub(super) fn requires(field: Field<'_>) -> Result<bool, Problem> {
    Ok(field.choice()? == "required")
}

/// Names of checks. An empty one would stand for all of them.
fn ignored(field: Field<'_>) -> Result<Vec<String>, Problem> {
    let names = field.texts()?;
    if names.iter().any(|name| name.trim().trim_matches(['.', '/']).is_empty()) {
        return Err(field.problem("`ignore` needs the names of checks, such as \"codecov/*\""));
    }
    Ok(names)
}

fn merge(field: Field<'_>) -> Result<Merge, Problem> {
    Ok(if field.choice()? == "ralph" { Merge::Ralph } else { Merge::Agent })
}

impl PullRequests {
    /// S2-2: from code to an open pull request.
    pub fn before_the_request(&self) -> Vec<Gate> {
        let mut gates: Vec<Gate> = [self.audit_gate(), self.quality_gate(), self.evidence_gate()].into_iter().flatten().collect();
        gates.push(self.request(Stage::Open, "pr"));
        gates
    }

    /// S2-3: from red CI to a merged pull request. What was checked before must be checked again, because the code has changed.
    pub fn after_the_request(&self) -> Vec<Gate> {
        let mut gates = self.before_the_request();
        gates.push(self.green(self.ci.required_only, "ci"));
        gates.push(self.request(Stage::Merged, "merged"));
        gates
    }

    fn audit_gate(&self) -> Option<Gate> {
        let path = self.audit.as_ref()?;
        let called = (self.audit_says == DECISION).then(|| "Decision: PASS".to_owned());
        let shown = called.as_deref().unwrap_or(&self.audit_says);
        let next = format!("Run `{}`, and mend what it finds until {path} says `{shown}`.", self.audit_command);
        let file = File { contains: Some(self.audit_says.clone()), called, ..File::at(path) };
        Some(preset("audit", Check::File(file), next))
    }

    fn quality_gate(&self) -> Option<Gate> {
        let path = self.quality.as_ref()?;
        let next = format!("Run `{}`, and mend what fails until it writes {path}.", self.quality_command);
        let file = File { fresh: Some(self.sources.clone()), of_success: true, ..File::at(path) };
        Some(preset("quality", Check::File(file), next))
    }

    fn evidence_gate(&self) -> Option<Gate> {
        let path = self.evidence.as_ref()?;
        let next = format!("Write at least one piece of evidence that others can check into {path}: what was run, and what came of it.");
        Some(preset("evidence", Check::File(File { entries: 1, ..File::at(path) }), next))
    }

    pub(super) fn request(&self, must_be: Stage, name: &str) -> Gate {
        let check = Check::PullRequest(PullRequest { must_be, merge: self.merge, base: self.base.clone() });
        Gate { next: None, ..preset(name, check, String::new()) }
    }

    pub(super) fn green(&self, required_only: bool, name: &str) -> Gate {
        let check = Check::Ci(Ci { required_only, ..self.ci.clone() });
        Gate { next: None, ..preset(name, check, String::new()) }
    }
}

/// What a preset asks for is measured at every stop: it costs next to nothing, or it is what the loop waits for.
fn preset(name: &str, check: Check, next: String) -> Gate {
    Gate { every_stop: true, next: Some(next), ..Gate::new(name, check, Origin::Loop) }
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
