//! Plans one session: the item that it works on, its model, and its prompt.

use ralph_core::{
    config::Running,
    gate::{Check, list::Item},
    judge::{Code, ToolUse, session_outcome::Outcome},
    messages::prompt::{Iteration, Spent},
    text::clean,
};

use crate::{
    gates::{
        declared::{self, Declared},
        features,
    },
    store::{project::Project, project_lock::Loop},
    sys::clock,
};

/// The plan of one session.
pub(super) struct Plan {
    pub prompt: String,
    pub model: Option<String>,
    /// The id of the item that it is about.
    pub item: Option<String>,
    /// The numbers of the notes that the prompt holds.
    pub notes: Vec<u64>,
}

/// Facts about the session before that no journal keeps.
#[derive(Default)]
pub(super) struct Before {
    /// How it ended, if it was in this very iteration.
    pub broke: Option<Outcome>,
    /// A run before this one began the iteration.
    pub unfinished: bool,
    pub tools: ToolUse,
    pub denied: Vec<String>,
    /// What failed when it was last measured, by a run or session before this one.
    pub measured: Option<String>,
}

pub(super) fn plan(project: &Project, settings: &Running, l: &Loop, before: &Before) -> Plan {
    let declared = declared::of_loop(project, &l.for_gates(&l.file));
    let item = next_item(project, &declared);
    let told = item.as_ref().map(|item| format!("{}\n{}", features::told(item), features::how_to_mark(item)));
    let last = l.state.last.as_ref().and_then(|last| last.note.as_deref()).filter(|_| goes_on(l)).or(before.measured.as_deref());
    // What failed last names the item already, unless the list has changed since.
    let is_named = |item: &Item| last.is_some_and(|last| last.contains(&format!("Next: {}: ", clean(&item.id))));
    let limit = l.file.fresh_stall_rounds();
    let standstill = l.state.standstill.as_ref();
    let iteration = Iteration {
        item: told.as_deref().filter(|_| !item.as_ref().is_some_and(is_named)),
        last,
        notes: &l.state.notes,
        broke: before.broke.as_ref(),
        unfinished: before.unfinished,
        spent: Spent::of(&l.state, clock::now()),
        stalled: (standstill.map_or(0, |s| s.rounds), limit),
        swings: standstill.map_or(0, ralph_core::judge::Standstill::swings),
        idle: before.tools == ToolUse::None,
        denied: &before.denied,
    };
    let prompt = iteration.prompt(&l.file, !declared.is_empty());
    let is_escalated = settings.escalate_after > 0 && l.state.failing.rounds >= settings.escalate_after;
    let model = settings.escalate_model.clone().filter(|_| is_escalated);
    Plan {
        prompt,
        model: model.or_else(|| item.as_ref()?.model.clone().filter(|model| is_model(model))).or_else(|| settings.model.clone()),
        item: item.map(|item| clean(&item.id)),
        notes: l.state.notes.iter().map(|note| note.id).collect(),
    }
}

/// Whether a list's word can be the name of a model: it becomes an argument of the client's command line.
fn is_model(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/@[]-".contains(c);
    !name.is_empty() && name.len() <= 100 && !name.starts_with('-') && name.chars().all(is_plain)
}

/// Whether the message of the last ruling still counts.
fn goes_on(l: &Loop) -> bool {
    l.state
        .last
        .as_ref()
        .is_some_and(|last| last.ruling.decision == ralph_core::judge::Decision::Block && last.ruling.code != Code::LoopPaused)
}

/// The next item of the lists that the loop has to prove.
fn next_item(project: &Project, declared: &Declared) -> Option<Item> {
    declared.gates.iter().find_map(|gate| {
        let Check::Features(check) = &gate.check else { return None };
        let bytes = features::bytes(project, project.root(), &check.path).ok()?;
        check.list(&bytes).ok()?.next().cloned()
    })
}
