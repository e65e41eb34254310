//! The project's checks: what `ralph.toml` says, or one that would fit, with the question.

use ralph_core::{
    config::FILE,
    text::{clean, count},
};
use ralph_engine::{
    setup::{
        places::Places,
        ralph_toml::{Draft, RalphToml},
        survey::Survey,
    },
    store::{project::Project, trust::Trust},
};

use super::guide::Guide;
use crate::{exit::Failure, ui};

/// How the project's work can be proven after this step.
pub(super) enum Checks {
    /// By the gates in `ralph.toml`.
    Gates,
    /// By a command that has to be named, this one for instance.
    Command(Option<String>),
    /// Not here: the folder is no project.
    NoProject,
    /// By nothing until `ralph.toml` is fixed, which was said.
    Invalid,
}

/// Tells what there is, or writes and trusts a `ralph.toml` that the person agrees to.
pub(super) fn step(guide: &mut Guide<'_>) -> Result<Checks, Failure> {
    let project = guide.project;
    let survey = Survey::take(&Places::of(project));
    Ok(match RalphToml::look(project, &survey) {
        RalphToml::Exists(Ok((gates, trust))) => exists(&gates, trust),
        RalphToml::Exists(Err(problem)) => {
            ui::paragraph(format!("{} {}", ui::bad("not valid:"), clean(&problem)), 0);
            Checks::Invalid
        }
        RalphToml::Proposed(draft) => propose(guide, &draft)?,
        RalphToml::NothingFound => {
            ui::paragraph("No tests or linters were recognised here.", 0);
            let about = format!(
                "  For instance `make test`. It goes to {FILE}, and a loop may end only when it passes. Without one, name it for each loop with --verify."
            );
            match guide.ask_for("Which command tests this project? (Enter: none)", &about)?.as_str() {
                "" => Checks::Command(None),
                command => propose(guide, &Draft::with_command(project, &survey, command))?,
            }
        }
        RalphToml::ReadOnly => {
            ui::paragraph(format!("{} cannot be written to, so no {FILE} is proposed.", ui::path_from_home(project.root())), 0);
            Checks::Command(None)
        }
        RalphToml::NoProject => Checks::NoProject,
    })
}

fn exists(gates: &[String], trust: Trust) -> Checks {
    let names: Vec<String> = gates.iter().map(|name| clean(name)).collect();
    if names.is_empty() {
        ui::paragraph(format!("{FILE} exists, and has no checks."), 0);
        return Checks::Command(None);
    }
    let trusted = match trust {
        Trust::Trusted => "valid and trusted",
        Trust::Untrusted => "valid, and not trusted yet",
        Trust::Changed => "valid, and changed since you trusted it",
    };
    ui::paragraph(format!("{FILE} exists: {} ({}), {trusted}.", number(names.len()), names.join(", ")), 0);
    Checks::Gates
}

fn propose(guide: &mut Guide<'_>, draft: &Draft) -> Result<Checks, Failure> {
    let project = guide.project;
    show(project, draft);
    let edits = if draft.accepts_edits { "; `ralph run` may edit files without asking" } else { "" };
    if !guide.agrees(&format!("Write {FILE} ({}{edits})?", number(draft.gates.len())), &about(draft))? {
        ui::line(format!("Skipped: no {FILE} was written."));
        return Ok(Checks::Command(draft.gates.first().map(|(_, command)| command.clone())));
    }
    draft.write(project)?;
    guide.did("ralph.toml was written");
    match draft.trust(project) {
        Ok(()) => ui::paragraph(format!("{} {FILE}, and trusted it. When it changes, `ralph trust` asks again.", ui::good("Wrote")), 0),
        Err(e) => {
            ui::paragraph(
                format!("{} {FILE}, but it is not trusted: {}. `ralph trust` asks.", ui::warn("Wrote"), clean(&e.to_string())),
                0,
            );
        }
    }
    Ok(Checks::Gates)
}

fn about(draft: &Draft) -> String {
    let mode = "permission_mode = \"acceptEdits\" is for the sessions of `ralph run`, which cannot ask you: they may edit files, but not run every command.";
    format!(
        "  A loop may end only when the checks in {FILE} pass. ralph runs their commands in this project; you can edit the file at any time. {}",
        if draft.accepts_edits { mode } else { "" }
    )
}

/// The whole file but for its empty lines: nothing is written that was not seen.
fn show(project: &Project, draft: &Draft) {
    ui::paragraph(format!("{} {}", ui::bold("will write"), ui::path_from_home(&project.root().join(FILE))), 11);
    for line in draft.text.lines().filter(|line| !line.is_empty()) {
        let line = clean(line);
        let line = match line.split_once("# ") {
            Some((before, comment)) => format!("{before}{}", ui::dim(format!("# {comment}"))),
            None => line,
        };
        ui::paragraph(format!("    {line}"), 6);
    }
}

/// For a dry run; returns the commands of its checks, if there is one.
pub(super) fn show_draft(project: &Project, survey: &Survey) -> Option<Vec<String>> {
    let RalphToml::Proposed(draft) = RalphToml::look(project, survey) else { return None };
    show(project, &draft);
    Some(draft.gates.into_iter().map(|(_, command)| command).collect())
}

/// For scripts, which did not ask for it: what `--yes` would write.
pub(super) fn offer(project: &Project, survey: &Survey) {
    if let RalphToml::Proposed(draft) = RalphToml::look(project, survey) {
        let names: Vec<&str> = draft.gates.iter().map(|(name, _)| name.as_str()).collect();
        let what = format!(
            "`ralph init --yes` also writes {FILE}, with {} ({}), and lets the agent run them.",
            number(names.len()),
            names.join(", ")
        );
        ui::paragraph(ui::dim(what), 0);
    }
}

fn number(checks: usize) -> String {
    count(checks as u64, "check", "checks")
}
