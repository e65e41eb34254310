//! Clock, environment, files, processes, terminal. Nothing else in the engine asks the system directly.

pub(crate) mod capped_log;
pub mod clock;
pub mod command;
pub mod digest;
pub mod disk;
pub mod env;
pub(crate) mod exchange;
pub mod files;
pub mod follow_file;
pub mod input;
pub(crate) mod lock;
#[cfg(unix)]
mod object_end;
pub mod process;
pub(crate) mod process_tree;
pub mod random;
pub mod secrets;
pub mod signals;
pub mod temp_dir;
pub mod terminal;
pub mod wait;
