//! Git, asked so that nothing of a repository's own is run.
//!
//! A repository's own words (its configuration, hooks, filters, attributes) come from its author. Two rules keep that from running
//! anything, without a list of what would have to be switched off:
//!
//! - What can be read without git is read without it: where the repository is, its HEAD and refs, its index, its ignore rules.
//! - Where git itself is needed, it gets a *sealed* git folder ([`command`]): links to the objects and refs, and a configuration that ralph wrote,
//!   with the harmless settings of the real one ([`config`]) and nothing else.

mod attributes;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod folders;
pub(crate) mod head;
pub(crate) mod ignore;
pub(crate) mod index;
pub(crate) mod owner;
mod refs;
pub(crate) mod repository;
pub mod snapshots;
pub(crate) mod tracked;
mod uncommitted;

pub use command::{Ask, Problem};
pub(crate) use folders::Folders;
pub use repository::Repository;
pub(crate) use uncommitted::Uncommitted;
