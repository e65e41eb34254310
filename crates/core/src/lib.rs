//! What a loop is, and how a stop is judged.
//!
//! Everything here is pure: bytes and values in, values out. No clock, no disk, no process and no environment; the engine brings those.

pub mod api_error;
mod checkboxes;
pub mod completion_markers;
pub mod config;
pub mod count_entries;
pub mod decision;
pub mod feature_list;
pub mod gate;
pub mod gate_messages;
pub mod guard;
pub mod history;
pub mod journal;
pub mod json;
mod json_tree;
pub mod judge;
pub mod junit;
pub mod limits;
pub mod lines;
pub mod loops;
pub mod messages;
pub mod output;
pub mod plain_lines;
pub mod prices;
pub mod progress;
pub mod prometheus;
pub mod promise;
pub mod prompt;
pub mod pull_request;
pub mod reason;
pub mod regex;
pub mod report;
pub mod secrets;
pub mod session_outcome;
pub mod slash;
pub mod spelling;
pub mod stop_word;
pub mod subagent_messages;
pub mod test_results;
pub mod time;
pub mod transcript;
pub mod usage;
pub mod verify_yaml;
