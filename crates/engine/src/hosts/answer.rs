//! Ralph's answer to an event, in its own words.

use ralph_core::loops::ContinueWith;

use super::Client;

/// Longer context is replaced by a preview; Claude Code counts as JavaScript does.
const MAX_CONTEXT: usize = 10_000;

/// An answer to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Let it be, without a word.
    Silent,
    /// Let it be, and tell the person.
    Tell { line: String },
    /// Send the agent back with a text, as the reason of a block.
    Block { reason: String, line: String },
    /// Give the agent a text as context (at a stop that sends it back, too, but is not shown as an error), and perhaps tell the person.
    Context { text: String, line: Option<String> },
    /// Answer the person instead of the model.
    Instead { text: String },
}

impl Answer {
    /// Sends the agent back, in the form that the loop asks for or the client's version suggests.
    pub(crate) fn go_on(text: String, line: String, form: ContinueWith, client: Client) -> Self {
        let fits = text.encode_utf16().count() <= MAX_CONTEXT;
        let context = match form {
            ContinueWith::Block => false,
            ContinueWith::Context => true,
            ContinueWith::Auto => client.takes_context,
        };
        // A prompt that the client would cut down to a preview goes as a block whatever was asked for: no word of it may be lost.
        if context && fits { Answer::Context { text, line: Some(line) } } else { Answer::Block { reason: text, line } }
    }

    /// The same with one line more for the person.
    #[must_use]
    pub(crate) fn and_tell(self, more: &str) -> Self {
        let with = |line: String| if line.is_empty() { more.to_owned() } else { format!("{line}\n{more}") };
        match self {
            Answer::Silent => Answer::Tell { line: more.to_owned() },
            Answer::Tell { line } => Answer::Tell { line: with(line) },
            Answer::Block { reason, line } => Answer::Block { reason, line: with(line) },
            Answer::Context { text, line } => Answer::Context { text, line: Some(with(line.unwrap_or_default())) },
            Answer::Instead { text } => Answer::Instead { text: with(text) },
        }
    }

    /// The line that the person sees.
    pub(super) fn line(&self) -> Option<&str> {
        match self {
            Answer::Silent => None,
            Answer::Tell { line } | Answer::Block { line, .. } | Answer::Instead { text: line } => Some(line),
            Answer::Context { line, .. } => line.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_form_needs_a_client_that_knows_it_and_a_text_that_fits() {
        let form = |text: &str, form, client| matches!(Answer::go_on(text.to_owned(), String::new(), form, client), Answer::Context { .. });
        let (old, new) = (Client::default(), Client { takes_context: true, ..Client::default() });
        assert!(form("p", ContinueWith::Auto, new));
        assert!(!form("p", ContinueWith::Auto, old));
        assert!(!form(&"😀".repeat(5_001), ContinueWith::Auto, new));
        assert!(form("p", ContinueWith::Context, old));
        assert!(!form(&"p".repeat(10_001), ContinueWith::Context, old));
        assert!(!form("p", ContinueWith::Block, new));
    }
}
