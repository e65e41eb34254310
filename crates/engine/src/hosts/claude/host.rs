//! Claude Code as a row of the table of agents.

use crate::hosts::{
    headless::Headless,
    host::{Advice, Answers, Cap, Clear, Context, Fields, Host, Instead, Message, Signature, Typed},
};

use super::{registration::BLOCK_CAP, stream::Stream};

pub(in crate::hosts) const HOST: Host = Host {
    name: "claude",
    title: "Claude Code",
    advice: Advice {
        allow: "add what you want to allow to permissions.allow in the client's settings",
        sign_in: "start `claude` and sign in (`/login`)",
        resume: Some("claude --resume"),
    },
    headless: Some(HEADLESS),
    signature: Signature { session_in: Some("CLAUDE_CODE_SESSION_ID"), ..Signature::NONE },
    events: &[],
    fields: Fields::CLAUDE,
    message: Message::Claude,
    answers: Answers { context: Context::Nested, instead: Instead::Stop, shows_line: true, escapes: false, longest: None },
    command_mark: '/',
    typed: Typed::Everywhere,
    expanded: None,
    clear: Clear::Told,
    reports_typed: true,
    cap: Some(Cap { honours: 8, variable: Some(BLOCK_CAP), setting: None }),
    session_files: None,
    registration: None,
};

/// Pieces of messages are asked for, because only they show that a long answer is still being written. Tools that ask a person are not offered in print mode
/// (2.1.197, 2.1.325), so nothing has to be said about them.
const HEADLESS: Headless = Headless {
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code",
    before: &["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"],
    model: Some("--model"),
    session: Some("--session-id"),
    budget: Some("--max-budget-usd"),
    modes: &[
        ("default", &["--permission-mode", "default"]),
        ("acceptEdits", &["--permission-mode", "acceptEdits"]),
        ("auto", &["--permission-mode", "auto"]),
        ("dontAsk", &["--permission-mode", "dontAsk"]),
        ("bypassPermissions", &["--permission-mode", "bypassPermissions"]),
    ],
    // What its settings allow is looked at before a run.
    needs_mode: false,
    heeds_interrupts: true,
    stream: |launch| Box::new(Stream::of_session(launch.session)),
    ..Headless::PLAIN
};

#[cfg(test)]
mod tests {
    use crate::hosts::{headless::Launch, prices::Prices};

    use super::*;

    #[test]
    fn s4_6_a_session_is_started_with_what_is_left_and_no_more() {
        let prices = Prices::default();
        let bare = Launch { session: "id", ..Launch::of_log(&prices) };
        let start = "-p --output-format stream-json --verbose --include-partial-messages --session-id id";
        let line =
            |launch: Launch<'_>| HEADLESS.args(&launch).iter().map(|arg| arg.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ");
        assert_eq!(line(bare), start);
        let all = Launch { model: Some("opus"), permission_mode: Some("acceptEdits"), usd_micros_left: 1_230_000, ..bare };
        assert_eq!(line(all), format!("{start} --model opus --max-budget-usd 1.23 --permission-mode acceptEdits"));
    }
}
