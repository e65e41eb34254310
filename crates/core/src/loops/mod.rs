//! A loop: its file, the settings in it, and the terms that ralph seals.

mod edits;
mod file;
pub(crate) mod front_matter;
pub mod progress_txt;
mod settings;

pub use edits::{Edit, Terms};
pub use file::{LoopFile, MAX_FILE_BYTES, NewLoop, file_of, fnv1a, is_loop_id, is_name, name_of, salvage};
pub use front_matter::{FrontMatter, MAX_BYTES as MAX_FRONT_MATTER, Value};
pub(crate) use settings::DEFAULT_IDLE_ROUNDS;
pub use settings::{ContinueWith, Flag, Kind, LoopSettings, Preset, Setting};
