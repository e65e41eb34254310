//! Turns: commands that must not run beside each other, whichever loop, clone or fleet of this user they belong to.
//!
//! A turn is the lock of a file in the user's state folder, so it is free again when its process dies. What is exclusive is taken first and a place among
//! the gates that run last: a command that has a place waits for nothing, so no two can wait for each other.

use std::{path::Path, time::Duration};

use ralph_core::gate::Command;

use crate::{
    gates::Context,
    sys::{env, files, lock::Lock, wait},
};

/// How often it is looked whether a turn is free.
const STEP: Duration = Duration::from_millis(50);

/// Held while a command runs.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "it is held, not read")] Vec<Lock>);

/// Waits until the command may run; an error says why it may not.
pub(super) fn take(command: &Command, ctx: &Context<'_>) -> Result<Turn, String> {
    let most = env::gates_at_once();
    if command.exclusive.is_none() && most.is_none() {
        return Ok(Turn(Vec::new()));
    }
    let folder = env::state_dir().ok_or("not run: there is no home folder to keep turns in: set HOME")?.join("turns");
    files::make_folder(&folder).map_err(|e| format!("not run: {} cannot be made: {e}", folder.display()))?;
    let mut held = Vec::new();
    if let Some(name) = &command.exclusive {
        let path = folder.join(format!("{name}.exclusive"));
        held.push(wait_for(ctx, || lock(&path))?.ok_or_else(|| format!("not run: another gate had \"{name}\" all the time"))?);
    }
    if let Some(most) = most {
        let free = || (1..=most).find_map(|n| lock(&folder.join(format!("{n}.gate"))).transpose()).transpose();
        held.push(wait_for(ctx, free)?.ok_or_else(|| format!("not run: {most} other gates ran all the time"))?);
    }
    Ok(Turn(held))
}

fn lock(path: &Path) -> Result<Option<Lock>, String> {
    Lock::take(path, Duration::ZERO).map_err(|e| format!("not run: {} cannot be locked: {e}", path.display()))
}

/// Looks until there is a lock, the time is over, or the result is not wanted any more.
fn wait_for(ctx: &Context<'_>, mut look: impl FnMut() -> Result<Option<Lock>, String>) -> Result<Option<Lock>, String> {
    let found = wait::poll(ctx.time_left(), STEP, || match look() {
        Ok(None) if ctx.is_cancelled() => Some(Err("not run: the result is not wanted any more".to_owned())),
        Ok(None) => None,
        Ok(Some(lock)) => Some(Ok(lock)),
        Err(why) => Some(Err(why)),
    });
    found.transpose()
}
