//! What a person sees while a loop begins: commands whose old failures shall not count are run once, and that may take long.

use std::time::Duration;

use ralph_core::{gate::Gate, text::messages::clean};
use ralph_engine::gates::{Watch, durations::Time};

use crate::ui;

/// How long the commands whose old failures shall not count may take together.
pub(super) const BUDGET: Duration = Duration::from_hours(1);

/// Tells the person what takes so long.
pub(super) struct Running;

impl Watch for Running {
    fn begins(&self, gate: &Gate, _time: Time) {
        ui::note(&clean(&format!("running \"{}\" once, to know what fails before the loop begins …", gate.name)));
    }
}
