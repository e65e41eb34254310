//! placeholder
use crate::{gates::declared::Declared, store::project::Project};
pub fn suspicions(_project: &Project, _loop_id: &str, _declared: &Declared) -> Vec<String> {
    Vec::new()
}
pub fn note_start(_project: &Project, _loop_id: &str, _declared: &Declared) {}
