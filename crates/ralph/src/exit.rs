//! Exit codes, and failures on their way to one. Scripts and schedulers read the numbers.

use std::{io, path::Path};

use ralph_engine::{ops::Refusal, run::events::End, setup, store};

use crate::ui;

pub(crate) const FAILED: u8 = End::Failed.exit();
pub(crate) const USAGE: u8 = 2;
pub(crate) const NO_LOOP: u8 = 3;
pub(crate) const CAPPED: u8 = End::Capped.exit();
pub(crate) const STALLED: u8 = End::Stalled.exit();
pub(crate) const BLOCKED: u8 = End::Blocked.exit();
pub(crate) const PARKED: u8 = End::Parked.exit();
pub(crate) const INTERRUPTED: u8 = End::Interrupted.exit();

/// The exit codes: in a word, and in a sentence.
pub(crate) const EXIT_CODES: [(u8, &str, &str); 9] = [
    (0, "done", "Done. A hook call ends with 0 whatever was decided."),
    (FAILED, "failed", "Something went wrong, or was refused; standard error says what."),
    (
        USAGE,
        "usage",
        "Wrong usage. Under an agent (CLAUDE_PROJECT_DIR is set) an unknown command or option ends with 1, because a 2 would block the agent.",
    ),
    (NO_LOOP, "no loop", "There is no loop to do it to."),
    (CAPPED, "capped", "`ralph run` ended at a limit of the loop: iterations, time, money or tokens."),
    (STALLED, "stalled", "`ralph run` ended because iterations changed nothing, or went back and forth."),
    (BLOCKED, "blocked", "`ralph run` ended because only a person can go on: to sign in, to trust a command, to allow a tool."),
    (
        PARKED,
        "parked",
        "Something outside, such as CI, is not decided yet, or (`ralph run --no-wait`) a quota is used up: try again later.",
    ),
    (
        INTERRUPTED,
        "interrupted",
        "Ctrl-C, or a request to end, before `ralph run`, `ralph gate` or `ralph pr --wait` was done; commands were ended first. Also `ralph run` when its loop is paused or cancelled elsewhere.",
    ),
];

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// Empty if the command has printed it already.
    pub(crate) message: String,
    /// Standard output has its JSON already.
    pub(crate) in_json: bool,
}

impl Failure {
    pub(crate) fn coded(code: u8, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), in_json: false }
    }

    pub(crate) fn new(message: impl Into<String>) -> Self {
        Failure::coded(FAILED, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::coded(USAGE, message)
    }

    /// The command has printed what is wrong; only the exit code is missing.
    pub(crate) fn reported() -> Self {
        Failure::new("")
    }

    pub(crate) fn no_loop() -> Self {
        Refusal::NoLoop.into()
    }

    /// For `map_err`: the file could not be written.
    pub(crate) fn cannot_write(path: &Path) -> impl Fn(io::Error) -> Self {
        move |e| Failure::new(format!("cannot write {}: {e}", path.display()))
    }

    /// For `map_err`: the file could not be read.
    pub(crate) fn cannot_read(path: &Path) -> impl Fn(io::Error) -> Self {
        move |e| Failure::new(format!("cannot read {}: {e}", path.display()))
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::NoLoop | Refusal::NoSuch { .. } => NO_LOOP,
            Refusal::Which { .. } => USAGE,
            Refusal::Because(_) | Refusal::Store(_) => FAILED,
        };
        Failure::coded(code, refusal.to_string())
    }
}

impl From<store::Error> for Failure {
    fn from(e: store::Error) -> Self {
        Failure::new(e.to_string())
    }
}

impl From<setup::Problem> for Failure {
    fn from(problem: setup::Problem) -> Self {
        Failure::new(problem.to_string())
    }
}

pub(crate) type Done = Result<(), Failure>;

/// With `--json`, a program finds JSON on standard output whatever happens.
pub(crate) fn with_json(done: Done) -> Done {
    let failure = match done {
        Err(failure) if !failure.in_json && !failure.message.is_empty() => failure,
        done => return done,
    };
    let word = EXIT_CODES.iter().find(|(code, ..)| *code == failure.code).map_or("failed", |(_, word, _)| word);
    let kind = word.replace(' ', "-");
    ui::try_json(&serde_json::json!({ "error": { "kind": kind, "message": failure.message } }).to_string());
    Err(Failure { in_json: true, ..failure })
}

/// Prints a failure, and turns the end of a command into that of the process.
pub(crate) fn code(done: Done) -> u8 {
    let Err(Failure { code, message, in_json }) = done else { return 0 };
    match code {
        _ if message.is_empty() => {}
        NO_LOOP if in_json => {}
        // Not an error: it is the answer to what was asked.
        NO_LOOP => ui::paragraph(ui::harmless(&message), 0),
        _ => ui::error(&message),
    }
    code
}
