//! One session of an agent: started, listened to, and ended if need be.

use std::{path::Path, path::PathBuf, time::Duration};

use ralph_core::{
    attempt::{Outcome, Work},
    limits::ToolUse,
};

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code: the program.
    Claude(PathBuf),
    /// A line for the shell that reads the prompt from its standard input and prints its answer.
    Command(String),
}

impl Agent {
    pub fn name(&self) -> &'static str {
        match self {
            Agent::Claude(_) => "claude",
            Agent::Command(_) => "command",
        }
    }
}

/// One session that is wanted.
#[derive(Debug)]
pub struct Session<'a> {
    pub agent: &'a Agent,
    /// Where it works.
    pub folder: &'a Path,
    pub prompt: &'a str,
    /// Its id, a UUID.
    pub id: &'a str,
    pub model: Option<&'a str>,
    pub permission_mode: Option<&'a str>,
    /// What the loop may still spend; 0: no limit.
    pub usd_micros_left: u64,
    /// What it has in its environment as `RALPH_RUN`, and all that it starts.
    pub mark: &'a str,
    pub iteration: u64,
    /// It is ended if nothing is heard for so long.
    pub silence: Duration,
    /// It is ended after so long.
    pub limit: Duration,
    /// The time between the request to end and the end.
    pub grace: Duration,
    /// All that it says is written here.
    pub log: &'a Path,
}

/// How urgently a session shall end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    GoOn,
    /// Now.
    End,
}

/// How a session ended.
#[derive(Debug)]
pub struct Ended {
    pub outcome: Outcome,
    /// The agent's last message.
    pub text: Option<String>,
    pub tools: ToolUse,
    pub work: Work,
}

pub fn run(_session: &Session<'_>, _hears: &(dyn Fn(&super::told::Heard) + Send + Sync), _wish: &dyn Fn() -> Wish) -> Ended {
    Ended { outcome: Outcome::Stopped, text: None, tools: ToolUse::Unknown, work: Work::default() }
}
pub fn end_leftovers(_mark: &str) -> usize {
    0
}
pub fn new_session_id() -> String {
    String::new()
}
pub fn nonce() -> String {
    String::new()
}
pub fn jitter() -> u64 {
    0
}
