//! The runner: carries a loop in fresh sessions, one for each round.

pub mod agent;
mod ear;
mod lines;
pub mod told;
