//! `ralph item`: the items of a list, and marking one as done.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::ValueEnum;
use ralph_core::{
    feature_list::{Format, Item},
    gate::{Check, Gate},
    words::{clean, opening},
};
use ralph_engine::{
    gates::{Unwatched, Watch, features},
    ops::item::{self, Listed, Marked},
    store::project::Project,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    commands::asker,
    exit::{Done, Failure, told},
    ui,
};

/// Show the items of a list, or mark one as done
///
/// Lists are JSON (feature-list or prd style) and Markdown files with check boxes: those of the loop's gates, those that ralph.toml names, else the one
/// that is there. `done` runs the item's own commands first and changes nothing but that one value. It works where an agent may not write itself.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph item
  ralph item done F-12
  ralph item --list docs/PLAN.md --json | jq -r '.lists[0].items[] | select(.open) | .id'")]
pub(crate) struct Args {
    /// What to do
    #[arg(value_name = "ACTION", default_value = "list")]
    action: Action,
    /// The items that are done
    #[arg(value_name = "ID", required_if_eq("action", "done"))]
    ids: Vec<String>,
    /// The list, where there are several
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// For programs: JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Show them
    List,
    /// Mark them as done, if their own commands pass
    Done,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    told(
        args.json,
        match args.action {
            Action::List => list(project, args),
            Action::Done => done(project, args),
        },
    )
}

fn list(project: &Project, args: &Args) -> Done {
    if let Some(id) = args.ids.first() {
        return Err(Failure::usage(format!("`ralph item list` takes no ids; did you mean `ralph item done {}`?", features::argument(id))));
    }
    let (lists, broken) = item::lists(project, args.list.as_deref(), asker().session.as_deref())?;
    for problem in &broken {
        ui::warning(problem);
    }
    if args.json {
        ui::json(&json!({ "lists": lists.iter().map(in_json).collect::<Vec<_>>() }));
        return Ok(());
    }
    for listed in &lists {
        show(listed);
    }
    Ok(())
}

fn show(listed: &Listed) {
    let (items, open) = (&listed.list.items, listed.list.open().count());
    let state = if open == 0 { ui::good("all marked as done") } else { format!("{open} of {} open", items.len()) };
    ui::paragraph(format!("{}  {state}", ui::bold(clean(&listed.path))), 2);
    for mistake in &listed.list.mistakes {
        ui::warning(mistake);
    }
    for item in items {
        let mark = if item.is_open() { ui::warn("open") } else { ui::good("done") };
        ui::paragraph(format!("  {mark}  {}  {}", ui::bold(clean(&item.id)), opening(&item.title, 200)), 8);
        if let Some(problem) = &item.problem {
            ui::paragraph(format!("        {}", ui::warn(clean(problem))), 8);
        }
    }
    if let Some(next) = listed.next() {
        show_next(next);
    }
}

fn show_next(next: &Item) {
    ui::line(format!("{} {}", ui::bold("Next:"), features::told(next)));
    ui::line(format!("When it is done: ralph item done {}", features::argument(&next.id)));
}

/// Tells which command runs: some take minutes.
struct Shown;

impl Watch for Shown {
    fn begins(&self, gate: &Gate, _limit: Duration) {
        if let Check::Command(command) = &gate.check {
            ui::note(&format!("{}: running `{}`", gate.name, opening(&command.run.shown(), 200)));
        }
    }
}

fn done(project: &Project, args: &Args) -> Done {
    let (mut lists, _) = item::lists(project, args.list.as_deref(), asker().session.as_deref())?;
    let mut marked: Vec<Marked> = Vec::new();
    for id in &args.ids {
        let watch: Arc<dyn Watch> = if args.json { Arc::new(Unwatched) } else { Arc::new(Shown) };
        let one = item::done(project, &mut lists, id, watch)?;
        if !args.json {
            ui::paragraph(in_words(&one), 0);
        }
        marked.push(one);
    }
    let of_last = |listed: &&Listed| marked.last().is_some_and(|m| m.list == listed.path);
    let Some(listed) = lists.iter().find(of_last) else { return Ok(()) };
    let open = listed.list.open().count();
    if args.json {
        let done: Vec<_> = marked.iter().map(|m| json!({ "id": m.id, "list": m.list, "already": m.already, "passed": m.passed })).collect();
        ui::json(&json!({ "done": done, "open": open, "next": listed.next().map(shape) }));
        return Ok(());
    }
    match listed.next() {
        Some(next) => {
            ui::line(format!(
                "{open} of {} {} open.",
                listed.list.items.len(),
                features::noun(listed.list.format, listed.list.items.len())
            ));
            show_next(next);
        }
        None => ui::paragraph(format!("Nothing in {} is open any more.", clean(&listed.path)), 0),
    }
    Ok(())
}

fn in_words(marked: &Marked) -> String {
    let id = ui::bold(clean(&marked.id));
    let proof = match marked.passed {
        0 => String::new(),
        1 => "; its command passes".to_owned(),
        n => format!("; its {n} commands pass"),
    };
    if marked.already { format!("{id} was marked as done already{proof}.") } else { format!("{} {id}{proof}.", ui::good("Done:")) }
}

/// An item for programs.
#[derive(Serialize)]
struct Shape<'i> {
    id: &'i str,
    title: &'i str,
    steps: &'i [String],
    passes: bool,
    /// It is not marked as done, or something is wrong with it.
    open: bool,
    model: Option<&'i str>,
    verify: &'i [String],
    problem: Option<&'i str>,
}

fn shape(item: &Item) -> Shape<'_> {
    Shape {
        id: &item.id,
        title: &item.title,
        steps: &item.steps,
        passes: item.passes,
        open: item.is_open(),
        model: item.model.as_deref(),
        verify: &item.verify,
        problem: item.problem.as_deref(),
    }
}

fn in_json(listed: &Listed) -> serde_json::Value {
    let format = match listed.list.format {
        Format::Features => "features",
        Format::Stories => "stories",
        Format::Markdown => "markdown",
    };
    let items: Vec<Shape<'_>> = listed.list.items.iter().map(shape).collect();
    json!({
        "path": listed.path, "format": format, "total": items.len(), "open": listed.list.open().count(),
        "mistakes": listed.list.mistakes, "items": items,
    })
}
