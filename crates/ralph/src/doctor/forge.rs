//! Gates that a forge decides: can it be asked at all? Nothing is asked over the network.

use ralph_core::gate::{Gate, pull_request::Trouble};
use ralph_engine::{
    gates::{
        declared::{self, Declared},
        forge,
    },
    store::loops,
};

use super::{Case, Finding};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let project = &case.project;
    let asks = |declared: Declared| declared.gates.iter().any(Gate::is_decided_elsewhere);
    let of_loop = || loops::all(project).iter().any(|found| found.parsed.as_ref().is_ok_and(|file| asks(declared::of_loop(project, file))));
    if !asks(declared::of_project(project)) && !of_loop() {
        return Vec::new();
    }
    match forge::trouble(project) {
        Some(trouble) => vec![told(trouble)],
        None => vec![Finding::good("gates.forge", "gates about pull requests can be asked: gh is installed and signed in")],
    }
}

fn told(trouble: Trouble) -> Finding {
    let finding = Finding::error("gates.forge", format!("gates ask about a pull request, and cannot: {}", trouble.what));
    match trouble.needs {
        Some(needs) if needs.starts_with('`') && needs.ends_with('`') => finding.fix(needs.trim_matches('`')),
        Some(needs) => finding.advice(needs),
        None => finding,
    }
}
