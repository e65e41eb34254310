//! Edits of the loop file, made by hand while the loop lives.

use ralph_core::{
    journal::Event,
    loops::{Edit, Value},
    messages,
    text::time::Millis,
};

use super::{Stop, hear};
use crate::store::{
    Error,
    project_lock::{Locked, Loop},
};

/// Edits of the loop file are told. One that loosens the loop counts only if a person made it: not in a run, whose person is asked, and not where the agent's own tool calls
/// name the file. Returns whether one of them paused the loop, which the person is then told.
pub(super) fn note(stop: &Stop<'_>, locked: &Locked<'_>, l: &mut Loop, at: Millis) -> Result<bool, Error> {
    if let Some(was) = l.found.known_as.take() {
        // Put right before anything else is written under this name.
        let is_there = locked.set(l, &[("loop_id", Value::Text(&was))])?;
        l.found.known_as = (!is_there).then_some(was);
        l.state.untold.push(format!("Ralph: the loop file named another loop_id. It is still the loop {}, and says so again.", l.id));
    }
    let edits = l.edits();
    if edits.is_empty() {
        l.state.refused.clear();
        return Ok(false);
    }
    // Only Claude Code protects its folder: what is elsewhere, or what another agent works on, the agent may have written, or one of its subagents.
    let is_guarded = stop.hook().is_none_or(|hook| hook.client.host.is_claude());
    let is_within_reach = !is_guarded || !l.found.own_file().starts_with(stop.project.claude());
    let by_agent = stop.report().is_some() || is_within_reach || hear::named_in_tools(stop, l);
    // What did not count once does not count because time has passed; `ralph resume` is how a person says that it does.
    let before = l.state.refused.clone();
    let counts = |edit: &Edit| !(edit.looser && (by_agent || before.contains(&edit.what)));
    l.settle(&edits, counts);
    let (counting, held): (Vec<&Edit>, Vec<&Edit>) = edits.iter().partition(|edit| counts(edit));
    let has_paused = counting.iter().any(|edit| edit.is_pause());
    let shown = |edits: Vec<&Edit>| edits.into_iter().map(|edit| edit.what.clone()).collect::<Vec<String>>();
    let (changes, refused) = (shown(counting), shown(held));
    // What does not count stays in the file, and is told once.
    let is_known = changes.is_empty() && l.state.refused == refused;
    l.state.refused.clone_from(&refused);
    if is_known {
        return Ok(false);
    }
    l.state.untold.extend(messages::edited(&changes, &refused));
    locked.record(l, at, stop.session(), Event::Edited { changes, refused })?;
    Ok(has_paused)
}
