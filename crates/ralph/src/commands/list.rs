//! `ralph list`: every loop of this project, live and ended.

use ralph_core::text::{clean, of_limit, time::in_words};
use ralph_engine::{
    store::{known_projects, project::Project},
    view::{
        self, View, status,
        worktrees::{self, Beside},
    },
};

use crate::{
    commands::worktree_hint,
    exit::Done,
    journal_lines::last_event,
    term::width::{columns, cut},
    ui,
};

const HEADS: [&str; 7] = ["FOLDER", "LOOP", "STATUS", "ITERATION", "TIME", "LAST EVENT", "PROMPT"];
const GAP: usize = 2;
/// Less of a prompt than this says nothing.
const SHORTEST_PROMPT: usize = 12;

/// List the loops of this project, live and ended; now `ralph status --all`
///
/// Those that are live come first, then those that ended, the last one first. On a narrow terminal columns are left out; a pipe gets all of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph list
  ralph list --all
  ralph list --json | jq -r '.[] | [.id, .status] | @tsv'")]
pub(crate) struct Args {
    /// The loops of all your projects
    #[arg(short, long)]
    all: bool,
    /// For programs: JSON
    #[arg(long)]
    json: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "every command ends the same way")]
pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let projects = if args.all { known_projects::with(project) } else { vec![project.clone()] };
    let mut all: Vec<View> = projects.iter().flat_map(|project| view::live(project).into_iter().chain(view::ended(project))).collect();
    let mut beside: Vec<Beside> = projects.iter().flat_map(worktrees::live_or_last).collect();
    if args.all {
        all.sort_by_key(|view| !view.is_live());
        beside.retain(|beside| !status::is_among(&beside.folder, &projects));
    }
    if args.json {
        let own = all.iter().map(serde_json::to_value);
        let all: Result<Vec<serde_json::Value>, _> = own.chain(beside.iter().map(serde_json::to_value)).collect();
        ui::json(&all.unwrap_or_default());
        return Ok(());
    }
    if all.is_empty() && beside.is_empty() {
        ui::line(if args.all { "No loop has run in any project yet." } else { "No loop has run in this project yet." });
    } else if !all.is_empty() {
        show(&all, usize::from(!args.all));
    }
    beside.iter().for_each(worktree_hint::show);
    Ok(())
}

/// The table, without the first columns.
fn show(all: &[View], without: usize) {
    let heads = HEADS.map(str::to_owned);
    let cells: Vec<Vec<String>> = std::iter::once(heads).chain(all.iter().map(row)).map(|row| row[without..].to_vec()).collect();
    let mut widths: Vec<usize> = (0..HEADS.len() - without).map(|n| cells.iter().map(|row| columns(&row[n])).max().unwrap_or(0)).collect();
    if let Some(width) = ui::width() {
        fit(&mut widths, width);
    }
    for (n, cells) in cells.iter().enumerate() {
        let line = line(cells, &widths);
        let plain = n.checked_sub(1).is_some_and(|n| all[n].is_live());
        ui::line(if plain { line } else { ui::dim(line) });
    }
}

fn row(v: &View) -> [String; 7] {
    [
        ui::path_from_home(&v.project),
        clean(&v.id),
        v.carried().map_or_else(|| v.stands().to_owned(), |carried| format!("{}, {carried}", v.stands())),
        of_limit(v.iteration, v.max_iterations),
        in_words(v.spent_ms),
        last_event(v),
        clean(&v.prompt),
    ]
}

/// Makes a table fit: the prompt takes what is left, and where that is not worth it, columns are left out from the right.
fn fit(widths: &mut Vec<usize>, width: usize) {
    let but_last = |widths: &[usize]| widths.iter().rev().skip(1).map(|w| w + GAP).sum::<usize>();
    let left = width.saturating_sub(but_last(widths));
    if let Some(prompt) = widths.last_mut().filter(|_| left >= SHORTEST_PROMPT) {
        *prompt = left.min(*prompt);
        return;
    }
    widths.pop();
    while widths.len() > 1 && but_last(widths) + widths.last().unwrap_or(&0) > width {
        widths.pop();
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut out = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let cell = cut(cell, *width);
        out.push_str(&cell);
        out.extend(std::iter::repeat_n(' ', width - columns(&cell) + GAP));
    }
    out.trim_end().to_owned()
}
