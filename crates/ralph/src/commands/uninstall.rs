//! `ralph uninstall`: undo what `ralph init` did.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_core::{
    config,
    text::{clean, count},
};
use ralph_engine::{
    setup::{
        Plan,
        file_change::Change,
        places::{Places, Scope},
        purge::Purge,
        record::Records,
        survey::{Origin, Survey},
        uninstall,
    },
    store::project::Project,
    view,
};

use crate::{
    commands::{
        agreed, fleet,
        setup::{self, Scopes},
    },
    exit::{Done, Failure},
    journal_lines::quoted,
    term::ask::{self, Answer},
    ui,
};

const MOST_PROJECTS: usize = 20;

/// Remove the hook and the commands, and restore every file
///
/// Without a scope: what is yours, here and in all projects, and the project's settings if it was you who set them up. In a terminal it asks first.
/// Loops, journals, ralph.toml and the program stay; the last lines say what to do about them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph uninstall
  ralph uninstall --local
  ralph uninstall --dry-run        show every line that would change
  ralph uninstall --purge          and delete what ralph remembers")]
pub(crate) struct Args {
    #[command(flatten)]
    scopes: Scopes,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Also delete what ralph remembers: .ralph with its journals and reports, its state folder, refs/ralph and its lines in git's list of ignored files
    ///
    /// With --local or --project only this project's part of the state folder goes. Shows the list and asks first. Working trees stay: they may have work in them.
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let purge = Purge::of(project, matches!(args.scopes.one(), None | Some(Scope::User)));
    if args.purge {
        may_purge(project, &purge, args)?;
    }
    undo(project, args)?;
    if args.dry_run {
        return Ok(());
    }
    uninstall::remove_empty_folder(project);
    if args.purge {
        purge.carry_out(project)?;
        ui::line(if purge.is_empty() { "There is nothing to delete." } else { "Deleted." });
    }
    say_what_stays(project, &purge, args.purge);
    Ok(())
}

fn say_what_stays(project: &Project, purge: &Purge, is_purged: bool) {
    let settings = project.root().join(config::FILE);
    let mut stays: Vec<String> = fs::symlink_metadata(&settings).is_ok().then(|| ui::path_from_home(&settings)).into_iter().collect();
    if !is_purged {
        let known = stays.len();
        stays.extend(purge.remembering().into_iter().map(ui::path_from_home));
        stays.extend((!purge.snapshots.is_empty()).then(|| "refs/ralph in git".to_owned()));
        let line = |lines: &[String]| if lines.len() == 1 { "the line" } else { "the lines" };
        stays.extend(purge.excluded.as_ref().map(|(_, lines)| format!("{} for ralph in .git/info/exclude", line(lines))));
        if stays.len() > known {
            let way = "`ralph uninstall --purge` deletes what ralph remembers of its loops.";
            ui::paragraph(format!("What stays: {}. {way}", stays.join(", ")), 0);
            stays.clear();
        }
    }
    if !stays.is_empty() {
        ui::paragraph(format!("What stays: {}.", stays.join(", ")), 0);
    }
    if let Ok(program) = std::env::current_exe() {
        let (stays, it) = if fleet::beside(&program).is_some() { ("programs stay", "them") } else { ("program stays", "it") };
        ui::paragraph(format!("The {stays}, too: `{}` removes {it}.", clean(&removal(&program))), 0);
    }
}

/// The command that removes a program, and `ralph-fleet` with it, by the folder that they were installed into.
fn removal(program: &Path) -> String {
    let is_in = |folder: &str| program.to_string_lossy().contains(folder);
    let fleet = fleet::beside(program);
    match () {
        () if is_in("/.cargo/bin/") || is_of_cargo(program) => {
            format!("cargo uninstall ralph-loop{}", if fleet.is_some() { " ralph-fleet" } else { "" })
        }
        () if is_in("/node_modules/") => "npm uninstall -g @ralph-loop/ralph".to_owned(),
        () if is_in("/Cellar/") => "brew uninstall ralph-loop".to_owned(),
        () if program.starts_with("/usr/bin") => "sudo apt remove ralph-loop".to_owned(),
        () => {
            let all = std::iter::once(program.to_owned()).chain(fleet);
            format!("rm {}", all.map(|path| quoted(&path.display().to_string())).collect::<Vec<_>>().join(" "))
        }
    }
}

/// Whether `cargo install` put it there: it keeps a list beside the folder `bin`, wherever it was told to install to.
fn is_of_cargo(program: &Path) -> bool {
    let root = program.parent().filter(|folder| folder.ends_with("bin")).and_then(Path::parent);
    let list = root.and_then(|root| fs::read_to_string(root.join(".crates.toml")).ok());
    list.is_some_and(|list| list.contains("ralph-loop "))
}

