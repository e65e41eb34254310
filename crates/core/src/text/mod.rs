//! Words: what agents and people are told, and how foreign text is read, cleaned and masked.

pub mod gate_messages;
pub mod json;
mod lines;
pub(crate) mod markdown;
pub mod messages;
mod plain_lines;
mod problem;
pub mod prompt;
pub mod secrets;
pub mod subagent_messages;
pub mod suggest;
pub mod time;
pub(crate) mod yaml;

pub use lines::Lines;
pub use plain_lines::PlainLines;
pub use problem::Problem;
pub(crate) use problem::{line_of, utf8, without_bom};
