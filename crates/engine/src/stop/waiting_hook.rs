//! The hook that waits beside the one that judges (`hook/wake.rs`): whether there is one for this stop.

use std::{process, time::Duration};

use super::Stop;
use crate::{
    hosts::{Client, client},
    store::waiter::{self, Waiter},
    sys::wait,
};

/// How long the hook that judges looks for the one that waits: both are started at once, on a busy machine some 50 ms apart.
const BORN_TOGETHER: Duration = Duration::from_millis(500);

/// Whether this session can be woken: a person sits at its screen, and the client is known to do it. Elsewhere the client would wait for this process as
/// for any other hook, and nothing would be won.
pub(crate) fn can_wake(client: Client) -> bool {
    client::is_interactive() && client.wakes
}

/// For the hook that judges: another one waits for this very stop, or is about to.
pub(super) fn takes_over(stop: &Stop<'_>, loop_id: &str) -> bool {
    stop.can_wake() && wait::poll(BORN_TOGETHER, wait::SOON, || is_there(stop, loop_id).then_some(())).is_some()
}

/// Whether another process waits for this very stop in the background of a session.
pub(super) fn is_there(stop: &Stop<'_>, loop_id: &str) -> bool {
    let waits = |waiter: &Waiter| waiter.pid != process::id() && waiter.stop == stop.fingerprint;
    stop.can_wake() && waiter::of(stop.project, loop_id).as_ref().is_some_and(waits)
}

impl Stop<'_> {
    fn can_wake(&self) -> bool {
        self.hook().is_some_and(|hook| can_wake(hook.client))
    }
}
