//! placeholder
use crate::{
    gates::{Context, Want},
    store::project::Project,
};
use ralph_core::gate::{Features, Finding, Gate, Verdict};
pub(super) fn measure(gate: &Gate, _check: &Features, _want: Want, _ctx: &Context<'_>) -> Finding {
    gate.finding(Verdict::Unknown, "placeholder")
}
pub fn find(_project: &Project) -> Option<String> {
    None
}
