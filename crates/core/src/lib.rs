//! Loops, and the judge that rules on their stops.
//!
//! Everything here is pure: bytes and values in, values out. No clock, no disk, no process and no environment; the engine brings those.

pub mod config;
pub mod gate;
pub mod history;
pub mod journal;
pub mod judge;
pub mod loops;
pub mod messages;
pub mod money;
pub mod report;
pub mod text;

/// For serde: a value that need not be written down.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
