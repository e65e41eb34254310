//! Claude Code for one session without a person: its command line, and the variables that it must not see.

use std::ffi::OsString;

use ralph_core::money::{Micros, in_dollars};

/// Variables that make the client believe that it runs within another session, or speak to that one, or wait silently for the end of a limit.
pub(crate) const FOREIGN: [&str; 15] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_RETRY_WATCHDOG",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PROJECT_DIR",
];

/// The settings of one session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    /// A UUID that no session has had.
    pub session: &'a str,
    pub model: Option<&'a str>,
    pub permission_mode: Option<&'a str>,
    /// 0 means no limit.
    pub usd_micros_left: Micros,
}

impl Launch<'_> {
    /// The arguments; the prompt comes on the standard input.
    ///
    /// Pieces of messages are asked for, because only they show that a long answer is still being written. Tools that ask a person are not offered in
    /// print mode (2.1.197, 2.1.325), so nothing has to be said about them.
    pub(crate) fn args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> =
            ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--session-id", self.session]
                .map(Into::into)
                .into();
        let mut add = |name: &str, value: Option<&str>| args.extend(value.into_iter().flat_map(|value| [name.into(), value.into()]));
        add("--model", self.model);
        add("--permission-mode", self.permission_mode);
        let budget = (self.usd_micros_left > 0).then(|| in_dollars(self.usd_micros_left).to_string());
        add("--max-budget-usd", budget.as_deref());
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_6_a_session_is_started_with_what_is_left_and_no_more() {
        let bare = Launch { session: "id", model: None, permission_mode: None, usd_micros_left: 0 };
        let start = "-p --output-format stream-json --verbose --include-partial-messages --session-id id";
        let line = |launch: Launch<'_>| launch.args().iter().map(|arg| arg.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ");
        assert_eq!(line(bare), start);
        let all = Launch { model: Some("opus"), permission_mode: Some("acceptEdits"), usd_micros_left: 1_230_000, ..bare };
        assert_eq!(line(all), format!("{start} --model opus --permission-mode acceptEdits --max-budget-usd 1.23"));
    }
}
