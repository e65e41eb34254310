//! Grok.

use super::host::{Answers, Cap, Clear, CommandForm, Context, Fields, Form, Host, Instead, Message, Registration, Signature, Typed, Unit};

pub(super) const HOST: Host = Host {
    name: "grok",
    title: "Grok",
    signature: Signature { fields: &["hookEventName"], session_in: Some("GROK_SESSION_ID"), ..Signature::NONE },
    events: &[],
    fields: Fields {
        turn: "promptId",
        message: "lastAssistantMessage",
        after_a_block: "stopHookActive",
        background: "backgroundTasks",
        ..Fields::CLAUDE
    },
    message: Message::Event,
    answers: Answers { context: Context::Ignored, instead: Instead::Block, shows_line: true, escapes: false },
    command_mark: '/',
    typed: Typed::Everywhere,
    clear: Clear::NotSeen,
    reports_typed: false,
    cap: Some(Cap { honours: 8, variable: None }),
    registration: Some(Registration {
        folder: ".grok",
        moved_by: None,
        file: "hooks/ralph.json",
        form: Form::Own,
        unit: Unit::Seconds,
        events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd", "StopFailure"],
        hasty_events: &[],
        commands: Some(("commands", CommandForm::Markdown("$ARGUMENTS"))),
        consent: None,
        review: None,
        switches: &[],
        status_line: Some(("config.toml", "[ui.status_line]\ntype = \"command\"\ncommand = \"ralph statusline\"")),
    }),
};
