//! Wakes those in this process who wait for work. What other processes write is found by looking again, now and then.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<u64>,
    heard: Condvar,
}

impl Bell {
    /// Something was written, or it is over.
    pub(crate) fn ring(&self) {
        *self.count() += 1;
        self.heard.notify_all();
    }

    /// How often it has rung: asked before a look, so that nothing is missed that happens after the look.
    pub(crate) fn rung(&self) -> u64 {
        *self.count()
    }

    /// Waits until it has rung more often than that, or for so long.
    pub(crate) fn wait(&self, rung: u64, most: Duration) {
        drop(self.heard.wait_timeout_while(self.count(), most, |now| *now == rung));
    }

    fn count(&self) -> MutexGuard<'_, u64> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
