//! Notes that a person left with `ralph steer`: the agent gets them at the next stop that sends it back.

use ralph_core::{
    journal::State,
    judge::{Code, Next, Ruling},
    messages::{self, prompt},
};

use super::Stop;
use crate::hosts::slash;

/// How many notes the agent has not heard when it comes to this stop. Those in the prompt of a run's session have been heard.
pub(super) fn waiting(stop: &Stop<'_>, state: &State) -> u64 {
    let same_turn = state.turn.is_some() && state.turn.as_deref() == stop.turn;
    let is_heard = stop.hook().is_none_or(|hook| hook.after_a_block) || state.runner.is_some() || same_turn;
    state.notes.iter().filter(|note| note.told_in.is_none() || !is_heard).count() as u64
}

/// The message about a ruling, with the notes that wait. The prompt of a run's session holds its notes.
pub(super) fn add(stop: &Stop<'_>, state: &mut State, ruling: &Ruling, told: Option<String>) -> Option<String> {
    match stop.hook() {
        Some(hook) => tell(state, ruling, hook.after_a_block, told),
        None => at_the_end(state, ruling, told),
    }
}

/// The person's message about a run's session, with the notes that came too late.
fn at_the_end(state: &State, ruling: &Ruling, told: Option<String>) -> Option<String> {
    let more = matches!(ruling.next, Next::Ends { .. }).then(|| never_told(state)).flatten().unwrap_or_default();
    told.map(|told| told + &more)
}

/// The message about a ruling, with the notes that wait.
///
/// A note has been heard when the turn that got it comes to its next stop. Until then it is kept and told again: the hook may have been killed before it answered,
/// the turn interrupted, or the session ended.
fn tell(state: &mut State, ruling: &Ruling, after_a_block: bool, told: Option<String>) -> Option<String> {
    if state.notes.is_empty() {
        return told;
    }
    if after_a_block {
        state.notes.retain(|note| note.told_in.is_none());
    }
    let more = match ruling.next {
        Next::GoesOn { iteration } => hand_over(state, iteration).map(|more| format!("\n\n{more}")),
        Next::Ends { .. } => never_told(state),
        Next::Stays | Next::Parks | Next::Pauses => None,
    };
    match (told, more) {
        (Some(told), Some(more)) => Some(told + &more),
        (told, more) => told.or_else(|| more.map(|more| more.trim_start().to_owned())),
    }
}

/// The notes for the agent, which it gets with the prompt of this iteration.
pub(crate) fn hand_over(state: &mut State, iteration: u64) -> Option<String> {
    state.notes.iter_mut().for_each(|note| note.told_in = Some(iteration));
    prompt::notes(&state.notes)
}

/// A loop that ends keeps its notes, and tells them if it is resumed.
fn never_told(state: &State) -> Option<String> {
    let which = match state.notes.iter().filter(|note| note.told_in.is_none()).count() {
        0 => return None,
        1 => "A note that was left for the agent came too late".to_owned(),
        n => format!("{n} notes that were left for the agent came too late"),
    };
    Some(format!(" {which}: `ralph steer --list` shows what is kept."))
}

/// A command that waited is let through. One of ralph's own makes the loop go on afterwards; any other may start no turn, and then nothing goes on.
pub(super) fn goes_first(ruling: &Ruling, queue: &[String]) -> Option<String> {
    let (name, _) = slash::split(queue.first()?)?;
    let is_command = name.chars().all(|c| c.is_alphanumeric() || matches!(c, ':' | '-' | '_'));
    let is_others = ruling.code == Code::HostQueuedInput && is_command && slash::verb(name).is_none();
    is_others.then(|| messages::goes_first(name))
}
