//! `ralph item`: the items of a list, and marking one as done.

use std::{path::PathBuf, sync::Arc};

use clap::builder::{PossibleValue, TypedValueParser};
use ralph_core::{
    gate::{
        Check, Gate,
        list::{Format, Item},
    },
    text::{clean, opening},
};
use ralph_engine::{
    gates::{Unwatched, Watch, durations::Time, features},
    ops::item::{self, Listed, Marked},
    store::project::Project,
};
use serde_json::{Value, json};

use crate::{commands::asker, exit::Done, ui};

/// Show the items of a list, or mark one as done
///
/// Lists are JSON (feature-list or prd style) and Markdown files with check boxes: those of the loop's gates, those that ralph.toml names, else the one
/// that is there. Ids are those of the list; a check box without a label is called item-1, item-2 and so on. `done` runs the item's own commands first
/// and changes nothing but that one value; it ticks the boxes below a check box, too. It works where an agent may not write itself.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph item
  ralph item F-12
  ralph item done F-12
  ralph item --list docs/PLAN.md --json | jq -r '.lists[0].items[] | select(.open) | .id'")]
pub(crate) struct Args {
    /// What to do; the id of an item shows that one
    #[arg(value_name = "ACTION", default_value = "list", value_parser = ActionParser)]
    action: Action,
    /// The items that are meant
    #[arg(value_name = "ID", required_if_eq("action", "done"))]
    ids: Vec<String>,
    /// The list, where there are several
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// For programs: JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum Action {
    List,
    Done,
    Show(String),
}

/// An action by its name; everything else is the id of an item.
#[derive(Clone)]
struct ActionParser;

impl TypedValueParser for ActionParser {
    type Value = Action;

    fn parse_ref(&self, _: &clap::Command, _: Option<&clap::Arg>, value: &std::ffi::OsStr) -> Result<Action, clap::Error> {
        Ok(match value.to_string_lossy().as_ref() {
            "list" => Action::List,
            "done" => Action::Done,
            id => Action::Show(id.to_owned()),
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let list = PossibleValue::new("list").help("Show them");
        Some(Box::new([list, PossibleValue::new("done").help("Mark them as done, if their own commands pass")].into_iter()))
    }
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    match &args.action {
        Action::List => list(project, args, &args.ids),
        Action::Show(id) => list(project, args, &[std::slice::from_ref(id), &args.ids].concat()),
        Action::Done => done(project, args),
    }
}

/// Whole lists, or the items of these ids.
fn list(project: &Project, args: &Args, ids: &[String]) -> Done {
    let (lists, broken) = Listed::all(project, args.list.as_deref(), asker().session.as_deref())?;
    let chosen = ids.iter().map(|id| Listed::find(&lists, id)).collect::<Result<Vec<_>, _>>()?;
    for problem in &broken {
        ui::warning(problem);
    }
    if args.json {
        let of_list = |(n, listed): (usize, &Listed)| {
            let places: Vec<usize> = chosen.iter().filter(|(holder, _)| *holder == n).map(|(_, place)| *place).collect();
            (ids.is_empty() || !places.is_empty()).then(|| in_json(listed, &places))
        };
        ui::json(&json!({ "lists": lists.iter().enumerate().filter_map(of_list).collect::<Vec<_>>() }));
        return Ok(());
    }
    for (holder, place) in &chosen {
        show_one(&lists[*holder], &lists[*holder].list.items[*place], &hint(args, &lists, *holder));
    }
    if chosen.is_empty() {
        for (n, listed) in lists.iter().enumerate() {
            show(listed, &hint(args, &lists, n));
        }
    }
    Ok(())
}

/// How an item of this list is marked as done, without its id: the list is named where it was, or where the id alone would not tell.
fn hint(args: &Args, lists: &[Listed], holder: usize) -> String {
    let named = args.list.as_ref().map(|path| path.display().to_string());
    let next = lists[holder].next().map(|item| item.id.as_str());
    let is_elsewhere = || next.is_some_and(|id| lists.iter().filter(|listed| listed.list.find(id).is_some()).count() > 1);
    let list = named.or_else(|| is_elsewhere().then(|| lists[holder].path.clone()));
    list.map_or_else(|| "ralph item done".to_owned(), |path| format!("ralph item done --list {}", features::argument(&path)))
}

fn show_one(listed: &Listed, item: &Item, hint: &str) {
    let mark = if item.is_open() { ui::warn("open") } else { ui::good("done") };
    ui::paragraph(format!("{}  {mark}", ui::bold(clean(&listed.path))), 2);
    ui::line(features::told(item));
    if item.is_open() {
        show_hint(item, hint);
    }
}

fn show_hint(item: &Item, hint: &str) {
    ui::line(format!("When it is done: {hint} {}", features::argument(&item.id)));
}

fn show(listed: &Listed, hint: &str) {
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
        show_next(next, hint);
    }
}

fn show_next(next: &Item, hint: &str) {
    ui::line(format!("{} {}", ui::bold("Next:"), features::told(next)));
    show_hint(next, hint);
}

/// Tells which command runs: some take minutes.
struct Shown;

impl Watch for Shown {
    fn begins(&self, gate: &Gate, _time: Time) {
        if let Check::Command(command) = &gate.check {
            ui::note(&format!("{}: running `{}`", gate.name, opening(&command.run.shown(), 200)));
        }
    }
}

fn done(project: &Project, args: &Args) -> Done {
    let (mut lists, _) = Listed::all(project, args.list.as_deref(), asker().session.as_deref())?;
    let mut marked: Vec<Marked> = Vec::new();
    for id in &args.ids {
        let watch: Arc<dyn Watch> = if args.json { Arc::new(Unwatched) } else { Arc::new(Shown) };
        let one = item::done(project, &mut lists, id, watch)?;
        if !args.json {
            ui::paragraph(in_words(&one), 0);
        }
        marked.push(one);
    }
    let of_last = |listed: &Listed| marked.last().is_some_and(|m| m.list == listed.path);
    let Some(holder) = lists.iter().position(of_last) else { return Ok(()) };
    let listed = &lists[holder];
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
            show_next(next, &hint(args, &lists, holder));
        }
        None if open > 0 => ui::line("The loop's item is done; the others are for other loops."),
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

/// An item for programs. `open`: it is not marked as done, or something is wrong with it; `boxes`: for each step whether its box is ticked.
fn shape(item: &Item) -> Value {
    let mut shape = json!({
        "id": item.id, "title": item.title, "steps": item.steps, "passes": item.passes, "open": item.is_open(), "model": item.model,
        "agent": item.agent, "pool": item.pool, "depends_on": item.depends_on, "optional": item.optional, "priority": item.priority,
        "verify": item.verify, "problem": item.problem,
    });
    if !item.boxes.is_empty() {
        shape["boxes"] = json!(item.boxes);
    }
    shape
}

/// A list for programs, with the items of these places; with all of them without any.
fn in_json(listed: &Listed, places: &[usize]) -> Value {
    let format = match listed.list.format {
        Format::Features => "features",
        Format::Stories => "stories",
        Format::Markdown => "markdown",
    };
    let all = &listed.list.items;
    let items: Vec<Value> =
        if places.is_empty() { all.iter().map(shape).collect() } else { places.iter().map(|place| shape(&all[*place])).collect() };
    json!({
        "path": listed.path, "format": format, "total": all.len(), "open": listed.list.open().count(),
        "mistakes": listed.list.mistakes, "items": items,
    })
}
