//! The transcripts that Claude Code writes: one line of JSON for each block of a message, each change of its queue, and notes of its own.
//!
//! The hook reads them from their ends, and only as far as it has to.

mod backwards;
mod files;
mod iteration;
mod line;

use ralph_core::text::time::Millis;

use crate::hosts::claude::{prices, stream::Quota};
use backwards::LinesBack;

pub(crate) use backwards::OpenFile;
pub(crate) use backwards::Source;
pub(crate) use files::{Transcript, find, of_subagents};
pub(crate) use iteration::QUEUED;
pub(crate) use iteration::{Before, Iteration, last_iteration};
pub(super) use line::{Kind, Line, has};

/// How the client records Esc and Ctrl-C.
const INTERRUPTED: &str = "[Request interrupted by user";

/// How it records a message that a hook answered.
const ANSWERED: &str = "Operation stopped by hook";

/// Whether any tool was used after `since`, in however many iterations.
pub(crate) fn used_tools_since(source: &(impl Source + ?Sized), since: Millis) -> bool {
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let Some(line) = lines.line(place).filter(|l| !l.is_sidechain) else { continue };
        if line.is_older(Some(since)) {
            return false;
        }
        if line.message.is_some_and(|m| m.content.tool_use || m.content.tool_result) {
            return true;
        }
    }
    false
}

/// Whether the agent named `what` in a tool call since the previous ruling: then it may be the one who changed it.
pub(crate) fn named_in_tools(source: &(impl Source + ?Sized), since: Option<Millis>, what: &str) -> bool {
    let finder = memchr::memmem::Finder::new(what.as_bytes());
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let is_named = lines.bytes(place).is_some_and(|bytes| finder.find(bytes).is_some());
        let Some(line) = lines.line(place) else {
            // Too long, or not to be read at all: it may be anything.
            if is_named {
                return true;
            }
            continue;
        };
        if line.is_older(since) {
            return false;
        }
        if is_named && line.message.is_some_and(|m| m.content.tool_use) {
            return true;
        }
    }
    // What was not read may hold anything.
    lines.cut
}

/// The last thing that happened in the conversation.
pub(crate) struct LastTalk {
    pub at: Option<Millis>,
    /// The person interrupted the agent.
    pub interrupted: bool,
}

/// Whether the last thing that happened in the conversation, before `typed` came, is that the person interrupted the agent.
#[cfg(test)]
pub(crate) fn was_interrupted(source: &(impl Source + ?Sized), typed: &str) -> bool {
    last_talk(source, typed).is_some_and(|last| last.interrupted)
}

/// The end of the conversation before `typed` came.
pub(crate) fn last_talk(source: &(impl Source + ?Sized), typed: &str) -> Option<LastTalk> {
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let Some(line) = lines.line(place).filter(|line| line.is_talk() && !line.is_sidechain && !line.is_meta) else { continue };
        let text = line.message.as_ref().filter(|_| line.kind == Kind::User).map(|m| m.content.first_text().unwrap_or_default());
        match text {
            // Nothing is known of it.
            None if line.kind == Kind::User => {}
            // The message that is being submitted may already be there, and so may a command that a hook answered.
            Some(text) if is_typed(text, typed) || text.starts_with("<command-") || text.starts_with(ANSWERED) => {}
            text => return Some(LastTalk { at: line.at(), interrupted: text.is_some_and(|text| text.starts_with(INTERRUPTED)) }),
        }
    }
    None
}

fn is_typed(text: &str, typed: &str) -> bool {
    !text.is_empty() && text.trim() == typed.trim()
}

/// The error that a turn ended in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// The client's word for it.
    pub error: String,
    pub status: Option<u16>,
    /// When the account's quota is available again, and which one it is; newer clients say so.
    pub resets_at: Option<Millis>,
    pub quota: Option<String>,
}

/// The error at the transcript's end, if it ends in one.
pub(crate) fn last_error(source: &(impl Source + ?Sized)) -> Option<ApiError> {
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let Some(line) = lines.line(place).filter(|line| !line.is_sidechain) else { continue };
        match line.kind {
            Kind::Assistant if line.is_api_error => {
                let newer = &line.api_error_params["rate_limit_info"];
                let quota = Quota::of(if line.quota_limits.is_object() { &line.quota_limits } else { newer });
                return Some(ApiError {
                    error: line.error.as_str().unwrap_or_default().to_owned(),
                    status: line.api_error_status.as_u64().and_then(|status| u16::try_from(status).ok()),
                    resets_at: quota.resets_at.filter(|at| *at > 0),
                    quota: quota.name,
                });
            }
            Kind::Assistant | Kind::User => return None,
            _ => {}
        }
    }
    None
}

/// How full the model's context was at its last answer, in percent; `None`: nothing tells, or the conversation was compacted since.
pub(crate) fn context_percent(source: &(impl Source + ?Sized)) -> Option<u64> {
    let mut lines = LinesBack::new(source);
    while let Some(place) = lines.next() {
        let bytes = lines.bytes(place)?;
        if !has(bytes, b"\"usage\"") && !has(bytes, b"\"compact_boundary\"") {
            continue;
        }
        let Some(line) = Line::parse(bytes) else { continue };
        if line.kind == Kind::System && line.subtype == "compact_boundary" {
            return None;
        }
        let Some(message) = line.message.filter(|_| line.kind == Kind::Assistant && !line.is_sidechain) else { continue };
        if let (Some(model), false) = (&message.model, message.is_clients()) {
            let tokens = message.usage().prompt();
            return Some(tokens.saturating_mul(100) / prices::window(line.requested_model.as_str().unwrap_or(model), tokens));
        }
    }
    None
}

#[cfg(test)]
mod tests;
