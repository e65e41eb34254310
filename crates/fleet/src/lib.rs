//! Many loops at once: who works on what, and where.
//!
//! `records` are what a fleet keeps, `job_rules` has every rule about them as pure functions, `store` is the port that keeps them and decides nothing.
//! `board` is what one process knows of the store, and `change` the one way to write a record: compare-and-set, with lost answers read back.
//! `serve` shows it on a page.
//! A `worker` takes jobs and has a `child` work on them in its `slot`; the `lander` brings what was proven onto the fleet's branch, through the `hub`.

mod bell;
pub mod board;
pub mod change;
mod child;
pub mod commands;
mod described;
pub mod fleet;
pub mod gates;
mod git;
mod history;
mod hub;
pub mod job_rules;
pub mod lander;
mod live;
mod merge;
mod metrics;
pub mod people;
pub mod problem;
mod pull_requests;
pub mod records;
pub mod report;
pub mod run;
pub mod screen;
pub mod seat;
mod serve;
mod sessions;
pub mod settings;
pub mod signing;
pub mod slot;
pub mod store;
pub mod tasks;
mod tidy;
pub mod worker;
