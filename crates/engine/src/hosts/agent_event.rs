//! Events of an agent while it works, whichever agent it is.

use ralph_core::text::PlainLines;
use serde::Serialize;

use crate::sys::secrets;

/// Of a longer line of a plain program only its beginning is told.
const MAX_SHOWN: usize = 2_000;

/// An event of an agent while it works.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "heard")]
pub enum Heard {
    /// The session is there.
    Session { session: String, model: Option<String>, permission_mode: Option<String>, client: Option<String> },
    /// Words of the agent's; a piece of a message where the agent streams it. The last piece of a message ends with a line break: pieces are shown as one text.
    Text { text: String, of_subagent: bool },
    /// It thinks.
    Thinking,
    /// It uses a tool, about something: the command, the file.
    Tool { name: String, what: String, of_subagent: bool },
    /// That tool call came back.
    ToolEnded { failed: bool, of_subagent: bool },
    /// A tool call was denied.
    Denied { tool: String, what: String, rule: String },
    /// The client asks the service again.
    Retry { attempt: u64, after_ms: u64, status: Option<u16> },
    /// How much of the account's quota is used, in hundredths, where the service says so.
    Quota { used: Option<u64>, resets_at_ms: Option<i64>, quota: Option<String>, rejected: bool },
    /// The client makes the conversation shorter.
    Compacting,
    /// The usage until now.
    Used { tokens: u64, usd: Option<f64>, context: u64 },
    /// A line that is no event: what a plain program prints.
    Line { text: String },
}

impl Heard {
    /// A line of a plain program, as a terminal would show it.
    pub(crate) fn of_line(line: &[u8]) -> Self {
        let mut text = String::new();
        let mut plain = PlainLines::new(MAX_SHOWN);
        let mut keep = |line: &str| text.push_str(line);
        plain.feed(&secrets::mask_bytes(&line[..line.len().min(8 * MAX_SHOWN)]), &mut keep);
        plain.finish(&mut keep);
        Heard::Line { text }
    }
}
