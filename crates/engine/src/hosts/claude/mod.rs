//! Claude Code: what its hooks send, what they may answer, and how to tell that it really is Claude Code.
//!
//! `docs/hook-contract.md` has the measured facts behind this folder.

pub(crate) mod api_error;
pub mod commands;
pub mod compaction;
pub(crate) mod denials;
mod host;
pub mod plugin;
mod prices;
pub mod program;
pub mod registration;
pub(crate) mod settings_file;
pub(crate) mod stream;
pub(crate) mod transcript;
pub(crate) mod usage;
pub mod variables;
pub(super) mod version;

pub(super) use host::HOST;
pub(super) use prices::list_price;
pub use settings_file::Registered;
pub use usage::Spent;
