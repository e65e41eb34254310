//! Shared by `init` and `uninstall`: the scopes, showing a change, and making it.

use std::path::Path;

use ralph_core::text::{self, clean, count};
use ralph_engine::setup::{Plan, file_change::Change, places::Scope, record::Records};
use similar::TextDiff;

use crate::{exit::Failure, ui};

/// The reach of the set-up.
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

/// One line for each settings file and for all commands, and what the person should know. `parts`: what changes in settings that stay.
pub(crate) fn summarise(plan: &Plan, parts: &str) {
    let (settings, commands): (Vec<&Change>, Vec<&Change>) = plan.changes.iter().partition(|change| is_settings(change));
    for change in settings {
        let parts = if change.after.is_some() { parts } else { "" };
        ui::paragraph(format!("{} {}{parts}", will(change), ui::path_from_home(&change.path)), 12);
    }
    for row in commands.chunk_by(|a, b| a.path.parent() == b.path.parent() && will(a) == will(b)) {
        let folder = ui::path_from_home(row[0].path.parent().unwrap_or(Path::new("")));
        ui::paragraph(format!("{} {} in {folder}", will(row[0]), count(row.len() as u64, "command", "commands")), 12);
    }
    tell_notes(plan);
}

fn will(change: &Change) -> String {
    ui::bold(match (&change.before, &change.after) {
        (None, _) => "will write ",
        (Some(_), Some(_)) => "will change",
        (Some(_), None) => "will remove",
    })
}

fn is_settings(change: &Change) -> bool {
    change.path.extension().is_some_and(|ending| ending == "json" || ending == "js")
}

fn tell_notes(plan: &Plan) {
    for note in &plan.notes {
        ui::paragraph(format!("{} {}", ui::warn("note:"), clean(note)), 0);
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
    tell_notes(plan);
    Ok(!plan.changes.is_empty())
}

/// A settings file as a difference; a whole new or old file as one line.
fn show(change: &Change) {
    let path = clean(&change.path.display().to_string());
    let is_settings = is_settings(change);
    match (&change.before, &change.after) {
        (None, Some(_)) if !is_settings => ui::line(format!("{} {path}", ui::good("new    "))),
        (Some(_), None) if !is_settings => ui::line(format!("{} {path}", ui::warn("removed"))),
        (before, after) => {
            let word = match (before, after) {
                (None, _) => "new    ",
                (Some(_), Some(_)) => "changed",
                (Some(_), None) => "removed",
            };
            ui::line(format!("{} {path}", ui::bold(word)));
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
    ui::line(ui::dim(format!("    ({} added, {} removed in {path})", text::count(count('+') as u64, "line", "lines"), count('-'))));
}
