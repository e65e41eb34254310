//! Codex. Its hooks run in a process that all of its sessions share and that outlives its screen, so a process id says nothing about a session.

use super::Kind;
use super::host::{Answers, Context, Fields, Form, Host, Instead, Message, Registration, Signature};

pub(super) const HOST: Host = Host {
    name: "codex",
    title: "Codex",
    // The events that begin and end a session have no turn; their ids are of version 7, and those of Claude Code are not.
    signature: Signature {
        fields: &["turn_id"],
        else_by: |event| is_version_7(event.get("session_id").and_then(|id| id.as_str())),
        ..Signature::NONE
    },
    events: &[("Interrupt", Kind::Interrupted)],
    fields: Fields { turn: "turn_id", ..Fields::CLAUDE },
    message: Message::Event,
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: true },
    command_mark: '$',
    announces_clear: false,
    reports_typed: false,
    cap: None,
    registration: Some(Registration {
        folder: ".codex",
        moved_by: Some("CODEX_HOME"),
        file: "hooks.json",
        form: Form::Settings,
        in_milliseconds: false,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd", "Interrupt"],
        hasty_events: &["SessionEnd", "Interrupt"],
        // What a person types after `$ralph-loop` reaches the hook as it is, whether or not there is such a skill.
        commands: None,
        consent: Some("Codex runs new hooks only after you have reviewed them: it asks when it is started next"),
    }),
};

/// Whether an id is a UUID of version 7, which begins with the time.
fn is_version_7(id: Option<&str>) -> bool {
    id.is_some_and(|id| id.len() == 36 && id.as_bytes()[14] == b'7')
}
