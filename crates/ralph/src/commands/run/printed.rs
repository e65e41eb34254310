//! What a run prints where nothing is drawn: lines of JSON for programs, and the decisions alone for `--quiet`.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
};

use ralph_core::text::time::{self, Millis};
use ralph_engine::run::events::{Line, Observer, RunEvent};

use crate::{commands::run::summary::Last, run_wording, ui};

/// Prints what a function makes of each event.
pub(super) struct Printed(Mutex<State>);

type Print = dyn FnMut(&RunEvent<'_>) -> Vec<u8> + Send;

struct State {
    out: Box<dyn Write + Send>,
    print: Box<Print>,
}

impl Printed {
    pub(super) fn new(out: Box<dyn Write + Send>, print: impl FnMut(&RunEvent<'_>) -> Vec<u8> + Send + 'static) -> Self {
        Printed(Mutex::new(State { out, print: Box::new(print) }))
    }

    /// For programs: every event as one line of JSON.
    pub(super) fn json(out: Box<dyn Write + Send>, now: fn() -> Millis) -> Self {
        Printed::new(out, move |told| {
            let line = serde_json::to_string(&Line { at: time::format(now()), told });
            line.map(|line| format!("{}\n", ui::escaped(&line)).into_bytes()).unwrap_or_default()
        })
    }

    /// The decisions and how it ended; warnings on standard error.
    pub(super) fn quiet(out: Box<dyn Write + Send>) -> Self {
        let mut last = Last::default();
        Printed::new(out, move |told| {
            last.on_event(told);
            match told {
                RunEvent::Warning { text } => ui::warning(text),
                RunEvent::Ruled { iteration, ruling, findings, .. } => {
                    return ui::styled(&format!("{}\n", run_wording::ruled(*iteration, findings, ruling)));
                }
                RunEvent::Ended { .. } => {
                    let (head, rest) = last.words(told);
                    let why = rest.first().map(|why| format!("  {why}\n")).unwrap_or_default();
                    return ui::styled(&format!("{head}\n{why}"));
                }
                _ => {}
            }
            Vec::new()
        })
    }
}

impl Observer for Printed {
    fn on_event(&self, told: &RunEvent<'_>) {
        let State { out, print } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = print(told);
        // A reader that has gone away misses it; the loop goes on.
        let _ = out.write_all(&bytes).and_then(|()| out.flush());
    }
}
