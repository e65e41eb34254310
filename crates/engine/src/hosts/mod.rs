//! The agents that ralph works with: what an agent is to the rest of ralph, and one folder for each.
//!
//! A folder turns its agent's words into [`Event`]s, ralph's [`Answer`]s into its agent's words, and its versions into a [`Client`]. It also knows how the
//! agent is registered with, how it is started without a person, and what its transcripts and its stream say. [`Host`] is the table of them.

mod abilities;
pub mod acp;
pub(crate) mod agent_event;
mod agent_stream;
mod answer;
pub mod claude;
mod codex;
mod copilot;
mod droid;
mod event;
mod gemini;
mod grok;
mod headless;
mod host;
mod invocation;
mod made_up_stop;
mod opencode;
pub mod prices;
mod printing;
mod qwen;
mod reading;
pub(crate) mod service_error;
mod session_files;
mod signs;
pub(crate) mod slash;
mod stop_word;
mod stream;
mod transcript_end;

pub(crate) use agent_event::Heard;
pub(crate) use answer::Answer;
pub use claude::version::Version;
pub(crate) use claude::{api_error, transcript, usage, variables as client};
pub(crate) use event::{Event, Kind, fingerprint};
pub(crate) use headless::Headless;
pub(crate) use headless::Launch;
pub use host::{Advice, Host};
pub(crate) use host::{CommandForm, Form, Off, Registration};
pub use invocation::{Invocation, PLUGIN, SHORT, WAIT};
pub use signs::of_an_agent;
pub(crate) use signs::{is_in_the_agents_shell, of_a_session};
pub(crate) use stream::why;
pub(crate) use stream::{Decode, Exit, Line};

use crate::sys::process;

/// Who sent an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The agent that this hook is registered with.
    Own(Client),
    /// Another agent, by name, that runs the hooks of the first. It has a registration of its own, or none.
    Foreign(&'static str),
}

/// The abilities of the calling program, as far as its version tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    pub host: &'static Host,
    pub version: Option<Version>,
    /// It sends the agent's last message with a stop, so that a stop without one means a message without text.
    pub(crate) sends_message: bool,
    /// A stop hook can add context instead of blocking.
    pub(crate) takes_context: bool,
    /// A hook in the background can wake a session.
    pub wakes: bool,
    /// It reports a command that a person entered, and no other, as [`Kind::TypedCommand`].
    pub(crate) reports_typed: bool,
    /// It compacts when its settings change in the middle of a session.
    pub compacts: bool,
    /// It says when an account's limit ends, and goes on then by itself.
    pub resumes: bool,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            host: &claude::HOST,
            version: None,
            sends_message: false,
            takes_context: false,
            wakes: false,
            reports_typed: false,
            compacts: false,
            resumes: false,
        }
    }
}

impl Client {
    /// The process that this session lives and dies with. Only Claude Code names it, or starts its hooks itself.
    pub(crate) fn pid(self) -> Option<u32> {
        self.host.is_claude().then(|| client::pid().or_else(process::parent_pid)).flatten()
    }
}

/// What an agent may do without asking, in Claude Code's words.
pub const PERMISSION_MODES: [&str; 5] = ["default", "acceptEdits", "auto", "dontAsk", "bypassPermissions"];

/// The agents that work without a person.
pub fn headless_names() -> Vec<&'static str> {
    let hosts = Host::ALL.into_iter().filter(|host| host.headless.is_some()).map(|host| host.name);
    hosts.chain(acp::AGENTS.iter().map(|agent| agent.name)).collect()
}

/// Checks an agent's name, perhaps with `=MODEL`.
pub fn check_fallback(text: &str) -> Result<String, String> {
    let name = text.split('=').next().unwrap_or_default();
    let known = headless_names();
    if known.contains(&name) { Ok(text.to_owned()) } else { Err(format!("must be one of {}, perhaps with =MODEL", known.join(", "))) }
}

/// Reads an event from a hook's standard input, and finds out who sent it.
pub(crate) fn read(input: &[u8], invocation: &Invocation) -> Result<(Event, Caller), serde_json::Error> {
    reading::read(input, invocation.host())
}

/// The answer to an event as that agent reads it; `None`: nothing is printed.
pub(crate) fn print(answer: &Answer, event: &Event, host: &Host) -> Option<String> {
    printing::print(answer, event, host)
}
