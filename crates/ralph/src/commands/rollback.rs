//! `ralph rollback`: the files as they were after an earlier iteration.

use ralph_core::text::{clean, count};
use ralph_engine::{
    ops::rollback::{self, RolledBack, Wish},
    store::project::Project,
};

use crate::{
    commands::{agreed, asker},
    exit::Done,
    find_loop,
    journal_lines::short,
    term::ask::{self, Answer},
    ui,
};

/// More names than this are counted.
const FEW: usize = 20;

/// Put the files back to what they were after an earlier iteration
///
/// What is there now is kept first, as before-rollback-1 and so on, and comes back the same way. If the files changed since the last iteration, nothing is
/// done unless you say --force. What git ignores stays as it is, and so do the index, the branch and its commits: `git status` shows the way back as changes.
/// With --commits the branch goes back as well; that is refused if those commits are pushed. The loop must not be at work: pause it first. Its iteration stays.
/// In a terminal it shows what would change and asks first.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph rollback 3 --dry-run
  ralph rollback 3
  ralph rollback 3 --commits
  ralph rollback before-rollback-1")]
pub(crate) struct Args {
    /// The iteration; 0 is the moment before the first one. Or the name of another snapshot
    #[arg(value_name = "N")]
    to: String,
    /// A loop's name or id, as `ralph status --all` shows them; one that ended, too
    #[arg(value_name = "LOOP")]
    which: Option<String>,
    /// The same, as an option
    #[arg(long = "loop", value_name = "LOOP", hide = true, conflicts_with = "which")]
    of_loop: Option<String>,
    /// The branch goes back to the commit of that iteration, too
    #[arg(long)]
    commits: bool,
    /// Even if the files changed since the last iteration; that work is kept first
    #[arg(long)]
    force: bool,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do not ask, in a terminal
    #[arg(short, long)]
    yes: bool,
    /// For programs: what was done as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let id = find_loop::with_snapshots(project, args.which.as_deref().or(args.of_loop.as_deref()))?;
    let wish = Wish { loop_id: &id, to: &args.to, force: args.force, commits: args.commits, dry_run: args.dry_run };
    if !(args.yes || args.dry_run || args.json) && ask::is_possible() {
        show(&rollback::rollback(project, Wish { dry_run: true, ..wish }, &asker())?);
        let about = "Yes makes the files what they were then; a snapshot of how they are now is kept.";
        agreed(ask::ask("Put the files back?", Answer::No, about), "nothing was changed")?;
    }
    let done = rollback::rollback(project, wish, &asker())?;
    if args.json {
        ui::json(&done);
    } else {
        show(&done);
    }
    Ok(())
}

fn show(done: &RolledBack) {
    let (words, id) = (done.to.words(), clean(&done.of_loop));
    let all = [("changed", &done.changed), ("back", &done.brought_back), ("removed", &done.removed)];
    if done.dry_run {
        ui::paragraph(format!("Nothing was done. The files would be as they were at {words} of {id}:"), 0);
    } else {
        ui::paragraph(format!("The files are as they were at {words} of {id}."), 0);
    }
    for (label, paths) in all {
        for path in paths.iter().take(FEW) {
            ui::field(label, path);
        }
        if paths.len() > FEW {
            ui::field(label, format!("and {} more", paths.len() - FEW));
        }
    }
    if all.iter().all(|(_, paths)| paths.is_empty()) {
        ui::field("files", "all as they were");
    }
    for path in &done.repositories {
        ui::field("submodule", format!("{path} stood at another commit then, and stays where it is"));
    }
    branch(done);
    if let Some(kept) = &done.kept {
        let name = kept.name.rsplit('/').next().unwrap_or_default();
        ui::field("kept", format!("what was there before: `ralph rollback {name}` brings it back"));
        for path in &kept.left_out {
            ui::field("not kept", format!("{path}; it stays where it is"));
        }
    }
    if let Some(iteration) = done.iteration {
        ui::field("loop", format!("its iteration stays at {iteration}"));
    }
}

fn branch(done: &RolledBack) {
    let branch = done.branch.as_deref().map_or("HEAD", |name| name.trim_start_matches("refs/heads/"));
    let above = count(done.commits_above.len() as u64, "commit", "commits");
    let before = short(done.head_before.as_deref());
    match &done.moved_to {
        Some(to) if done.dry_run => ui::field("branch", format!("{branch} would go from {before} to {}: {above} less", short(Some(to)))),
        Some(to) => ui::field("branch", format!("{branch} went from {before} to {}; `git reset {before}` undoes that", short(Some(to)))),
        None if !done.commits_above.is_empty() => {
            let how = format!("`ralph rollback {} --commits` takes the branch back, too", clean(&done.to.name));
            ui::field("branch", format!("{branch} stays at {before}, with {above} since then; {how}"));
            for commit in done.commits_above.iter().take(FEW) {
                ui::field("commit", commit);
            }
        }
        None => {}
    }
}
