//! The agents that ralph works with: what an agent is to the rest of ralph, and one folder for each.
//!
//! A folder turns its agent's words into [`Event`]s, ralph's [`Answer`]s into its agent's words, and its versions into a [`Client`]. It also knows how the
//! agent is registered with, how it is started without a person, and what its transcripts and its stream say. Today there is one; this file is
//! where a second one is chosen.

mod agent_event;
mod answer;
pub mod claude;
mod event;
mod invocation;
pub mod slash;
mod stop_word;

pub use agent_event::Heard;
pub use answer::Answer;
pub use claude::usage;
pub(crate) use claude::{api_error, compaction, transcript};
pub use event::{Event, Kind, fingerprint};
pub use invocation::{Invocation, PLUGIN, SHORT, WAIT};

/// `(2, 1, 325)`.
pub type Version = (u32, u32, u32);

/// Who sent an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The agent that ralph is registered with.
    Own(Client),
    /// Another agent, by name, that runs the hooks of the first. Its loops are not ours to judge.
    Foreign(&'static str),
}

/// The abilities of the calling program, as far as its version tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Client {
    pub version: Option<Version>,
    /// It sends the agent's last message with a stop, so that a stop without one means a message without text.
    pub sends_message: bool,
    /// A stop hook can add context instead of blocking.
    pub takes_context: bool,
    /// A hook in the background can wake a session.
    pub wakes: bool,
    /// It reports a command that a person entered, and no other, as [`Kind::TypedCommand`].
    pub reports_typed: bool,
    /// It compacts when its settings change in the middle of a session.
    pub compacts: bool,
    /// It says when an account's limit ends, and goes on then by itself.
    pub resumes: bool,
}

/// Reads an event from a hook's standard input, and finds out who sent it.
pub fn read(input: &[u8]) -> Result<(Event, Caller), serde_json::Error> {
    claude::event::read(input)
}

/// The answer to an event as the agent reads it; `None`: nothing is printed.
pub fn print(answer: &Answer, event: &Event) -> Option<String> {
    claude::answer::print(answer, &event.name)
}
