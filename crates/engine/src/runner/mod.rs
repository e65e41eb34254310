//! The runner: carries a loop in fresh sessions, one for each round.

pub mod agent;
pub mod preflight;
pub mod told;
