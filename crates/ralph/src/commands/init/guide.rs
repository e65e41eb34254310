//! The steps of `ralph init` in a terminal: each is shown, asked for, done and told before the next one.

use ralph_core::text::clean;
use ralph_engine::{
    ops::command_sources::Source,
    setup::{
        permissions::{Fate, Permissions},
        places::Places,
        survey::Survey,
    },
    store::project::Project,
};

use super::{
    Args, agents,
    checks::{self, Checks},
    registration, rules,
};
use crate::{
    commands::trust,
    doctor::{Case, Finding, Repair, Severity},
    exit::{Done, Failure},
    journal_lines::quoted,
    term::ask::{self, Answer},
    ui,
};

/// The person's answers, and what was done so far.
pub(super) struct Guide<'a> {
    pub(super) project: &'a Project,
    pub(super) args: &'a Args,
    done: Vec<&'static str>,
}

pub(super) fn run(project: &Project, args: &Args) -> Done {
    let mut guide = Guide { project, args, done: Vec::new() };
    let checks = checks::step(&mut guide)?;
    let is_trusted = guide.trust()?;
    rules::step(&mut guide)?;
    let is_registered = registration::step(&mut guide)?;
    let others = agents::step(&mut guide)?;
    guide.examine(&checks, is_trusted)?;
    next(project, &checks, is_trusted, is_registered);
    agents::mention(&others);
    Ok(())
}

impl Guide<'_> {
    /// Whether the person agrees, which `--yes` says beforehand. To quit is an error: it ends the guide, and says what was done until then.
    pub(super) fn agrees(&self, question: &str, about: &str) -> Result<bool, Failure> {
        let answer = if self.args.yes { Answer::Yes } else { ask::ask(question, Answer::Yes, about) };
        self.is_yes(answer)
    }

    /// What the person types; nothing where `--yes` answers, which knows no words.
    pub(super) fn ask_for(&self, question: &str, about: &str) -> Result<String, Failure> {
        if self.args.yes {
            return Ok(String::new());
        }
        ask::ask_for(question, about).map_or_else(|| self.is_yes(Answer::Quit).map(|_| String::new()), Ok)
    }

    pub(super) fn is_yes(&self, answer: Answer) -> Result<bool, Failure> {
        match answer {
            Answer::Yes => Ok(true),
            Answer::No => Ok(false),
            Answer::Quit => {
                let done = self.done.join(", ");
                let how =
                    if done.is_empty() { "Stopped: nothing was changed.".to_owned() } else { format!("Stopped. Done before: {done}.") };
                ui::paragraph(how, 0);
                Err(Failure::reported())
            }
        }
    }

    pub(super) fn did(&mut self, what: &'static str) {
        self.done.push(what);
    }

    /// Offers to trust the commands that the repository brings, as `ralph trust` does; tells whether all of them may run then. `--yes` does not
    /// answer this one: somebody has to read them.
    fn trust(&mut self) -> Result<bool, Failure> {
        let (sources, _) = Source::all(self.project);
        let new: Vec<&Source> = sources.iter().filter(|source| !source.trust.is_trusted()).collect();
        let matters = new.iter().any(|source| source.of_loops);
        if !matters || self.args.yes {
            return Ok(!matters);
        }
        trust::review(self.project, &new);
        if !self.is_yes(trust::ask_to_trust(&new))? {
            ui::line("Skipped: these commands do not run before you trust them (`ralph trust`).");
            return Ok(false);
        }
        trust::allow(self.project, &new)?;
        self.did("the commands are trusted");
        Ok(true)
    }

    /// Looks at the whole setup, offers to have git ignore ralph's own files, and tells only what is wrong.
    fn examine(&mut self, checks: &Checks, is_trusted: bool) -> Done {
        let case = Case::of(self.project);
        let mut problems: Vec<Finding> = case.examine().into_iter().filter(|f| f.severity >= Severity::Warning).collect();
        let mut done = "";
        let at = problems.iter().position(|f| matches!(f.repair, Some(Repair::Exclude { .. })));
        if let Some(at) = at
            && self.ignore(&case, &problems[at])?
        {
            problems.remove(at);
            done = "Changed .git/info/exclude. ";
        }
        if problems.is_empty() {
            ui::paragraph(format!("{done}{} (`ralph doctor`).", ui::good("Everything checks out")), 0);
        } else if !done.is_empty() {
            ui::line(done.trim_end());
        }
        // What the steps have told already, or the end tells.
        let was_told = |finding: &&Finding| match finding.id {
            "gates.settings" => matches!(checks, Checks::Invalid),
            "gates.trust" => !is_trusted,
            _ => false,
        };
        problems.iter().filter(|finding| !was_told(finding)).for_each(tell);
        Ok(())
    }

    /// Offers the repair that `ralph doctor --fix` would make; tells whether it was made.
    fn ignore(&mut self, case: &Case, finding: &Finding) -> Result<bool, Failure> {
        let Some(repair @ Repair::Exclude { lines, .. }) = &finding.repair else { return Ok(false) };
        let named: Vec<&str> = lines.iter().take(2).map(|line| line.trim_start_matches("**/")).collect();
        let named: Vec<&str> =
            named.iter().enumerate().map(|(i, name)| if i == 0 { name } else { name.trim_start_matches(".claude/") }).collect();
        let what = named.join(if lines.len() > 2 { ", " } else { " and " });
        let more = if lines.len() > 2 { " and ralph's other files here" } else { "" };
        let about = "  A loop is a file in .claude that is yours alone, and should not be committed. .git/info/exclude is git's list of files to ignore in \
                     this clone; it is never committed itself.";
        if !self.agrees(&format!("Have git ignore {}{more}?", clean(&what)), about)? {
            return Ok(false);
        }
        if let Err(failure) = repair.make(case) {
            ui::paragraph(format!("{} {}", ui::warn("not done:"), clean(&failure.message)), 0);
            return Ok(false);
        }
        self.did(".git/info/exclude was changed");
        Ok(true)
    }
}

