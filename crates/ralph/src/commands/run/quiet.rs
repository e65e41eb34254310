//! For `--quiet`: the decisions and how it ended; warnings on standard error.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
};

use ralph_engine::run::events::{Observer, RunEvent};

use crate::{commands::run::summary::Last, run_wording, ui};

pub(super) struct Quiet {
    out: Mutex<Box<dyn Write + Send>>,
    last: Mutex<Last>,
}

impl Quiet {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Quiet { out: Mutex::new(out), last: Mutex::default() }
    }

    fn say(&self, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that has gone away misses it; the loop goes on.
        let _ = out.write_all(&ui::styled(&format!("{text}\n"))).and_then(|()| out.flush());
    }
}

impl Observer for Quiet {
    fn on_event(&self, told: &RunEvent<'_>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.on_event(told);
        match told {
            RunEvent::Warning { text } => ui::warning(text),
            RunEvent::Ruled { iteration, ruling, findings, .. } => self.say(&run_wording::ruled(*iteration, findings, ruling)),
            RunEvent::Ended { .. } => {
                let (head, rest) = last.words(told);
                let why = rest.first().map(|why| format!("\n  {why}")).unwrap_or_default();
                self.say(&format!("{head}{why}"));
            }
            _ => {}
        }
    }
}
