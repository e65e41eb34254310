//! Programs that send notifications: run within a time limit, and their output is never quoted.

use std::{
    ffi::OsString,
    path::Path,
    time::{Duration, Instant},
};

use ralph_core::text::{opening, time};

use super::News;
use crate::sys::command::{self, Failure, Ran, Task};

/// The part of the time that is for ending a program that hangs.
const TO_END: Duration = Duration::from_millis(600);

/// An answer is a few numbers at most.
const MOST_OUTPUT: usize = 4 * 1024;

/// Runs a program until then at most.
pub(super) fn run(
    program: OsString,
    args: Vec<OsString>,
    folder: &Path,
    vars: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    until: Instant,
) -> Result<Ran, Failure> {
    let left = until.saturating_duration_since(Instant::now());
    let limit = left.saturating_sub(TO_END).max(left / 2);
    Task { program, args, folder, vars, hidden: Vec::new(), input, limit, most_output: MOST_OUTPUT }.run()
}

/// Why a program failed, in a few words.
pub(super) fn problem(ran: Result<Ran, Failure>) -> Result<Ran, String> {
    match ran {
        Ok(ran) if ran.code == Some(0) => Ok(ran),
        Ok(Ran { code: Some(code), .. }) => Err(format!("ended with exit code {code}")),
        Ok(_) => Err("was ended by a signal".to_owned()),
        Err(Failure::CannotStart(e)) => Err(format!("cannot be started: {e}")),
        Err(Failure::TookTooLong | Failure::Cancelled) => Err("did not end in time".to_owned()),
    }
}

/// Runs a shell line, with the news in its environment and as JSON on its standard input.
pub(super) fn command(line: &str, news: &News<'_>, until: Instant) -> Result<(), String> {
    let (program, args) = command::shell(line);
    let vars: [(&str, OsString); 9] = [
        ("RALPH_NEWS", news.kind.as_str().into()),
        ("RALPH_HOW", news.how.into()),
        ("RALPH_LOOP", news.loop_id.into()),
        ("RALPH_NAME", news.name.into()),
        ("RALPH_ITERATION", news.iteration.to_string().into()),
        ("RALPH_UNTIL", news.until.map(time::format).unwrap_or_default().into()),
        ("RALPH_TITLE", news.title().into()),
        ("RALPH_LINE", news.body().into()),
        ("RALPH_PROJECT", news.folder.into()),
    ];
    let vars = vars.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let input = news.document().to_string().into_bytes();
    problem(run(program, args, news.folder, vars, input, until))
        .map(drop)
        .map_err(|why| format!("the notification command `{}` {why}", opening(line, 60)))
}
