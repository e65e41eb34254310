//! The files before the first session and after every iteration, kept under `refs/ralph`.

use std::time::Duration;

use ralph_core::journal::Event;

use super::Iterations;
use crate::{git::snapshots, run::events::RunEvent, store::Error, sys::clock};

/// How long keeping the files of an iteration may take.
const SNAPSHOT: Duration = Duration::from_mins(2);

impl Iterations<'_> {
    /// Keeps the files as they are before the first session, unless an iteration before has.
    pub(super) fn keep_the_start(&mut self) -> Result<(), Error> {
        let before = self.iteration.saturating_sub(1);
        let is_kept = !self.is_first_run && snapshots::has(self.project, &self.found.id(), before, SNAPSHOT).unwrap_or_default();
        if is_kept { Ok(()) } else { self.keep_files(before) }
    }

    /// Keeps the files as they are after an iteration. A failure is told once, and the run goes on.
    pub(super) fn keep_files(&mut self, iteration: u64) -> Result<(), Error> {
        if !self.orders.settings.snapshots {
            return Ok(());
        }
        // An iteration that begins again, after a pause or a limit, has left its files before.
        let is_again = self.done == 1 && !self.is_first_run;
        let kept = match snapshots::keep(self.project, &self.found.id(), iteration, is_again, SNAPSHOT) {
            Ok(Some(kept)) => kept,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.warn_of_files(format!("the files after this iteration could not be kept: {why}"));
                return Ok(());
            }
        };
        if !kept.left_out.is_empty() {
            self.warn_of_files(format!("not kept with the files of the iterations: {}", kept.left_out.join("; ")));
        }
        self.observer.on_event(&RunEvent::Snapshot { name: &kept.name, commit: &kept.commit });
        if let Some((locked, mut l)) = self.open()? {
            locked.record(&mut l, clock::now(), None, Event::Snapshot { name: kept.name, commit: kept.commit })?;
        }
        Ok(())
    }

    fn warn_of_files(&mut self, text: String) {
        if !std::mem::replace(&mut self.has_told_of_files, true) {
            self.observer.on_event(&RunEvent::Warning { text });
        }
    }
}
