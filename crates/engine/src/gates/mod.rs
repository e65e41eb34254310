//! Measuring gates: what must hold before a loop may end.

pub mod digest;
pub mod file;
pub mod tree;
