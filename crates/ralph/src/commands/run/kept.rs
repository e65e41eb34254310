//! Beside whoever looks on: the loop's page, written anew as the run goes on, so that there is one whatever happens to the run.

use std::{
    sync::{Arc, OnceLock},
    thread,
};

use ralph_engine::{
    runner::told::{Audience, Told},
    store::{page, project::Project},
};

/// An audience, and a page for those who come later.
pub(super) struct Kept {
    pub(super) audience: Arc<dyn Audience>,
    pub(super) project: Project,
    /// The loop's id, once it is known.
    pub(super) of_loop: OnceLock<String>,
}

impl Audience for Kept {
    fn hears(&self, told: &Told<'_>) {
        self.audience.hears(told);
        match told {
            Told::Run { of_loop, .. } => {
                let _ = self.of_loop.set((*of_loop).to_owned());
            }
            // What the journal has a new line for, and a person would want to read.
            Told::Round { .. } | Told::Over { .. } | Told::Ruled { .. } | Told::Rests { .. } | Told::GoesOn => self.write(),
            Told::Warning { .. }
            | Told::Agent { .. }
            | Told::Checking { .. }
            | Told::Snapshot { .. }
            | Told::Finishing
            | Told::Ended { .. } => {}
        }
    }
}

impl Kept {
    fn write(&self) {
        let writer = self.of_loop.get().and_then(|id| page::bring_up_to_date(&self.project, id));
        if let Some(mut writer) = writer {
            // Only so that its number is given back.
            thread::spawn(move || writer.wait());
        }
    }
}
