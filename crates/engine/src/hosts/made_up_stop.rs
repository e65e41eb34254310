//! A stop of an agent that never worked, in that agent's words: for trying out a registration.

use std::path::Path;

use serde_json::{Value, json};

use super::host::{Host, Message};

impl Host {
    /// The event of a stop after these words, and what the agent would have in the transcript at that path. Nothing in the environment is needed to recognise it.
    pub(crate) fn made_up_stop(&self, session: &str, cwd: &Path, transcript: &Path, said: &str) -> (Value, Option<String>) {
        let name = self.registration.as_ref().and_then(|registration| registration.events.first()).unwrap_or(&"Stop");
        let mut event = json!({"hook_event_name": name, "cwd": cwd, self.fields.session: session, self.fields.after_a_block: false});
        if let Some(sign) = self.signature.fields.first() {
            event[*sign] = "doctor".into();
        }
        match self.message {
            Message::Claude | Message::Event => {
                event[self.fields.message] = said.into();
                (event, None)
            }
            Message::Transcript { written, .. } => {
                event[self.fields.transcript] = transcript.display().to_string().into();
                (event, Some(format!("{}\n", written(said))))
            }
        }
    }
}