pub(super) fn tell(finding: &Finding) {
    let mark = if finding.severity == Severity::Error { ui::bad("✗") } else { ui::warn("!") };
    let fix = match (&finding.fix, &finding.advice) {
        (Some(command), _) => format!("Fix: {}", ui::bold(clean(command))),
        (None, advice) => clean(advice.as_deref().unwrap_or_default()),
    };
    ui::paragraph(format!("{mark} {}. {fix}", clean(&finding.what)), 2);
}

fn next(project: &Project, checks: &Checks, is_trusted: bool, is_registered: bool) {
    const TASK: &str = "Fix the failing tests";
    let flag = match checks {
        Checks::Gates => String::new(),
        Checks::Command(one) => format!(" --verify {}", one.as_deref().map_or_else(|| "COMMAND".to_owned(), quoted)),
        Checks::NoProject => {
            ui::line(format!("Next: {}, in a project", ui::bold("ralph init")));
            return in_client("/ralph-loop TASK --promise DONE", is_registered);
        }
        Checks::Invalid => return ui::line(format!("Next: fix ralph.toml, then {}", ui::bold("ralph init"))),
    };
    if !is_trusted {
        ui::line(format!("Next: {}, which shows the commands and asks", ui::bold("ralph trust")));
    }
    ui::paragraph(
        format!(
            "{} {}",
            if is_trusted { "Next:" } else { "Then:" },
            ui::bold(format!("ralph run \"{TASK}\"{flag}{}", mode(project, checks)))
        ),
        6,
    );
    in_client(&format!("/ralph-loop {TASK}{flag}"), is_registered);
}

/// Without a `ralph.toml` that says so, a session of a run could not edit files.
fn mode(project: &Project, checks: &Checks) -> &'static str {
    let asks = || {
        let (permissions, _) = Permissions::unattended(&Survey::take(&Places::of(project)), project.root(), None);
        permissions.fate("Edit") == Fate::Asked
    };
    if matches!(checks, Checks::Command(_)) && asks() { " --permission-mode acceptEdits" } else { "" }
}

/// The command stands last in its line: people copy from there to the end.
fn in_client(command: &str, is_registered: bool) {
    if is_registered {
        ui::paragraph(format!("  or, in Claude Code: {}", ui::bold(command)), 6);
    }
}
