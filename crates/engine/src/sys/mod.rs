//! The world outside: clock, environment, files, processes, temporary folders. Nothing else in the engine asks the system directly.

pub mod bounded;
pub mod clock;
pub mod digest;
pub mod disk;
pub mod env;
pub mod files;
pub mod follow;
pub mod growing;
pub mod input;
pub mod kin;
pub mod lock;
pub mod process;
pub mod random;
pub mod scratch;
pub mod secrets;
pub mod signals;
pub mod terminal;
