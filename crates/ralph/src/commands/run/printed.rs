//! For programs: every event as one line of JSON.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
};

use ralph_core::text::time::{self, Millis};
use ralph_engine::run::events::{Line, Observer, RunEvent};

use crate::ui;

/// Writes whatever is told.
pub(super) struct Json {
    out: Mutex<Box<dyn Write + Send>>,
    now: fn() -> Millis,
}

impl Json {
    pub(super) fn new(out: Box<dyn Write + Send>, now: fn() -> Millis) -> Self {
        Json { out: Mutex::new(out), now }
    }
}

impl Observer for Json {
    fn on_event(&self, told: &RunEvent<'_>) {
        let line = Line { at: time::format((self.now)()), told };
        let Ok(line) = serde_json::to_string(&line) else { return };
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that has gone away misses it; the loop goes on.
        let _ = writeln!(out, "{}", ui::escaped(&line)).and_then(|()| out.flush());
    }
}
