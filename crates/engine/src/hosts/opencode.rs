//! opencode. It runs no command as a hook, so that a plugin of ralph's own (`opencode.js`) sends the events, in Claude Code's words, and does what is answered.

use super::Kind;
use super::host::{Answers, Clear, CommandForm, Context, Fields, Form, Host, Instead, Message, Registration, Signature, Typed, Unit};

pub(super) const HOST: Host = Host {
    name: "opencode",
    title: "opencode",
    signature: Signature { fields: &["opencode"], ..Signature::NONE },
    events: &[("Interrupt", Kind::Interrupted)],
    fields: Fields::CLAUDE,
    message: Message::Event,
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: false },
    command_mark: '/',
    typed: Typed::Everywhere,
    clear: Clear::NotSeen,
    reports_typed: true,
    cap: None,
    registration: Some(Registration {
        folder: ".config/opencode",
        moved_by: Some(("XDG_CONFIG_HOME", "opencode")),
        file: "plugin/ralph.js",
        form: Form::Plugin(include_str!("opencode.js")),
        unit: Unit::Seconds,
        events: &["Stop", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "Interrupt"],
        hasty_events: &[],
        commands: Some(("command", CommandForm::Markdown("$ARGUMENTS"))),
        consent: None,
        review: None,
        switches: &[],
        status_line: None,
    }),
};
