//! What a loop is, and how a stop is judged.
//!
//! Everything here is pure: bytes and values in, values out. No clock, no disk, no process and no environment; the engine brings those.

pub mod config;
pub mod gate;
pub mod journal;
pub mod judge;
pub mod loops;
pub mod money;
pub mod report;
pub mod text;
