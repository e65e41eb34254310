//! The exit codes, and failures on their way to one. The numbers are part of the interface: scripts and schedulers read them.

use ralph_engine::{ops::Refusal, run::events::End, store};

use crate::ui;

/// Something went wrong, or was refused.
pub(crate) const FAILED: u8 = End::Failed.exit();
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// There is no loop to do it to.
pub(crate) const NO_LOOP: u8 = 3;
/// A run reached a limit of its loop's.
pub(crate) const CAPPED: u8 = End::Capped.exit();
/// Iterations changed nothing.
pub(crate) const STALLED: u8 = End::Stalled.exit();
/// Only a person can go on.
pub(crate) const BLOCKED: u8 = End::Blocked.exit();
/// Something outside has not been decided yet: try again later.
pub(crate) const PARKED: u8 = End::Parked.exit();
/// A person or the system ended it before it was done.
pub(crate) const INTERRUPTED: u8 = End::Interrupted.exit();

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// Standard output has its JSON already.
    pub(crate) in_json: bool,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Failure { code: FAILED, message: message.into(), in_json: false }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure { code: USAGE, message: message.into(), in_json: false }
    }

    /// What is wrong was said already; only the exit code is missing.
    pub(crate) fn reported() -> Self {
        Failure { code: FAILED, message: String::new(), in_json: false }
    }

    pub(crate) fn no_loop() -> Self {
        Failure { code: NO_LOOP, message: Refusal::NoLoop.to_string(), in_json: false }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::NoLoop | Refusal::NoSuch { .. } => NO_LOOP,
            Refusal::Which { .. } => USAGE,
            Refusal::Because(_) | Refusal::Store(_) => FAILED,
        };
        Failure { code, message: refusal.to_string(), in_json: false }
    }
}

impl From<store::Error> for Failure {
    fn from(e: store::Error) -> Self {
        Failure::new(e.to_string())
    }
}

/// What a command returns.
pub(crate) type Done = Result<(), Failure>;

/// For a command with `--json`: a program that reads standard output finds JSON there in any case.
pub(crate) fn told(json: bool, done: Done) -> Done {
    let Err(failure) = done else { return Ok(()) };
    if !json || failure.in_json {
        return Err(failure);
    }
    let kind = match failure.code {
        NO_LOOP => "no-loop",
        USAGE => "usage",
        CAPPED => "capped",
        STALLED => "stalled",
        BLOCKED => "blocked",
        PARKED => "parked",
        INTERRUPTED => "interrupted",
        _ => "failed",
    };
    ui::try_json(&serde_json::json!({ "error": { "kind": kind, "message": failure.message } }).to_string());
    Err(Failure { in_json: true, ..failure })
}

/// Turns a command's end into the process's.
pub(crate) fn code(done: Done) -> u8 {
    match done {
        Ok(()) => 0,
        // Not an error: it is what was asked, answered.
        Err(failure) if failure.code == NO_LOOP => {
            if !failure.in_json {
                ui::paragraph(ui::harmless(&failure.message), 0);
            }
            NO_LOOP
        }
        Err(failure) if failure.message.is_empty() => failure.code,
        Err(failure) => {
            ui::error(&failure.message);
            failure.code
        }
    }
}
