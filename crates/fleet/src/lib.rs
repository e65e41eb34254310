//! Many loops at once: who works on what, and where.
//!
//! `records` are what a fleet keeps, `machine` has every rule about them as pure functions, `store` is the port that keeps them and decides nothing.
//! `board` is what one process knows of the store, and `change` the one way to write a record: compare-and-set, with lost answers read back.

pub mod board;
pub mod change;
pub mod machine;
pub mod records;
pub mod store;
