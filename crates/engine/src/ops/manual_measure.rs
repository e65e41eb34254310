//! Journal lines for what a person does about a loop's gates: measuring them by hand, or accepting what the guard suspects.

use ralph_core::{
    gate::Finding,
    journal::{Event, State},
};

use crate::{
    store::{Error, loops, project::Project, project_lock::Locked, waiter},
    sys::clock,
};

/// Notes findings that were measured by hand.
pub fn by_hand(project: &Project, loop_id: &str, findings: &[Finding]) -> Result<(), Error> {
    note(project, loop_id, Event::Measured { findings: findings.to_vec() })
}

/// Notes findings after `ralph wait`. If no background process waits for the loop, it is no longer parked.
pub fn after_a_wait(project: &Project, loop_id: &str, findings: &[Finding]) -> Result<(), Error> {
    let is_unattended = waiter::of(project, loop_id).is_none();
    change(project, loop_id, Event::Measured { findings: findings.to_vec() }, |state| {
        if is_unattended {
            state.parked = None;
        }
    })
}

/// Notes that a person accepted these suspicions.
pub fn accepted(project: &Project, loop_id: &str, suspicions: &[String]) -> Result<(), Error> {
    note(project, loop_id, Event::Accepted { suspicions: suspicions.to_vec() })
}

/// A loop that went away meanwhile needs no note.
fn note(project: &Project, loop_id: &str, event: Event) -> Result<(), Error> {
    change(project, loop_id, event, |_| {})
}

fn change(project: &Project, loop_id: &str, event: Event, change: impl FnOnce(&mut State)) -> Result<(), Error> {
    let locked = Locked::acquire(project)?;
    let Some(found) = loops::known(project).into_iter().find(|found| found.id() == loop_id) else { return Ok(()) };
    let Ok(mut l) = locked.open(found) else { return Ok(()) };
    // A loop without a journal has not begun.
    if l.state == State::default() {
        return Ok(());
    }
    change(&mut l.state);
    locked.record(&mut l, clock::now(), None, event)
}