fn may_purge(project: &Project, purge: &Purge, args: &Args) -> Done {
    if let Some(live) = view::live(project).first() {
        return Err(Failure::new(format!("the loop {} is live: `ralph cancel` ends it. Nothing was changed", clean(&live.id))));
    }
    let elsewhere = purge.projects.iter().map(Project::at).find(|other| !view::live(other).is_empty());
    if let Some(other) = elsewhere {
        let place = ui::path_from_home(other.root());
        return Err(Failure::new(format!(
            "a loop is live in {place}, and what ralph knows of it would go: `ralph cancel` ends it. Nothing was changed"
        )));
    }
    for path in &purge.folders {
        ui::line(format!("{} {}", ui::warn("delete "), ui::path_from_home(path)));
    }
    tell_projects(&purge.projects);
    if !purge.snapshots.is_empty() {
        ui::paragraph(
            format!("{} refs/ralph: the files after each iteration of {}", ui::warn("delete "), clean(&purge.snapshots.join(", "))),
            8,
        );
    }
    if let Some((file, lines)) = &purge.excluded {
        ui::paragraph(format!("{} in {}: {}", ui::warn("delete "), ui::path_from_home(file), clean(&lines.join(", "))), 8);
    }
    for tree in &purge.worktrees {
        ui::line(format!("{} {} (`git worktree remove` takes it away)", ui::good("stays  "), ui::path_from_home(tree)));
    }
    for fleet in &purge.fleets {
        ui::line(format!("{} {} (work of a fleet that has not landed may be nowhere else)", ui::good("stays  "), ui::path(fleet)));
    }
    if args.dry_run || args.yes || purge.is_empty() {
        return Ok(());
    }
    if !ask::is_possible() {
        return Err(Failure::new("nothing was changed: there is no terminal to ask in. `ralph uninstall --purge --yes` does not ask"));
    }
    let about = "  ralph's memory of its loops goes for good: journals, reports, and what you have trusted. Your own files stay.";
    agreed(ask::ask("Delete all of this, and uninstall?", Answer::No, about), "nothing was changed")
}

/// The projects whose memory goes with the state folder: it is about more than the one that a person stands in.
fn tell_projects(projects: &[PathBuf]) {
    if projects.is_empty() {
        return;
    }
    let known = count(projects.len() as u64, "project", "projects");
    ui::paragraph(format!("        with what ralph remembers of {known}:"), 8);
    for project in projects.iter().take(MOST_PROJECTS) {
        ui::line(format!("          {}", ui::path_from_home(project)));
    }
    if let more @ 1.. = projects.len().saturating_sub(MOST_PROJECTS) {
        ui::line(format!("          and {more} more"));
    }
}

/// Whether the person agrees. A script is not asked, nor is a person who has just answered for `--purge`.
fn may_undo(plan: &Plan, args: &Args) -> Done {
    if plan.changes.is_empty() || args.yes || args.purge || !ask::is_possible() {
        return Ok(());
    }
    let about = "  Claude Code does not call ralph any more, and no loop holds an agent. Each file becomes what it was before `ralph init`; \
                 `ralph uninstall --dry-run` shows every line.";
    agreed(ask::ask("Uninstall ralph from Claude Code?", Answer::Yes, about), "nothing was changed")
}

fn undo(project: &Project, args: &Args) -> Done {
    let places = Places::of(project);
    let records = Records::of_user();
    let survey = Survey::take(&places);
    let scopes = args.scopes.one().map_or_else(|| uninstall::own_scopes(&places, &records), |scope| vec![scope]);
    let (plan, problems) = uninstall::plan(&places, &survey, &records, &scopes);
    if args.dry_run {
        setup::carry_out(&plan, &records, true)?;
    } else {
        plan.changes.iter().try_for_each(Change::check)?;
        setup::summarise(&plan, " (takes out what ralph put in)");
        may_undo(&plan, args)?;
        // Each change is made only if its file is still as it was read: the question may have waited for long.
        let _alone = Records::alone();
        plan.carry_out(&records, |_| ())?;
    }
    let changed = !plan.changes.is_empty();
    ui::line(match (changed, args.dry_run) {
        (false, _) => "There is nothing to undo: the hook is registered in none of these files.",
        (true, true) => "Nothing was changed: this was a dry run.",
        (true, false) => "Undone.",
    });
    if let Some(plugin) = survey.our_plugin() {
        ui::line(format!("The plugin is still installed: `claude plugin uninstall {}` removes it.", clean(&quoted(&plugin.id))));
    }
    if changed && !args.dry_run && !view::live(project).is_empty() {
        ui::line("A loop is live in this project; without the hook, agents may stop at any time. `ralph cancel` archives it.");
    }
    let of_project = survey.ours().iter().any(|r| r.origin == Origin::Settings(Scope::Project));
    if of_project && !scopes.contains(&Scope::Project) {
        ui::line("The project's settings register it for everyone; `ralph uninstall --project` removes it there.");
    }
    match problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(problem.into()),
    }
}
