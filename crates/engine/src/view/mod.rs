//! Loops as people and programs look at them: read-only, without the lock.

pub mod activity;
mod loop_view;
mod model;
mod person;
pub mod phase;
pub mod status;
pub mod worktrees;

pub(crate) use loop_view::Archived;
pub use loop_view::{archive, ended, live, owner, quick, view_of};
pub use model::{Carrier, Checking, GateView, Status, View, Waiter, Waits};
pub use person::A_MESSAGE;
