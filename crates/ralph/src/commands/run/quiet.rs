//! For `--quiet`: what was ruled and how it ended; warnings on standard error.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
};

use ralph_engine::runner::told::{Audience, Told};

use crate::{
    commands::run::{last::Last, says},
    ui,
};

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

impl Audience for Quiet {
    fn hears(&self, told: &Told<'_>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.hears(told);
        match told {
            Told::Warning { text } => ui::warning(text),
            Told::Ruled { iteration, ruling, findings, .. } => self.say(&says::ruled(*iteration, findings, ruling)),
            Told::Ended { .. } => {
                let (head, rest) = last.words(told);
                let why = rest.first().map(|why| format!("\n  {why}")).unwrap_or_default();
                self.say(&format!("{head}{why}"));
            }
            _ => {}
        }
    }
}
