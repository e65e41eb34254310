//! The `features` gate: all items of a list pass, and so do their own commands.
//!
//! An item's commands are run when ralph first sees it marked as done, and once more for all items when nothing in the list is open any more. In
//! between they are not: with forty items done, every stop would run forty items' commands on a tree that has changed again.

use std::{
    io,
    path::{Path, PathBuf},
};

use ralph_core::{
    gate::{
        Check, Command, Features, Finding, Gate, Origin, Run, Tally, Verdict,
        list::{Format, Item, List, MAX_BYTES},
    },
    text::{clean, opening},
};

use crate::{
    gates::{Context, command, proven_items},
    store::{feature_folder, place::Place, project::Project, trust},
    sys::{env, files},
};

/// Longer texts than these are in the list itself.
const MAX_TITLE: usize = 600;
const MAX_STEP: usize = 300;
const MAX_STEPS: usize = 30;
const MAX_MISTAKES: usize = 5;

/// The lists that are looked for where nothing names one, after that of the feature folder.
const USUAL: [&str; 2] = ["feature_list.json", "prd.json"];

/// The list of a project whose settings name none; relative to its root if it is inside.
pub fn find(project: &Project) -> Option<String> {
    let there = |path: &String| project.root().join(path).is_file();
    std::iter::once(feature_folder::list(project)).chain(USUAL.map(str::to_owned)).find(there)
}

/// The commands of an item, as gates of their own. They are called after the item, and cannot be taken for a gate of that name.
pub(crate) fn gates_of(project: &Project, path: &str, item: &Item) -> Vec<Gate> {
    let gate = |line: &String| {
        let run = Run::Shell(line.clone());
        let trusted = trust::of_commands(project, path, std::slice::from_ref(&run)).is_trusted();
        let name = format!("item {}", clean(&item.id));
        Gate { trusted, ..Gate::new(name, Check::Command(Command::shell(line)), Origin::List(path.to_owned())) }
    };
    item.verify.iter().map(gate).collect()
}

/// Which of these items had their commands passing when ralph last ran them.
pub fn proven(project: &Project, path: &str, items: &[Item]) -> Vec<bool> {
    let known = proven_items::of(project, path);
    items.iter().map(|item| !item.verify.is_empty() && known.contains(item)).collect()
}

/// Runs an item's commands in order, up to the first that does not pass; the last finding, or `None` if it has none.
pub(crate) fn prove(path: &str, item: &Item, ctx: &Context<'_>) -> Option<Finding> {
    let mut last = None;
    for gate in gates_of(ctx.project, path, item) {
        let Check::Command(wanted) = &gate.check else { continue };
        let finding = command::run(&gate, wanted, ctx);
        let holds = finding.verdict == Verdict::Pass;
        last = Some(finding);
        if !holds {
            return last;
        }
    }
    if last.is_some() && ctx.keeps {
        proven_items::note(ctx.project, path, item);
    }
    last
}

/// The finding by the list itself, and whether commands of its items have to be run before it counts.
pub(super) fn look(gate: &Gate, check: &Features, ctx: &Context<'_>) -> (Finding, bool) {
    match read(gate, check, ctx) {
        Ok(list) => {
            let seen = Seen::at_a_look(&list, &check.path, ctx);
            (seen.finding(gate, check, &list), !seen.due.is_empty())
        }
        Err(finding) => (*finding, false),
    }
}

/// Runs the commands of the items that need it.
pub(super) fn measure(gate: &Gate, check: &Features, ctx: &Context<'_>) -> Finding {
    match read(gate, check, ctx) {
        Ok(list) => {
            let mut seen = Seen::at_a_look(&list, &check.path, ctx);
            seen.run(&check.path, ctx);
            seen.finding(gate, check, &list)
        }
        Err(finding) => *finding,
    }
}

fn read(gate: &Gate, check: &Features, ctx: &Context<'_>) -> Result<List, Box<Finding>> {
    let shown = clean(&check.path);
    let cannot = |problem: String| {
        let detail = format!("Fix {shown} so that it can be read, and change nothing else in it.");
        Box::new(gate.finding(Verdict::Unknown, format!("{shown} cannot be read: {problem}")).with_detail(detail))
    };
    let bytes = bytes(ctx.project, ctx.tree, &check.path).map_err(|e| {
        if files::is_missing(&e) {
            Box::new(gate.finding(Verdict::Unknown, format!("{shown} is not there")))
        } else {
            cannot(e.to_string())
        }
    })?;
    check.list(&bytes).map_err(|problem| cannot(clean(&problem.to_string())))
}

/// The content of a list.
pub fn bytes(project: &Project, tree: &Path, path: &str) -> io::Result<Vec<u8>> {
    files::read(&locate(project, tree, path)?, MAX_BYTES)
}

