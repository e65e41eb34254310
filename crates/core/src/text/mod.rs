//! Words: what agents and people are told, and how foreign text is read, cleaned and masked.

mod clean;
mod find;
pub(crate) mod json;
mod lines;
pub(crate) mod markdown;
mod plain_lines;
mod problem;
mod secrets;
pub(crate) mod suggest;
pub mod time;
pub(crate) mod yaml;

pub use clean::{clean, count, excerpt, is_unseen, iterations, normalised, of_limit, opening, quoted};
pub use find::find_byte;
pub(crate) use find::rfind_byte;
pub use json::parse_tolerant;
pub use lines::Lines;
pub use plain_lines::PlainLines;
pub use problem::Problem;
pub(crate) use problem::{line_of, utf8, without_bom};
pub use secrets::{Masking, Secrets};
pub use suggest::nearest;
