//! What a person left for the agent with `ralph steer`, told at the next stop that sends the agent back.

use ralph_core::{
    iteration,
    journal::State,
    judge::{Next, Ruling},
};

use crate::{hook::Call, hosts::claude::event::Event};

/// How many notes the agent has not heard when it comes to this stop. What the prompt of a session of its own held has been heard.
pub(super) fn waiting(state: &State, call: &Call) -> u64 {
    let same_turn = state.turn.is_some() && state.turn.as_deref() == call.event.text("prompt_id");
    let is_heard = call.round.is_some() || state.runner.is_some() || call.event.is_after_a_block() || same_turn;
    state.notes.iter().filter(|note| note.told_in.is_none() || !is_heard).count() as u64
}

/// What the person is told about a session of its own, with the notes that it never got.
pub(super) fn at_the_end(state: &State, ruling: &Ruling, told: Option<String>) -> Option<String> {
    let more = matches!(ruling.next, Next::Ends { .. }).then(|| never_told(state)).flatten().unwrap_or_default();
    told.map(|told| told + &more)
}

/// What is told about a ruling, with the notes that wait. Mostly there are none.
///
/// A note has been heard when the turn that got it comes to its next stop. Until then it is kept and told again: an answer that a killed hook never gave,
/// a turn that a person interrupted and a session that is gone have not carried it out.
pub(super) fn tell(state: &mut State, ruling: &Ruling, event: &Event, told: Option<String>) -> Option<String> {
    if state.notes.is_empty() {
        return told;
    }
    if event.is_after_a_block() {
        state.notes.retain(|note| note.told_in.is_none());
    }
    let more = match ruling.next {
        Next::GoesOn { iteration } => {
            let more = iteration::notes(&state.notes);
            state.notes.iter_mut().for_each(|note| note.told_in = Some(iteration));
            more.map(|more| format!("\n\n{more}"))
        }
        Next::Ends { .. } => never_told(state),
        Next::Stays | Next::Parks | Next::Pauses => None,
    };
    match (told, more) {
        (Some(told), Some(more)) => Some(told + &more),
        (told, more) => told.or_else(|| more.map(|more| more.trim_start().to_owned())),
    }
}

/// A loop that ends keeps them, and tells them should it be brought back.
fn never_told(state: &State) -> Option<String> {
    let which = match state.notes.iter().filter(|note| note.told_in.is_none()).count() {
        0 => return None,
        1 => "A note that was left for the agent came too late".to_owned(),
        n => format!("{n} notes that were left for the agent came too late"),
    };
    Some(format!(" {which}: `ralph steer --list` shows what is kept."))
}
