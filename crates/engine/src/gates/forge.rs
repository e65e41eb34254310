//! Gates about a pull request and its checks.

use ralph_core::gate::{Finding, Gate, Verdict};

use crate::gates::Context;

/// Measures a gate that is decided on the forge.
pub(super) fn measure(gate: &Gate, _ctx: &Context<'_>) -> Finding {
    gate.finding(Verdict::Unknown, "not measured")
}
