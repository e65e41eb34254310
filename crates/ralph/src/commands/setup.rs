//! Shared by `init` and `uninstall`: the scopes, showing a change, and making it.

use ralph_core::text::clean;
use ralph_engine::setup::{Plan, change::Change, places::Scope, record::Records};
use similar::TextDiff;

use crate::{exit::Failure, ui};

/// For whom the set-up is.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct Scopes {
    /// For you, in all projects: ~/.claude/settings.json
    #[arg(long)]
    user: bool,
    /// For everyone who works in this project: .claude/settings.json
    #[arg(long)]
    project: bool,
    /// For you, in this project: .claude/settings.local.json
    #[arg(long)]
    local: bool,
}

impl Scopes {
    pub(crate) fn one(&self) -> Option<Scope> {
        let given = [(self.user, Scope::User), (self.project, Scope::Project), (self.local, Scope::Local)];
        given.into_iter().find(|(on, _)| *on).map(|(_, scope)| scope)
    }
}

/// Shows every change and makes it, unless it is only asked for; tells whether there was any.
pub(crate) fn carry_out(plan: &Plan, records: &Records, only_show: bool) -> Result<bool, Failure> {
    if only_show {
        plan.changes.iter().try_for_each(Change::check)?;
        for change in &plan.changes {
            show(change);
        }
    } else {
        plan.carry_out(records, show)?;
    }
    for note in &plan.notes {
        ui::paragraph(format!("{} {}", ui::warn("note:"), clean(note)), 0);
    }
    Ok(!plan.changes.is_empty())
}

/// A settings file as a difference; a whole new or old file as one line.
fn show(change: &Change) {
    let path = clean(&change.path.display().to_string());
    let is_settings = change.path.extension().is_some_and(|e| e == "json");
    match (&change.before, &change.after) {
        (None, Some(_)) if !is_settings => ui::line(format!("{} {path}", ui::good("new    "))),
        (Some(_), None) if !is_settings => ui::line(format!("{} {path}", ui::warn("removed"))),
        (before, after) => {
            ui::line(format!("{} {path}", ui::bold(word(before.is_some(), after.is_some()))));
            show_difference(&path, before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
        }
    }
}

/// The file may be a stranger's: no control character of it reaches the terminal.
fn show_difference(path: &str, before: &str, after: &str) {
    let difference = TextDiff::from_lines(before, after).unified_diff().context_radius(2).to_string();
    for line in difference.lines().filter(|line| !line.starts_with("@@")) {
        let text = clean(&line.replace('\t', "    "));
        ui::line(match text.chars().next() {
            Some('+') => format!("    {}", ui::good(text)),
            Some('-') => format!("    {}", ui::warn(text)),
            _ => format!("    {}", ui::dim(text)),
        });
    }
    // The name of the file may have scrolled away.
    let count = |sign: char| difference.lines().filter(|line| line.starts_with(sign)).count();
    ui::line(ui::dim(format!(
        "    ({} added, {} removed in {path})",
        ralph_core::text::count(count('+') as u64, "line", "lines"),
        count('-')
    )));
}

fn word(was: bool, is: bool) -> &'static str {
    match (was, is) {
        (false, _) => "new    ",
        (true, true) => "changed",
        (true, false) => "removed",
    }
}
