//! Claude Code: what its hooks send, what they may answer, and how to tell that it really is Claude Code.
//!
//! `docs/hook-contract.md` has the measured facts behind this folder.

pub(crate) mod api_error;
pub mod commands;
pub mod compaction;
pub mod denials;
mod host;
pub mod plugin;
mod prices;
pub mod program;
pub mod registration;
pub mod settings_file;
pub mod stream;
pub mod transcript;
pub mod usage;
pub mod variables;
pub mod version;

pub(super) use host::HOST;
pub(super) use prices::list_price;
