//! Claude Code as a row of the table of agents.

use crate::hosts::host::{Answers, Cap, Clear, Context, Fields, Host, Instead, Message, Signature, Typed};

use super::registration::BLOCK_CAP;

pub(in crate::hosts) const HOST: Host = Host {
    name: "claude",
    title: "Claude Code",
    signature: Signature { session_in: Some("CLAUDE_CODE_SESSION_ID"), ..Signature::NONE },
    events: &[],
    fields: Fields::CLAUDE,
    message: Message::Claude,
    answers: Answers { context: Context::Nested, instead: Instead::Stop, shows_line: true, escapes: false },
    command_mark: '/',
    typed: Typed::Everywhere,
    clear: Clear::Told,
    reports_typed: true,
    cap: Some(Cap { honours: 8, variable: Some(BLOCK_CAP) }),
    registration: None,
};