/// The file that a list is in, past all links. One that leads out of the working tree is no list of the project, but for the folder that a person
/// named in the environment.
pub(crate) fn locate(project: &Project, tree: &Path, path: &str) -> io::Result<PathBuf> {
    let file = tree.join(path).canonicalize()?;
    let is_named_by_person = env::loop_dir().is_some() && path == feature_folder::list(project);
    if is_named_by_person || file.starts_with(Place::of(&Project::at(tree)).top()) {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "it leads out of the project"))
}

/// The word for an item, or for several.
pub fn noun(format: Format, count: usize) -> &'static str {
    match (format, count) {
        (Format::Features, 1) => "feature",
        (Format::Features, _) => "features",
        (Format::Stories, 1) => "story",
        (Format::Stories, _) => "stories",
        (Format::Markdown, 1) => "item",
        (Format::Markdown, _) => "items",
    }
}

/// A list as it is, with what its items' commands found.
struct Seen<'l> {
    /// Items that the list itself says are open, but for optional ones.
    open: Vec<&'l Item>,
    /// The item to work on next.
    next: Option<&'l Item>,
    /// Items that are marked as done, and whose commands say otherwise.
    refuted: Vec<(&'l Item, Finding)>,
    /// Items that are marked as done, and whose commands could not tell.
    unknown: Vec<(&'l Item, Finding)>,
    /// Items that are marked as done, and whose commands wait for their turn.
    due: Vec<&'l Item>,
    /// A person has to do this before the next item can be marked.
    needs: Option<String>,
}

/// Says which items are believed without a command.
fn by_mark_alone(list: &List) -> String {
    match (list.items.iter().filter(|item| item.verify.is_empty()).count(), list.items.len()) {
        (0, _) => String::new(),
        (n, total) if n == total => format!(", by {} alone", if n == 1 { "its mark" } else { "their marks" }),
        (1, _) => ", 1 of them by its mark alone".to_owned(),
        (n, _) => format!(", {n} of them by their marks alone"),
    }
}

/// How many items count: all but optional ones that are open.
fn asked(list: &List) -> usize {
    list.items.len() - list.open().filter(|item| item.optional).count()
}

impl<'l> Seen<'l> {
    /// Without running anything.
    fn at_a_look(list: &'l List, path: &str, ctx: &Context<'_>) -> Self {
        let (open, marked): (Vec<&Item>, Vec<&Item>) =
            (list.needed().collect(), list.items.iter().filter(|item| !item.is_open()).collect());
        let mut due: Vec<&Item> = marked.into_iter().filter(|item| !item.verify.is_empty()).collect();
        if !due.is_empty() && !open.is_empty() {
            let known = proven_items::of(ctx.project, path);
            due.retain(|item| !known.contains(item));
        }
        let is_untrusted = |item: &&Item| gates_of(ctx.project, path, item).iter().any(|gate| !gate.trusted);
        let next = list.next().filter(|_| !open.is_empty());
        let needs = next
            .filter(|item| !item.verify.is_empty())
            .filter(|item| is_untrusted(item))
            .map(|item| format!("the commands that prove {} are not trusted: `ralph trust` shows them and asks", clean(&item.id)));
        Seen { open, next, refuted: Vec::new(), unknown: Vec::new(), due, needs }
    }

    /// Runs what is due, one item after the other, up to the first that is not proven.
    fn run(&mut self, path: &str, ctx: &Context<'_>) {
        for item in std::mem::take(&mut self.due) {
            let holds = self.refuted.is_empty() && self.unknown.is_empty();
            if !holds && !ctx.keep_going {
                self.due.push(item);
                continue;
            }
            match prove(path, item, ctx) {
                Some(finding) if finding.verdict == Verdict::Fail => {
                    proven_items::forget(ctx.project, path, item);
                    self.refuted.push((item, finding));
                }
                Some(finding) if finding.verdict != Verdict::Pass => self.unknown.push((item, finding)),
                _ => {}
            }
        }
    }

    fn open(&self) -> usize {
        self.open.len() + self.refuted.len()
    }

    fn finding(&self, gate: &Gate, check: &Features, list: &List) -> Finding {
        let total = asked(list);
        let (done, total) = (total.saturating_sub(self.open()) as u64, total as u64);
        let tally = Tally { done, total, per_session: check.per_session };
        Finding { tally: Some(tally), ..self.verdict(gate, check, list) }
    }

    fn verdict(&self, gate: &Gate, check: &Features, list: &List) -> Finding {
        let total = asked(list);
        let nouns = noun(list.format, total);
        let held = check.item.as_ref().and(list.items.first()).map(|item| clean(&item.id));
        if self.open() > 0 {
            let are = if self.open() == 1 { "is" } else { "are" };
            let which = held.unwrap_or_else(|| format!("{} of {total} {nouns}", self.open()));
            let what = format!("{which} {are} open{}", self.refuted_in_words());
            return Finding {
                needs: self.needs.clone(),
                log: self.refuted.first().and_then(|(_, f)| f.log.clone()),
                ..gate.finding(Verdict::Fail, what).with_detail(self.detail(list))
            };
        }
        let (all, are, their) = if total == 1 {
            (held.unwrap_or_else(|| format!("the only {nouns}")), "is", "its")
        } else {
            (format!("all {total} {nouns}"), "are", "their")
        };
        if let Some((_, finding)) = self.unknown.first() {
            let what = format!("{all} {are} marked as done, but {}", self.unknown_in_words());
            let needs = self.unknown.iter().find_map(|(_, f)| f.needs.clone());
            return Finding { needs, log: finding.log.clone(), ..gate.finding(Verdict::Unknown, what).with_detail(finding.detail.clone()) };
        }
        if !self.due.is_empty() {
            let what = format!("{all} {are} marked as done; {their} commands wait for the claim");
            return Finding { skipped: true, ..gate.finding(Verdict::Unknown, what) };
        }
        let verified = if total == 1 { format!("{all} is verified") } else { format!("{all} verified") };
        gate.finding(Verdict::Pass, verified + &by_mark_alone(list))
    }

    /// `F1, F2 are not proven: their commands were not run, because …`: those that are so for the same reason.
    fn unknown_in_words(&self) -> String {
        let Some((_, first)) = self.unknown.first() else { return String::new() };
        let alike: Vec<&Item> = self.unknown.iter().filter(|(_, f)| f.what == first.what).map(|(item, _)| *item).collect();
        let commands: usize = alike.iter().map(|item| item.verify.len()).sum();
        let ids: Vec<String> = alike.iter().map(|item| clean(&item.id)).collect();
        let (are, its) = if ids.len() == 1 { ("is", "its") } else { ("are", "their") };
        let ran = if commands == 1 { format!("{its} command was") } else { format!("{its} commands were") };
        format!("{} {are} not proven: {}", ids.join(", "), first.what.replacen("its command was", &ran, 1))
    }

    fn refuted_in_words(&self) -> String {
        match &self.refuted[..] {
            [] => String::new(),
            refuted => {
                let ids: Vec<String> = refuted.iter().map(|(item, _)| clean(&item.id)).collect();
                let verb =
                    if ids.len() == 1 { "is marked as done, but its command fails" } else { "are marked as done, but their commands fail" };
                format!("; {} {verb}", ids.join(", "))
            }
        }
    }

    /// The item to work on next, and how it is marked.
    fn detail(&self, list: &List) -> String {
        let mut text = match (self.refuted.first(), self.next) {
            (Some((item, finding)), _) => {
                format!("Next: {}\nIt is marked as done, but {}.\n{}", told(item), finding.what, finding.detail)
            }
            (None, Some(item)) => format!("Next: {}", told(item)),
            (None, None) => String::new(),
        };
        if let Some(item) = self.refuted.first().map(|(item, _)| *item).or(self.next) {
            text = format!("{}\n{}", text.trim_end(), how_to_mark(item));
        }
        for mistake in list.mistakes.iter().take(MAX_MISTAKES) {
            text = format!("{text}\nA mistake in the list: {}", clean(mistake));
        }
        text
    }
}

/// How the agent says that an item is done.
pub(crate) fn how_to_mark(item: &Item) -> String {
    let first = if item.verify.is_empty() { "" } else { " That runs its commands first." };
    format!("When it is done and works, mark it with `ralph item done {}`.{first}", argument(&item.id))
}

/// An item in full, as far as that makes sense.
pub fn told(item: &Item) -> String {
    let mut text = format!("{}: {}", clean(&item.id), opening(&item.title, MAX_TITLE));
    if let Some(problem) = &item.problem {
        text = format!("{text}\nA mistake in the list: {}", clean(problem));
    }
    if !item.steps.is_empty() {
        text.push_str("\nSteps:");
        for (n, step) in item.steps.iter().enumerate().take(MAX_STEPS) {
            let tick = match item.boxes.get(n) {
                Some(Some(true)) => "[x] ",
                Some(Some(false)) => "[ ] ",
                _ => "",
            };
            text = format!("{text}\n- {tick}{}", opening(step, MAX_STEP));
        }
        if item.steps.len() > MAX_STEPS {
            text = format!("{text}\n- and {} more, in the list", item.steps.len() - MAX_STEPS);
        }
    }
    for line in &item.verify {
        text = format!("{text}\nIt must pass: `{}`", opening(line, MAX_STEP));
    }
    text
}

/// An id as one word of a command line.
pub fn argument(id: &str) -> String {
    let id = clean(id);
    let is_plain = !id.is_empty() && !id.starts_with('-') && id.chars().all(|c| c.is_alphanumeric() || "-_.:/@+".contains(c));
    if is_plain { id } else { format!("'{}'", id.replace('\'', "'\\''")) }
}
