//! Clock, environment, files, processes, terminal. Nothing else in the engine asks the system directly.

pub mod capped_log;
pub mod clock;
pub mod command;
pub mod digest;
pub mod disk;
pub mod env;
pub mod exchange;
pub mod files;
pub mod follow;
pub mod input;
pub mod lock;
pub mod process;
pub mod process_tree;
pub mod random;
pub mod secrets;
pub mod signals;
pub mod temp_dir;
pub mod terminal;
pub mod wait;
