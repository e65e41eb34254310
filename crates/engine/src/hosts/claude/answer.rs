//! What ralph may answer to Claude Code: one JSON object on one line, or nothing at all.
//!
//! Anything else is invisible to the person or a schema error (`"decision":"allow"` is one), so these are the only shapes there are.

use ralph_core::loops::ContinueWith;
use serde::Serialize;

use crate::{
    hosts::claude::caller::{CONTEXT_SINCE, Version},
    sys::secrets,
};

/// Longer context is replaced by a preview; the client counts as JavaScript does.
const MAX_CONTEXT: usize = 10_000;

/// An answer to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Let it be, without a word.
    Silent,
    /// Let it be, and tell the person.
    Tell { line: String },
    /// Send the agent back: its text as the reason of a block.
    Block { reason: String, line: String },
    /// Give the agent a text as context of an event (for `Stop` and `SubagentStop` that sends it back, without an error's label), and perhaps tell the person.
    Context { event: &'static str, text: String, line: Option<String> },
    /// Answer the person instead of the model.
    Instead { text: String },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    goes_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'static str,
    additional_context: &'a str,
}

impl Answer {
    /// How to send the agent back, in the form that the loop asks for or the client's version suggests.
    pub fn go_on(text: String, line: String, form: ContinueWith, client: Option<Version>) -> Self {
        let fits = text.encode_utf16().count() <= MAX_CONTEXT;
        let context = match form {
            ContinueWith::Block => false,
            ContinueWith::Context => true,
            ContinueWith::Auto => client.is_some_and(|v| v >= CONTEXT_SINCE),
        };
        // A prompt that the client would cut down to a preview goes as a block whatever was asked for: no word of it may be lost.
        if context && fits { Answer::Context { event: "Stop", text, line: Some(line) } } else { Answer::Block { reason: text, line } }
    }

    /// The same at another event than `Stop`.
    #[must_use]
    pub fn at(self, event: &'static str) -> Self {
        match self {
            Answer::Context { text, line, .. } => Answer::Context { event, text, line },
            other => other,
        }
    }

    /// The same with one line more for the person.
    #[must_use]
    pub fn and_tell(self, more: &str) -> Self {
        let with = |line: String| if line.is_empty() { more.to_owned() } else { format!("{line}\n{more}") };
        match self {
            Answer::Silent => Answer::Tell { line: more.to_owned() },
            Answer::Tell { line } => Answer::Tell { line: with(line) },
            Answer::Block { reason, line } => Answer::Block { reason, line: with(line) },
            Answer::Context { event, text, line } => Answer::Context { event, text, line: Some(with(line.unwrap_or_default())) },
            Answer::Instead { text } => Answer::Instead { text: with(text) },
        }
    }

    /// What the person is told.
    fn line(&self) -> Option<&str> {
        match self {
            Answer::Silent => None,
            Answer::Tell { line } | Answer::Block { line, .. } | Answer::Instead { text: line } => Some(line),
            Answer::Context { line, .. } => line.as_deref(),
        }
    }

    /// The line to print; `None` for silence.
    pub fn to_json(&self) -> Option<String> {
        let empty =
            Wire { goes_on: None, stop_reason: None, decision: None, reason: None, hook_specific_output: None, system_message: None };
        // What the agent gets holds the person's own prompt, and is masked where it is made.
        let told = self.line().map(secrets::mask);
        let told = told.as_deref();
        let wire = match self {
            Answer::Silent => return None,
            Answer::Tell { .. } => Wire { system_message: told, ..empty },
            Answer::Block { reason, .. } => Wire { decision: Some("block"), reason: Some(reason), system_message: told, ..empty },
            Answer::Context { event, text, .. } => {
                let specific = Specific { hook_event_name: event, additional_context: text };
                Wire { hook_specific_output: Some(specific), system_message: told, ..empty }
            }
            Answer::Instead { .. } => Wire { goes_on: Some(false), stop_reason: told, ..empty },
        };
        serde_json::to_string(&wire).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s0_10_answers_are_one_compact_line() {
        let json = |a: Answer| a.to_json();
        assert_eq!(json(Answer::Silent), None);
        assert_eq!(json(Answer::Tell { line: "x".into() }).as_deref(), Some(r#"{"systemMessage":"x"}"#));
        let block = Answer::Block { reason: "a\n\"b\"".into(), line: "l".into() };
        assert_eq!(json(block).as_deref(), Some(r#"{"decision":"block","reason":"a\n\"b\"","systemMessage":"l"}"#));
        assert_eq!(json(Answer::Instead { text: "t".into() }).as_deref(), Some(r#"{"continue":false,"stopReason":"t"}"#));
    }

    #[test]
    fn the_context_form_needs_a_client_that_knows_it_and_a_text_that_fits() {
        let form = |text: &str, form, client| matches!(Answer::go_on(text.to_owned(), String::new(), form, client), Answer::Context { .. });
        assert!(form("p", ContinueWith::Auto, Some((2, 1, 163))));
        assert!(!form("p", ContinueWith::Auto, Some((2, 1, 162))));
        assert!(!form("p", ContinueWith::Auto, None));
        assert!(!form(&"😀".repeat(5_001), ContinueWith::Auto, Some((2, 1, 325))));
        assert!(form("p", ContinueWith::Context, None));
        assert!(!form(&"p".repeat(10_001), ContinueWith::Context, None));
        assert!(!form("p", ContinueWith::Block, Some((2, 1, 325))));
    }
}
