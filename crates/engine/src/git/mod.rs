//! Git, asked so that nothing of a repository's own is run.
//!
//! What a repository says about itself (its configuration, hooks, filters, attributes) comes from whoever made it. Two rules keep that from running
//! anything, without a list of what would have to be switched off:
//!
//! - What can be read without git is read without it: where the repository is, its HEAD, its index, its ignore rules.
//! - Where git itself is needed, it gets a *sealed* git folder ([`command`]): links to the objects and refs, and a configuration that ralph wrote,
//!   with the harmless settings of the real one ([`config`]) and nothing else.

mod attributes;
pub mod command;
pub(crate) mod config;
pub mod folders;
pub(crate) mod head;
pub(crate) mod ignore;
pub(crate) mod index;
pub mod owner;
pub mod repository;
pub(crate) mod tracked;

pub use command::{Ask, Problem};
pub use folders::Folders;
pub use repository::Repository;
