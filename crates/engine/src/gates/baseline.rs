//! placeholder
use crate::store::project::Project;
use ralph_core::test_results::TestResults;
pub struct Before {
    pub failed: bool,
    pub tests: Option<TestResults>,
}
pub fn of(_project: &Project, _loop_id: &str, _gate: &str) -> Option<Before> {
    None
}
pub fn note(_project: &Project, _loop_id: &str, _gate: &str, _finding: &ralph_core::gate::Finding) {}
