//! The agent's last message, at the end of a transcript.

use std::{path::Path, time::Duration};

use ralph_core::text::time::Millis;
use serde_json::Value;

use super::host::Line;
use crate::sys::{files, wait};

/// A message that is further back is none of the last turn's.
const MOST_BYTES: u64 = 4 << 20;

/// Copilot's transcript was up to 84 ms behind; a busy machine may take longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The words of the agent since the last prompt, if there are any. `called_at`: the transcript lags, and has everything once it says that the stop hook was called then.
/// Where it does not come to say that, its last words are as good as they are, and `true` with them: they may be those of the stop before.
pub(super) fn last_message(path: &str, line: fn(&Value) -> Line, called_at: Option<Millis>) -> (Option<String>, bool) {
    let look = |called_at| files::read_end(Path::new(path), MOST_BYTES).map_or(Said::Late, |bytes| said(&bytes, line, called_at));
    let in_time = wait::poll(if called_at.is_some() { PATIENCE } else { Duration::ZERO }, wait::SOON, || match look(called_at) {
        Said::Late if called_at.is_some() => None,
        said => Some(said),
    });
    let is_late = in_time.is_none();
    match in_time.unwrap_or_else(|| look(None)) {
        Said::Message(text) => (Some(text), is_late),
        Said::Nothing | Said::Late => (None, is_late),
    }
}

enum Said {
    Message(String),
    Nothing,
    /// The transcript does not know of this stop yet.
    Late,
}

fn said(bytes: &[u8], line: fn(&Value) -> Line, called_at: Option<Millis>) -> Said {
    let mut is_complete = called_at.is_none();
    for bytes in bytes.split(|byte| *byte == b'\n').rev() {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { continue };
        match line(&value) {
            Line::StopHook(at) => is_complete |= called_at.is_some_and(|called| at >= called),
            _ if !is_complete => {}
            Line::Agent(text) if !text.trim().is_empty() => return Said::Message(text),
            Line::Prompt => return Said::Nothing,
            Line::Agent(_) | Line::Other => {}
        }
    }
    if is_complete { Said::Nothing } else { Said::Late }
}
