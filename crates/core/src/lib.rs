//! What a loop is, and how a stop is judged.
//!
//! Everything here is pure: bytes and values in, values out. No clock, no disk, no process and no environment; the engine brings those.

pub mod attempt;
mod checkboxes;
pub mod chronicle;
pub mod completion_markers;
pub mod config;
pub mod decision;
pub mod entries;
pub mod expression;
pub mod feature_list;
pub mod gate;
pub mod guard;
pub mod iteration;
pub mod journal;
pub mod json;
mod json_tree;
pub mod judge;
pub mod junit;
pub mod limits;
pub mod lines;
pub mod loops;
pub mod output;
pub mod plain_lines;
pub mod prices;
pub mod progress;
pub mod prometheus;
pub mod promise;
pub mod pull_request;
pub mod reason;
pub mod report;
pub mod secrets;
pub mod slash;
pub mod spelling;
pub mod stop_failure;
pub mod stop_word;
pub mod test_results;
pub mod time;
pub mod transcript;
pub mod unproven;
pub mod unverified;
pub mod usage;
pub mod verify_yaml;
pub mod words;
