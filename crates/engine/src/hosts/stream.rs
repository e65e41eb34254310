//! What an agent without a person prints, line by line: the one trait, for the two kinds of decoders.

use std::time::Duration;

use ralph_core::{
    judge::{
        ToolUse,
        session_outcome::{Outcome, Trouble, Work},
    },
    text::time::Millis,
};

use super::Heard;
use crate::sys::secrets;

/// How long a client may wait for what it runs in the background after its agent has come to an end. The older one waits for 5 seconds, the newer one for as
/// long as a server lives.
const PATIENCE: Duration = Duration::from_mins(2);

/// Makes sense of a session's lines.
pub(crate) trait Decode: Send {
    /// Takes one line, and puts what is to be told into `told`.
    fn line(&mut self, line: &[u8], told: &mut Vec<Heard>) -> Line;
    /// Whether the agent has come to its end, and only the process has not.
    fn is_over(&self) -> bool;
    /// The beginning of a conversation over its standard input, which stays open then; `None`: it gets the prompt there, and nothing else.
    fn first_words(&mut self) -> Option<Vec<u8>> {
        None
    }
    /// Lines to send, after a line of its own.
    fn words_to_send(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }
    /// Lines to send before it is ended.
    fn cancel(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }
    /// How long its process may live on after it has come to its end, and nothing is heard.
    fn patience(&self) -> Duration {
        PATIENCE
    }
    /// Whether it only repeats an error, and will not stop by itself.
    fn is_stuck(&self) -> bool {
        false
    }
    /// How the session ended, if it ended by itself. `complaint` is what the program said to a person.
    fn outcome(&self, exit: Exit, complaint: &str) -> Outcome;
    /// The last message.
    fn text(&self) -> Option<String>;
    fn tools(&self) -> ToolUse;
    /// The session's use.
    fn work(&self) -> Work;
    /// When the newest line was written, where the agent says so.
    fn at(&self) -> Option<Millis> {
        None
    }
    /// How full the context is now, in tokens, and how large it is; `None`: nothing tells.
    fn context(&self) -> Option<(u64, u64)> {
        None
    }
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Event,
    /// A piece of a message that comes again as a whole.
    Piece,
    /// The service holds the connection open; nothing is worked on.
    Ping,
    /// No event at all.
    Plain,
}

/// How the agent's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// The outcome of a session that told of no end. A program that only complains does not accept its arguments or its settings.
pub(super) fn without_result(begun: bool, exit: Exit, complaint: &str) -> Outcome {
    let trouble = match exit {
        Exit { code: Some(code @ (126 | 127)), .. } if !begun => Trouble::CannotStart { why: why(code, complaint) },
        Exit { code: Some(code @ 1), .. } if !begun && !complaint.trim().is_empty() => Trouble::CannotStart { why: why(code, complaint) },
        Exit { code, signal } => Trouble::Crash { code, signal },
    };
    Outcome::Failed { trouble }
}

/// Why a program did not start, in its own words.
pub(crate) fn why(code: i32, complaint: &str) -> String {
    match secrets::excerpt(complaint, 300) {
        none if none.is_empty() => format!("exit code {code}"),
        words => words,
    }
}
