//! An event that an agent's hook reports, in ralph's words.

use std::sync::OnceLock;

use ralph_core::loops::fnv1a;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// The agent wants to stop.
    Stop,
    SubagentStop,
    /// A turn ended in an error of the model's service.
    TurnFailed,
    /// A message for the agent: of a person, of a program, or scheduled.
    Prompt,
    /// A command that a person entered.
    TypedCommand,
    SessionStart,
    SessionEnd,
    /// The client wants the person's attention.
    Notification,
    /// The person interrupted the agent.
    Interrupted,
    #[default]
    Other,
}

impl Kind {
    /// A text for the agent can be the answer, and it goes to work with it.
    pub(crate) fn takes_context(self) -> bool {
        matches!(self, Kind::Prompt | Kind::TypedCommand | Kind::SessionStart)
    }
}

/// One event. A field is empty where the agent does not send it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    pub kind: Kind,
    /// The agent's own name for it.
    pub name: String,
    pub session: Option<String>,
    /// The id of the person's turn.
    pub turn: Option<String>,
    pub cwd: Option<String>,
    /// The path of the session's transcript.
    pub transcript: String,
    /// The last text block of the agent's last message.
    pub message: Option<String>,
    /// The transcript did not come to say that it has everything of this stop: the message may be that of the stop before, or missing.
    pub is_late: bool,
    /// The stop before this one was in the same turn, and the agent was sent back then; by which hook is not told.
    pub after_a_block: bool,
    /// Tasks that still run in the background, in words.
    pub background: Vec<String>,
    /// The text of a prompt.
    pub prompt: String,
    /// A command that the agent expanded: its name and its arguments.
    pub command: Option<(String, String)>,
    /// The id of a subagent.
    pub agent_id: Option<String>,
    /// The detail that matters: the error, the type of a subagent, why a session began or ended, what a notification is for.
    pub about: Option<String>,
    /// What the model's service said of a turn that failed.
    pub error: String,
    /// Made once: a message can have some megabytes.
    pub(super) fingerprint: OnceLock<String>,
}

impl Event {
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// A fingerprint of this stop. The agent gives a stop no id of its own, so two stops with the same words in the same turn look alike:
    /// only together with who reports it does this identify one.
    pub(crate) fn stop_fingerprint(&self) -> String {
        let made = || {
            let [session, turn, message] = [&self.session, &self.turn, &self.message].map(|field| field.as_deref().unwrap_or_default());
            fingerprint(self.after_a_block, session, turn, message)
        };
        self.fingerprint.get_or_init(made).clone()
    }
}

/// A fingerprint of a stop of `session` in a turn of the person's.
pub(crate) fn fingerprint(after_a_block: bool, session: &str, turn: &str, message: &str) -> String {
    let parts = [session, turn, message].join("\0");
    format!("{:016x}", fnv1a(format!("{after_a_block}\0{parts}").as_bytes()))
}
