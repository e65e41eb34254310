//! Qwen Code: in its hooks Claude Code's twin, typed commands included.

use super::host::{
    Answers, Cap, Clear, CommandForm, Context, Fields, Form, Host, Instead, Message, Off, Registration, Signature, Switch, Typed, Unit,
};

pub(super) const HOST: Host = Host {
    name: "qwen",
    title: "Qwen Code",
    // It sets Gemini's variables, too, and not the one with the session.
    signature: Signature { fields: &["context_usage", "crons"], session_in: Some("QWEN_CODE_SESSION_ID"), ..Signature::NONE },
    events: &[],
    fields: Fields::CLAUDE,
    message: Message::Event,
    // Context arrives with `&lt;` for `<` (measured with 0.24.4), and the reason of a block as it is.
    answers: Answers { context: Context::Nested, instead: Instead::Block, shows_line: true, escapes: true },
    command_mark: '/',
    typed: Typed::Everywhere,
    clear: Clear::Told,
    reports_typed: true,
    cap: Some(Cap { honours: 7, variable: Some("QWEN_CODE_STOP_HOOK_BLOCK_CAP") }),
    registration: Some(Registration {
        folder: ".qwen",
        moved_by: None,
        file: "settings.json",
        form: Form::Settings,
        unit: Unit::MillisecondsFrom1000,
        events: &["Stop", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd", "StopFailure"],
        hasty_events: &[],
        commands: Some(("commands", CommandForm::Markdown("{{args}}"))),
        consent: None,
        review: None,
        switches: &[Switch { file: "settings.json", keys: &["disableAllHooks"], off: Off::Is(true) }],
        status_line: Some(("settings.json", r#""ui": { "statusLine": { "type": "command", "command": "ralph statusline" } }"#)),
    }),
};
